"""Images in class folders: the label of `class/image.jpg` is the folder's name."""

import posixpath
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Literal

import orjson

from recordmill.annotations.pairs import features_of_pairs
from recordmill.schemas.features import Feature
from recordmill.schemas.image_ref import ImageRef, Listed, Notice
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.folder_sketch import (
    FolderSketch,
    Names,
    Recognized,
    given_splits,
    likely_splits,
)
from recordmill.transforms.inputs.pair_names import is_telling, split_word_of
from recordmill.transforms.inputs.paired_images import PairPatterns, check_pairs
from recordmill.transforms.inputs.patterns import compile_pattern, find_split_word
from recordmill.transforms.inputs.sources.source import Source
from recordmill.transforms.inputs.unlikely_classes import NO_CLASS, says_nothing

_UNLABELED = "add --set source.class_from=none to convert all images without labels"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFolders(Source):
    """The source `class_folders`.

    Attributes:
        class_from: the folder of `a/b/image.jpg` that names the class: `first_folder` (a),
            `last_folder` (b) or `path` (a/b); `none`: no labels. The folder of
            `splits.from_folders` does not count.
        split: a regular expression (RE2) searched for in `/path/of/image.jpg`; its group `split` is
            the word for `splits.from_source`. A folder of that name does not count for
            `class_from`.
        pairs_of: for pairs of images, the path of the first one, with names in braces for what
            differs: `A/{name}.jpg`.
        pairs: for each image of `pairs_of`, the paths of further images, by name: `{target:
            "B/{name}.png"}` stores `image/target/encoded` and `image/target/format`.
    """

    class_from: Literal["first_folder", "last_folder", "path", "none"] = "first_folder"
    split: str = ""
    pairs_of: str = ""
    pairs: Mapping[str, str] = field(default_factory=dict)

    labels_from_folders: ClassVar[bool] = True
    takes_all_images: ClassVar[bool] = True
    split_settings: ClassVar[tuple[str, ...]] = ("split",)

    def __post_init__(self) -> None:
        """Raises ValueError if the pattern is invalid."""
        if self.split:
            compile_pattern(self.split, "source.split", "split")
        check_pairs(self.pairs_of, self.pairs)

    def annotations(self) -> Mapping[str, str]:
        """Returns that images have second ones, if the settings say so."""
        return {"pairs": "source.pairs"} if self.pairs else {}

    def features(self) -> tuple[Feature, ...]:
        """Returns the features of second images."""
        return features_of_pairs(self.pairs)

    @property
    def other_files(self) -> str:  # type: ignore[override]
        """The reason for ignored files: images may name second ones."""
        return "read_only_with_images" if self.pairs else "not_included"

    def idle_settings(self) -> Mapping[str, str]:
        """Returns `pairs_of` if there are no pairs."""
        return {} if self.pairs else {"pairs_of": "source.pairs is not set"}

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes class folders, also below split folders, and images without labels."""
        source: dict[str, Any] = {"kind": "class_folders"}
        splits = sketch.split_folders
        below = {*chain.from_iterable(sketch.at(folder).folders for folder in splits)}
        unlabeled = {
            "source": {**source, "class_from": "none"},
            **given_splits("from_folders", splits),
        }
        keys = ("source.class_from",)
        without = partial(Recognized, unlabeled, is_firm=False, needed_keys=keys)
        if wrappers := find_wrappers(sketch, splits):
            inner = wrappers[splits[0]]
            settings = given_splits("from_folders", splits)
            yield Recognized(
                {"source": {**source, "class_from": "last_folder"}, **settings},
                f"class folders below {posixpath.join(splits[0], inner)} and the like",
            )
        elif any(not NO_CLASS.fullmatch(folder.lower()) for folder in below):
            why, settings = (
                f"class folders below {', '.join(splits)}",
                given_splits("from_folders", splits),
            )
            yield Recognized({"source": source, **settings}, why)
        elif splits and any(sketch.at(folder).images for folder in splits):
            yield without(why="images without labels in split folders")
            classes = {"source": source, "labels": {"classes": list(splits)}}
            yield Recognized(classes, "class folders", False, only_if=("labels.classes",))
        elif below:
            needs = None
            if not all(_is_generic_alone(sketch, folder) for folder in splits):
                needs = f"{', '.join(sorted(below))} do not look like classes: {_UNLABELED}"
            yield without(why="images without labels in split folders", needs=needs)
        elif sketch.top.images and not any(map(sketch.holds_images, sketch.top.folders)):
            yield without(why="images without labels")
        elif likely := _find_flat_splits(sketch):
            settings = {**unlabeled, "splits": {"from_folders": likely}}
            needs = _ask_for_splits(likely)
            why = "images without labels in split folders"
            yield Recognized(settings, why, False, needs, (*keys, "splits.from_folders"))
        elif folder := _find_generic(sketch):
            yield without(why=f"images without labels, since {folder} does not name a class")
        elif sketch.top.folders:
            yield _as_classes(sketch, source)

    @property
    def remedies(self) -> Mapping[str, str]:
        """For images outside any folder."""
        unlabeled = "--set source.class_from=none takes images without labels"
        return {"no_class": f"images are expected in folders named after their class ({unlabeled})"}

    @property
    def gives_labels(self) -> bool:
        """Whether folders name classes."""
        return self.class_from != "none"

    @property
    def siblings(self) -> Mapping[str, str]:
        """Kaggle's samples of a submission."""
        return {"*submission*.csv": "sample submissions"}

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields one image per file that is not the second one of a pair."""
        if self.pairs:
            file = PairPatterns.of(self.pairs_of, self.pairs).add_pairs(path, file)
            if isinstance(file, Notice):
                yield file
                return
        if self.split:
            file = file.replace(split=find_split_word(self.split, f"/{path}") or "")
            path = _without_folder(path, file.split)
        label = folder_label(path, self.class_from)
        if label or self.class_from == "none":
            yield file.replace(label=label)
        else:
            raise Rejected("list", "no_class", "the file is not in a class folder")


def likely_classes(sketch: FolderSketch) -> set[str]:
    """Returns the folders that may be class folders, by names and contents as far as seen."""
    found = set()
    for at in sketch.split_folders or ("",):
        for folder in sketch.at(at).folders:
            names = sketch.names.get(posixpath.join(at, folder))
            if not NO_CLASS.fullmatch(folder.lower()) and (
                names is None or names.images or names.folders
            ):
                found.add(folder)
    return found


def _find_flat_splits(sketch: FolderSketch) -> dict[str, str]:
    """Returns folders with split words in their names, which hold nothing but images."""
    folders = [each for each in sketch.top.folders if sketch.holds_images(each)]
    likely = likely_splits(folders)
    are_flat = all(sketch.at(each).images and not sketch.at(each).folders for each in folders)
    return likely if are_flat and likely.keys() == set(folders) and not sketch.top.images else {}


def _ask_for_splits(likely: Mapping[str, str]) -> str | None:
    """Asks whether folders are splits; None if their names say it: `train_images`."""
    if all(NO_CLASS.fullmatch(folder.lower()) for folder in likely):
        return None
    mapping = ", ".join(f"{orjson.dumps(name).decode()}: {split}" for name, split in likely.items())
    flags = f"--set {shlex.quote(f'splits.from_folders={{{mapping}}}')}"
    return (
        f"{', '.join(likely)} may be splits: if so, add {flags} --set source.class_from=none; if "
        "they are classes, give them other names"
    )


def _find_generic(sketch: FolderSketch) -> str | None:
    """Returns the only folder of images, if its name says nothing of them; else None."""
    folders = [each for each in sketch.top.folders if sketch.holds_images(each)]
    if len(folders) != 1 or sketch.top.images:
        return None
    if _is_generic(sketch, folders[0]):
        return folders[0]
    inner = [
        each
        for each in sketch.at(folders[0]).folders
        if sketch.holds_images(posixpath.join(folders[0], each))
    ]
    # A sequence, as in MOT: `MOT-02/img1`.
    is_sequence = any(map(str.isdigit, folders[0])) and not sketch.at(folders[0]).images
    if not is_sequence or len(inner) != 1:
        return None
    return inner[0] if _is_generic(sketch, posixpath.join(folders[0], inner[0])) else None


def find_wrappers(sketch: FolderSketch, splits: Collection[str]) -> dict[str, str]:
    """Returns the folder around the class folders of each split; empty unless all have one.

    It is the only folder of images in the split, says nothing or is named after the split, and
    holds folders of images, and no images. In one split at least, these are several.
    """
    found = {split: _find_wrapper(sketch, split) for split in splits}
    is_around = all(below for _, below in found.values())
    if not is_around or max((len(below) for _, below in found.values()), default=0) < 2:
        return {}
    return {split: folder for split, (folder, _) in found.items()}


def _find_wrapper(sketch: FolderSketch, split: str) -> tuple[str, list[str]]:
    """Returns the folder that may be around class folders, and these; they may be none."""
    folders = [
        each
        for each in sketch.at(split).folders
        if sketch.holds_images(posixpath.join(split, each))
    ]
    if len(folders) != 1 or sketch.at(split).images:
        return "", []
    only = posixpath.join(split, folders[0])
    names = sketch.names.get(only, sketch.deeper.get(only, Names()))
    below = [each for each in names.folders if sketch.holds_images(posixpath.join(only, each))]
    is_around = not names.images and not _have_folders(sketch, only, below)
    is_named = folders[0] == split or says_nothing(folders[0]) or split_word_of(folders[0])
    is_no_class = is_named or NO_CLASS.fullmatch(folders[0].lower())
    if not is_around or not is_no_class:
        return "", []
    return folders[0], below


def _have_folders(sketch: FolderSketch, above: str, folders: Iterable[str]) -> bool:
    """Returns whether some of these folders have folders of images, too."""
    return any(
        sketch.holds_images(posixpath.join(above, folder, each))
        for folder in folders
        for each in sketch.deeper.get(posixpath.join(above, folder), Names()).folders
    )


def _is_generic_alone(sketch: FolderSketch, split: str) -> bool:
    folders = sketch.at(split).folders
    return len(folders) == 1 and _is_generic(sketch, posixpath.join(split, folders[0]))


def _is_generic(sketch: FolderSketch, folder: str) -> bool:
    """Whether a folder's name says nothing of its images, and no folder below it has any."""
    inner = sketch.names.get(folder, sketch.deeper.get(folder, Names()))
    return says_nothing(posixpath.basename(folder)) and not any(
        sketch.holds_images(posixpath.join(folder, each)) for each in inner.folders
    )


def find_telling_folders(sketch: FolderSketch) -> list[str]:
    """Returns folders whose names tell that they hold masks or other annotations.

    Empty unless there is another folder that is unlikely to be a class.
    """
    if sketch.split_folders:
        return []
    others = [folder for folder in sketch.top.folders if NO_CLASS.fullmatch(folder.lower())]
    telling = [folder for folder in others if is_telling(folder)]
    return telling if len(others) > len(telling) else []


def _as_classes(sketch: FolderSketch, source: Mapping[str, Any]) -> Recognized:
    """Takes folders for classes; firm if several cannot be anything else."""
    folders = sketch.top.folders
    others = [folder for folder in folders if NO_CLASS.fullmatch(folder.lower())]
    why = (
        "class folders such as "
        f"{next((each for each in folders if each not in others), folders[0])}"
    )
    drawn = [each for each in others if sketch.at(each).files and not sketch.at(each).images]
    is_firm = len(set(sketch.image_folders) - set(others)) > 1 and not drawn
    return Recognized({"source": source}, why, is_firm)


def _without_folder(path: str, folder: str) -> str:
    """Returns a path without the first folder of that name."""
    above, slash, name = path.rpartition("/")
    folders = above.split("/")
    if folder in folders:
        folders.remove(folder)
    return "/".join((*folders, name)) if slash else path


def folder_label(path: str, class_from: str) -> str:
    """Returns the class of a path below the input.

    It is empty outside any folder, or if folders do not name classes.
    """
    folders = "" if class_from == "none" else path.rpartition("/")[0]
    if class_from == "first_folder":
        return folders.partition("/")[0]
    if class_from == "last_folder":
        return folders.rpartition("/")[2]
    return folders


SOURCE = ClassFolders
