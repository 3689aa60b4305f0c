"""COCO's detection format: one JSON file of images, annotations and categories."""

import math
import posixpath
import re
import shlex
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import orjson
from annotated_types import Interval
from pydantic import BaseModel, BeforeValidator, FailFast, Field, FiniteFloat, ValidationInfo

from recordmill.annotations.boxes import Boxes, boxes_of
from recordmill.imaging.geometry import Box
from recordmill.schemas.formatting import format_count, show_names
from recordmill.schemas.image_ref import ClassNames, ImageRef, Listed, Notice, NoticeStatus
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.transforms.inputs.file_roles import SEGMENT_ANYTHING, title_of
from recordmill.transforms.inputs.folder_sketch import (
    FolderSketch,
    Recognized,
    given_splits,
    split_pattern,
)
from recordmill.transforms.inputs.image_names import find_other_place, plain_name
from recordmill.transforms.inputs.named_files import (
    DataFile,
    bad_annotations,
    read_json,
    read_sibling,
)
from recordmill.transforms.inputs.outlines import angle_of, enclose_segmentation, rotate_box
from recordmill.transforms.inputs.pair_names import is_telling
from recordmill.transforms.inputs.patterns import check_template, compile_pattern, escape_glob
from recordmill.transforms.inputs.sources.source import AnnotationSource

_YEAR = re.compile(rf"(?:{'|'.join(SPLIT_NAMES)})([0-9]+)")

_ABOUT_ONE = 1.001
"""More than the sum of rounded fractions of an image's side."""

MAX_JSON_BYTES = 2 * 2**30
"""COCO's own largest file has 0.45 GB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coco(AnnotationSource):
    r"""The source `coco`.

    Attributes:
        split: a regular expression (RE2's syntax) that the annotation file's name must match as a
            whole; its group `split`, if any, is the word that `splits.from_source` and `images` may
            use. Other files are ignored.
        images: the folder of the images, relative to the input; `{split}` stands for that word,
            `{folder}` for the annotation file's own folder. Empty: the input itself.
    """

    split: str = r"instances_(?P<split>[a-z]+)[0-9]*\.json"
    images: str = "{split}"

    files: ClassVar[tuple[str, ...]] = ("*.json",)
    gives_words: ClassVar[bool] = True
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
            pattern, words = _pattern_of(files, cls().split)
            places = _images_of(sketch, first, words)
            splits = given_splits("from_source", words)
            is_clear = len(found) == 1 and pattern != "" and bool(places)
            sources = [{"split": pattern, "images": images} for images in places or [""]]
        paths = [posixpath.join(folder, name) for folder, names in found.items() for name in names]
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
                needs="" if is_clear else ask,
                needed_keys=("source.split", "source.images"),
            )

    @property
    def remedies(self) -> Mapping[str, str]:
        """For missing images."""
        return {
            "vanished": f"correct source.images, which is {self.images!r}, a folder below the input"
        }

    @property
    def siblings(self) -> Mapping[str, str]:
        """The other files of COCO's downloads, and of tools that write its format."""
        return {
            "captions_*.json": "files of captions",
            "person_keypoints_*.json": "files of key points",
            "image_info_*.json": "files of images without annotations",
            "stuff_*.json": "files of stuff masks",
            "panoptic_*.json": "files of panoptic masks",
            "panoptic_*.png": "masks",
            "panoptic_*/**.png": "masks",
            "stuff_*/**.png": "masks",
        }

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields each of the file's `images`, with its boxes."""
        match = compile_pattern(self.split, "source.split").fullmatch(posixpath.basename(path))
        if not match:
            yield file.notice("ignored", "not_annotations")
            return
        annotations = CocoAnnotations(_read_contents(file.uri))
        word = match.groupdict().get("split") or ""
        yield ClassNames.of(file, annotations.classes)
        yield from annotations.report_twins(file)
        yield from annotations.report_strays(file)
        yield from annotations.report_boxes(file)
        for kind, count in annotations.not_stored.items():
            yield file.notice("not_stored", kind, count=count)
        named_by = DataFile(path, file.replace(split=word))
        folder = self.images.format(split=word, folder=named_by.folder).strip("/")
        for image in annotations.images:
            # As written on Windows.
            name = image.file_name.replace("\\", "/")
            boxes, fields = annotations.boxes(image), {"source_id": str(image.id)}
            is_alone = annotations.has_own_name(image)
            find_other = partial(find_other_place, named_by.root, folder, name) if is_alone else str
            yield from named_by.list_annotated(
                posixpath.join(folder, name), [boxes], fields, find_other=find_other
            )


Id = int | str
Number = Annotated[int, Interval(ge=-(2**63), lt=2**63)]
Presence = Annotated[bool, BeforeValidator(bool)]
"""Whether there is a value."""

CocoSide = Annotated[float, Interval(ge=0, lt=2**31)]


class Image(BaseModel):
    """An entry of `images`; a side may be missing."""

    id: Id
    file_name: str
    width: CocoSide | None = None
    height: CocoSide | None = None


class Category(BaseModel):
    """An entry of `categories`."""

    id: Number
    name: str = Field(coerce_numbers_to_str=True)
    supercategory: Any = None


def _keep_needed(outline: Any, info: ValidationInfo) -> Box | bool:
    """Returns the box around a segmentation if the annotation has none, or else whether it is one.

    Most of a file is outlines, which are not kept.
    """
    if _is_absent(info.data.get("bbox")) and (box := enclose_segmentation(outline)):
        return box
    return bool(outline)


def _find_angle(attributes: Any) -> float:
    """Returns the rotation that CVAT writes among an annotation's attributes."""
    return angle_of(attributes.get("rotation")) if isinstance(attributes, dict) else 0.0


class Annotation(BaseModel):
    """An entry of `annotations`: one object in an image.

    Its box is x, y, width and height. If it has none, `segmentation` is the box around its outline.
    """

    id: Id
    image_id: Id
    category_id: Number | str = Field(union_mode="left_to_right")
    bbox: Any = None
    area: FiniteFloat | None = None
    iscrowd: FiniteFloat | None = None
    segmentation: Annotated[Any, BeforeValidator(_keep_needed)] = False
    keypoints: Presence = False
    attributes: Annotated[float, BeforeValidator(_find_angle)] = 0.0

    def find_box(self) -> tuple[Box, bool]:
        """Returns left, top, right and bottom, and whether the box encloses another shape.

        The sides are not finite if there is neither a box nor an outline.

        Raises:
            Rejected: the box is not four numbers.
        """
        if _is_absent(self.bbox):
            if isinstance(self.segmentation, tuple):
                return self.segmentation, True
            return (math.nan,) * 4, False
        try:
            x, y, width, height = map(_as_number, self.bbox)
        except (TypeError, ValueError, OverflowError):
            raise bad_annotations(
                f"bbox of annotation {self.id} is not a list of 4 numbers: {self.bbox!r:.60}"
            ) from None
        return rotate_box((x, y, x + width, y + height), self.attributes)

    def find_area(self) -> float:
        """Returns the area of the box, before any rotation."""
        if _is_absent(self.bbox):
            left, top, right, bottom = self.find_box()[0]
            return (right - left) * (bottom - top)
        _, _, width, height = map(_as_number, self.bbox)
        return width * height

    def has_corners(self, width: float, height: float) -> bool:
        """Whether the box is two corners, since it would leave the image, or contradicts its area.

        Args:
            width: that of the image; 0 if it is not known.
            height: the same.
        """
        if _is_absent(self.bbox) or self.attributes:
            return False
        left, top, right, bottom = map(_as_number, self.bbox)
        if not (left < right and top < bottom):
            return False
        if self.area is not None and not math.isclose(self.area, right * bottom, rel_tol=0.01):
            area = (right - left) * (bottom - top)
            return math.isclose(self.area, area, rel_tol=0.01)
        is_inside = right <= width + 1 and bottom <= height + 1
        return is_inside and (left + right > width + 1 or top + bottom > height + 1)


def _is_absent(bbox: Any) -> bool:
    """Returns whether an annotation has no box: null, an empty list, or nothing but NaN."""
    sides = bbox if isinstance(bbox, list) else [bbox]
    return all(side is None or (isinstance(side, float) and math.isnan(side)) for side in sides)


def _as_number(side: Any) -> float:
    if side is None:
        return math.nan
    if isinstance(side, bool):
        raise ValueError
    return float(side)


class CocoFile(BaseModel):
    """The contents of one file."""

    images: Annotated[list[Image], FailFast()]
    categories: list[Category]
    annotations: Annotated[list[Annotation], FailFast()] = []


def _read_contents(uri: str) -> CocoFile:
    """Reads a file.

    Raises:
        Rejected: it cannot be read, or has another form, such as that of panoptic masks.
    """
    try:
        return read_json(uri, MAX_JSON_BYTES, CocoFile)
    except Rejected:
        if b'"segments_info"' not in read_sibling(uri, MAX_JSON_BYTES):
            raise
        why = "panoptic masks are not read: use the file instances_*.json of the same images"
        raise bad_annotations(why) from None


class CocoAnnotations:
    """The annotations of one file, by image.

    Attributes:
        images: the file's images, sorted by name.
        classes: the categories' numbers by name.
        twins: unused categories that have the name of another one, and are left out.
        strays: annotations of images that the file does not list.
        not_stored: numbers of objects with masks and with key points.

    Raises:
        Rejected: two categories in use share a name or an id, or two images share an id, or a box
            is not four numbers.
    """

    def __init__(self, contents: CocoFile) -> None:
        self.images = sorted(contents.images, key=lambda image: image.file_name)
        used = {each.category_id for each in contents.annotations}
        self.classes, self.twins = number_categories(contents.categories, used)
        self._names: dict[Id, str] = {number: name for name, number in self.classes.items()}
        self._objects: dict[Id, list[Annotation]] = {}
        names: dict[Id, str] = {}
        for image in self.images:
            if image.id in names:
                pair = f"{names[image.id]!r:.100} and {image.file_name!r:.100}"
                raise bad_annotations(f"two images have the id {image.id!r:.60}: {pair}")
            names[image.id] = image.file_name
            self._objects[image.id] = []
        self._plain_names = Counter(map(_plain_base, self.images))
        self.strays: list[Annotation] = []
        self.not_stored: Counter[str] = Counter()
        for each in sorted(
            contents.annotations, key=lambda each: (isinstance(each.id, str), each.id)
        ):
            each.find_box()  # a malformed one rejects the file, whatever its image
            if each.image_id not in self._objects:
                self.strays.append(each)
                continue
            self._objects[each.image_id].append(each)
            self.not_stored.update({"masks": bool(each.segmentation), "key points": each.keypoints})
        self.not_stored = +self.not_stored

    def report_twins(self, file: ImageRef) -> Iterator[Notice]:
        """Yields a warning that names the categories that were left out, if there are any."""
        for each in self.twins:
            number = self.classes[each.name]
            yield file.notice(
                "warning",
                "twin_category",
                f"category {each.id} is left out: no annotation has it, and category {number} has "
                f"the same name, {each.name!r:.100}",
            )

    def report_strays(self, file: ImageRef) -> Iterator[Notice]:
        """Yields what is wrong with the strays, if any: an error if all annotations are strays."""
        if self.strays:
            first, count = self.strays[0], format_count(len(self.strays), "annotation")
            such = f"such as annotation {first.id!r:.60} of image {first.image_id!r:.60}"
            remedy = "list the images, or write all ids as numbers or all as text"
            status: NoticeStatus = "warning" if any(self._objects.values()) else "fatal"
            yield file.notice(
                status,
                "stray_annotations",
                f"the file lists no image for {count}, {such}: {remedy}",
            )

    def report_boxes(self, file: ImageRef) -> Iterator[Notice]:
        """Yields an error if no annotation has a box, or if most are in another form.

        They may be fractions of the image, or two corners.
        """
        boxes = [each.find_box()[0] for objects in self._objects.values() for each in objects]
        found = [box for box in boxes if all(map(math.isfinite, box))]
        if boxes and not any(any(map(math.isfinite, box)) for box in boxes):
            detail = (
                "its annotations have neither bbox nor segmentation, and classes of whole images "
                "are not read from COCO: write a CSV with the columns file_name and label"
            )
            yield file.notice("fatal", "bad_annotations", detail)
        sides = [side for box in found for side in box]
        are_whole = all(float(side).is_integer() for side in sides)
        if not are_whole and min(sides) >= 0 and max(sides) < _ABOUT_ONE:
            detail = (
                f"the largest coordinate of its boxes is {max(sides):g}, and COCO's boxes are in "
                "pixels: multiply x and width by the image's width, and y and height by its height"
            )
            yield file.notice("fatal", "bad_annotations", detail)
        corners = [
            each
            for image in self.images
            for each in self._objects[image.id]
            if each.has_corners(image.width or 0, image.height or 0)
        ]
        if len(corners) > 1 and 2 * len(corners) > len(boxes):
            detail = (
                f"bbox of annotation {corners[0].id!r:.60} is two corners, by the image's size or "
                f"by its area, as in {len(corners):,} of {format_count(len(boxes), 'annotation')}, "
                "and COCO's boxes are x, y, width and height: subtract x from the third number, "
                "and y from the fourth"
            )
            yield file.notice("fatal", "bad_annotations", detail)

    def has_own_name(self, image: Image) -> bool:
        """Whether no other image has the same name, in another folder or another spelling."""
        return self._plain_names[_plain_base(image)] == 1

    def boxes(self, image: Image) -> Boxes:
        """Returns an image's boxes."""
        boxes: list[Box] = []
        areas: list[float] = []
        enclosed = 0
        objects = self._objects[image.id]
        for each in objects:
            box, encloses = each.find_box()
            enclosed += encloses
            boxes.append(box)
            areas.append(each.find_area() if each.area is None else each.area)
        labels = [self._names.get(each.category_id, each.category_id) for each in objects]
        crowds = [int(bool(each.iscrowd)) for each in objects]
        values: dict[str, list[Any]] = {"is_crowd": crowds, "area": areas}
        return boxes_of(
            boxes,
            labels,
            values=values,
            drawn_on_size=(int(image.width or 0), int(image.height or 0)),
            shapes={"enclosed": enclosed},
        )


def _plain_base(image: Image) -> str:
    """The name of an image's file without its folders, extension and peculiarities of spelling."""
    name = image.file_name.replace("\\", "/").rpartition("/")[2]
    return plain_name(posixpath.splitext(name)[0])


def number_categories(
    categories: Iterable[Category], used: Container[Id]
) -> tuple[dict[str, int], list[Category]]:
    """Returns the categories' numbers by name, and those that are left out for a twin.

    Roboflow adds a category with the name of the whole project, which may be that of a class. It is
    left out if no annotation has it.

    Raises:
        Rejected: two categories share an id, or two that are in use share a name.
    """
    by_name: dict[str, list[Category]] = {}
    names: dict[int, str] = {}
    for each in categories:
        if names.setdefault(each.id, each.name) != each.name:
            both = f"{names[each.id]!r:.100} and {each.name!r:.100}"
            raise bad_annotations(f"two categories have the id {each.id}: {both}")
        together = by_name.setdefault(each.name, [])
        if each.id not in [other.id for other in together]:
            together.append(each)
    numbers, twins = {}, []
    for name, together in by_name.items():
        in_use = [each for each in together if each.id in used]
        if len(in_use) > 1:
            ids = f"{in_use[0].id} and {in_use[1].id}"
            raise bad_annotations(
                f"categories {ids} are both called {name!r:.100}, and both have annotations: "
                "rename one of them"
            )
        # Roboflow's own category has the supercategory `none`.
        ordered = sorted(together, key=lambda each: each.supercategory in (None, "none"))
        kept = (in_use or ordered)[0]
        numbers[name] = kept.id
        twins += [each for each in together if each is not kept]
    return numbers, twins


_MOST_WAYS = 4
"""Commands that a message offers for one question."""


def _ask_for_place(sketch: FolderSketch, paths: Sequence[str]) -> str:
    """Asks for the only file to read, or else for the folder of its images, with flags."""
    if len(paths) > 1:
        ways = []
        for path in paths[:_MOST_WAYS]:
            others = [f"/{escape_glob(each)}" for each in paths if each != path]
            ignored = orjson.dumps([*sketch.ignored, *others]).decode()
            ways.append(f"to read {path} alone, add --set {shlex.quote(f'ignore={ignored}')}")
    else:
        folders = [folder for folder, names in sketch.names.items() if names.images and folder]
        around = {posixpath.dirname(each) for each in folders if posixpath.dirname(each)}
        ways = [
            f"if they are in {each}, add --set {shlex.quote(f'source.images={each}')}"
            for each in sorted({*folders, *around})[:_MOST_WAYS]
        ]
    ways.append("or move each file into the folder of its images")
    what = f"it is not clear which of {show_names(paths)} to read, or where their images are"
    return f"{what}: {'; '.join(ways)}"


def _annotation_files(sketch: FolderSketch, folder: str) -> tuple[str, ...]:
    """The files in a folder that hold COCO's object annotations, by their names and first bytes."""
    files = sketch.at(folder).ending(".json")
    if instances := tuple(
        name for name in files if name.startswith("instances_") or "_annotations.coco" in name
    ):
        return instances
    # Label Studio's notes.json is next to text files for YOLO: it has COCO's categories and no
    # images.
    files = tuple(name for name in files if name != "notes.json")
    heads = {name: sketch.heads.get(f"{folder}/{name}".lstrip("/"), b"") for name in files}
    if not any(map(_looks_like_coco, heads.values())):
        return ()
    return tuple(name for name, head in heads.items() if not head or _looks_like_coco(head))


_FIRST = 1024
_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*(:?)|[\[\]{}]')
"""A key or a text of JSON, or a bracket."""


def _looks_like_coco(head: bytes) -> bool:
    head = head.removeprefix(BOM_UTF8).lstrip()
    if not head.startswith(b"{") or title_of("1.json", head) == SEGMENT_ANYTHING:
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


def _pattern_of(files: tuple[str, ...], usual: str) -> tuple[str, list[str]]:
    """Returns the `source.split` that matches the files, and the files' words.

    The words are empty if the names do not contain any.
    """
    matches = [match for name in files if (match := re.fullmatch(usual, name))]
    if len(matches) == len(files):
        return usual, [match["split"] for match in matches]
    if len(files) == 1:
        return re.escape(files[0]), [""]
    return split_pattern(files)


def _images_of(sketch: FolderSketch, folder: str, words: list[str]) -> list[str]:
    """Returns the values for `source.images` that may be meant.

    These are all places that hold the first image; or else the first of the usual folders that
    exists for every word.
    """
    head = next(
        (each for path, each in sketch.heads.items() if posixpath.dirname(path) == folder), b""
    )
    named = re.search(rb'"file_name"\s*:\s*"([^"]+)"', head)
    first = (
        posixpath.normpath(re.sub(r"\\+/?", "/", named[1].decode(errors="replace")))
        if named
        else ""
    )
    years = {
        match[1]
        for each in sketch.top.folders + sketch.at("images").folders
        if (match := _YEAR.fullmatch(each))
    }
    usual = [
        f"{above}{{split}}{year}" for above in ("", "images/") for year in ("", *sorted(years))
    ]
    usual += ["images", "data", "JPEGImages", "imgs"]
    if not words[0]:
        usual = [each for each in usual if "{split}" not in each]
    there = [
        each
        for each in (*usual, "", folder)
        if all(sketch.has_folder(each.format(split=word)) for word in words)
    ]
    if "/" in first:
        there = ["", *there]
    others = [each for each in sketch.names if not words[0] and not is_telling(each)]
    holding = [
        each
        for each in dict.fromkeys((*there, *others))
        if first and _holds(sketch, {each.format(split=word) for word in words}, first)
    ]
    if holding:
        return holding
    held = [
        each for each in there if any(sketch.at(each.format(split=word)).images for word in words)
    ]
    unseen = [each for each in there if each.format(split=words[0]) not in sketch.names]
    alone = sketch.image_folders if len(sketch.image_folders) == 1 else ()
    return [*held, *unseen, *alone][:1]


def _holds(sketch: FolderSketch, folders: Iterable[str], image: str) -> bool:
    """Returns whether one of these folders has an image of that name."""
    paths = (posixpath.join(folder, image) for folder in folders)
    return any(
        posixpath.basename(path) in sketch.at(posixpath.dirname(path)).files for path in paths
    )


SOURCE = Coco
