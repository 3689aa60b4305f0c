"""Shapes that annotation files describe, and the boxes around them.

They are rotated rectangles, polygons and masks.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recordmill.imaging.geometry import Box
from recordmill.imaging.masks.compressed_runs import unpack_runs
from recordmill.imaging.masks.outline import (
    FaultyOutline,
    Outline,
    OutlineError,
    Polygons,
    Runs,
    join_outlines,
)

_MOST_RUNS = 4_000_000
"""The most runs of a mask that are read: more than any outline has."""

_MOST_COORDINATES = 1_000_000
"""The most coordinates of an outline: more than any has."""

_MALFORMED = (TypeError, ValueError, LookupError, OverflowError)
"""What Python raises if a value has another form."""


class NamedPoint(NamedTuple):
    """A key point in pixels, with its name and COCO's code of visibility."""

    name: str
    x: float
    y: float
    visibility: int


@dataclass(frozen=True, slots=True)
class DescribedShape:
    """A shape as a file of annotations describes it.

    Attributes:
        box: left, top, right and bottom in pixels; not finite if the file does not say it.
        is_enclosed: whether the box encloses more than the shape.
        outline: its outline; None if the box alone describes it.
        points: its key points.
        corners: x and y of its four corners in pixels if it is an oriented box; None for others.
    """

    box: Box
    is_enclosed: bool
    outline: Outline | None
    points: tuple[NamedPoint, ...] = ()
    corners: Sequence[float] | None = None


def angle_of(value: Any) -> float:
    """Returns an angle in degrees, given as a number or as a text; 0 if it is neither."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0.0
    try:
        return float(value)
    except (ValueError, OverflowError):
        return 0.0


def rotate_box(box: Box, degrees: float) -> tuple[Box, bool]:
    """Returns the box around a rectangle that is rotated about its center.

    The direction makes no difference. Also returns whether the rectangle is rotated, so that the
    box encloses more than the rectangle.

    Args:
        box: left, top, right and bottom of the rectangle before the rotation.
        degrees: the angle; if it is not finite, neither is the result.
    """
    if not math.isfinite(degrees):
        return (math.nan,) * 4, False
    if degrees % 180 == 0:
        return box, False
    left, top, right, bottom = box
    angle = math.radians(degrees)
    sine, cosine = abs(math.sin(angle)), abs(math.cos(angle))
    if degrees % 90 == 0:
        sine, cosine = 1.0, 0.0
    width, height = (right - left) / 2, (bottom - top) / 2
    x, y = (left + right) / 2, (top + bottom) / 2
    half_width, half_height = width * cosine + height * sine, width * sine + height * cosine
    return (x - half_width, y - half_height, x + half_width, y + half_height), True


def enclose_segmentation(outline: Any) -> Box | None:
    """Returns the box around a `segmentation` of COCO; None if there is none, or it is malformed.

    A segmentation is a list of polygons (`[x, y, x, y, ...]`), or the runs of a mask, as numbers or
    packed into a text.
    """
    try:
        if isinstance(outline, dict):
            return _enclose_mask(outline)
        if outline and not isinstance(outline[0], list | dict):  # one polygon without a list around
            outline = [outline]
        boxes = [box for each in outline or () if (box := _enclose_part(each))]
    except (*_MALFORMED, OutlineError):
        return None
    if not boxes:
        return None
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def read_segmentation(outline: Any) -> Outline | None:
    """Returns the outline in a `segmentation` of COCO; None if there is none.

    It is a list of polygons, or the runs of a mask, as numbers or packed into a text. In a list,
    there may be several masks.
    """
    if not outline:
        return None
    if isinstance(outline, dict):
        return _read_mask(outline)
    if not isinstance(outline, list):
        return FaultyOutline("bad_polygon", f"segmentation is {outline!r:.60}")
    if not isinstance(outline[0], dict):
        return polygons_of(outline if isinstance(outline[0], list) else [outline])
    return join_outlines([_read_mask(each) for each in outline])


def polygons_of(parts: Iterable[Any], fractions: bool = False) -> Outline:
    """Returns the outline of an object from the coordinates of its parts.

    Args:
        parts: x, y, x, y, ... of each part, as numbers or texts of numbers.
        fractions: whether they are in fractions of the image instead of pixels.
    """
    read, count = list[tuple[float, ...]](), 0
    try:
        for part in parts:
            read.append(tuple(map(float, part)))
            count += len(read[-1])
            if count > _MOST_COORDINATES:
                detail = f"it has more than {_MOST_COORDINATES // 2:,} points"
                return FaultyOutline("bad_polygon", detail)
    except _MALFORMED as error:
        return FaultyOutline("bad_polygon", f"a coordinate is not a number: {error!s:.100}")
    if any(len(part) % 2 for part in read):
        return FaultyOutline("bad_polygon", "a point has one coordinate")
    if not all(all(map(math.isfinite, part)) for part in read):
        return FaultyOutline("bad_polygon", "a coordinate is not finite")
    if not any(len(part) >= 6 for part in read):
        return FaultyOutline("bad_polygon", "it has fewer than 3 points")
    return Polygons(tuple(read), fractions)


def _enclose_part(part: Any) -> Box | None:
    """Returns the box around one polygon, or around one mask in a list of them."""
    if isinstance(part, dict):
        return _enclose_mask(part)
    sides = list(map(float, part))
    if len(sides) < 4 or len(sides) % 2 or not all(map(math.isfinite, sides)):
        return None
    xs, ys = sides[0::2], sides[1::2]
    return min(xs), min(ys), max(xs), max(ys)


def _read_mask(mask: Any) -> Outline:
    """Returns the runs of a mask, which fill it."""
    try:
        height, width = map(int, mask["size"])
        runs = _read_runs(mask["counts"])
    except OutlineError as error:
        return FaultyOutline(error.reason, error.detail)
    except _MALFORMED:
        return FaultyOutline("bad_rle", "it has no size and counts of whole numbers")
    if not (0 < width < 2**31 and 0 < height < 2**31):
        return FaultyOutline("bad_rle", f"its size is {width} x {height}")
    # As Python's integers, whose sum cannot overflow.
    counts = tuple(runs.tolist())
    if min(counts, default=0) < 0 or sum(counts) != width * height:
        return FaultyOutline("bad_rle", f"its runs do not fill {width} x {height} pixels")
    return Runs((width, height), counts)


def _read_runs(counts: Any) -> NDArray[np.int64]:
    """Returns the runs of a mask, which may be negative."""
    if len(counts) > _MOST_RUNS:
        raise OutlineError("bad_rle", f"it has more than {_MOST_RUNS:,} runs")
    if isinstance(counts, str):
        return unpack_runs(counts.encode("ascii"))
    return np.array(list(map(int, counts)), np.int64)


def _enclose_mask(mask: dict[str, Any]) -> Box | None:
    """Returns the box around a mask.

    Runs of pixels outside and inside it in turn, column by column.
    """
    height, width = map(int, mask["size"])
    edges = np.concatenate(([0], np.cumsum(_read_runs(mask["counts"]))))
    # A sum that overflows is smaller than the one before.
    if min(width, height) < 1 or edges[-1] > width * height or np.any(edges[1:] < edges[:-1]):
        return None
    starts, ends = edges[1:-1:2], edges[2::2]
    is_inside = ends > starts
    if not is_inside.any():
        return None
    firsts, lasts = starts[is_inside], ends[is_inside] - 1
    left, right = int(firsts[0] // height), int(lasts[-1] // height)
    is_column = firsts // height != lasts // height
    top = np.where(is_column, 0, firsts % height).min()
    bottom = np.where(is_column, height - 1, lasts % height).max()
    return left, int(top), right + 1, int(bottom) + 1
