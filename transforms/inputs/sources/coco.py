"""COCO's detection format: one JSON file of images, annotations and categories."""

import posixpath
import re
import shlex
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import ClassVar

import orjson

from recordmill.schemas.formatting import show_names
from recordmill.schemas.image_ref import ClassNames, ImageRef, Listed, Notice
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.transforms.inputs.coco_annotations import (
    SEGMENTS,
    CocoAnnotations,
    CocoFile,
    OutlinedFile,
    SplitWords,
    read_coco,
)
from recordmill.transforms.inputs.file_roles import SEGMENT_ANYTHING, FileRole, title_of
from recordmill.transforms.inputs.folder_sketch import (
    FolderSketch,
    Names,
    Recognized,
    given_splits,
    split_for_word,
    split_pattern,
)
from recordmill.transforms.inputs.image_names import find_other_place
from recordmill.transforms.inputs.named_files import (
    DataFile,
)
from recordmill.transforms.inputs.pair_names import is_telling
from recordmill.transforms.inputs.patterns import check_template, compile_pattern, escape_glob
from recordmill.transforms.inputs.sources.source import AnnotationSource
from recordmill.transforms.inputs.unclaimed_files import Unclaimed

_YEAR = re.compile(rf"(?:{'|'.join(SPLIT_NAMES)})([0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coco(AnnotationSource):
    r"""The source `coco`.

    Attributes:
        split: a regular expression (RE2) for the whole name of an annotation file; its group
            `split`, if any, is the word for `splits.from_source`. Other files are ignored.
        images: the folder of the images below the input; `{split}` stands for that word, `{folder}`
            for the annotation file's folder. Empty: the input itself.
        split_key: a property of the entries of `images`, such as `split`: its value is the word of
            each image instead. Empty: none.
    """

    split: str = r"instances_(?P<split>[a-z]+)[0-9]*\.json"
    images: str = "{split}"
    split_key: str = ""

    files: ClassVar[tuple[str, ...]] = ("*.json",)
    gives_words: ClassVar[bool] = True
    split_settings: ClassVar[tuple[str, ...]] = ("split_key",)
    classes_from: ClassVar[str] = "the categories of the annotations"

    def __post_init__(self) -> None:
        """Raises ValueError if the pattern or the template of the folder is invalid."""
        compile_pattern(self.split, "source.split")
        check_template(self.images, "source.images", "split", "folder")

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes annotations in JSON, in one folder or next to the images of each split."""
        found = {
            folder: files for folder in sketch.names if (files := _annotation_files(sketch, folder))
        }
        if not found:
            return
        first, files = next(iter(found.items()))
        if set(found) <= set(sketch.split_folders) and set(found.values()) == {files}:
            source = {"split": re.escape(files[0]), "images": "{folder}"}
            splits = given_splits("from_folders", sketch.split_folders)
            is_clear = len(files) == 1 and all(sketch.at(folder).images for folder in found)
            sources = [source]
        else:
            pattern, words = pattern_of(files, cls().split)
            places = images_of(sketch, first, words)
            splits = given_splits("from_source", words)
            is_clear = len(found) == 1 and pattern != "" and bool(places)
            is_clear = is_clear and (
                "{split}" in places[0] or not _name_same_images(sketch, first, files)
            )
            sources = [{"split": pattern, "images": images} for images in places or [""]]
        paths = []
        for folder, names in found.items():
            paths += [posixpath.join(folder, name) for name in names]
        ask = _ask_for_place(sketch, paths)
        usual = {"labels": {"ids": "raised"}, "convention": "tf_object_detection"}
        why = f"COCO's JSON files such as {paths[0]}"
        for source in sources if is_clear else sources[:1]:
            own = {key: value for key, value in source.items() if value != getattr(cls(), key)}
            if len(sources) > 1:
                own["images"] = source["images"]
                why = f"COCO's JSON files such as {paths[0]}, images in {source['images'] or '.'}"
            settings = {"source": {"kind": "coco", **own}, **splits, **usual}
            yield Recognized(
                settings,
                why,
                needs=None if is_clear else ask,
                needed_keys=("source.split", "source.images"),
            )

    @property
    def remedies(self) -> Mapping[str, str]:
        """For missing images."""
        return advise_on_images(self.images)

    @property
    def siblings(self) -> Mapping[str, str]:
        """The other files of COCO's downloads, and of tools that write its format."""
        return {
            "captions_*.json": "files of captions",
            "person_keypoints_*.json": "files of key points",
            "image_info_*.json": "files of images without annotations",
            "stuff_*.json": "files of stuff masks",
            "panoptic_*.json": "files of panoptic masks",
            "panoptic_*.png": "panoptic masks",
            "panoptic_*/**.png": "panoptic masks",
            "stuff_*/**.png": "stuff masks",
        }

    def annotations(self) -> Mapping[str, str]:
        """Returns that images may have boxes, masks, key points and attributes of objects."""
        return {"boxes": "", "masks": "", "keypoints": "", "attributes": "", "corners": ""}

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields each of the file's `images`, with its boxes."""
        return self._list(path, file, CocoFile)

    def list_with_outlines(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields each of the file's `images`, with its boxes and outlines."""
        return self._list(path, file, OutlinedFile)

    def _list(self, path: str, file: ImageRef, model: type[CocoFile]) -> Iterator[Listed]:
        match = compile_pattern(self.split, "source.split").fullmatch(posixpath.basename(path))
        if not match:
            yield file.notice("ignored", "not_annotations")
            return
        try:
            annotations = CocoAnnotations(read_coco(file.uri, model))
        except Rejected as rejected:  # it is not known how many images are lost
            raise Rejected("list", "bad_coco", rejected.detail) from None
        word = match.groupdict().get("split") or ""
        yield ClassNames.of(file, annotations.classes, annotations.skeleton)
        yield from annotations.report_skeletons(file)
        yield from annotations.report_twins(file)
        yield from annotations.report_same_files(file)
        yield from annotations.report_strays(file)
        yield from annotations.report_boxes(file)
        unstored = annotations.not_stored
        unstored.pop(f"{self.split_key} of images", None)
        for kind, count in unstored.items():
            yield file.notice("not_stored", kind, count=count)
        if not (self.split_key or word or file.split):
            yield from _report_split_words(annotations.find_split_words(), path, file)
        for image in annotations.images:
            if self.split_key:
                word = image.find_word(self.split_key) or ""
            named_by = DataFile(path, file.replace(split=word))
            folder = self.images.format(split=word, folder=named_by.folder).strip("/")
            # As written on Windows.
            name = image.file_name.replace("\\", "/")
            given, fields = annotations.objects(image), {"source_id": str(image.id)}
            find_other = None
            if annotations.has_own_name(image):
                find_other = partial(find_other_place, named_by.root, folder, name)
            yield from named_by.list_annotated(
                posixpath.join(folder, name), given, fields, find_other=find_other
            )


def _report_split_words(found: SplitWords | None, path: str, file: ImageRef) -> Iterator[Notice]:
    """Yields the words for splits that images have, if they have some."""
    if found:
        role = FileRole("unsplit", found.key)
        unsplit = Unclaimed(role, (posixpath.basename(path),), found.count, words=found.words)
        yield unsplit.as_notice(file)


_MOST_WAYS = 4
"""Commands that a message offers for one question."""


_NAME_IN_JSON = re.compile(rb'"file_name"\s*:\s*"([^"]+)"')


def _name_same_images(sketch: FolderSketch, folder: str, files: Sequence[str]) -> bool:
    """Returns whether files in a folder begin with the same images, as versions of one file do."""
    seen: set[bytes] = set()
    for name in files:
        head = sketch.heads.get(posixpath.join(folder, name), b"")
        images = set(_NAME_IN_JSON.findall(head))
        if images & seen:
            return True
        seen |= images
    return False


def _ask_for_place(sketch: FolderSketch, paths: Sequence[str]) -> str:
    """Asks for the only file to read, or else for the folder of its images, with flags."""
    what = f"it is not clear which of {show_names(paths)} to read, or where their images are"
    if len(paths) > 1:
        ways = []
        for path in paths[:_MOST_WAYS]:
            others = [f"/{escape_glob(each)}" for each in paths if each != path]
            ignored = orjson.dumps([*sketch.ignored, *others]).decode()
            ways.append(f"to read {path} alone, add --set {shlex.quote(f'ignore={ignored}')}")
    else:
        return _ask_for_images(sketch, paths[0])
    ways.append("or move each file into the folder of its images")
    if _name_same_images(sketch, "", paths):
        what = f"{show_names(paths)} name the same images, as versions of one file do"
        del ways[-1]
    return f"{what}: {'; '.join(ways)}"


def _ask_for_images(sketch: FolderSketch, path: str) -> str:
    """Asks where the images are that a file names, with flags."""
    first = _find_first_image(sketch.heads.get(path, b""))
    such = f", such as {first}" if first else ""
    folders = [folder for folder, names in sketch.names.items() if names.images and folder]
    around = {posixpath.dirname(each) for each in folders if posixpath.dirname(each)}
    ways = [
        f"if they are in {each}, add --set {shlex.quote(f'source.images={each}')}"
        for each in sorted({*folders, *around})[:_MOST_WAYS]
    ]
    move = "move the file into the folder of its images"
    if not ways and any(map(sketch.holds_images, sketch.top.folders)):
        ignored = orjson.dumps([*sketch.ignored, f"/{escape_glob(path)}"]).decode()
        leave_out = f"--set {shlex.quote(f'ignore={ignored}')}"
        ways.append(f"to convert the images without it, add {leave_out}")
    ways.append(f"or {move}" if ways else move)
    return f"it is not clear where the images of {path} are{such}: {'; '.join(ways)}"


def _annotation_files(sketch: FolderSketch, folder: str) -> tuple[str, ...]:
    """The files in a folder that hold COCO's object annotations, by their names and first bytes."""
    files = sketch.at(folder).ending(".json")
    if instances := tuple(
        name for name in files if name.startswith("instances_") or "_annotations.coco" in name
    ):
        return instances
    # Label Studio's notes.json is next to text files for YOLO: it has COCO's categories and no
    # images.
    # Panoptic files are for a source of their own.
    files = tuple(
        name for name in files if name != "notes.json" and not is_panoptic(sketch, folder, name)
    )
    heads = {name: sketch.heads.get(f"{folder}/{name}".lstrip("/"), b"") for name in files}
    if not any(map(_looks_like_coco, heads.values())):
        return ()
    return tuple(name for name, head in heads.items() if not head or _looks_like_coco(head))


def advise_on_images(images: str) -> Mapping[str, str]:
    """Returns what to do about missing images, by reason, if `source.images` has this value."""
    return {"vanished": f"correct source.images, which is {images!r}, a folder below the input"}


def is_panoptic(sketch: FolderSketch, folder: str, name: str) -> bool:
    """Returns whether a JSON file has panoptic annotations, by its begin or else its name."""
    head = sketch.heads.get(posixpath.join(folder, name), b"")
    return SEGMENTS in head or (name.startswith("panoptic_") and b'"segmentation"' not in head)


_OTHER_FORMAT = re.compile(rb'"categories"\s*:\s*\{|"items"\s*:\s*\[')
"""What a file of Datumaro has, and none of COCO."""

_FIRST = 1024
_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*(:?)|[\[\]{}]')
"""A key or a text of JSON, or a bracket."""


def _looks_like_coco(head: bytes) -> bool:
    head = head.removeprefix(BOM_UTF8).lstrip()
    is_other = title_of("1.json", head) == SEGMENT_ANYTHING or _OTHER_FORMAT.search(head)
    if not head.startswith(b"{") or is_other:
        return False
    keys = (b"images", b"annotations", b"categories", b"info", b"licenses")
    found = [b'"%s"' % key in head[:_FIRST] for key in keys]
    is_known = (
        sum(found) > 1
        or (any(found[:2]) and b'_id"' in head[:_FIRST])
        or b'"file_name"' in head[:_FIRST]
    )
    return is_known or _has_keys_of_coco(head)


def _has_keys_of_coco(head: bytes) -> bool:
    """Whether the keys at the begin of a JSON object are COCO's, however long their values are.

    Categories are enough if they are a list of objects with `id` and `name`: nothing else may have
    been read.
    """
    depth, at, below = 0, b"", set()
    keys: set[bytes] = set()
    for token in _TOKEN.finditer(head):
        if token[0] in b"[{":
            depth += 1
        elif token[0] in b"]}":
            depth -= 1
        elif token[2] and depth == 1:
            at = token[1]
            keys.add(at)
        elif token[2] and depth == 3 and at == b"categories":
            below.add(token[1])
    has_classes = {b"id", b"name"} <= below
    return len(keys & {b"images", b"annotations", b"categories"}) > 1 or has_classes


def pattern_of(files: tuple[str, ...], usual: str) -> tuple[str, list[str]]:
    """Returns the `source.split` that matches the files, and the files' words.

    The words are empty if the names do not contain any.
    """
    matches = [match for name in files if (match := re.fullmatch(usual, name))]
    if len(matches) == len(files):
        return usual, [match["split"] for match in matches]
    if len(files) == 1:
        return re.escape(files[0]), [""]
    return split_pattern(files)


def images_of(sketch: FolderSketch, folder: str, words: list[str]) -> list[str]:
    """Returns the values for `source.images` that may be meant.

    These are all places that hold the first image; or else the first of the usual folders that
    exists for every word.
    """
    head = next(
        (each for path, each in sketch.heads.items() if posixpath.dirname(path) == folder), b""
    )
    first = _find_first_image(head) or ""
    years = {
        match[1]
        for each in sketch.top.folders + sketch.at("images").folders
        if (match := _YEAR.fullmatch(each))
    }
    around = product(("", "images/"), ("", *sorted(years)))
    usual = [f"{above}{{split}}{year}" for above, year in around]
    usual += ["images", "data", "JPEGImages", "imgs"]
    if not words[0]:
        usual = [each for each in usual if "{split}" not in each]
    places = (*usual, "", folder)
    there = [each for each in places if all(map(sketch.has_folder, _fill(each, words)))]
    if "/" in first:
        there = ["", *there]
    holding = [each for each in there if first and _holds(sketch, _fill(each, words), first)]
    holding += [each for each in _find_roots(sketch, first) if not words[0] or _is_for_all(each)]
    if holding:
        return [*dict.fromkeys(holding)]
    if "/" in first and (_may_lead_to(sketch, first) or _has_end_of(sketch, first)):
        return [""]
    held = [
        each for each in there if any(sketch.at(each.format(split=word)).images for word in words)
    ]
    unseen = [each for each in there if each.format(split=words[0]) not in sketch.names]
    alone = sketch.image_folders if len(sketch.image_folders) == 1 else ()
    return [*held, *unseen, *(each for each in alone if not is_telling(each))][:1]


def _find_first_image(head: bytes) -> str | None:
    """Returns the first image that a file names, as a path; None if it names none."""
    named = _NAME_IN_JSON.search(head)
    if not named:
        return None
    return posixpath.normpath(re.sub(r"\\+/?", "/", named[1].decode(errors="replace")))


def _find_roots(sketch: FolderSketch, image: str) -> Iterator[str]:
    """Yields the folders from which the path of an image leads to a file that was seen."""
    folder, name = posixpath.split(image)
    inner = f"/{folder}" if folder else ""
    for path, names in sketch.contents.items():
        is_there = name in names.files and f"/{path}".endswith(inner)
        if name and is_there and not is_telling(path):
            yield f"/{path}".removesuffix(inner).strip("/")


def _is_for_all(root: str) -> bool:
    """Returns whether a folder is named after no split, so that it may hold all of them."""
    return not any(map(split_for_word, root.split("/")))


def _may_lead_to(sketch: FolderSketch, image: str) -> bool:
    """Returns whether the folders of a path exist as far as was looked, but not its own folder."""
    folder = ""
    for part in posixpath.dirname(image).split("/"):
        names = sketch.names.get(folder) or sketch.deeper.get(folder)
        if names is None:
            return True
        if part not in names.folders:
            return False
        folder = posixpath.join(folder, part)
    return folder not in sketch.names and folder not in sketch.deeper


def _has_end_of(sketch: FolderSketch, image: str) -> bool:
    """Returns whether the last folders of a path, and the image in them, are in the input."""
    parts = image.split("/")
    ends = ["/".join(parts[at:]) for at in range(1, len(parts) - 1)]
    return any(_holds(sketch, [""], end) for end in ends)


def _fill(template: str, words: Iterable[str]) -> list[str]:
    """Returns the folder that a template stands for, for each word for a split."""
    return [template.format(split=word) for word in words]


def _holds(sketch: FolderSketch, folders: Iterable[str], image: str) -> bool:
    """Returns whether one of these folders has an image of that name."""
    contents = sketch.contents
    return any(
        name in contents.get(at, Names()).files
        for at, name in (posixpath.split(posixpath.join(folder, image)) for folder in folders)
    )


SOURCE = Coco
