"""COCO's detection format: one JSON file of images, annotations and categories."""

import math
import os
import posixpath
import re
import shlex
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from recordmill import storage
from recordmill.imaging.geometry import Box
from recordmill.schemas.formatting import format_count, show_names
from recordmill.schemas.image_ref import ClassNames, ImageRef, Listed, Status, boxes_of
from recordmill.schemas.label_map import is_integer_label
from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Recognised, given_splits, split_pattern
from recordmill.transforms.inputs.named_files import DataFile, bad_annotations, read_json
from recordmill.transforms.inputs.patterns import check_template, compile_pattern
from recordmill.transforms.inputs.sources.source import Source

_YEAR = re.compile(rf"(?:{'|'.join(SPLIT_NAMES)})([0-9]+)")

MAX_JSON_BYTES = 2 * 2**30
"""COCO's own largest file has 0.45 GB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coco(Source):
    r"""The source `coco`.

    Attributes:
        split: a regular expression (RE2's syntax) that the annotation file's name must match as a whole; its group
            `split`, if any, is the word that `splits.from_source` and `images` may use. Other files are ignored.
        images: the folder of the images, relative to the input; `{split}` stands for that word, `{folder}` for the
            annotation file's own folder. Empty: the input itself.
    """

    split: str = r"instances_(?P<split>[a-z]+)[0-9]*\.json"
    images: str = "{split}"

    files: ClassVar[tuple[str, ...]] = ("*.json",)
    gives_words: ClassVar[bool] = True
    other_files: ClassVar[str] = "taken_only_by_name"
    is_about_boxes: ClassVar[bool] = True
    classes_from: ClassVar[str] = "the categories of the annotations"

    def __post_init__(self) -> None:
        """Raises ValueError if the pattern or the template of the folder is invalid."""
        compile_pattern(self.split, "source.split")
        check_template(self.images, "source.images", "split", "folder")

    @classmethod
    def recognise(cls, sketch: FolderSketch) -> Iterator[Recognised]:
        """Recognises JSON files of annotations, in one folder or next to the images of each split."""
        found = {folder: files for folder in sketch.names if (files := _annotation_files(sketch, folder))}
        if not found:
            return
        first, files = next(iter(found.items()))
        if set(found) <= set(sketch.split_folders) and set(found.values()) == {files}:
            inner = {each for folder in found for each in sketch.at(folder).folders if not sketch.at(folder).images}
            below = next((f"/{each}" for each in ("data", "images") if each in inner), "")  # as FiftyOne exports
            source = {"split": re.escape(files[0]), "images": f"{{folder}}{below}"}
            splits = given_splits("from_folders", sketch.split_folders)
            key, needs = "split", _name_one(files, "are next to each other") if len(files) > 1 else ""
        else:
            pattern, words = _pattern_of(files, cls().split)
            images = _images_of(sketch, first, words)
            source, splits = {"split": pattern, "images": images or ""}, given_splits("from_source", words)
            key, needs = "images", ""
            if len(found) > 1:
                folders = ", ".join(each or "the input" for each in found)
                key, needs = "", f"such files are in {folders}: let --input name one folder"
            elif not pattern:
                key, needs = "split", _name_one(files, "have no words for splits in one place")
            elif images is None:
                needs = "the folder of the images is not one of the usual: add --set source.images=..."
        source = {key: value for key, value in source.items() if value != getattr(cls(), key)}
        usual = {"labels": {"ids": "raised"}, "convention": "tf_object_detection"}
        settings = {"source": {"kind": "coco", **source}, **splits, **usual}
        why = f"COCO's JSON files such as {posixpath.join(first, files[0])}"
        yield Recognised(settings, why, needs=needs, needed_keys=(f"source.{key}",) if key else ())

    @property
    def remedies(self) -> Mapping[str, str]:
        """For missing images."""
        return {"vanished": f"correct source.images, which is {self.images!r}, a folder below the input"}

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields each of the file's `images`, with its boxes."""
        match = compile_pattern(self.split, "source.split").fullmatch(posixpath.basename(path))
        if not match:
            yield file.notice("ignored", "not_annotations")
            return
        try:
            annotations = Annotations(read_json(file.uri, MAX_JSON_BYTES))
        except ValueError as error:
            raise bad_annotations(f"not COCO annotations: {error}") from None
        word = match.groupdict().get("split") or ""
        yield ClassNames.of(file, annotations.classes)
        if annotations.strays:
            status: Status = "fatal" if annotations.are_all_stray else "warning"
            yield file.notice(status, "stray_annotations", annotations.describe_strays())
        for kind, count in annotations.not_stored.items():
            yield file.notice("not_stored", kind, count=count)
        named_by = DataFile(path, file.replace(split=word))
        folder = self.images.format(split=word, folder=named_by.folder).strip("/")
        root = os.path.abspath(named_by.root) if storage.is_local(named_by.root) else named_by.root
        for image in annotations.images:
            name = image["file_name"].replace("\\", "/")  # as written on Windows
            whole = name.startswith(f"{root}/")
            below = name.removeprefix(f"{root}/") if whole else f"{folder}/{name}" if folder else name
            yield from named_by.list_annotated(below, {"source_id": str(image["id"]), **annotations.boxes(image)})


class Annotations:
    """The contents of one file, checked.

    Attributes:
        images: entries as in the file: `id`, `file_name` and usually `width` and `height`.
        classes: the categories' numbers by name.
        strays: annotations of images that the file does not list.
        are_all_stray: whether there are annotations, and all of them are strays.
        not_stored: numbers of objects with masks and with key points.

    Raises:
        ValueError: a key is missing, a value has the wrong type, or two categories or images share a name or an id;
            the message says which.
    """

    def __init__(self, data: Any) -> None:
        if not isinstance(data, dict):
            raise ValueError("it is not a JSON object with images, categories and annotations")
        self.images = sorted(_entries(data, "images", "id", "file_name"), key=lambda image: image["file_name"])
        categories = _entries(data, "categories", "id", "name")
        names = {_category_number(category["id"]): str(category["name"]) for category in categories}
        if texts := [number for number in names if isinstance(number, str)]:
            raise ValueError(f"the id of a category is not a whole number: {texts[0]!r:.60}")
        self.classes = {name: int(number) for number, name in names.items()}
        if len(self.classes) < len(categories):
            raise ValueError("two categories have one name or one id")
        self._sizes = {image["id"]: _size_of(image) for image in self.images}
        if len(self._sizes) < len(self.images):
            raise ValueError("two images have one id")
        self._boxes: dict[Any, list[tuple[Box, str | int, int, float]]] = {key: [] for key in self._sizes}
        self.strays: list[dict[str, Any]] = []
        self.not_stored: Counter[str] = Counter()
        annotations = _entries(data, "annotations", "id", "image_id", "category_id") if "annotations" in data else []
        for each in sorted(annotations, key=lambda each: (isinstance(each["id"], str), each["id"])):
            boxes, category = self._boxes.get(each["image_id"]), _category_number(each["category_id"])
            if boxes is None:
                self.strays.append(each)
                continue
            x, y, width, height = _numbers(each, "bbox", 4)
            (area,) = _numbers(each, "area", 1) if "area" in each else (width * height,)
            label = names.get(category, category)
            boxes.append(((x, y, x + width, y + height), label, int(bool(each.get("iscrowd"))), area))
            self.not_stored["masks"] += _has_mask(each)
            self.not_stored["key points"] += bool(each.get("keypoints"))
        self.not_stored = +self.not_stored
        self.are_all_stray = 0 < len(annotations) == len(self.strays)

    def describe_strays(self) -> str:
        """What is wrong with the strays; if all annotations are strays, also what to do."""
        wrong_id = self.strays[0]["image_id"]
        such = f"such as annotation {self.strays[0]['id']!r:.60} of image {wrong_id!r:.60}"
        if not self.are_all_stray:
            return f"the file lists no image for {format_count(len(self.strays), 'annotation')}, {such}"
        alike = [key for key in self._boxes if str(key) == str(wrong_id)]
        such += f" (there is an image {alike[0]!r:.60})" if alike else ""
        remedy = "write all ids as numbers, or all as text" if alike else "correct each image_id, or list the images"
        return f"the file lists no image for any annotation, {such}: {remedy}"

    def boxes(self, image: dict[str, Any]) -> dict[str, Any]:
        """An image's boxes, as `boxes_of` gives them."""
        own = self._boxes[image["id"]]
        boxes, labels, is_crowd, area = zip(*own, strict=True) if own else ((), (), (), ())
        values = {"is_crowd": is_crowd, "area": area}
        return boxes_of(boxes, labels, values=values, drawn_on_size=self._sizes[image["id"]])


def _annotation_files(sketch: FolderSketch, folder: str) -> tuple[str, ...]:
    """The files in a folder that hold COCO's object annotations, by their names and first bytes."""
    files = sketch.at(folder).ending(".json")
    if instances := tuple(name for name in files if name.startswith("instances_") or "_annotations.coco" in name):
        return instances
    # Label Studio's notes.json is next to text files for YOLO: it has COCO's categories and no images.
    files = tuple(name for name in files if name != "notes.json")
    heads = {name: sketch.heads.get(f"{folder}/{name}".lstrip("/"), b"") for name in files}
    if not any(map(_looks_like_coco, heads.values())):
        return ()
    return tuple(name for name, head in heads.items() if not head or _looks_like_coco(head))


def _looks_like_coco(head: bytes) -> bool:
    keys = (b"images", b"annotations", b"categories", b"info", b"licenses")
    found = [b'"%s"' % key in head for key in keys]
    is_known = sum(found) > 1 or (any(found[:2]) and b'_id"' in head) or b'"file_name"' in head
    return is_known and head.removeprefix(BOM_UTF8).lstrip().startswith(b"{")


def _pattern_of(files: tuple[str, ...], usual: str) -> tuple[str, list[str]]:
    """The `source.split` that matches the files, and the files' words; empty if their names contain none."""
    for pattern in (usual, usual.replace("[a-z]", "[A-Za-z]")):  # CVAT's instances_Train.json
        if not all(re.fullmatch(pattern, name) for name in files):
            continue
        years = {re.sub("[^0-9]", "", name) for name in files}
        if len(years) > 1:  # the image folders' names include the year too
            pattern = pattern.replace("+)[0-9]*", "+[0-9]*)")
        return pattern, [match["split"] for name in files if (match := re.fullmatch(pattern, name))]
    if len(files) == 1:
        return re.escape(files[0]), [""]
    return split_pattern(files)


def _name_one(files: tuple[str, ...], why: str) -> str:
    """Why one of the files must be named, and how."""
    flag = f"--set {shlex.quote(f'source.split={re.escape(files[0])}')}"
    return f"{show_names(files)} {why}: name one, as by {flag}"


def _images_of(sketch: FolderSketch, folder: str, words: list[str]) -> str | None:
    """The value for `source.images`: the first of the usual folders that exists for every word."""
    head = next((each for path, each in sketch.heads.items() if posixpath.dirname(path) == folder), b"")
    named = re.search(rb'"file_name"\s*:\s*"([^"]+)"', head)
    first = named[1].decode(errors="replace").replace("\\/", "/").replace("\\", "/") if named else ""
    first = posixpath.normpath(first) if first else ""
    years = {match[1] for each in sketch.top.folders + sketch.at("images").folders if (match := _YEAR.fullmatch(each))}
    usual = [f"{above}{{split}}{year}" for above in ("", "images/") for year in ("", *sorted(years))]
    usual += ["images", "data", "JPEGImages", "imgs", "val2017", "train2017"]
    if not words[0]:
        usual = [each for each in usual if "{split}" not in each]
    there = [each for each in (*usual, "", folder) if all(sketch.has_folder(each.format(split=word)) for word in words)]
    if "/" in first:
        there = ["", *there]
    for each in there:
        at = {posixpath.join(each.format(split=word), first) for word in words}
        if first and any(posixpath.basename(path) in sketch.at(posixpath.dirname(path)).files for path in at):
            return each
    held = [each for each in there if any(sketch.at(each.format(split=word)).images for word in words)]
    unseen = [each for each in there if each.format(split=words[0]) not in sketch.names]
    return next(iter((*held, *unseen, *(sketch.image_folders if len(sketch.image_folders) == 1 else ()))), None)


_KINDS: dict[str, tuple[type, ...]] = {"file_name": (str,), "name": (str, int, float)}
"""The allowed types of values, by key; an id is a number or a text."""


def _entries(data: dict[str, Any], key: str, *needed: str) -> list[dict[str, Any]]:
    """The objects under a key of the file, checked for needed keys and their values' types."""
    if key not in data:
        raise ValueError(f"no key {key!r}")
    if not isinstance(data[key], list):
        raise ValueError(f"{key} is not a list: {data[key]!r:.60}")
    for place, each in enumerate(data[key]):
        if not isinstance(each, dict):
            raise ValueError(f"{key}[{place}] is not an object: {each!r:.60}")
        for name in needed:
            if name not in each:
                raise ValueError(f"{key}[{place}] has no key {name!r}")
            if not isinstance(each[name], _KINDS.get(name, (int, str))):
                raise ValueError(f"{name} of {key}[{place}] cannot be {each[name]!r:.60}")
    entries: list[dict[str, Any]] = data[key]
    return entries


def _category_number(category_id: int | str) -> int | str:
    """A category's id as a number, if it is or reads as one; otherwise unchanged."""
    return int(category_id) if isinstance(category_id, int) or is_integer_label(category_id) else category_id


def _numbers(annotation: dict[str, Any], key: str, count: int) -> list[float]:
    """The numbers under a key of an annotation."""
    if key not in annotation:
        raise ValueError(f"annotation {annotation['id']} has no key {key!r}")
    given = annotation[key] if count > 1 else [annotation[key]]
    if given == []:  # some tools write it for an object without a box, which is counted as `not_finite`
        return count * [math.nan]
    if not isinstance(given, list) or len(given) != count or any(type(each) not in (int, float) for each in given):
        wanted = f"not a list of {count} numbers" if count > 1 else "not a number"
        raise ValueError(f"{key} of annotation {annotation['id']} is {wanted}: {annotation[key]!r:.60}")
    return [float(each) for each in given]  # orjson's integers have 64 bits


def _has_mask(annotation: dict[str, Any]) -> bool:
    """Whether an annotation has more than a box: a rectangle as its only polygon, which some tools write, is a box."""
    parts = annotation.get("segmentation")
    only = parts[0] if isinstance(parts, list) and len(parts) == 1 else None
    is_box = isinstance(only, list) and len(only) == 8 and len({*only[::2]}) == len({*only[1::2]}) == 2
    return bool(parts) and not is_box


def _size_of(image: dict[str, Any]) -> tuple[int, int]:
    """The width and height that the file gives for an image; 0 for a side that is missing."""
    sides = [image.get(side) or 0 for side in ("width", "height")]
    try:
        width, height = map(int, sides)
    except (ValueError, TypeError, OverflowError):
        width = height = -1
    if not 0 <= width < 2**31 or not 0 <= height < 2**31:
        raise ValueError(f"width and height of image {image['id']} are not whole numbers: {sides!r:.60}")
    return width, height


SOURCE = Coco
