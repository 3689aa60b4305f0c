"""Label Studio's JSON: one file of many tasks, with rectangles, polygons, brushes, choices.

The format is that of its export as JSON, with all annotations of a task.
"""

import posixpath
import re
from codecs import BOM_UTF8
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from operator import mul
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import BaseModel, Field, RootModel

from recordmill.annotations.attributes import read_attribute
from recordmill.imaging.geometry import Box, Size
from recordmill.schemas.image_ref import ImageRef, Listed
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.box_units import refuse_fractions
from recordmill.transforms.inputs.described_objects import (
    OBJECT,
    DescribedObjects,
    OtherShapes,
)
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Recognized
from recordmill.transforms.inputs.image_names import find_other_place
from recordmill.transforms.inputs.image_places import BELOW, ask_for_images, find_image_place
from recordmill.transforms.inputs.image_suffixes import is_image_name
from recordmill.transforms.inputs.label_studio_points import (
    RegionPoints,
    RelatedPoint,
    attach_points,
)
from recordmill.transforms.inputs.label_studio_shapes import (
    read_point_of_label_studio,
    read_shape_of_label_studio,
)
from recordmill.transforms.inputs.named_files import (
    DataFile,
    bad_annotations,
    key_of,
    read_json,
    read_sibling,
)
from recordmill.transforms.inputs.outlines import DescribedShape, NamedPoint
from recordmill.transforms.inputs.sources.object_source import (
    DescribedImage,
    LabelChoices,
    ObjectSource,
)

MAX_JSON_BYTES = 2**30
"""Masks of 100,000 objects have a tenth of it."""

_VISIBLE = 2
"""COCO's code of visibility of all points: Label Studio knows no hidden ones."""

_ANSWERS = ("choices", "number", "rating", "text")
"""Keys of a value that say something about a region."""

_SIZES = ("height", "radiusX", "points", "rle")
"""Keys of a value that say how large a region is."""

_PLACE = frozenset(
    {"x", "y", "width", "height", "rotation", "radiusX", "radiusY", "points", "closed"}
    | {"rle", "format"}
)
"""Keys of a value that say where a region is."""

_SIGNS = (b'"annotations"', b'"result"')

_UPLOADED = re.compile(r"[0-9a-f]{8}-(?=.)")
"""What Label Studio writes before the name of an uploaded file."""

_LANDMARKS = (
    "{images have} key points outside all regions, which are the landmarks of an object of the "
    "class object, whose box is the whole image; if each is an object, add "
    "--set source.points=objects"
)
"""What is noted about images."""

LabelStudioSide = Annotated[int, Field(gt=0, lt=2**31)]


class Region(BaseModel):
    """An entry of `result`: a region with a shape, its label, or a choice."""

    id: str = Field("", coerce_numbers_to_str=True)
    from_name: str = ""
    to_name: str = ""
    item_index: int | None = None
    value: dict[str, Any] = {}
    parent: str | None = Field(None, validation_alias="parentID", coerce_numbers_to_str=True)
    original_width: LabelStudioSide | None = None
    original_height: LabelStudioSide | None = None
    from_id: str | None = Field(None, coerce_numbers_to_str=True)
    to_id: str | None = Field(None, coerce_numbers_to_str=True)
    meta: Any = None
    attributes: dict[str, str] = {}
    unusable: int = 0
    others: int = 0

    def read_answer(self) -> str | None:
        """Returns what was chosen or written about a region; None for nothing, or for several."""
        for key in _ANSWERS:
            found = self.value.get(key)
            if isinstance(found, list) and len(found) == 1:
                found = found[0]
            if (text := read_attribute(found)) is not None:
                return text
        return None

    def add_answer(self, other: "Region") -> None:
        """Adds what another result says about the region."""
        if other.value.keys().isdisjoint(_ANSWERS):
            self.others += not other.is_part
            return
        answer = other.read_answer()
        if answer is None:
            self.unusable += 1
        elif other.from_name:
            self.attributes[other.from_name] = answer

    @property
    def is_part(self) -> bool:
        """Whether it gives the place or the labels of a region, and nothing else about it."""
        keys = self.value.keys() - _PLACE
        return all(key.endswith("labels") for key in keys)

    def list_texts(self, key: str) -> list[str]:
        """Returns the texts under a key of the value; none if they are not a list."""
        found = self.value.get(key)
        return [str(each) for each in found] if isinstance(found, list) else []

    @property
    def is_key_point(self) -> bool:
        """Whether it is a point, which has no size."""
        if "keypointlabels" in self.value:
            return True
        return "x" in self.value and self.value.keys().isdisjoint(_SIZES)

    def find_labels(self) -> list[str]:
        """Returns the labels of the region, under `rectanglelabels` or a similar key."""
        keys = sorted(key for key in self.value if key.endswith("labels"))
        return next(filter(None, map(self.list_texts, keys)), [])


class TaskAnnotation(BaseModel):
    """What one annotator said about a task."""

    result: list[Region] = []
    was_cancelled: bool | None = None
    skipped: bool | None = None
    ground_truth: bool | None = None
    updated_at: str | None = None
    created_at: str | None = None

    @property
    def is_left_out(self) -> bool:
        """Whether the annotator skipped the task."""
        return bool(self.was_cancelled or self.skipped)

    @cached_property
    def regions(self) -> list[Region]:
        """The regions, whose results are joined, and the choices about the whole image."""
        regions: dict[object, Region] = {}
        for number, each in enumerate(self.result):
            if not each.value:  # such as a relation between regions
                continue
            found = regions.setdefault(each.id or number, each)
            found.add_answer(each)
            if found is not each:
                found.value = found.value | each.value
        return list(regions.values())

    def sort_results(self) -> tuple[list[Region], list[str]]:
        """Returns the regions, and the choices about the whole image.

        Raises:
            Rejected: `bad_annotations`: the regions are on several images.
        """
        choices: list[str] = []
        shaped = []
        for each in self.regions:
            if set(each.value) <= {"choices"}:
                choices += each.list_texts("choices")
            else:
                shaped.append(each)
        if len({(each.to_name, each.item_index) for each in shaped}) > 1:
            raise bad_annotations("its regions are on several images")
        return shaped, choices

    def find_related(self) -> Mapping[str, Sequence[str]]:
        """Returns the ids of the regions that relations join to each region, by its id."""
        related: defaultdict[str, list[str]] = defaultdict(list)
        for each in self.result:
            if each.from_id and each.to_id:
                related[each.from_id].append(each.to_id)
                related[each.to_id].append(each.from_id)
        return related

    def find_size(self) -> Size | None:
        """Returns width and height of the image; None if no region has them."""
        for each in self.result:
            if each.original_width and each.original_height:
                return each.original_width, each.original_height
        return None


class LabelStudioTask(BaseModel):
    """One image and its annotations."""

    data: dict[str, Any]
    annotations: list[TaskAnnotation] = []
    completions: list[TaskAnnotation] = []

    def find_annotation(self) -> TaskAnnotation | None:
        """Returns the annotation that counts; None if every annotator skipped the task.

        It is the one marked as ground truth, or else the one changed last.
        """
        done = [each for each in self.annotations or self.completions if not each.is_left_out]
        return max(
            done,
            key=lambda each: (bool(each.ground_truth), each.updated_at or each.created_at or ""),
            default=None,
        )

    def count_annotations(self) -> int:
        """Returns the number of annotations that were not skipped."""
        return sum(not each.is_left_out for each in self.annotations or self.completions)

    def find_image(self, key: str) -> str | None:
        """Returns the address of the image under a key; the first image's if the key is empty."""
        if key:
            found = self.data.get(key)
            return found if isinstance(found, str) else None
        texts = [each for each in self.data.values() if isinstance(each, str)]
        return next((each for each in texts if is_image_name(find_path(each))), None)


class LabelStudioFile(RootModel[list[LabelStudioTask]]):
    """The contents of one file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelStudio(ObjectSource):
    """The source `label_studio`, for Label Studio's export as JSON.

    If a task has several annotations, the one marked as ground truth counts, or else the one that
    was changed last. Tasks that were skipped are left out.

    Attributes:
        images: the folder of the images, relative to the input; `{folder}` stands for the JSON
            file's own folder. An image is the file there with the last part of its address, with or
            without what Label Studio writes before the names of uploaded files.
        image_key: the key in a task's `data` that has the image's address; empty: the first one
            with the name of an image.
        labels: what gives labels: `regions` gives boxes; `choice` gives one class per image, and
            rejects images with another number of choices; `choices` gives any number of classes.
        other_shapes: what to do with polygons, brushes, ellipses and rotated rectangles: `enclose`
            uses the box around them, `drop` leaves them out, `reject` rejects the image.
        points: what key points outside all regions are: `landmarks` of one object per image, of
            the class `object`; or `objects` of their own, whose classes are their labels. The box
            is the whole image.
    """

    images: str = BELOW
    image_key: str = ""
    labels: Literal["regions", "choice", "choices"] = "regions"
    other_shapes: OtherShapes = "enclose"
    points: Literal["landmarks", "objects"] = "landmarks"

    files: ClassVar[tuple[str, ...]] = ("*.json",)
    classes_from: ClassVar[str] = "Label Studio"
    placeholders: ClassVar[Mapping[str, str]] = {"folder": "the JSON file's folder"}
    choices: ClassVar[LabelChoices] = LabelChoices("regions", "choice", "choices")
    not_stored: ClassVar[tuple[str, ...]] = (
        "further annotations",
        "further labels",
        "other results",
        "answers about key points",
        "attributes with several values",
        "remarks",
        "masks",
    )

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes JSON files of tasks, and the folder of their images."""
        found = [
            path
            for path, head in sketch.heads.items()
            if path.lower().endswith(".json") and _looks_like_tasks(head)
        ]
        if not found or not sketch.has_images:
            return
        images = find_image_place(sketch, posixpath.dirname(found[0]))
        source = {"kind": "label_studio"}
        if images not in (None, cls().images):
            source["images"] = str(images)
        yield Recognized(
            {"source": source, "convention": "tf_object_detection"},
            f"Label Studio's JSON files such as {found[0]}",
            needs=None if images else ask_for_images(sketch),
            needed_keys=("source.images",),
        )

    def list_images(self, path: str, file: ImageRef, with_outlines: bool) -> Iterator[Listed]:
        """Yields the image of each task; the arguments are those of `list_references`."""
        counts = Counter[str]()
        named_by = DataFile(path, file)
        folder = self.images.format(folder=named_by.folder).strip("/")
        tasks = _read_tasks(file.uri)
        point_names = _name_points(tasks) if self.is_about_boxes else ()
        for number, task in enumerate(tasks, 1):
            annotation = task.find_annotation()
            if annotation is None:
                continue
            address = task.find_image(self.image_key)
            if not address:
                keys = ", ".join(task.data)
                raise bad_annotations(
                    f"task {number} names no image: set source.image_key ({keys:.100})"
                )
            counts["further annotations"] += task.count_annotations() - 1
            place = posixpath.join(folder, posixpath.basename(find_path(address)))
            try:
                described = self._describe(annotation, counts, with_outlines, point_names)
            except Rejected as rejected:
                key = key_of(file.key, path, place)
                lost = file.replace(key=key, spelling="")
                yield lost.notice("rejected", rejected.reason, f"task {number}: {rejected.detail}")
                continue
            find_other = partial(_find_image_of_task, named_by, folder, find_path(address))
            yield from described.list_in(named_by, place, find_other)
        if counts[_LANDMARKS]:
            yield file.notice("noted", _LANDMARKS, count=counts[_LANDMARKS])
        yield from self.report_unstored(file, counts)

    def idle_settings(self) -> Mapping[str, str]:
        """Returns the settings of shapes if these are not read."""
        if self.is_about_boxes:
            return {}
        return dict.fromkeys(("other_shapes", "points"), f"source.labels is {self.labels}")

    def _describe(
        self,
        annotation: TaskAnnotation,
        counts: Counter[str],
        with_outlines: bool,
        point_names: Sequence[str],
    ) -> DescribedImage:
        """Returns what a task says about its image.

        Args:
            annotation: the annotation of its task.
            counts: numbers of what is not stored, which grow.
            with_outlines: whether outlines are wanted.
            point_names: the names of the key points in the file.

        Raises:
            Rejected: `bad_annotations` or `refused_shape`.
        """
        regions, choices = annotation.sort_results()
        counts.update(regions=len(regions), choices=len(choices))
        if self.labels != "regions":
            return self.describe_classes(choices)
        objects, size = DescribedObjects(self.other_shapes), annotation.find_size()
        if regions and size is None:
            raise bad_annotations("a region has no original_width and original_height")
        size = size or (0, 0)
        shaped = _read_shapes(regions, size, counts)
        owners = [RegionPoints(region.id, shape.box) for region, shape in shaped]
        points = _list_points(annotation, regions, size)
        free = attach_points(points, owners, by_place=self.points == "landmarks")
        for (region, shape), own in zip(shaped, owners, strict=True):
            objects.add(
                replace(shape, points=tuple(own.points.values())),
                region.find_labels()[0],
                f"region {region.id!r:.60} is not a rectangle",
                attributes=region.attributes,
                lost_points=own.lost,
            )
        boxes = [each.box for each in owners]
        _refuse_fractions([*boxes, *((x, y, x, y) for _, x, y, _ in free)], size)
        counts[_LANDMARKS] += bool(free) and self.points == "landmarks"
        self._add_free_points(free, objects, size)
        if not with_outlines:
            counts["masks"] += objects.outlines
        given = objects.annotate(size, with_outlines, point_names)
        return DescribedImage(given, "", objects.labels)

    def _add_free_points(
        self, points: Sequence[NamedPoint], objects: DescribedObjects, size: Size
    ) -> None:
        """Adds key points outside all regions as one object, or as one each."""
        whole = (0.0, 0.0, float(size[0]), float(size[1]))
        if self.points == "objects":
            for each in points:
                shape = DescribedShape(whole, False, None, points=(each,))
                objects.add(shape, each.name, "", attributes={})
        elif points:
            landmarks = RegionPoints("", whole)
            for each in points:
                landmarks.add(each)
            shape = DescribedShape(whole, False, None, points=tuple(landmarks.points.values()))
            objects.add(shape, OBJECT, "", attributes={}, lost_points=landmarks.lost)


def _read_tasks(uri: str) -> Sequence[LabelStudioTask]:
    """Returns the tasks of a file.

    Raises:
        Rejected: `bad_annotations`: it cannot be read, or has another form, such as JSON-MIN.
    """
    try:
        return read_json(uri, MAX_JSON_BYTES, LabelStudioFile).root
    except Rejected:
        data = read_sibling(uri, MAX_JSON_BYTES)
        if b'"annotation_id"' not in data or any(sign in data for sign in _SIGNS):
            raise
        raise bad_annotations("it is an export as JSON-MIN: export the project as JSON") from None


def _name_points(tasks: Sequence[LabelStudioTask]) -> Sequence[str]:
    """Returns the names of the key points in a file, in the order in which they first occur."""
    names: dict[str, None] = {}
    for task in tasks:
        if annotation := task.find_annotation():
            labels = [each.find_labels()[:1] for each in annotation.regions if each.is_key_point]
            names.update(dict.fromkeys(chain.from_iterable(labels)))
    return list(names)


def _read_shapes(
    regions: Sequence[Region], size: Size, counts: Counter[str]
) -> list[tuple[Region, DescribedShape]]:
    """Returns the regions that have a shape, and their shapes.

    Args:
        regions: those of an image.
        size: its width and height.
        counts: numbers of what is not stored, which grow.

    Raises:
        Rejected: `bad_annotations`: a shape or a key point has no label.
    """
    shaped = list[tuple[Region, DescribedShape]]()
    for region in regions:
        if region.is_key_point:
            counts["answers about key points"] += len(region.attributes) + region.unusable
        elif shape := read_shape_of_label_studio(region.value, size):
            shaped.append((region, shape))
            counts["attributes with several values"] += region.unusable
        else:
            counts["other results"] += 1
            continue
        if not (labels := region.find_labels()):
            raise bad_annotations(f"region {region.id!r:.60} has no label")
        counts["further labels"] += len(labels) - 1
        counts["other results"] += region.others
        counts["remarks"] += bool(region.meta)
    return shaped


def _list_points(
    annotation: TaskAnnotation, regions: Sequence[Region], size: Size
) -> Iterator[RelatedPoint]:
    """Yields the key points of an image; `regions` are those of the annotation that counts."""
    related = annotation.find_related()
    for each in regions:
        if each.is_key_point:
            x, y = read_point_of_label_studio(each.value, size)
            point = NamedPoint(each.find_labels()[0], x, y, _VISIBLE)
            yield RelatedPoint(point, [*filter(None, [each.parent]), *related.get(each.id, ())])


def _refuse_fractions(boxes: Sequence[Box], size: Size) -> None:
    """Refuses an image whose regions are all in fractions of it; see `refuse_fractions`."""
    if boxes:
        scale = (100 / size[0], 100 / size[1]) * 2
        refuse_fractions([list(map(mul, box, scale)) for box in boxes], "percent")


def find_path(address: str) -> str:
    """Returns the path in the address of an image: a URL, or one of Label Studio's own.

    Label Studio serves local files under `/data/local-files/?d=PATH`, and uploaded ones under
    `/data/upload/`.
    """
    if "://" not in address and not address.startswith("/data/"):
        return address.replace("\\", "/")
    parts = urlsplit(address)
    local = parse_qs(parts.query).get("d")
    return local[0] if local else unquote(parts.path)


def _find_image_of_task(file: DataFile, folder: str, path: str) -> str | None:
    """Returns where the image of a task is below the root, if not at the usual place.

    Returns None if there is no such image, or several may be meant.
    """
    above, name = posixpath.split(path)
    short = _UPLOADED.sub("", name, count=1)
    places = (posixpath.join(folder, short), posixpath.join(file.folder, short))
    for place in places:
        if short != name and file.has(place):
            return place
    return find_other_place(file.root, folder, path) or find_other_place(
        file.root, folder, posixpath.join(above, short)
    )


def _looks_like_tasks(head: bytes) -> bool:
    begins = head.removeprefix(BOM_UTF8).lstrip()[:1]
    return begins == b"[" and all(sign in head for sign in _SIGNS)


SOURCE = LabelStudio
