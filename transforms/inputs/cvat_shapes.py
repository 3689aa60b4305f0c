"""The shapes in CVAT's XML 1.1, as CVAT documents them (format-xml.md).

Angles are in degrees, clockwise about the center. The runs of a mask go along its rows, and begin
outside.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from xml.etree.ElementTree import Element, ParseError

import numpy as np
from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from recordmill.annotations.attributes import read_attribute
from recordmill.imaging.geometry import Size
from recordmill.imaging.masks.find_runs import find_runs
from recordmill.imaging.masks.outline import FaultyOutline, Outline
from recordmill.schemas.settings.images import DEFAULT_MAX_PIXELS
from recordmill.transforms.inputs.outlines import (
    DescribedShape,
    NamedPoint,
    polygons_of,
    rotate_box,
)
from recordmill.transforms.inputs.shape_corners import (
    Corners,
    corners_of_ellipse,
    corners_of_rectangle,
    enclose_corners,
)

SHAPES = ("box", "polygon", "polyline", "points", "ellipse", "mask", "cuboid", "skeleton")
"""The elements in an image that are shapes; others are tags."""

_BOX = ("xtl", "ytl", "xbr", "ybr")
_PLACE = ("left", "top", "width", "height")
_ELLIPSE = ("cx", "cy", "rx", "ry")
_CUBOID = tuple(
    f"{axis}{corner}{face}" for face, corner, axis in product("12", ("tl", "bl", "tr", "br"), "xy")
)
"""The names of attributes."""


def read_shape_of_cvat(shape: Element, size: Size) -> DescribedShape:
    """Returns a shape; lines, points, cuboids and upright boxes have no outline.

    The sides of its box are not finite if a coordinate is missing or not a number.

    Args:
        shape: one of `SHAPES`.
        size: width and height of the image.
    """
    if shape.tag == "mask":
        left, top, width, height = _read_numbers(shape, _PLACE)
        box = left, top, left + width, top + height
        return DescribedShape(box, True, _read_mask_of_cvat(shape, size))
    corners = _find_corners(shape)
    if shape.tag == "box":
        return _read_box_of_cvat(shape, corners)
    outline = polygons_of([corners]) if shape.tag in ("polygon", "ellipse") else None
    points = tuple(read_key_points_of_cvat(shape))
    return DescribedShape(enclose_corners(corners), True, outline, points)


def read_z_order_of_cvat(shape: Element) -> int:
    """Returns the layer of a shape, which hides those with lower numbers; 0 if it has none."""
    text = shape.get("z_order", "").strip()
    return int(text) if re.fullmatch("-?[0-9]{1,9}", text) else 0


def read_attributes_of_cvat(shape: Element, defaults: Mapping[str, str]) -> dict[str, str]:
    """Returns the attributes of a shape by name; those without a value are left out.

    Args:
        shape: one of `SHAPES`.
        defaults: the values of attributes that the shape does not list.
    """
    texts = {each.get("name", "").strip(): each.text for each in shape.iterfind("attribute")}
    return _read_all({**defaults, **texts})


def read_defaults_of_cvat(label: Element) -> dict[str, str]:
    """Returns the defaults of the attributes of a label by name, from the head of the file."""
    found = label.iterfind("attributes/attribute")
    texts = {each.findtext("name", "").strip(): each.findtext("default_value") for each in found}
    return _read_all(texts)


def read_skeleton_of_cvat(label: Element) -> Iterator[tuple[str, str] | None]:
    """Yields the lines in the drawing of a label's skeleton, from the head of the file.

    Each is the labels of the two points that it joins; None if it joins no two labeled points, or
    in place of a drawing that is damaged.
    """
    try:
        drawing = fromstring(f"<svg>{label.findtext('svg', '')}</svg>")
    except (ParseError, DefusedXmlException):
        yield None
        return
    labels = {
        point.get("data-node-id"): point.get("data-label-name", "").strip()
        for point in drawing.iterfind(".//{*}circle")
    }
    for line in drawing.iterfind(".//{*}line"):
        start, end = (labels.get(line.get(f"data-node-{side}")) for side in ("from", "to"))
        yield (start, end) if start and end else None


def _read_all(texts: Mapping[str, str | None]) -> dict[str, str]:
    """Returns the values of attributes without those that are empty, or have no name."""
    read = {name: read_attribute(text) for name, text in texts.items()}
    return {name: text for name, text in read.items() if name and text is not None}


def read_key_points_of_cvat(shape: Element) -> Iterator[NamedPoint]:
    """Yields the key points of a skeleton, by their labels, and of points, by numbers from 1.

    Those of a skeleton that are outside the image are not labeled.
    """
    if shape.tag == "points":
        visibility = _read_visibility(shape)
        sides = _read_points(shape)
        for number, (x, y) in enumerate(zip(sides[0::2], sides[1::2], strict=True), start=1):
            yield NamedPoint(str(number), x, y, visibility)
    elif shape.tag == "skeleton":
        for each in shape.iterfind("points"):
            name, (x, y, *_) = (each.get("label") or "").strip(), _read_points(each)
            visibility = _read_visibility(each)
            if visibility:
                yield NamedPoint(name, x, y, visibility)
            else:
                yield NamedPoint(name, 0.0, 0.0, 0)


def _read_visibility(points: Element) -> int:
    """Returns COCO's code of visibility: 0 for outside, 1 for occluded, otherwise 2."""
    if points.get("outside") == "1":
        return 0
    return 1 if points.get("occluded") == "1" else 2


def _read_box_of_cvat(shape: Element, corners: Sequence[float]) -> DescribedShape:
    left, top, right, bottom = _read_numbers(shape, _BOX)
    degrees = _read_number(shape, "rotation", 0.0)
    box, is_rotated = rotate_box((left, top, right, bottom), degrees)
    if not is_rotated:
        return DescribedShape(box, False, None)
    return DescribedShape(box, True, polygons_of([corners]), corners=corners)


def _find_corners(shape: Element) -> Sequence[float]:
    """Returns x, y, x, y, ... of a shape's points."""
    if shape.tag == "box":
        left, top, right, bottom = _read_numbers(shape, _BOX)
        degrees = _read_number(shape, "rotation", 0.0)
        return corners_of_rectangle((left, top, right, bottom), degrees)
    if shape.tag == "ellipse":
        return _find_corners_of_ellipse(shape)
    if shape.tag == "skeleton":
        seen = (each for each in shape.iterfind("points") if each.get("outside") != "1")
        return list(chain.from_iterable(map(_read_points, seen)))
    if shape.tag == "cuboid":
        return _read_numbers(shape, _CUBOID)
    return _read_points(shape)


def _find_corners_of_ellipse(shape: Element) -> Corners:
    x, y, *radii = _read_numbers(shape, _ELLIPSE)
    degrees = _read_number(shape, "rotation", 0.0)
    if not all(map(math.isfinite, (x, y, *radii, degrees))):
        return (math.nan,) * 2
    return corners_of_ellipse((x, y), (radii[0], radii[1]), degrees)


def _read_mask_of_cvat(shape: Element, size: Size) -> Outline:
    place = _read_numbers(shape, _PLACE)
    if not all(side.is_integer() for side in place):
        return FaultyOutline("bad_rle", "left, top, width and height are not whole numbers")
    left, top, width, height = map(int, place)
    if min(left, top) < 0 or left + width > size[0] or top + height > size[1]:
        place_of_it = f"{place[2]:g} x {place[3]:g} pixels at {place[0]:g}, {place[1]:g}"
        detail = f"a mask of {place_of_it} is not inside {size[0]} x {size[1]}"
        return FaultyOutline("mask_size", detail)
    if width * height > DEFAULT_MAX_PIXELS:
        return FaultyOutline("mask_size", f"the mask has {width} x {height} pixels")
    try:
        counts = [int(run) for run in shape.get("rle", "").split(",")]
    except ValueError:
        return FaultyOutline("bad_rle", "its runs are not whole numbers")
    if min(width, height, *counts) < 0 or sum(counts) != width * height:
        return FaultyOutline("bad_rle", f"its runs do not fill {width} x {height} pixels")
    values = np.zeros(len(counts), bool)
    values[1::2] = True
    return find_runs(np.repeat(values, counts).reshape(height, width), left, top, size)


def _read_points(shape: Element) -> Sequence[float]:
    """Returns x, y, x, y, ... of points as text, `x,y;x,y`; NaN if one is not a number."""
    corners: list[float] = []
    for point in shape.get("points", "").split(";"):
        sides = point.split(",")
        if len(sides) != 2:
            return (math.nan,) * 2
        corners += map(_as_float, sides)
    return corners


def _read_numbers(shape: Element, names: Sequence[str]) -> list[float]:
    return [_read_number(shape, name) for name in names]


def _read_number(shape: Element, name: str, default: float = math.nan) -> float:
    """Returns an attribute; the default if there is none, and NaN if it is not a number."""
    text = shape.get(name)
    if text is None:
        return default
    return _as_float(text)


def _as_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
