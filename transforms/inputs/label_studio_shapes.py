"""The shapes in Label Studio's JSON, in percent of the image's sides.

Angles are in degrees, clockwise about the upper left corner of a rectangle, or the center of an
ellipse. A brush's mask is packed as in rle-pack (label_studio_sdk/converter/brush.py): its alpha
channel is the mask.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recordmill.imaging.geometry import Size
from recordmill.imaging.masks.find_runs import find_runs
from recordmill.imaging.masks.outline import FaultyOutline, OutlineError
from recordmill.schemas.settings.images import DEFAULT_MAX_PIXELS
from recordmill.transforms.inputs.outlines import DescribedShape, angle_of, polygons_of
from recordmill.transforms.inputs.shape_corners import (
    corners_of_ellipse,
    corners_of_rectangle,
    enclose_corners,
)

_SIZES = frozenset({"radiusX", "height"})
"""Keys of what has a size; points have neither."""

_NO_BOX = (math.nan,) * 4

_WORD = 8
"""The bits of a channel."""

_BYTES = {byte: f"{byte:08b}" for byte in range(256)}
"""The binary digits of each byte."""

_CHANNELS = 4
_ALPHA = 3
"""The last channel."""

_SIZE_BITS, _COUNT_BITS, _INDEX_BITS, _WORD_BITS = 4, 32, 2, 5
"""The bits of the sizes of lengths, of the number of words, of the index of a size, and of the
size of words."""


def read_shape_of_label_studio(value: Mapping[str, Any], size: Size) -> DescribedShape | None:
    """Returns the shape of a region; upright rectangles have no outline.

    The sides of its box are not finite if a coordinate is missing or not a number. Returns None if
    the region has no shape, such as a choice.

    Args:
        value: the region's `value`.
        size: width and height of the image.
    """
    if "rle" in value:
        return _read_brush(value["rle"], size)
    width, height = size
    if "points" in value:
        corners = _read_points_in_percent(value["points"], size)
        return DescribedShape(enclose_corners(corners), True, polygons_of([corners]))
    if "x" not in value or "y" not in value or _SIZES.isdisjoint(value):
        return None
    x, y = _as_number(value["x"]) * width / 100, _as_number(value["y"]) * height / 100
    degrees = angle_of(value.get("rotation"))
    if "radiusX" in value:
        radii = (
            _as_number(value["radiusX"]) * width / 100,
            _as_number(value.get("radiusY")) * height / 100,
        )
        if not all(map(math.isfinite, (x, y, *radii, degrees))):
            return DescribedShape((math.nan,) * 4, True, None)
        corners = corners_of_ellipse((x, y), radii, degrees)
        return DescribedShape(enclose_corners(corners), True, polygons_of([corners]))
    right = x + _as_number(value.get("width")) * width / 100
    bottom = y + _as_number(value["height"]) * height / 100
    if degrees % 360 == 0:
        return DescribedShape((x, y, right, bottom), False, None)
    corners = corners_of_rectangle((x, y, right, bottom), degrees, about=(x, y))
    box = enclose_corners(corners)
    return DescribedShape(box, True, polygons_of([corners]), corners=corners)


def read_point_of_label_studio(value: Mapping[str, Any], size: Size) -> tuple[float, float]:
    """Returns x and y of a key point in pixels; not finite if they are not numbers.

    The arguments are those of `read_shape_of_label_studio`.
    """
    x, y = _as_number(value.get("x")), _as_number(value.get("y"))
    return x * size[0] / 100, y * size[1] / 100


def unpack_brush(rle: Any, size: Size) -> NDArray[np.bool_]:
    """Returns the mask of a brush, of shape (height, width).

    Args:
        rle: a list of the bytes of the packed RGBA pixels of the image, row by row.
        size: width and height of the image.

    Raises:
        OutlineError: `mask_size` if they are the pixels of another image, or of a very large one;
            `bad_rle` if they are malformed.
    """
    width, height = size
    if width * height > DEFAULT_MAX_PIXELS:
        raise OutlineError("mask_size", f"the mask has {width} x {height} pixels")
    if not isinstance(rle, list) or not all(map(_is_byte, rle)):
        raise OutlineError("bad_rle", "rle is not a list of bytes")
    stream = _BitStream("".join(map(_BYTES.__getitem__, rle)))
    count, word = stream.read(_COUNT_BITS), stream.read(_WORD_BITS) + 1
    if count != _CHANNELS * width * height or word != _WORD:
        detail = f"rle packs {count:,} values of {word} bits for {width} x {height} pixels"
        raise OutlineError("mask_size", detail)
    sizes = [stream.read(_SIZE_BITS) + 1 for _ in range(1 << _INDEX_BITS)]
    alpha = np.zeros(width * height, bool)
    at = 0
    while at < count:
        is_run = stream.read(1)
        end = at + 1 + stream.read(sizes[stream.read(_INDEX_BITS)])
        if end > count:
            raise OutlineError("bad_rle", f"rle packs more than {count:,} values")
        # Those whose last channel is among the values.
        pixels = slice(at // _CHANNELS, end // _CHANNELS)
        if is_run:
            alpha[pixels] = stream.read(_WORD) > 0
        else:
            values = stream.read_bytes(end - at)
            alpha[pixels] = values[(_ALPHA - at) % _CHANNELS :: _CHANNELS] > 0
        at = end
    return alpha.reshape(height, width)


def _is_byte(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < 256


class _BitStream:
    """Reads numbers of any size, highest bit first.

    Raises:
        OutlineError: `bad_rle`: the stream ends.
    """

    def __init__(self, digits: str) -> None:
        self._digits = digits
        self._at = 0

    def _take(self, count: int) -> str:
        digits = self._digits[self._at : self._at + count]
        self._at += count
        if len(digits) < count:
            raise OutlineError("bad_rle", "rle ends too early")
        return digits

    def read(self, bits: int) -> int:
        """Returns the next number."""
        return int(self._take(bits), 2)

    def read_bytes(self, count: int) -> NDArray[np.uint8]:
        """Returns the next numbers of 8 bits."""
        digits = self._take(count * _WORD)
        return np.packbits(np.frombuffer(digits.encode("ascii"), np.uint8) - ord("0"))


def _read_brush(rle: Any, size: Size) -> DescribedShape:
    try:
        mask = unpack_brush(rle, size)
    except OutlineError as error:
        return DescribedShape(_NO_BOX, True, FaultyOutline(error.reason, error.detail))
    columns, rows = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
    if not len(columns):
        return DescribedShape((0.0, 0.0, 0.0, 0.0), True, find_runs(mask, 0, 0, size))
    left, right = int(columns[0]), int(columns[-1]) + 1
    top, bottom = int(rows[0]), int(rows[-1]) + 1
    runs = find_runs(mask[top:bottom, left:right], left, top, size)
    return DescribedShape((left, top, right, bottom), True, runs)


def _read_points_in_percent(points: Any, size: Size) -> Sequence[float]:
    """Returns x, y, x, y, ... in pixels; NaN if a point is not two numbers."""
    corners: list[float] = []
    try:
        for x, y in points:
            corners += float(x) * size[0] / 100, float(y) * size[1] / 100
    except (TypeError, ValueError, OverflowError):
        return (math.nan,) * 2
    return corners


def _as_number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan
