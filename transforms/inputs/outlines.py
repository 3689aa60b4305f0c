"""The boxes around shapes that annotation files describe: rotated rectangles, polygons, masks."""

import math
from collections.abc import Iterator
from typing import Any

from recordmill.imaging.geometry import Box

_MOST_RUNS = 4_000_000
"""The most runs of a mask that are read: more than any outline has."""


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
    except (TypeError, ValueError, LookupError, OverflowError):
        return None
    if not boxes:
        return None
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _enclose_part(part: Any) -> Box | None:
    """Returns the box around one polygon, or around one mask in a list of them."""
    if isinstance(part, dict):
        return _enclose_mask(part)
    sides = list(map(float, part))
    if len(sides) < 4 or len(sides) % 2 or not all(map(math.isfinite, sides)):
        return None
    xs, ys = sides[0::2], sides[1::2]
    return min(xs), min(ys), max(xs), max(ys)


def _enclose_mask(mask: dict[str, Any]) -> Box | None:
    """Returns the box around a mask.

    Runs of pixels outside and inside it in turn, column by column.
    """
    height, width = map(int, mask["size"])
    counts = mask["counts"]
    runs = _unpack_runs(counts) if isinstance(counts, str) else iter(map(int, counts))
    left, top, right, bottom, at = width, height, -1, -1, 0
    for number, run in enumerate(runs):
        if run < 0 or number > _MOST_RUNS or at + run > width * height:
            return None
        if number % 2 and run:
            first, last = divmod(at, height), divmod(at + run - 1, height)
            left, right = min(left, first[0]), max(right, last[0])
            spans_columns = first[0] != last[0]
            top = min(top, 0 if spans_columns else first[1])
            bottom = max(bottom, height - 1 if spans_columns else last[1])
        at += run
    return None if right < 0 else (left, top, right + 1, bottom + 1)


def _unpack_runs(text: str) -> Iterator[int]:
    """Yields the runs that pycocotools packs into a text (`rleFrString` in cocoapi's maskApi.c).

    Each is in groups of 5 bits, lowest first; from the fourth on, it is the difference to the run
    before the last.
    """
    runs: list[int] = []
    number = shift = 0
    for letter in text:
        value = ord(letter) - 48
        number |= (value & 0x1F) << shift
        shift += 5
        if value & 0x20:
            continue
        if value & 0x10:
            number -= 1 << shift
        if len(runs) > 2:
            number += runs[-2]
        runs.append(number)
        yield number
        number = shift = 0
