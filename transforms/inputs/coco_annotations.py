"""COCO's annotations: the images, categories and objects in one JSON file."""

import math
import posixpath
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Annotated, Any, Self

import orjson
from annotated_types import Interval
from pydantic import (
    BaseModel,
    BeforeValidator,
    FailFast,
    Field,
    FiniteFloat,
    PlainValidator,
    ValidationInfo,
)

from recordmill.annotations.annotation import Packable
from recordmill.annotations.attributes import Attributes, read_attribute
from recordmill.annotations.boxes import Boxes, boxes_of
from recordmill.annotations.corners import OrientedBoxes
from recordmill.annotations.keypoints import KeyPoints
from recordmill.annotations.masks import Masks
from recordmill.imaging.geometry import Box
from recordmill.schemas.dataset.json_values import as_kept_json
from recordmill.schemas.formatting import agree, format_count
from recordmill.schemas.image_ref import ImageRef, Notice, NoticeStatus
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.box_units import have_fractional_sides
from recordmill.transforms.inputs.image_names import plain_name
from recordmill.transforms.inputs.named_files import bad_annotations, read_json, read_sibling
from recordmill.transforms.inputs.outlines import (
    angle_of,
    enclose_segmentation,
    read_segmentation,
    rotate_box,
)
from recordmill.transforms.inputs.shape_corners import corners_of_rectangle
from recordmill.transforms.inputs.split_words import is_doubtful_split, may_be_split

MAX_JSON_BYTES = 2 * 2**30
"""COCO's own largest file has 0.45 GB."""

SEGMENTS = b'"segments_info"'
"""The key that panoptic annotations have, and no others of COCO."""

Id = int | str
Number = Annotated[int, Interval(ge=-(2**63), lt=2**63)]
Presence = Annotated[bool, BeforeValidator(bool)]
"""Whether there is a value."""

CocoSide = Annotated[float, Interval(ge=0, lt=2**31)]


_LONGEST_WORD = 40
"""Characters of the longest text of an image that may name its split."""


def _keep_word(value: Any) -> str | None:
    """Returns a value as a word, empty if there is none; None for long texts, lists and objects."""
    if isinstance(value, str | int | float) and len(str(value)) <= _LONGEST_WORD:
        return str(value).strip()
    return None if value else ""


_FACTS = frozenset(
    {"license", "flickr_url", "coco_url", "url", "date_captured", "created_at", "path", "extra"}
    | {"dataset_id", "category_ids", "milliseconds", "is_annotated", "num_annotations", "deleted"}
    | {"regenerate_thumbnail", "isannotated", "annotating", "annotated", "metadata", "events"}
)
"""Keys of images that say nothing about what they show, as COCO and tools write them."""


class Image(BaseModel, extra="allow"):
    """An entry of `images`; a side may be missing. Other values are kept if they are words."""

    __pydantic_extra__: dict[str, Annotated[str | None, BeforeValidator(_keep_word)]]

    id: Id
    file_name: str
    width: CocoSide | None = None
    height: CocoSide | None = None

    def find_unstored(self) -> Iterator[str]:
        """Yields what says something about the image and has no place in a record."""
        for key, word in self.__pydantic_extra__.items():
            if word != "" and key not in _FACTS:
                yield f"{key[:_LONGEST_WORD]} of images"

    def find_word(self, key: str) -> str | None:
        """Returns the value of another key, as text; None without one."""
        return self.__pydantic_extra__.get(key) or None


class Category(BaseModel):
    """An entry of `categories`."""

    id: Number
    name: str = Field(coerce_numbers_to_str=True)
    supercategory: Any = None
    keypoints: Any = None
    skeleton: Any = None


Rectangle = tuple[float, float, float, float]
"""X, y, width and height in pixels."""


def _read_rectangle(bbox: Any, info: ValidationInfo) -> Rectangle | None:
    """Returns the numbers of a box; None for null, an empty list, or nothing but NaN.

    Raises:
        Rejected: it is not four numbers.
    """
    sides = bbox if isinstance(bbox, list) else [bbox]
    if all(side is None or side != side for side in sides):  # NaN differs from itself
        return None
    try:
        x, y, width, height = map(_as_number, bbox)
    except (TypeError, ValueError, OverflowError):
        of = f"bbox of annotation {info.data.get('id')}"
        raise bad_annotations(f"{of} is not a list of 4 numbers: {bbox!r:.60}") from None
    return x, y, width, height


def _as_number(side: Any) -> float:
    if side is None:
        return math.nan
    if isinstance(side, bool):
        raise ValueError
    return float(side)


def _keep_needed(outline: Any, info: ValidationInfo) -> Box | bool:
    """Returns the box around a segmentation if the annotation has none, or else whether it is one.

    Most of a file is outlines, which are not kept.
    """
    if info.data.get("bbox") is None and (box := enclose_segmentation(outline)):
        return box
    return bool(outline)


@dataclass(frozen=True, slots=True)
class ObjectAttributes:
    """What CVAT writes into an annotation's `attributes`.

    Attributes:
        rotation: the angle of the box in degrees.
        values: names and values of other attributes.
        unusable: how many are not one value, such as lists.
    """

    rotation: float = 0.0
    values: tuple[tuple[str, str], ...] = ()
    unusable: int = 0


_NO_ATTRIBUTES = ObjectAttributes()
"""The default: pydantic would copy one that has no hash for each annotation."""


def _read_attributes(attributes: Any) -> ObjectAttributes:
    """Reads attributes, and the rotation that CVAT writes among them."""
    if not isinstance(attributes, dict):
        return ObjectAttributes(unusable=int(bool(attributes)))
    values, unusable = list[tuple[str, str]](), 0
    for name, value in attributes.items():
        text = read_attribute(value)
        if text is None:
            unusable += bool(value)
        elif name != "rotation":
            values.append((name, text))
    return ObjectAttributes(angle_of(attributes.get("rotation")), tuple(values), unusable)


_FLAGS = ("difficult", "truncated", "occluded")
"""Keys of annotations that tools write next to `bbox` instead of into `attributes`."""

Flag = Annotated[str | None, BeforeValidator(read_attribute)]


class Annotation(BaseModel, extra="allow"):
    """An entry of `annotations`: one object in an image.

    Its `bbox` is None if it has no box. Then, `segmentation` is the box around its outline, and
    without one, the labeled points in `keypoints` have a box around them.
    Of other keys, only whether they have a value is kept.
    """

    __pydantic_extra__: dict[str, Presence]

    id: Id
    image_id: Id
    category_id: Number | str = Field(union_mode="left_to_right")
    bbox: Annotated[Rectangle | None, PlainValidator(_read_rectangle)] = None
    area: FiniteFloat | None = None
    iscrowd: FiniteFloat | None = None
    segmentation: Annotated[Any, BeforeValidator(_keep_needed)] = False
    keypoints: Any = None
    num_keypoints: Presence = False
    attributes: Annotated[Any, BeforeValidator(_read_attributes)] = _NO_ATTRIBUTES
    difficult: Flag = None
    truncated: Flag = None
    occluded: Flag = None

    def list_attributes(self) -> Mapping[str, str]:
        """Returns the attributes of the object by name."""
        flags = {name: value for name in _FLAGS if (value := getattr(self, name)) is not None}
        return flags | dict(self.attributes.values)

    def find_unstored(self) -> Iterator[str]:
        """Yields what it has that has no place in a record, in the plural or as a key."""
        if self.segmentation:
            yield "masks"
        yield from ["attributes with several values"] * self.attributes.unusable
        for key, has_value in self.__pydantic_extra__.items():
            if has_value:
                yield key[:_LONGEST_WORD]

    def find_box(self) -> tuple[Box, bool]:
        """Returns left, top, right and bottom, and whether the box encloses another shape.

        The sides are not finite if nothing gives a box.
        """
        if self.bbox is None:
            if isinstance(self.segmentation, tuple):
                return self.segmentation, True
            box = _enclose_points(self.keypoints)
            return box or (math.nan,) * 4, box is not None
        x, y, width, height = self.bbox
        return rotate_box((x, y, x + width, y + height), self.attributes.rotation)

    @property
    def is_points_alone(self) -> bool:
        """Whether its box is that around its key points."""
        has_outline = isinstance(self.segmentation, tuple)
        return self.bbox is None and not has_outline and self.find_box()[1]

    def find_corners(self) -> Sequence[float] | None:
        """Returns x and y of the corners of a rotated box; None if it is upright."""
        if not self.attributes.rotation or self.bbox is None or not self.find_box()[1]:
            return None
        x, y, width, height = self.bbox
        return corners_of_rectangle((x, y, x + width, y + height), self.attributes.rotation)

    def find_area(self) -> float:
        """Returns the area of the box, before any rotation."""
        if self.bbox is None:
            left, top, right, bottom = self.find_box()[0]
            return (right - left) * (bottom - top)
        _, _, width, height = self.bbox
        return width * height

    def has_corners(self, width: float, height: float) -> bool:
        """Tells if the box is two corners, since it would leave the image, or contradicts its area.

        Args:
            width: that of the image; 0 if it is not known.
            height: the same.
        """
        if self.bbox is None or self.attributes.rotation:
            return False
        left, top, right, bottom = self.bbox
        if not (left < right and top < bottom):
            return False
        if self.area is not None and not math.isclose(self.area, right * bottom, rel_tol=0.01):
            area = (right - left) * (bottom - top)
            return math.isclose(self.area, area, rel_tol=0.01)
        is_inside = right <= width + 1 and bottom <= height + 1
        return is_inside and (left + right > width + 1 or top + bottom > height + 1)


def _enclose_points(points: Any) -> Box | None:
    """Returns the box around labeled points, as pycocotools does for results.

    None if they are on one horizontal or vertical line, or malformed.

    Args:
        points: `keypoints` of an annotation.
    """
    try:
        numbers = [_as_number(each) for each in points or ()]
    except (TypeError, ValueError, OverflowError):
        return None
    triples = zip(numbers[0::3], numbers[1::3], numbers[2::3], strict=False)
    labeled = [(x, y) for x, y, code in triples if code and math.isfinite(x) and math.isfinite(y)]
    if not labeled:
        return None
    xs, ys = zip(*labeled, strict=True)
    left, top, right, bottom = min(xs), min(ys), max(xs), max(ys)
    return (left, top, right, bottom) if left < right and top < bottom else None


def _explain_missing_boxes(objects: Iterable[Annotation]) -> str:
    """Says what annotations without boxes and outlines lack."""
    if any(each.keypoints for each in objects):
        return (
            "its annotations have neither bbox nor segmentation, and none has key points that a "
            "box can enclose: add bbox to each"
        )
    return (
        "its annotations have neither bbox nor segmentation, and classes of whole images "
        "are not read from COCO: write a CSV with the columns file_name and label"
    )


def _keep_outline(outline: Any) -> bytes:
    """Returns an outline as JSON; with a number beyond 64 bits, a faulty one of the same form."""
    try:
        return as_kept_json(outline)
    except TypeError:
        shown = f"{outline!r:.60}"
        return as_kept_json({"size": shown} if isinstance(outline, dict) else shown)


class OutlinedAnnotation(Annotation):
    """An entry of `annotations` that also keeps the JSON of its `segmentation`.

    As objects of Python, the outlines of a file would take many times as much memory.
    """

    outline: Annotated[bytes, BeforeValidator(_keep_outline)] = Field(
        b"null", validation_alias="segmentation"
    )


class CocoFile(BaseModel):
    """The contents of one file."""

    images: Annotated[list[Image], FailFast()]
    categories: list[Category]
    annotations: Annotated[list[Annotation], FailFast()] = []


class OutlinedFile(CocoFile):
    """The contents of one file, with the outlines of its objects."""

    annotations: Annotated[list[OutlinedAnnotation], FailFast()] = []  # type: ignore[assignment]


def read_coco(uri: str, model: type[CocoFile]) -> CocoFile:
    """Reads a file of annotations.

    Raises:
        Rejected: it cannot be read, or has another form, such as that of panoptic masks, or a box
            is not four numbers.
    """
    try:
        return read_json(uri, MAX_JSON_BYTES, model, "annotations")
    except Rejected:
        if SEGMENTS not in read_sibling(uri, MAX_JSON_BYTES):
            raise
        why = (
            "it has panoptic masks: set source.kind to coco_panoptic, or use the file "
            "instances_*.json of the same images"
        )
        raise bad_annotations(why) from None


_MOST_SPLITS = 20


@dataclass(frozen=True, slots=True)
class SplitWords:
    """A key of the entries of `images` that may say which split an image is in.

    Attributes:
        key: the key.
        words: its values, sorted.
        count: how many images have one.
    """

    key: str
    words: tuple[str, ...]
    count: int


_POINTS_ALONE = (
    "{images have} objects with key points and neither bbox nor segmentation, whose boxes enclose "
    "these points: the objects may be larger"
)


class CocoAnnotations:
    """The annotations of one file, by image.

    Attributes:
        images: the file's images, sorted by name.
        classes: the categories' numbers by name.
        twins: unused categories that have the name of another one, and are left out.
        strays: annotations of images that the file does not list.
        not_stored: numbers of objects with attributes and other keys, with masks if these are not
            read, and of images with keys that say something about them.
        point_names: the names of the key points of all categories.
        skeleton: pairs of these names that a line joins, in any category.

    Raises:
        Rejected: two categories in use share a name or an id, or two images share an id.
    """

    def __init__(self, contents: CocoFile) -> None:
        self._has_outlines = isinstance(contents, OutlinedFile)
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
        ordered = sorted(contents.annotations, key=lambda each: (isinstance(each.id, str), each.id))
        self.strays = [each for each in ordered if each.image_id not in self._objects]
        objects = [each for each in ordered if each.image_id in self._objects]
        for each in objects:
            self._objects[each.image_id].append(each)
        self.not_stored = Counter(chain.from_iterable(map(Image.find_unstored, self.images)))
        self.not_stored.update(chain.from_iterable(map(Annotation.find_unstored, objects)))
        if self._has_outlines:
            del self.not_stored["masks"]
        self._points = _name_points(contents)
        self.point_names = [*dict.fromkeys(chain.from_iterable(self._points.values()))]
        self._skeletons = [
            CategorySkeleton.read(each, self._points[each.id])
            for each in contents.categories
            if each.id in self._points
        ]
        lines = chain.from_iterable(each.lines for each in self._skeletons)
        self.skeleton = [*dict.fromkeys(lines)]

    def find_split_words(self) -> SplitWords | None:
        """Finds a key of the images that may say which split each is in."""
        keys = dict.fromkeys(chain.from_iterable(each.__pydantic_extra__ for each in self.images))
        for key in filter(may_be_split, keys):
            found = Counter(filter(None, (image.find_word(key) for image in self.images)))
            if found and len(found) <= _MOST_SPLITS and not is_doubtful_split(key, found):
                return SplitWords(key, tuple(sorted(found)), found.total())
        return None

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

    def report_skeletons(self, file: ImageRef) -> Iterator[Notice]:
        """Yields a warning for each category whose skeleton joins points that it does not have."""
        for each in self._skeletons:
            if each.faulty:
                count, points = len(each.faulty), len(each.points)
                what = format_count(count, "pair")
                yield file.notice(
                    "warning",
                    "bad_skeleton",
                    f"{what} in the skeleton of category {each.category!r:.100}, such as "
                    f"{each.faulty[0]!r:.60}, {agree(count, 'is')} left out: give each pair "
                    f"the numbers of two key points, from 1 to {points}",
                )

    def report_same_files(self, file: ImageRef) -> Iterator[Notice]:
        """Yields an error for each image that is listed again under another id."""
        for image, other in pairwise(self.images):
            if image.file_name == other.file_name:
                detail = (
                    f"images {image.id!r:.60} and {other.id!r:.60} are both called "
                    f"{image.file_name!r:.100}: give the annotations of one the image_id of the "
                    "other, and remove it"
                )
                yield file.notice("fatal", "bad_annotations", detail)

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

        They may be fractions of the image, or two corners. Notes boxes around key points.
        """
        objects = [*chain.from_iterable(self._objects.values())]
        if alone := {each.image_id for each in objects if each.is_points_alone}:
            yield file.notice("noted", _POINTS_ALONE, count=len(alone))
        boxes = [each.find_box()[0] for each in objects]
        found = [box for box in boxes if all(map(math.isfinite, box))]
        if boxes and not any(any(map(math.isfinite, box)) for box in boxes):
            yield file.notice("fatal", "bad_annotations", _explain_missing_boxes(objects))
        sides = list(chain.from_iterable(found))
        if have_fractional_sides(sides):
            detail = (
                f"the largest coordinate of its boxes is {max(sides):g}, and COCO's boxes are in "
                "pixels: multiply x and width by the image's width, and y and height by its height"
            )
            yield file.notice("fatal", "bad_annotations", detail)
        corners = list[Annotation]()
        for image in self.images:
            size = image.width or 0, image.height or 0
            corners += [each for each in self._objects[image.id] if each.has_corners(*size)]
        if len(corners) > 1 and 2 * len(corners) > len(boxes):
            detail = (
                f"bbox of annotation {corners[0].id!r:.60} is two corners, by the image's size or "
                f"by its area, as in {len(corners):,} of {format_count(len(boxes), 'annotation')}, "
                "and COCO's boxes are x, y, width and height: subtract x from the third number, "
                "and y from the fourth"
            )
            yield file.notice("fatal", "bad_annotations", detail)

    def has_own_name(self, image: Image) -> bool:
        """Tells if no other image has the same name, in another folder or another spelling."""
        return self._plain_names[_plain_base(image)] == 1

    def objects(self, image: Image) -> list[Packable]:
        """Returns what annotates an image's objects: boxes, masks if these are read, and so on."""
        given: list[Packable] = [self.boxes(image)]
        if self._has_outlines:
            given.append(self.masks(image))
        if self.point_names:
            given.append(self.key_points(image))
        corners = [each.find_corners() for each in self._objects[image.id]]
        if any(corners):
            given.append(OrientedBoxes(corners))
        values = [each.list_attributes() for each in self._objects[image.id]]
        if any(values):
            given.append(Attributes(values))
        return given

    def key_points(self, image: Image) -> KeyPoints:
        """Returns the key points of an image's objects."""
        points = [
            _order_points(each.keypoints, self._points.get(each.category_id, ()), self.point_names)
            for each in self._objects[image.id]
        ]
        return KeyPoints(self.point_names, points)

    def masks(self, image: Image) -> Masks:
        """Returns the outlines of an image's objects."""
        found = []
        for each in self._objects[image.id]:
            if isinstance(each, OutlinedAnnotation):
                found.append(read_segmentation(orjson.loads(each.outline)))
        return Masks(found)

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


@dataclass(frozen=True, slots=True)
class CategorySkeleton:
    """The lines between the key points of a category.

    Attributes:
        category: its name.
        points: the names of its points.
        lines: pairs of these names.
        faulty: the other pairs, which are not the numbers of two points.
    """

    category: str
    points: Sequence[str]
    lines: Sequence[tuple[str, str]]
    faulty: Sequence[Any]

    @classmethod
    def read(cls, category: Category, points: Sequence[str]) -> Self:
        """Reads the skeleton of a category, which has points of these names."""
        given = category.skeleton or []
        lines, faulty = list[tuple[str, str]](), list[Any]()
        for pair in given if isinstance(given, list) else [given]:
            match pair:
                case [int(start), int(end)] if (
                    1 <= min(start, end) < max(start, end) <= len(points)
                ):
                    lines.append((points[start - 1], points[end - 1]))
                case _:
                    faulty.append(pair)
        return cls(category.name, points, lines, faulty)


def _plain_base(image: Image) -> str:
    """The name of an image's file without its folders, extension and peculiarities of spelling."""
    name = image.file_name.replace("\\", "/").rpartition("/")[2]
    return plain_name(posixpath.splitext(name)[0])


def _name_points(contents: CocoFile) -> dict[Id, list[str]]:
    """Returns the names of the key points of each category.

    Without names, or if two points have the same one, they are the numbers of the points from 1.
    Categories whose objects have no key points are left out.
    """
    lengths = dict[Id, int]()
    for each in contents.annotations:
        if each.keypoints:  # in another form, they have at least one point
            number = len(each.keypoints) // 3 if isinstance(each.keypoints, list) else 1
            lengths[each.category_id] = max(number, 1, lengths.get(each.category_id, 0))
    named: dict[Id, Any] = {each.id: each.keypoints for each in contents.categories}
    found = dict[Id, list[str]]()
    for category, number in lengths.items():
        given = named.get(category)
        names = list(map(str, given)) if isinstance(given, list) else []
        if not names or not all(map(str.strip, names)) or len({*names}) < len(names):
            names = [str(each) for each in range(1, max(number, len(names)) + 1)]
        found[category] = names
    return found


def _order_points(
    points: Any, names: Sequence[str], all_names: Sequence[str]
) -> Sequence[float | None] | None:
    """Returns x, y and visibility of each of all points, in their order.

    Args:
        points: `keypoints` of an annotation.
        names: the names of the points of its category.
        all_names: the names of the points of all categories.

    Returns:
        The numbers; None if there are no points, and an empty list if they are malformed.
    """
    if not points:
        return None
    try:
        numbers = [_as_number(each) for each in points]
    except (TypeError, ValueError, OverflowError):
        return []
    if len(numbers) != 3 * len(names):
        return []
    if names == all_names:
        return numbers
    triples = {name: numbers[3 * at : 3 * at + 3] for at, name in enumerate(names)}
    return [*chain.from_iterable(triples.get(name, (0, 0, 0)) for name in all_names)]


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
