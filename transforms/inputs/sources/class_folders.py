"""Images in class folders: the label of `class/image.jpg` is the folder's name."""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from recordmill.schemas.image_ref import ImageRef, Listed
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.transforms.inputs.file_roles import is_description_name
from recordmill.transforms.inputs.folder_sketch import (
    FolderSketch,
    Recognized,
    given_splits,
    stems_of,
)
from recordmill.transforms.inputs.sources.source import Source

_IMAGES = ("images", "image", "imgs", "img", "jpegimages", "img_dir", "leftimg8bit", "image_2")
_NO_CLASS = re.compile(
    "|".join(
        (
            *_IMAGES,
            "pictures|data|inputs?|targets?|masks?|labels?|annotations?|annots|segmentation.*|imagesets|obj_.*data|sidecars",
            "ann_dir|gtfine|gtcoarse|ground_truth|semantic|semantic_rgb|instance|instances|label_2|labeltxt",
            rf"({'|'.join(SPLIT_NAMES)}|unlabell?ed)[0-9]*([_-]?(images?|imgs?|annots?|masks?|labels?))?",
        )
    )
)
"""Names of folders, in lower case, that are unlikely to be classes."""

_TELLING = re.compile(rf"annot|label|mask|ground_truth|target|^({'|'.join(_IMAGES)})$")
"""What shows, in the name of one of several such folders, that they hold images and what was drawn
on them."""

_MASK = re.compile(
    r"(.+?)([ _.-](?:mask|seg|segmentation|groundtruth))s?[ _-]?[0-9]*", re.IGNORECASE
)
"""The name of a mask, without its extension: the image's name, and what follows it."""

_LOSSLESS = (".png", ".gif", ".bmp", ".tif")
"""The extensions of masks that have the name of their image, a JPEG."""

_UNLABELED = "add --set source.class_from=none to convert all images without labels"

_CONVERT_FIRST = "export them as COCO, VOC, YOLO, or a CSV with a row for each image or box"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFolders(Source):
    """The source `class_folders`.

    Attributes:
        class_from: which folder of `a/b/image.jpg` names the class: `first_folder` (a),
            `last_folder` (b) or `path` (a/b); `none`: images have no labels, whatever folder they
            are in. If `splits.from_folders` is set, the folder that gives the split is not part of
            the path.
    """

    class_from: Literal["first_folder", "last_folder", "path", "none"] = "first_folder"

    labels_from_folders: ClassVar[bool] = True

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes class folders, also below split folders, and images without labels."""
        source: dict[str, Any] = {"kind": "class_folders"}
        splits = sketch.split_folders
        below = {each for folder in splits for each in sketch.at(folder).folders}
        unlabeled = {
            "source": {**source, "class_from": "none"},
            **given_splits("from_folders", splits),
        }
        masks, keys = _find_masks(sketch), ("source.class_from",)
        needs = masks or _find_unread_annotations(sketch)
        if any(not _NO_CLASS.fullmatch(folder.lower()) for folder in below):
            why, settings = (
                f"class folders below {', '.join(splits)}",
                given_splits("from_folders", splits),
            )
            yield Recognized({"source": source, **settings}, why, needs=masks, needed_keys=keys)
        elif splits and any(sketch.at(folder).images for folder in splits):
            yield Recognized(
                unlabeled, "images without labels in split folders", False, needs, keys
            )
            yield Recognized(
                {"source": source, "labels": {"classes": list(splits)}},
                "class folders",
                is_firm=False,
            )
        elif sketch.top.images and not sketch.image_folders:
            yield Recognized(unlabeled, "images without labels", False, needs, keys)
        elif below:
            needs = needs or f"{', '.join(sorted(below))} do not look like classes: {_UNLABELED}"
            yield Recognized(
                unlabeled, "images without labels in split folders", False, needs, keys
            )
        elif sketch.top.folders:
            yield _as_classes(sketch, source, masks)

    @property
    def remedies(self) -> Mapping[str, str]:
        """For images outside any folder."""
        unlabeled = "--set source.class_from=none takes images without labels"
        in_names = "--config configs/filename_labels.yaml takes labels from names"
        return {
            "no_class": f"images are expected in folders named after their class ({unlabeled}, "
            f"{in_names})"
        }

    @property
    def gives_labels(self) -> bool:
        """Whether folders name classes."""
        return self.class_from != "none"

    @property
    def siblings(self) -> Mapping[str, str]:
        """Kaggle's samples of a submission."""
        return {"*submission*.csv": "sample submissions"}

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields one image per file."""
        label = folder_label(path, self.class_from)
        if label or self.class_from == "none":
            yield file.replace(label=label)
        else:
            raise Rejected("list", "no_class", "the file is not in a class folder")


def likely_classes(sketch: FolderSketch) -> set[str]:
    """The folders that may be class folders, by names and contents as far as seen."""
    found = set()
    for at in sketch.split_folders or ("",):
        for folder in sketch.at(at).folders:
            names = sketch.names.get(posixpath.join(at, folder))
            if not _NO_CLASS.fullmatch(folder.lower()) and (
                names is None or names.images or names.folders
            ):
                found.add(folder)
    return found


def _find_unread_annotations(sketch: FolderSketch) -> str:
    """Returns what to do if a file among images may contain their annotations.

    No source understands such a file. If there is none, returns an empty string.
    """
    stems = {stem for names in sketch.names.values() for stem in stems_of(names.images)}
    for path in sketch.all_ending(".xml", ".json", ".manifest", ".txt"):
        words = (
            sketch.heads.get(path, b"")
            .split(b"\n")[0]
            .decode(errors="replace")
            .replace(",", " ")
            .split()
        )
        if is_description_name(path) and not path.endswith(".txt"):
            continue
        if not path.endswith(".txt") or stems & stems_of(map(posixpath.basename, words)):
            return (
                f"{path} is not understood and may hold annotations: {_CONVERT_FIRST}, or "
                f"{_UNLABELED}"
            )
    return ""


def _find_masks(sketch: FolderSketch) -> str:
    """What to do if most images of a folder have a mask next to them; else empty."""
    for folder, names in sketch.names.items():
        folders = [each for each in names.folders if folder and each.lower() in ("mask", "masks")]
        if found := next(
            ((each, "a folder of masks", f"{each}/") for each in folders), _find_mask(names.images)
        ):
            mask, what, pattern = found
            what = f"{posixpath.join(folder, mask)} looks like {what}"
            ignore, keep = f"--set 'ignore=[\"{pattern}\"]'", "first_folder" if folder else "none"
            return (
                f"{what}: add {ignore} to leave masks out, or --set source.class_from={keep} to "
                "convert them as well"
            )
    return ""


def _find_mask(images: Sequence[str]) -> tuple[str, str, str] | None:
    """Finds a mask in a folder, if most images have one: `1_mask.png`, or `1.png`.

    Returns the mask, what it is, and a pattern for masks.
    """
    names = {posixpath.splitext(name)[0]: name for name in images}
    masks = [found for stem in names if (found := _MASK.fullmatch(stem)) and found[1] in names]
    if masks and 2 * len({mask[1] for mask in masks}) >= len(names) - len(masks):
        return names[masks[0][0]], f"a mask of {names[masks[0][1]]}", f"*{masks[0][2]}*"
    jpegs = [name for name in images if name.lower().endswith((".jpg", ".jpeg"))]
    others = {name: names[posixpath.splitext(name)[0]] for name in jpegs}
    doubled = [(image, mask) for image, mask in others.items() if mask.lower().endswith(_LOSSLESS)]
    if doubled and 2 * len(doubled) >= len(names):
        image, mask = doubled[0]
        return mask, f"a mask of {image}", f"*{posixpath.splitext(mask)[1]}"
    return None


def _as_classes(sketch: FolderSketch, source: Mapping[str, Any], masks: str) -> Recognized:
    """Takes folders for classes; firm if several cannot be anything else."""
    folders = sketch.top.folders
    others = [folder for folder in folders if _NO_CLASS.fullmatch(folder.lower())]
    why = (
        "class folders such as "
        f"{next((each for each in folders if each not in others), folders[0])}"
    )
    needs = masks or (_find_unread_annotations(sketch) if len(others) == len(folders) else "")
    if not needs and len(others) > 1 and any(map(_TELLING.search, map(str.lower, others))):
        needs = (
            f"{', '.join(others)} do not look like classes: if they are, add --set "
            "source.class_from=first_folder"
        )
    is_firm = len(set(sketch.image_folders) - set(others)) > 1
    return Recognized({"source": source}, why, is_firm, needs, ("source.class_from",))


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
