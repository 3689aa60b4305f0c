"""The outlines of LabelMe's shapes, as its own `shape_to_mask` draws them.

That function is in labelme/_utils/shape.py. Lines are 10 pixels wide, and points have a radius of
5.
"""

import binascii
import math
from base64 import b64decode
from collections.abc import Sequence
from itertools import chain, pairwise

from recordmill.imaging.masks.outline import Bitmap, FaultyOutline, Outline
from recordmill.transforms.inputs.outlines import polygons_of
from recordmill.transforms.inputs.shape_corners import (
    Corners,
    corners_of_ellipse,
    corners_of_line,
    corners_of_rectangle,
)

_LINE_WIDTH = 10.0
_POINT_RADIUS = 5.0

_FARTHEST = 2**31
"""The largest coordinate of a mask: no image is so large."""

_MOST_BYTES = 2**24
"""The largest image of a mask, which travels with its reference: none needs so much."""

Points = Sequence[tuple[float, float]]


def read_outline_of_labelme(shape_type: str, points: Points, mask: str | None = None) -> Outline:
    """Returns the outline of a shape.

    Some tools write the four corners of a rectangle, and call oriented ones `rotation`.

    Args:
        shape_type: as LabelMe or such a tool writes it.
        points: the shape's points; of a mask, its first pixel and its last.
        mask: the pixels of a mask as an image in base64, if it is one.
    """
    match shape_type:
        case "mask":
            return _read_bitmap(points, mask)
        case "rectangle" if len(points) == 2:
            (left, top), (right, bottom) = points
            return polygons_of([corners_of_rectangle((left, top, right, bottom))])
        case "circle" if len(points) == 2:
            radius = math.dist(*points)
            return polygons_of([corners_of_ellipse(points[0], (radius, radius))])
        case "line" | "linestrip" if len(points) > 1:
            return polygons_of(corners_of_line(*ends, _LINE_WIDTH) for ends in pairwise(points))
        case "point" | "points":
            return polygons_of(map(_surround, points))
        case "polygon" | "oriented_rectangle" | "rectangle" | "rotation" if len(points) > 2:
            return polygons_of([list(chain.from_iterable(points))])
        case _:
            detail = f"a {shape_type!r:.40} has {len(points)} points, which are not its outline"
            return FaultyOutline("bad_polygon", detail)


def _surround(point: tuple[float, float]) -> Corners:
    return corners_of_ellipse(point, (_POINT_RADIUS, _POINT_RADIUS))


def _read_bitmap(points: Points, mask: str | None) -> Outline:
    try:
        data = b64decode(mask or "", validate=True)
    except (binascii.Error, ValueError) as error:
        return FaultyOutline("bad_mask", f"its mask is not base64: {error!s:.80}")
    if not data:
        return FaultyOutline("bad_mask", "it has no mask")
    if len(data) > _MOST_BYTES:
        return FaultyOutline("bad_mask", f"its mask has {len(data):,} bytes")
    left, top = points[0]
    if max(abs(left), abs(top)) > _FARTHEST:
        return FaultyOutline("bad_mask", f"its first pixel is at {left:g}, {top:g}")
    return Bitmap(round(left), round(top), data)
