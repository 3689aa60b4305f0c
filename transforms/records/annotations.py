"""What annotators say of an image besides its class: several labels, and boxes.

Boxes: from where annotators drew them to where they are on the image that is stored.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

import orjson

from recordmill.imaging import ImageSettings, PreparedImage
from recordmill.imaging.geometry import Box, Geometry, read_geometry
from recordmill.schemas.dataset.totals import AnnotationTotals, BoxExample
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap, find_class
from recordmill.schemas.reference_boxes import CARRIED
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import BoxSettings

TOLERANCE = 1e-6
"""How far a side may stick out, in parts of the image, and still count as inside: what rounding does."""


class DroppedBox(NamedTuple):
    """A box that no Example has.

    Attributes:
        reason: as in the counts of `place_boxes`.
        class_name: its class; the number of one without a name.
        place: where it stands among its image's boxes, from 1.
        is_faulty: whether `max_rejected.boxes` limits it: the settings did not ask for its loss.
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
        given: what `boxes_of` gave.
        geometry: how the stored image came about.
        settings: what to do with invalid boxes.
        label_map: class ids.

    Returns:
        - `schemas.record_fields.BOX_FIELDS`, and the further values;
        - counts: those of `NOT_DROPPED` and, for each reason, of dropped boxes: listed = written + dropped;
        - each box that was dropped, except for shapes that the source dropped.

    Raises:
        Rejected: stage `encode`: `bad_boxes`, where `invalid` is `reject` and a box is; `size_mismatch`, where the
            boxes were drawn on an image of another shape.
    """
    drawn_on, size = _frame(given, geometry, settings)
    names, ids, kept, placed, dropped, most_areas = [], [], [], [], [], []
    shapes = given.get("boxes_shapes", {})
    counts: Counter[str] = Counter(shapes, listed=len(given["boxes"]) + shapes.get("other_shape", 0))
    for index, (box, label) in enumerate(zip(given["boxes"], given["boxes_labels"], strict=True)):
        box = [math.nan if side is None else side for side in box]
        whole = box if given["boxes_fractions"] else [v / side for v, side in zip(box, (*size, *size), strict=True)]
        name = label_map.name_for(label)
        fault = "unknown_class" if name is None else _find_fault(whole)
        if fault and settings.invalid == "reject":
            raise Rejected("encode", "bad_boxes", f"box {index + 1} of {len(given['boxes'])} is {fault}")
        if name is None or fault in ("not_finite", "empty", "outside") or (fault and settings.invalid == "drop"):
            is_faulty = fault != "sticking_out" and not (name is None and label_map.leaves_out(label))
            dropped.append(DroppedBox(fault, label_map.shown(label), index + 1, is_faulty))
            continue
        inside, cut = _clip(geometry.place(_clip(whole)[0], drawn_on))
        if inside[0] >= inside[2] or inside[1] >= inside[3]:
            dropped.append(DroppedBox("cropped_away", name, index + 1, is_faulty=False))
            continue
        is_clipped = bool(fault) or cut
        counts["clipped"] += is_clipped
        most_areas.append(_pixels(inside, geometry.stored_size) if is_clipped else math.inf)
        kept.append(index)
        placed.append(inside)
        names.append(name.encode())
        ids.append(label_map.ids[name])
    counts["written"] = len(kept)
    counts.update(box.reason for box in dropped)
    values = {key: [each[index] for index in kept] for key, each in given["boxes_values"].items()}
    if "area" in values:
        scale = geometry.area_scale
        areas = (math.nan if area is None else area * scale for area in values["area"])
        values["area"] = list(map(min, areas, most_areas))
    xmin, ymin, xmax, ymax = ([box[side] for box in placed] for side in range(4))
    fields: dict[str, Any] = {"xmin": xmin, "xmax": xmax, "ymin": ymin, "ymax": ymax}
    fields["bbox"] = [side for left, top, right, bottom in placed for side in (top, left, bottom, right)]
    return {**fields, "box_labels": ids, "box_label_texts": names, **values}, +counts, dropped


def _frame(
    given: Mapping[str, Any], geometry: Geometry, settings: BoxSettings
) -> tuple[Literal["displayed", "stored"], Sequence[int]]:
    """Which way up the boxes' image was, and its width and height."""
    stated = given["boxes_size"]
    sizes = {"displayed": geometry.displayed_size, "stored": geometry.source_size}
    if stated and all(stated):
        fitting = [way for way, size in sizes.items() if tuple(stated) == size]
        if not fitting:
            width, height = geometry.displayed_size
            detail = f"boxes were drawn on {stated[0]} x {stated[1]} pixels, and the image has {width} x {height}"
            raise Rejected("encode", "size_mismatch", detail)
        if len(fitting) == 1:
            return fitting[0], stated  # type: ignore[return-value]
    return settings.drawn_on, sizes[settings.drawn_on]


def _pixels(box: Box, size: Sequence[int]) -> float:
    """The area of a box in fractions of an image of that size."""
    left, top, right, bottom = box
    return (right - left) * size[0] * (bottom - top) * size[1]


def _find_fault(box: Sequence[float]) -> str:
    if not all(map(math.isfinite, box)):
        return "not_finite"
    left, top, right, bottom = box
    if left >= right or top >= bottom:
        return "empty"
    if left >= 1 or top >= 1 or right <= 0 or bottom <= 0:
        return "outside"
    return "sticking_out" if min(left, top) < -TOLERANCE or max(right, bottom) > 1 + TOLERANCE else ""


def _clip(box: Sequence[float]) -> tuple[Box, bool]:
    """The part of a box that is on the image, and whether anything but rounding was cut off."""
    left, top, right, bottom = (min(1.0, max(0.0, side)) for side in box)
    cut = any(abs(new - old) > TOLERANCE for new, old in zip((left, top, right, bottom), box, strict=True))
    return (left, top, right, bottom), cut


MOST_UNKNOWN = 100
"""Unknown classes that one shard counts by name; a broken file could number millions."""

OTHERS = "others"
"""The name under which further unknown classes are counted."""


@dataclass(slots=True)
class AnnotationCounts:
    """How many of one image's annotations were written, dropped or rejected.

    Attributes:
        boxes: see `place_boxes`; None where the image was not to have any.
        dropped: the boxes that were dropped.
        lacks_file: whether its file of boxes is missing.
        labels: see `AnnotationTotals.labels`.
    """

    boxes: Counter[str] | None = None
    dropped: list[DroppedBox] = field(default_factory=list)
    lacks_file: bool = False
    labels: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        dropped = [tuple(box) for box in self.dropped]
        return {"boxes": self.boxes, "dropped": dropped, "lacks_file": self.lacks_file, "labels": self.labels}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The counts that `as_json` gave."""
        boxes = None if values["boxes"] is None else Counter(values["boxes"])
        dropped = [DroppedBox(*each) for each in values["dropped"]]
        return cls(boxes, dropped, values["lacks_file"], Counter(values["labels"]))


def resolve_annotations(
    fields: dict[str, Any],
    data: bytes,
    image: PreparedImage,
    images: ImageSettings,
    boxes: BoxSettings,
    label_map: LabelMap,
) -> AnnotationCounts | None:
    """Completes a record's fields in place.

    `label_texts` become class names, with `labels`, their ids, next to them. What
    `schemas.reference_boxes.boxes_of` gave becomes the fields of boxes, which have moved with the pixels.

    Args:
        fields: of the record, as its source gave them; texts as UTF-8.
        data: the source's bytes.
        image: what is stored of them.
        images: how that was made.
        boxes: what to do with invalid boxes.
        label_map: class ids.

    Returns:
        The counts; None where the image was to have neither.

    Raises:
        Rejected: stage `encode`: a label has no id (`unknown_label`), or the boxes are bad; see `place_boxes`.
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
    given["boxes_labels"] = [each.decode() if isinstance(each, bytes) else each for each in given["boxes_labels"]]
    geometry = read_geometry(data, image, images)
    placed, counts.boxes, counts.dropped = place_boxes(given, geometry, boxes, label_map)
    fields.update(placed)
    return counts


def count_rejected_labels(
    ref: ImageRef, reason: str, label_map: LabelMap, outcome: str = "with_rejected_images"
) -> Counter[str]:
    """Counts the labels of a rejected image that may have several, or of one that was left out.

    Args:
        ref: the image.
        reason: why it was rejected.
        label_map: class ids.
        outcome: how labels are counted that have an id.
    """
    texts = orjson.loads(ref.features).get("label_texts", ()) if '"label_texts"' in ref.features else ()
    unknown = [text for text in texts if reason == "unknown_label" and label_map.name_for(text) is None]
    left_out = sum(map(label_map.leaves_out, unknown))
    counts = Counter(listed=len(texts), not_chosen=left_out, unknown_label=len(unknown) - left_out)
    counts[outcome] = len(texts) - len(unknown)
    return +counts


def add_image(totals: AnnotationTotals, key: str, counts: AnnotationCounts) -> None:
    """Adds the counts of one image, written or rejected, with that key."""
    totals.labels.update(counts.labels)
    if counts.boxes is None:
        return
    listed, is_empty = counts.boxes["listed"], not counts.boxes["written"]
    ledgers = [totals.dropped]
    if is_empty:
        totals.without_boxes["all_dropped" if listed else "no_file" if counts.lacks_file else "no_objects"] += 1
        ledgers.append(totals.emptied)
    if shapes := counts.boxes["other_shape"]:  # of whatever class: the source dropped them
        for ledger in ledgers:
            ledger.setdefault("other_shape", Counter())[""] += shapes
    for box in counts.dropped:
        name, reason = box.class_name, box.reason
        if reason == "unknown_class" and name not in (known := totals.dropped.get(reason, ())):
            name = name if len(known) < MOST_UNKNOWN else OTHERS
        for ledger in [*ledgers, totals.faulty] if box.is_faulty else ledgers:
            ledger.setdefault(reason, Counter())[name] += 1
        if box.is_faulty:
            such = BoxExample(key, box.place, f"box {box.place} of {listed} of {key} (class {name})")
            totals.examples[reason] = min(such, totals.examples.get(reason, such))
