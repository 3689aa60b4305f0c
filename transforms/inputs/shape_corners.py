"""The corners of polygons that stand for other shapes: rectangles, ellipses, and wide lines.

Corners are x, y, x, y, ... in pixels.
"""

import math
from collections.abc import Iterator, Sequence

from recordmill.imaging.geometry import Box

Corners = tuple[float, ...]

_LARGEST_GAP = 0.05
"""How far a side of the polygon of an ellipse may be from the ellipse, in pixels."""

_FEWEST_CORNERS, _MOST_CORNERS = 16, 512

_DECIMALS = 2
"""Corners that are computed are rounded to hundredths of a pixel, in which annotation tools write
coordinates."""


def corners_of_rectangle(
    box: Box, degrees: float = 0.0, about: tuple[float, float] | None = None
) -> Corners:
    """Returns the corners of a rectangle that is rotated clockwise.

    Args:
        box: left, top, right and bottom before the rotation.
        degrees: the angle; if it is not finite, neither are the corners.
        about: the point that stays; None for the center.
    """
    left, top, right, bottom = box
    x, y = about or ((left + right) / 2, (top + bottom) / 2)
    corners = (left, top), (right, top), (right, bottom), (left, bottom)
    return _round(_rotate([(each[0] - x, each[1] - y) for each in corners], degrees, (x, y)))


def corners_of_ellipse(
    center: tuple[float, float], radii: tuple[float, float], degrees: float = 0.0
) -> Corners:
    """Returns the corners of a polygon that is within a tenth of a pixel of an ellipse.

    Args:
        center: x and y.
        radii: those along x and y before the rotation.
        degrees: the angle by which the ellipse is rotated clockwise.
    """
    longest = max(map(abs, radii))
    count = _FEWEST_CORNERS
    if longest > _LARGEST_GAP:
        step = math.acos(1 - _LARGEST_GAP / longest)
        count = math.ceil(math.pi / max(step, math.pi / _MOST_CORNERS))
    count = min(max(count, _FEWEST_CORNERS), _MOST_CORNERS)
    angles = (2 * math.pi * number / count for number in range(count))
    around = [(radii[0] * math.cos(angle), radii[1] * math.sin(angle)) for angle in angles]
    return _round(_rotate(around, degrees, center))


def corners_of_line(start: tuple[float, float], end: tuple[float, float], width: float) -> Corners:
    """Returns the corners of a straight line of a width; of a square, if it has no length."""
    x, y = end[0] - start[0], end[1] - start[1]
    length = math.hypot(x, y)
    if not length:
        half = width / 2
        return corners_of_rectangle(
            (start[0] - half, start[1] - half, start[0] + half, start[1] + half)
        )
    side, up = -y / length * width / 2, x / length * width / 2
    return _round(
        [
            (start[0] + side, start[1] + up),
            (end[0] + side, end[1] + up),
            (end[0] - side, end[1] - up),
            (start[0] - side, start[1] - up),
        ]
    )


def enclose_corners(corners: Sequence[float]) -> Box:
    """Returns the box around corners; its sides are NaN if there are none, or one is not finite."""
    if len(corners) < 2 or not all(map(math.isfinite, corners)):
        return (math.nan,) * 4
    xs, ys = corners[0::2], corners[1::2]
    return min(xs), min(ys), max(xs), max(ys)


def _rotate(
    points: Sequence[tuple[float, float]], degrees: float, center: tuple[float, float]
) -> Iterator[tuple[float, float]]:
    """Yields points around the origin after their rotation, around a center."""
    angle = math.radians(degrees) if math.isfinite(degrees) else math.nan
    sine, cosine = math.sin(angle), math.cos(angle)
    for x, y in points:
        yield center[0] + x * cosine - y * sine, center[1] + x * sine + y * cosine


def _round(points: Iterator[tuple[float, float]] | Sequence[tuple[float, float]]) -> Corners:
    corners: list[float] = []
    for x, y in points:
        corners += round(x, _DECIMALS), round(y, _DECIMALS)
    return tuple(corners)
