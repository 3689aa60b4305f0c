"""Boxes: from where annotators drew them to where they are on the image that is stored.

A reference carries its boxes in `ImageRef.features`: see `schemas.reference_boxes`.
Here they become the fields of an Example, as
fractions of the stored image, after the same turns, crops and resizing as its pixels.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from recordmill.imaging.geometry import Box, Geometry
from recordmill.schemas.label_map import LabelMap
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
