"""Boxes around objects, moved from where they were drawn to their place on the stored image."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import orjson

from recordmill.annotations.annotation import (
    AnnotatedImage,
    AnnotationKind,
    AnnotationOutcome,
    DroppedAnnotation,
    Label,
    ListedAnnotations,
    ListedLabels,
    LostAnnotations,
    PlacedAnnotations,
    PlacedObjects,
    PlacedSides,
    Values,
    name_loss,
)
from recordmill.annotations.explain_losses import (
    advise_to_keep,
    explain_excess,
    join_advice,
)
from recordmill.annotations.shapes import Shape
from recordmill.schemas.dataset.json_values import as_kept_json
from recordmill.schemas.dataset.marker import AnnotationEntry
from recordmill.schemas.dataset.totals import AnnotationCounts, AnnotationTotals, show_dropped
from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import RecordField
from recordmill.schemas.formatting import format_count, say_count, show_names
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import WITHOUT_AN_IMAGE, Rejected

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recordmill.imaging.geometry import Box, Frame, Geometry
    from recordmill.schemas.settings.dataset import BoxSettings, Contract, DatasetSettings

TOLERANCE = 1e-6
"""How far a side may stick out and still count as inside, as a fraction of the image: this allows
for rounding."""

_DECIMALS = 5
"""Those of the sides of dropped boxes, which are only drawn."""

_FIELDS = {
    "xmin": RecordField("float", "left sides of boxes, 0 to 1", many=True),
    "xmax": RecordField("float", "right sides", many=True),
    "ymin": RecordField("float", "upper sides", many=True),
    "ymax": RecordField("float", "lower sides", many=True),
    "bbox": RecordField("float", "ymin, xmin, ymax, xmax of each box", many=True),
    "box_labels": RecordField("int64", "class ids of the boxes", many=True),
    "box_label_texts": RecordField("bytes", "class names of the boxes, UTF-8", many=True),
    "is_crowd": RecordField("int64", "1 for a group of objects", many=True),
    "area": RecordField("float", "area in pixels", many=True),
}

_SIDES = ("xmin", "ymin", "xmax", "ymax")
_PER_BOX = (*_SIDES, "box_labels", "box_label_texts")

_UNUSABLE = ("not_finite", "empty", "outside")
"""Faults of boxes that clipping cannot repair."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """An image's boxes as its source gives them; see `boxes_of`.

    Attributes:
        boxes: left, top, right and bottom of each, in pixels from the upper left corner or as
            fractions; None for what was not finite, once they have been packed.
        labels: the class of each.
        values: further values of each box, by field.
        drawn_on_size: width and height of the image as the annotators saw it, if the annotations
            give them.
        fractions: whether boxes are in fractions of the image instead of pixels.
        shapes: numbers of shapes that are not boxes: those that some of these boxes enclose
            (`enclosed`), and those that were dropped (`other_shape`).
    """

    kind: ClassVar[str] = "boxes"

    boxes: Sequence[Sequence[float | None]]
    labels: Sequence[Label]
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    drawn_on_size: Sequence[int] | None = None
    fractions: bool = False
    shapes: Mapping[str, int] = field(default_factory=dict)

    def pack(self) -> bytes:
        """Returns the bytes that a reference carries.

        JSON, in which what is not finite becomes null.
        """
        return as_kept_json(
            [
                self.boxes,
                self.labels,
                self.values,
                self.drawn_on_size,
                self.fractions,
                self.shapes,
            ],
            option=orjson.OPT_SORT_KEYS,
        )

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Returns the boxes that a reference carries."""
        return cls(*orjson.loads(packed))

    @property
    def count(self) -> int:
        """The number of boxes, and of shapes that the source dropped."""
        return len(self.boxes) + self.shapes.get("other_shape", 0)


def boxes_of(
    boxes: Iterable[Sequence[float]],
    labels: Iterable[Label],
    *,
    values: Mapping[str, Sequence[Any]] | None = None,
    drawn_on_size: Sequence[int] | None = None,
    fractions: bool = False,
    shapes: Mapping[str, int] | None = None,
) -> Boxes:
    """Makes an image's boxes from what a source reads; see `Boxes`.

    Example:
        boxes = recordmill.boxes_of([[0.1, 0.2, 0.5, 0.8]], ["cat"], fractions=True)
    """
    return Boxes(
        [list(map(float, box)) for box in boxes],
        list(labels),
        {key: list(each) for key, each in (values or {}).items()},
        list(drawn_on_size) if drawn_on_size else None,
        fractions,
        {name: count for name, count in (shapes or {}).items() if count},
    )


class BoxKind(AnnotationKind):
    """Boxes around objects."""

    name: ClassVar[str] = Boxes.kind
    unit: ClassVar[str] = "box"
    stored_by: ClassVar[Sequence[str]] = ("tf_object_detection", "tfds")
    fields: ClassVar[Mapping[str, RecordField]] = _FIELDS
    named: ClassVar[Mapping[str, str]] = {"box_label_texts": "box_labels"}
    follows_pixels: ClassVar[bool] = True

    def list_labels(self, packed: bytes) -> ListedLabels:
        """Returns the classes of an image's boxes."""
        given = Boxes.unpack(packed)
        return ListedLabels(given.labels, given.shapes.get("other_shape", 0))

    def place(self, packed: bytes, on: AnnotatedImage) -> PlacedAnnotations:
        """Places boxes on the stored image; see `place_boxes`. Without one, they are dropped."""
        given = Boxes.unpack(packed)
        if on.image is None:
            return _drop_all(given, on.label_map)
        settings, label_map = on.settings.boxes, on.label_map
        return place_boxes(given, on.geometry, settings, label_map, on.unwanted)

    def lose(
        self, packed: bytes, rejected: Rejected, label_map: LabelMap
    ) -> AnnotationOutcome | None:
        """Counts the boxes of an image that is not written.

        If the image does not exist, its boxes are faulty: they were drawn on it.
        """
        given = Boxes.unpack(packed)
        if not given.count:
            return None
        counts, dropped = AnnotationCounts(listed=given.count), list[DroppedAnnotation]()
        outcome = name_loss(rejected)
        if rejected.stage == "list" and rejected.reason in WITHOUT_AN_IMAGE:
            outcome = "without_image"
            dropped = _list_lost(given, label_map)
        counts.dropped[outcome] = given.count
        return AnnotationOutcome(counts, dropped)

    def predict(
        self, listed: ListedAnnotations, settings: "DatasetSettings", label_map: LabelMap
    ) -> LostAnnotations | None:
        """Predicts the losses of boxes of unknown classes and of missing images."""
        if settings.boxes.invalid == "reject":  # then images are rejected, not boxes
            return None
        written, faulty, lost = Counter[str](), Counter[str](), dict[str, Counter[str]]()
        for label, count in listed.lost.items():
            name = label_map.name_for(label)
            if name is not None or not label_map.leaves_out(label):
                shown = name or label_map.shown(label)
                lost.setdefault("without_image", Counter())[shown] += count
        for label, count in listed.labels.items():
            name = label_map.name_for(label)
            if name is not None:
                written[name] += count
            elif not label_map.leaves_out(label):
                faulty[label_map.shown(label)] += count
        if faulty:
            lost["unknown_class"] = faulty
        totals = AnnotationTotals(dropped=lost, faulty=lost)
        return LostAnnotations(AnnotationCounts(listed.total), totals, written)

    def check_limits(self, lost: LostAnnotations, settings: "DatasetSettings") -> str | None:
        """Returns why too many boxes are lost; None if they are not.

        Losing all boxes of a class fails whatever the limits.
        """
        totals = lost.totals
        faulty, dropped = _sum_by_class(totals.faulty), _sum_by_class(totals.dropped)
        if not faulty:
            return None
        sums = {reason: sum(counts.values()) for reason, counts in totals.faulty.items()}
        first = max(sums, key=lambda reason: (sums[reason], reason))
        why = f"dropped ({show_dropped(totals.faulty, counted=True)})"
        if first in totals.examples:
            why = f"{why}, such as {totals.examples[first].text}"
        remedy = "correct such boxes"
        if first == "without_image":
            remedy = "add the missing images or correct their names"
        gone = sorted(
            name for name in faulty if not lost.written.get(name) and faulty[name] == dropped[name]
        )
        if gone:
            numbers = [*filter(str.isdecimal, totals.faulty.get("unknown_class", ()))]
            if numbers:
                remedy = f"name such classes in {settings.source.classes_from}"
            of = f"all boxes of {format_count(len(gone), 'class')} ({show_names(gone)})"
            kept_classes = sorted(lost.written.keys() - set(gone))
            advice = join_advice(remedy, advise_to_keep(kept_classes, settings))
            if numbers == [str(len(kept_classes) + 1)]:
                # One is too high, and one of the lower ones, 0, is not in use.
                from_one = "if the numbers begin with 1, write a name for 0 before the other names"
                advice = join_advice(remedy, from_one)
            return f"{of} were {why}, which no limit allows: {advice}"
        kept = sum(lost.written.values())
        limits = settings.max_rejected.boxes
        return explain_excess(
            "boxes", "max_rejected.boxes", limits, faulty.total(), kept, why, remedy
        )

    def most_lost(self, contract: "Contract") -> float | None:
        """Returns the largest share of boxes that may end up in no record."""
        return contract.lost_boxes

    def refuse_unstored(self, what: str, flag: str = "--set ") -> SettingError:
        """Returns the error of a run that would lose boxes because no convention was named."""
        return SettingError(
            "convention",
            f"is not set: {what}, and the default convention stores none: "
            f"add {flag}convention=tf_object_detection or {flag}convention=tfds; "
            f"{flag}convention=default leaves the boxes out",
        )

    def find_remarks(
        self, entry: AnnotationEntry, record: str, settings: "DatasetSettings"
    ) -> Iterator[str]:
        """Yields remarks on dropped boxes, on doubtful orientations, and on images without any."""
        drawn_on = settings.boxes.drawn_on
        dropped = {
            why: count for why, count in entry.dropped.items() if why != "with_left_out_images"
        }
        if count := sum(dropped.values()):
            reasons = show_dropped(entry.dropped_classes or {})
            of = f"{count:,} of {format_count(entry.listed, 'box')}"
            what = f"{of} {'was' if count == 1 else 'were'} dropped"
            yield f"{what}{f' ({reasons})' if reasons else ''}."
        noted = entry.noted or {}
        if count := noted.get("size_disagrees", 0):
            yield _explain_sizes(count, drawn_on)
        for fitting, image in (("displayed", "upright image"), ("stored", "image as stored")):
            if count := noted.get(f"fits_only_{fitting}", 0):
                what = f"{say_count(count, 'box', 'is')} on images whose boxes fit only the {image}"
                advice = f"if all boxes were drawn so, set boxes.drawn_on={fitting}"
                yield f"{what}, and were read as drawn on it: {advice}."
        clipped = noted.get("clipped", 0)
        if settings.images.resize is None and 2 * clipped > entry.written:
            of = f"{clipped:,} of {format_count(entry.written, 'box')}"
            form = "they are in the form that is read, such as width and height, not corners"
            yield f"{of} reached beyond their images, and were clipped: check that {form}."
        if entry.images_without and (said := entry.images_without.explain(self.unit, record)):
            yield f"{said}."

    def find_tfds_type(
        self, field: str, classes: int, parts: Sequence[str], recipe: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        """Returns the type of boxes of four numbers; sides have that of other features."""
        if field != "bbox":
            return None
        return {
            "pythonClassName": "tensorflow_datasets.core.features.bounding_boxes.BBoxFeature",
            "boundingBox": {
                "shape": {"dimensions": ["4"]},
                "dtype": "float32",
                "bboxFormat": "REL_YXYX",
            },
        }

    def check(self, values: Values) -> str | None:
        """Returns the problem with the boxes in an Example: they must be on the image."""
        counts = {name: float(len(values[name])) for name in _PER_BOX if name in values}
        if "bbox" in values:
            counts["bbox"] = len(values["bbox"]) / 4
        if len(set(counts.values())) > 1:
            said = ", ".join(f"{count:g} in {name}" for name, count in counts.items())
            return f"its lists of boxes differ in length: {said}"
        for number, (left, top, right, bottom) in enumerate(read_sides(values).tolist(), 1):
            if not (0 <= left <= right <= 1 and 0 <= top <= bottom <= 1):
                sides = f"{left:g}, {top:g}, {right:g}, {bottom:g}"
                return f"box {number} is not on the image: its sides are {sides}"
        return None

    def trace(self, values: Values, names: Mapping[int, str]) -> list[Shape]:
        """Returns the boxes in an Example as shapes."""
        sides = [tuple(box) for box in read_sides(values).tolist()]
        classes = list_classes(values, names, len(sides))
        return [
            Shape(class_id, class_name, box)
            for box, (class_id, class_name) in zip(sides, classes, strict=True)
        ]


BOXES = BoxKind()


def read_sides(values: Values) -> "NDArray[np.float64]":
    """Returns the boxes in an Example as an array of shape (boxes, 4).

    The columns are left, top, right and bottom, as fractions of the image.
    """
    import numpy as np

    if "bbox" in values:
        found = np.array(values["bbox"] or (), np.float64).reshape(-1, 4)
        return found[:, [1, 0, 3, 2]]
    sides = [values.get(side) or () for side in _SIDES]
    if all(sides):
        return np.array(sides, np.float64).T
    return np.empty((0, 4), np.float64)


def list_classes(
    values: Values, names: Mapping[int, str], count: int
) -> list[tuple[int | None, str | None]]:
    """Returns the id and the name of the class of each object in an Example.

    Args:
        values: the values in the Example.
        names: names of classes by their ids, for Examples that have ids only.
        count: the number of objects. If the Example has another number of classes, they are left
            out.
    """
    ids: Sequence[int | None] = values.get("box_labels") or ()
    if len(ids) != count:
        ids = [None] * count
    texts = values.get("box_label_texts") or ()
    if len(texts) == count:
        return [
            (class_id, text.decode(errors="replace"))
            for class_id, text in zip(ids, texts, strict=True)
        ]
    return [(class_id, None if class_id is None else names.get(class_id)) for class_id in ids]


def _sum_by_class(by_reason: Mapping[str, Mapping[str, int]]) -> Counter[str]:
    """Returns the counts of all reasons together, by class."""
    total = Counter[str]()
    for counts in by_reason.values():
        total.update(counts)
    return total


def _explain_sizes(count: int, drawn_on: str) -> str:
    """Says what was done with boxes whose image is annotated with the size of its other side."""
    boxes = say_count(count, "box", "is")
    if drawn_on != "auto":
        return (
            f"{boxes} on images whose annotated size is not that of the {drawn_on} image: "
            f"boxes.drawn_on={drawn_on} was followed."
        )
    return (
        f"{boxes} on images that are annotated with the size of their bytes, and displayed turned "
        "by their EXIF orientation: they were read as drawn on the image as stored; if the tool "
        "displayed it upright, set boxes.drawn_on=displayed."
    )


def _drop_all(given: Boxes, label_map: LabelMap) -> PlacedAnnotations:
    """Drops the boxes of an image that is not stored: there is nothing to place them on."""
    shown = [label_map.name_for(label) or label_map.shown(label) for label in given.labels]
    dropped = [
        DroppedAnnotation("not_decoded", name, place, is_faulty=False)
        for place, name in enumerate(shown, 1)
    ]
    counts = AnnotationCounts(given.count)
    counts.dropped["not_decoded"] = len(dropped)
    _count_shapes(counts, given.shapes)
    return PlacedAnnotations({}, [], AnnotationOutcome(counts, dropped))


def _list_lost(given: Boxes, label_map: LabelMap) -> list[DroppedAnnotation]:
    """Lists the boxes of an image that does not exist."""
    lost = []
    for place, label in enumerate(given.labels, 1):
        name = label_map.name_for(label)
        is_faulty = not (name is None and label_map.leaves_out(label))
        shown = name or label_map.shown(label)
        lost.append(DroppedAnnotation("without_image", shown, place, is_faulty))
    # The source has dropped these shapes, and does not say their class.
    for place in range(len(lost) + 1, given.count + 1):
        lost.append(DroppedAnnotation("without_image", "", place, is_faulty=False))
    return lost


def place_boxes(
    given: Boxes,
    geometry: "Geometry",
    settings: "BoxSettings",
    label_map: LabelMap,
    unwanted: Mapping[int, str] = MappingProxyType({}),
) -> PlacedAnnotations:
    """Places an image's boxes on the stored image.

    Args:
        given: the boxes.
        geometry: how the stored image was made from its source.
        settings: what to do with invalid boxes.
        label_map: class ids.
        unwanted: why objects are dropped because of another kind, by their place from 0.

    Returns:
        The fields of boxes, and further values per box. The outcome lists the boxes that were
        dropped, except for shapes that the source dropped. Objects are those of the boxes.

    Raises:
        Rejected: stage `encode`: `bad_boxes` if `invalid` is `reject` and a box is invalid;
            `size_mismatch` if the boxes were drawn on an image of another shape.
    """
    drawn_on, evidence = _find_orientation(given, geometry, settings)
    size = (1, 1) if given.fractions else geometry.frame_size(drawn_on)
    placed, dropped = list[_PlacedBox](), list[DroppedAnnotation]()
    located, shown = dict[int, PlacedSides | None](), list[str]()
    for index, (box, label) in enumerate(zip(given.boxes, given.labels, strict=True)):
        found = _BoxCandidate(index, label, _as_fractions(box, size), label_map)
        shown.append(found.name or label_map.shown(label))
        if found.fault and settings.invalid == "reject" and found.fault != "renamed_away":
            detail = f"box {index + 1} of {len(given.boxes)} is {found.fault}"
            raise Rejected("encode", "bad_boxes", detail)
        fate = _drop(found, settings, label_map) or _place(
            found, geometry, drawn_on, unwanted.get(index)
        )
        if isinstance(fate, DroppedAnnotation):
            dropped.append(fate)
            located[fate.place] = _locate(found.sides, geometry, drawn_on)
        else:
            placed.append(fate)
    counts = AnnotationCounts(given.count, len(placed), Counter(box.reason for box in dropped))
    counts.noted["clipped"] = sum(math.isfinite(box.most_area) for box in placed)
    if evidence:
        counts.noted[evidence] = len(given.boxes)
    _count_shapes(counts, given.shapes)
    values = {
        key: [_as_bytes(each[box.at]) for box in placed] for key, each in given.values.items()
    }
    if "area" in values:
        values["area"] = _place_areas(values["area"], placed, geometry)
    names, sides = [box.name for box in placed], [box.sides for box in placed]
    fields = {
        **_fields_of(sides),
        "box_labels": [label_map.ids[name] for name in names],
        "box_label_texts": [name.encode() for name in names],
        **values,
    }
    objects = PlacedObjects(len(shown), [box.at for box in placed], shown, drawn_on, sides)
    outcome = AnnotationOutcome(counts, dropped, located=located)
    return PlacedAnnotations(fields, names, outcome, objects)


class _PlacedBox(NamedTuple):
    """A box on the stored image: its place among those given from 0, its sides, and its class.

    `most_area` is its area in square pixels if it was clipped, otherwise infinite.
    """

    at: int
    sides: "Box"
    name: str
    most_area: float


class _BoxCandidate:
    """A box that may be stored: its sides are fractions of the image that it was drawn on."""

    def __init__(self, index: int, label: Label, sides: "Box", label_map: LabelMap) -> None:
        self.index, self.label, self.sides = index, label, sides
        self.name = label_map.name_for(label)
        if self.name is not None:
            self.fault = _find_fault(sides)
        elif label_map.is_renamed_away(label):
            self.fault = "renamed_away"
        else:
            self.fault = "unknown_class"


def _drop(
    box: _BoxCandidate, settings: "BoxSettings", label_map: LabelMap
) -> DroppedAnnotation | None:
    """Drops a box that is unusable, or that the settings drop."""
    fault = box.fault
    if fault is None:
        return None
    if box.name is not None and fault not in _UNUSABLE and settings.invalid != "drop":
        return None
    is_left_out = box.name is None and label_map.leaves_out(box.label)
    is_faulty = fault != "sticking_out" and not is_left_out
    return DroppedAnnotation(fault, label_map.shown(box.label), box.index + 1, is_faulty)


def _place(
    box: _BoxCandidate, geometry: "Geometry", drawn_on: "Frame", unwanted: str | None
) -> _PlacedBox | DroppedAnnotation:
    """Places a box of a known class on the stored image, or drops it if nothing of it is there.

    `unwanted` says why it is dropped because of another kind, if it is.
    """
    name = str(box.name)
    if unwanted:
        return DroppedAnnotation(unwanted, name, box.index + 1, is_faulty=False)
    moved = geometry.place(_clip(box.sides), drawn_on)
    inside = _clip(moved)
    if _is_empty(inside):
        return DroppedAnnotation("cropped_away", name, box.index + 1, is_faulty=False)
    most_area = math.inf
    # A rounding error cuts nothing off.
    if box.fault or -min(moved) > TOLERANCE or max(moved) - 1 > TOLERANCE:
        most_area = _area_of(inside, geometry)
    return _PlacedBox(box.index, inside, name, most_area)


def _locate(sides: "Box", geometry: "Geometry", drawn_on: "Frame") -> PlacedSides | None:
    """Returns where a dropped box would be on the stored image; None if that is not finite."""
    if not all(map(math.isfinite, sides)):
        return None
    left, top, right, bottom = geometry.place(sides, drawn_on)
    return (
        round(left, _DECIMALS),
        round(top, _DECIMALS),
        round(right, _DECIMALS),
        round(bottom, _DECIMALS),
    )


def _count_shapes(counts: AnnotationCounts, shapes: Mapping[str, int]) -> None:
    """Adds the shapes that are not boxes, and removes what was counted as zero."""
    counts.dropped["other_shape"] += shapes.get("other_shape", 0)
    counts.noted["enclosed"] += shapes.get("enclosed", 0)
    counts.dropped, counts.noted = +counts.dropped, +counts.noted


def _as_bytes(value: Any) -> Any:
    """Returns a string as UTF-8 for Examples; other values unchanged."""
    if isinstance(value, str):
        return value.encode()
    return value


def _place_areas(
    given: Sequence[float | None], placed: Sequence[_PlacedBox], geometry: "Geometry"
) -> list[float]:
    """Scales annotated areas to the stored image; no area exceeds that of its clipped box."""
    scale = geometry.area_scale
    areas = (math.nan if area is None else area * scale for area in given)
    return [min(area, box.most_area) for area, box in zip(areas, placed, strict=True)]


def _fields_of(placed: Sequence["Box"]) -> dict[str, Any]:
    """Returns the coordinates of boxes by the names of their fields."""
    fields: dict[str, list[float]] = {key: [] for key in ("xmin", "xmax", "ymin", "ymax", "bbox")}
    for left, top, right, bottom in placed:
        fields["xmin"].append(left)
        fields["xmax"].append(right)
        fields["ymin"].append(top)
        fields["ymax"].append(bottom)
        fields["bbox"] += (top, left, bottom, right)
    return fields


def _is_empty(box: "Box") -> bool:
    left, top, right, bottom = box
    return left >= right or top >= bottom


def _area_of(box: "Box", geometry: "Geometry") -> float:
    """Returns the area of a box on the stored image, in square pixels."""
    left, top, right, bottom = box
    width, height = geometry.stored_size
    return (right - left) * width * (bottom - top) * height


def _find_orientation(
    given: Boxes, geometry: "Geometry", settings: "BoxSettings"
) -> tuple["Frame", str | None]:
    """Returns the orientation of the image on which boxes were drawn.

    The second value is the count of boxes on such images; None if nothing speaks against that
    orientation: `size_disagrees` if the size in the annotations does, `fits_only_displayed` or
    `fits_only_stored` if the boxes decided against that size, or against the default.
    """
    declared = given.drawn_on_size
    sizes = {"displayed": geometry.displayed_size, "stored": geometry.source_size}
    wanted: Frame = "displayed" if settings.drawn_on == "auto" else settings.drawn_on
    has_size = declared is not None and all(declared)
    if declared is not None and has_size and tuple(declared) not in sizes.values():
        width, height = geometry.displayed_size
        detail = (
            f"boxes were drawn on {declared[0]} x {declared[1]} pixels, and the image has "
            f"{width} x {height}"
        )
        raise Rejected("encode", "size_mismatch", detail)
    evidence = None
    if declared is not None and has_size and tuple(declared) != sizes[wanted]:
        evidence = "size_disagrees"
    if evidence and settings.drawn_on == "auto":
        wanted = "stored"
    is_sideways = sizes["displayed"] != sizes["stored"]
    if is_sideways and not given.fractions and settings.drawn_on == "auto":
        other: Frame = "stored" if wanted == "displayed" else "displayed"
        if not _fit(given.boxes, sizes[wanted]) and _fit(given.boxes, sizes[other]):
            wanted, evidence = other, f"fits_only_{other}"
    return wanted, evidence


def _fit(boxes: Sequence[Sequence[float | None]], size: Sequence[int]) -> bool:
    """Returns whether an image of this size holds all boxes.

    Those that are not finite do not count.
    """
    return not any(
        _find_fault(fractions) in ("outside", "sticking_out")
        for fractions in (_as_fractions(box, size) for box in boxes)
    )


def _as_fractions(box: Sequence[float | None], size: Sequence[int]) -> "Box":
    """Divides the sides of a box by its image's width and height; a missing side becomes NaN."""
    left, top, right, bottom = [math.nan if side is None else side for side in box]
    width, height = size
    return left / width, top / height, right / width, bottom / height


def _find_fault(box: "Box") -> str | None:
    if not all(map(math.isfinite, box)):
        return "not_finite"
    left, top, right, bottom = box
    if _is_empty(box):
        return "empty"
    if left >= 1 or top >= 1 or right <= 0 or bottom <= 0:
        return "outside"
    if min(left, top) < -TOLERANCE or max(right, bottom) > 1 + TOLERANCE:
        return "sticking_out"
    return None


def _clip(box: "Box") -> "Box":
    """Returns the part of a box that is on the image."""
    if min(box) > 0 and max(box) < 1:  # as most are
        return box
    left, top, right, bottom = [min(1.0, max(0.0, side)) for side in box]
    return left, top, right, bottom
