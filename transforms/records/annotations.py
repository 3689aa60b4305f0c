"""Annotations of an image besides its class: several labels, and boxes.

Boxes are moved from where annotators drew them to their place on the stored image.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

import orjson

from recordmill.imaging import PreparedImage
from recordmill.imaging.geometry import Box, Geometry, read_geometry
from recordmill.schemas.dataset.totals import AnnotationTotals, BoxExample
from recordmill.schemas.image_ref import CARRIED, ImageRef, list_boxes
from recordmill.schemas.label_map import LabelMap, find_class
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import BoxSettings, DatasetSettings

TOLERANCE = 1e-6
"""How far a side may stick out and still count as inside, as a fraction of the image: this allows
for rounding."""

_Orientation = Literal["displayed", "stored"]

_UNUSABLE = ("not_finite", "empty", "outside")
"""Faults of boxes that clipping cannot repair."""


class DroppedBox(NamedTuple):
    """A box that is in no Example.

    Attributes:
        reason: as in the counts of `place_boxes`.
        class_name: its class, or the class's number if it has no name.
        place: its place among the image's boxes, from 1.
        is_faulty: whether `max_rejected.boxes` counts it: no setting asks to drop it.
    """

    reason: str
    class_name: str
    place: int
    is_faulty: bool


def place_boxes(
    given: Mapping[str, Any], geometry: Geometry, settings: BoxSettings, label_map: LabelMap
) -> tuple[dict[str, Any], Counter[str], list[DroppedBox]]:
    """Places an image's boxes on the stored image.

    Args:
        given: the result of `boxes_of`.
        geometry: how the stored image was made from its source.
        settings: what to do with invalid boxes.
        label_map: class ids.

    Returns:
        - `schemas.features.BOX_FIELDS`, and further values per box;
        - counts of `NOT_DROPPED` and of dropped boxes by reason: listed = written + dropped;
        - the boxes that were dropped, except for shapes that the source dropped.

    Raises:
        Rejected: stage `encode`: `bad_boxes` if `invalid` is `reject` and a box is invalid;
            `size_mismatch` if the boxes were drawn on an image of another shape.
    """
    drawn_on, size, evidence = _find_drawn_size(given, geometry, settings)
    names, ids, kept, placed, dropped, most_areas = [], [], [], [], [], []
    shapes = given.get("boxes_shapes", {})
    count = len(given["boxes"])
    counts = Counter[str](shapes, listed=count + shapes.get("other_shape", 0))
    labeled = zip(given["boxes"], given["boxes_labels"], strict=True)
    for number, (box, label) in enumerate(labeled, 1):
        whole = _as_fractions(box, size)
        name = label_map.name_for(label)
        fault = "unknown_class" if name is None else _find_fault(whole)
        if fault and settings.invalid == "reject":
            raise Rejected("encode", "bad_boxes", f"box {number} of {count} is {fault}")
        shown = label_map.shown(label)
        if name is None:
            is_faulty = not label_map.leaves_out(label)
            dropped.append(DroppedBox("unknown_class", shown, number, is_faulty))
            continue
        if fault in _UNUSABLE or (fault and settings.invalid == "drop"):
            dropped.append(DroppedBox(fault, shown, number, fault != "sticking_out"))
            continue
        inside, cut = _clip(geometry.place(_clip(whole)[0], drawn_on))
        if _is_empty(inside):
            dropped.append(DroppedBox("cropped_away", name, number, is_faulty=False))
            continue
        is_clipped = bool(fault) or cut
        counts["clipped"] += is_clipped
        most_areas.append(_area_of(inside, geometry) if is_clipped else math.inf)
        kept.append(number - 1)
        placed.append(inside)
        names.append(name.encode())
        ids.append(label_map.ids[name])
    counts["written"] = len(kept)
    if evidence:
        counts[evidence] = count
    counts.update(box.reason for box in dropped)
    values = {key: [each[index] for index in kept] for key, each in given["boxes_values"].items()}
    if "area" in values:
        values["area"] = _place_areas(values["area"], most_areas, geometry)
    fields = {**_fields_of(placed), "box_labels": ids, "box_label_texts": names, **values}
    return fields, +counts, dropped


def _place_areas(
    given: Sequence[float | None], most: Sequence[float], geometry: Geometry
) -> list[float]:
    """Scales annotated areas to the stored image; no area exceeds that of its clipped box."""
    areas = (math.nan if area is None else area * geometry.area_scale for area in given)
    return list(map(min, areas, most))


def _fields_of(placed: Sequence[Box]) -> dict[str, Any]:
    """Returns the coordinates of boxes by the names of their fields."""
    fields: dict[str, list[float]] = {key: [] for key in ("xmin", "xmax", "ymin", "ymax", "bbox")}
    for left, top, right, bottom in placed:
        fields["xmin"].append(left)
        fields["xmax"].append(right)
        fields["ymin"].append(top)
        fields["ymax"].append(bottom)
        fields["bbox"] += (top, left, bottom, right)
    return fields


def _is_empty(box: Sequence[float]) -> bool:
    left, top, right, bottom = box
    return left >= right or top >= bottom


def _area_of(box: Box, geometry: Geometry) -> float:
    """Returns the area of a box on the stored image, in square pixels."""
    left, top, right, bottom = box
    width, height = geometry.stored_size
    return (right - left) * width * (bottom - top) * height


def _find_drawn_size(
    given: Mapping[str, Any], geometry: Geometry, settings: BoxSettings
) -> tuple[_Orientation, Sequence[int], str]:
    """The orientation of the image on which boxes were drawn, and its size in their unit.

    The third value is the count of boxes on such images; empty if nothing speaks against that
    orientation: `size_disagrees` if the size in the annotations does, `fits_only_displayed` or
    `fits_only_stored` if the boxes decided against that size, or against the default.
    """
    declared = given["boxes_size"]
    sizes = {"displayed": geometry.displayed_size, "stored": geometry.source_size}
    wanted: _Orientation = "displayed" if settings.drawn_on == "auto" else settings.drawn_on
    unit = (1, 1) if given["boxes_fractions"] else None
    has_size = bool(declared) and all(declared)
    if has_size and tuple(declared) not in sizes.values():
        width, height = geometry.displayed_size
        detail = (
            f"boxes were drawn on {declared[0]} x {declared[1]} pixels, and the image has "
            f"{width} x {height}"
        )
        raise Rejected("encode", "size_mismatch", detail)
    evidence = "size_disagrees" if has_size and tuple(declared) != sizes[wanted] else ""
    if evidence and settings.drawn_on == "auto":
        wanted = "stored"
    if unit is None and settings.drawn_on == "auto":
        other: _Orientation = "stored" if wanted == "displayed" else "displayed"
        if not _fit(given["boxes"], sizes[wanted]) and _fit(given["boxes"], sizes[other]):
            wanted, evidence = other, f"fits_only_{other}"
    return wanted, unit or sizes[wanted], evidence


def _fit(boxes: Sequence[Sequence[float | None]], size: Sequence[int]) -> bool:
    """Whether an image of this size holds all boxes; those that are not finite do not count."""
    return not any(
        _find_fault(fractions) in ("outside", "sticking_out")
        for fractions in (_as_fractions(box, size) for box in boxes)
    )


def _as_fractions(box: Sequence[float | None], size: Sequence[int]) -> list[float]:
    """Divides the sides of a box by its image's width and height; a missing side becomes NaN."""
    sides = (math.nan if side is None else side for side in box)
    return [side / length for side, length in zip(sides, (*size, *size), strict=True)]


def _find_fault(box: Sequence[float]) -> str | None:
    """Returns what is wrong with a box, in fractions of its image; None if nothing is."""
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


def _clip(box: Sequence[float]) -> tuple[Box, bool]:
    """Returns the part of a box that is on the image.

    Also returns whether more than a rounding error was cut off.
    """
    left, top, right, bottom = (min(1.0, max(0.0, side)) for side in box)
    cut = any(
        abs(new - old) > TOLERANCE for new, old in zip((left, top, right, bottom), box, strict=True)
    )
    return (left, top, right, bottom), cut


MOST_UNKNOWN = 100
"""The most unknown classes that one shard counts by name; a broken file could contain millions."""

OTHERS = "others"
"""The name under which other unknown classes are counted."""


@dataclass(slots=True)
class AnnotationCounts:
    """How many of one image's annotations were written, dropped or rejected.

    Attributes:
        boxes: see `place_boxes`; None if the source gives none.
        dropped: the boxes that were dropped.
        lacks_file: whether its file of boxes is missing.
        labels: see `AnnotationTotals.labels`.
    """

    boxes: Counter[str] | None = None
    dropped: list[DroppedBox] = field(default_factory=list)
    lacks_file: bool = False
    labels: Counter[str] = field(default_factory=Counter)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The counts from the values that `RowOrigin.as_line` writes."""
        if values["boxes"] is None:
            boxes = None
        else:
            boxes = Counter(values["boxes"])
        dropped = [DroppedBox(*each) for each in values["dropped"]]
        return cls(boxes, dropped, values["lacks_file"], Counter(values["labels"]))


def resolve_annotations(
    fields: dict[str, Any],
    data: bytes,
    image: PreparedImage,
    settings: DatasetSettings,
    label_map: LabelMap,
) -> AnnotationCounts | None:
    """Completes a record's fields in place.

    `label_texts` become class names, and their ids are added as `labels`. The result of `boxes_of`
    is replaced by the fields of boxes, which are moved with the pixels.

    Args:
        fields: the record's fields, as its source gave them; strings as UTF-8.
        data: the source's bytes.
        image: the image that will be stored.
        settings: how it was made, and what to do with invalid boxes.
        label_map: class ids.

    Returns:
        The counts; None if the source gives neither.

    Raises:
        Rejected: stage `encode`: a label has no id (`unknown_label`), or the boxes are bad; see
            `place_boxes`.
    """
    if "label_texts" not in fields and "boxes" not in fields:
        return None
    counts = AnnotationCounts()
    if "label_texts" in fields:
        found = [find_class(text.decode(), label_map) for text in fields["label_texts"]]
        fields["label_texts"] = [name.encode() for name, _ in found if name is not None]
        fields["labels"] = [class_id for name, class_id in found if name is not None]
        counts.labels.update(listed=len(found), written=len(fields["labels"]))
    if "boxes" not in fields:
        return counts
    given = {key: fields.pop(key) for key in CARRIED & fields.keys()}
    given["boxes_labels"] = [
        each.decode() if isinstance(each, bytes) else each for each in given["boxes_labels"]
    ]
    geometry = read_geometry(data, image, settings.images)
    placed, counts.boxes, counts.dropped = place_boxes(given, geometry, settings.boxes, label_map)
    fields.update(placed)
    return counts


def count_rejected_labels(
    ref: ImageRef, reason: str, label_map: LabelMap, outcome: str
) -> Counter[str]:
    """Counts the labels of an image that may have several and was rejected or left out.

    Args:
        ref: the image.
        reason: why it was rejected.
        label_map: class ids.
        outcome: the name under which labels with an id are counted.
    """
    if '"label_texts"' in ref.features:
        texts = orjson.loads(ref.features).get("label_texts", ())
    else:
        texts = ()
    unknown = [
        text for text in texts if reason == "unknown_label" and label_map.name_for(text) is None
    ]
    left_out = sum(map(label_map.leaves_out, unknown))
    counts = Counter(listed=len(texts), not_chosen=left_out, unknown_label=len(unknown) - left_out)
    counts[outcome] = len(texts) - len(unknown)
    return +counts


def count_lost_boxes(ref: ImageRef, label_map: LabelMap) -> AnnotationCounts:
    """Counts the boxes of an image that does not exist."""
    labels, dropped = list_boxes(ref)
    lost = [
        DroppedBox(
            "without_image",
            label_map.name_for(label) or label_map.shown(label),
            place,
            is_faulty=not (label_map.name_for(label) is None and label_map.leaves_out(label)),
        )
        for place, label in enumerate(labels, 1)
    ]
    # The source has dropped these shapes, and does not say their class.
    lost += [DroppedBox("without_image", "", len(lost) + 1, is_faulty=False)] * dropped
    return AnnotationCounts(boxes=Counter(listed=len(lost), without_image=len(lost)), dropped=lost)


def _why_without_boxes(counts: AnnotationCounts) -> str:
    """Why an image has no box, as a key of `AnnotationTotals.without_boxes`."""
    if counts.boxes and counts.boxes["listed"]:
        return "all_dropped"
    if counts.lacks_file:
        return "no_file"
    return "no_objects"


def add_image(totals: AnnotationTotals, key: str, counts: AnnotationCounts) -> None:
    """Adds the counts of the image with that key, written or rejected."""
    totals.labels.update(counts.labels)
    if counts.boxes is None:
        return
    listed = counts.boxes["listed"]
    is_empty = not counts.boxes["written"] and not counts.boxes["without_image"]
    ledgers = [totals.dropped]
    if is_empty:
        totals.without_boxes[_why_without_boxes(counts)] += 1
        ledgers.append(totals.emptied)
    if shapes := counts.boxes["other_shape"]:  # their class is not known: the source dropped them
        for ledger in ledgers:
            ledger.setdefault("other_shape", Counter())[""] += shapes
    for box in counts.dropped:
        name, reason = box.class_name, box.reason
        if reason == "unknown_class" and name not in (known := totals.dropped.get(reason, ())):
            name = name if len(known) < MOST_UNKNOWN else OTHERS
        for ledger in ledgers:
            ledger.setdefault(reason, Counter())[name] += 1
        if box.is_faulty:
            totals.faulty.setdefault(reason, Counter())[name] += 1
            example = BoxExample(
                key, box.place, f"box {box.place} of {listed} of {key} (class {name})"
            )
            totals.examples[reason] = min(example, totals.examples.get(reason, example))
