"""Boxes as references carry them, in `ImageRef.features`."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from recordmill.schemas.image_ref import ImageRef

CARRIED = frozenset({"boxes", "boxes_labels", "boxes_values", "boxes_size", "boxes_fractions", "boxes_shapes"})
"""The fields in which references carry boxes."""


def boxes_of(
    boxes: Iterable[Sequence[float]],
    labels: Iterable[str | int],
    *,
    values: Mapping[str, Sequence[Any]] | None = None,
    drawn_on_size: Sequence[int] | None = None,
    fractions: bool = False,
    shapes: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """The fields of `ImageRef.features` for an image's boxes; non-finite numbers become None.

    Args:
        boxes: xmin, ymin, xmax, ymax of each, in pixels from the upper left corner.
        labels: the class of each, by its name or by its number in `ClassNames`.
        values: further values of each box by field name, e.g. `is_crowd`.
        drawn_on_size: width and height of the image as the annotators saw it, if the annotations give them.
        fractions: whether boxes are in fractions of the image instead of pixels.
        shapes: numbers of shapes that are not boxes: those that some of these boxes enclose (`enclosed`), and those
            that were dropped (`other_shape`).
    """
    counted = {name: count for name, count in (shapes or {}).items() if count}
    return {
        "boxes": [_finite(map(float, box)) for box in boxes],
        "boxes_labels": list(labels),
        "boxes_values": {key: _finite(each) for key, each in (values or {}).items()},
        "boxes_size": list(drawn_on_size) if drawn_on_size else None,
        "boxes_fractions": fractions,
        **({"boxes_shapes": counted} if counted else {}),
    }


def _finite(values: Iterable[Any]) -> list[Any]:
    """The values; None for numbers that JSON cannot hold."""
    return [None if isinstance(value, float) and not math.isfinite(value) else value for value in values]


def count_boxes(ref: ImageRef) -> int:
    """The number of boxes that a reference carries, plus the shapes that its source dropped."""
    labels, dropped = list_boxes(ref)
    return len(labels) + dropped


def list_boxes(ref: ImageRef) -> tuple[list[str | int], int]:
    """The labels of the boxes that a reference carries, in order, and the number of shapes that its source dropped."""
    if '"boxes"' not in ref.features:
        return [], 0
    given = orjson.loads(ref.features)
    return given.get("boxes_labels", []), given.get("boxes_shapes", {}).get("other_shape", 0)
