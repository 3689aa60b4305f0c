"""Draws outlines as masks, and places masks on stored images.

A mask is an array of shape (height, width) that is 1 inside an object, and 0 elsewhere. Polygons
give the same pixels as in pycocotools.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask as coco_mask

from recordmill.imaging.geometry import (
    Box,
    Frame,
    Geometry,
    PixelValue,
    Size,
    turn_point,
    turn_values,
)
from recordmill.imaging.masks.compressed_runs import unpack_runs
from recordmill.imaging.masks.mask_file import MaskValues, decode_mask
from recordmill.imaging.masks.outline import (
    Bitmap,
    DrawableOutline,
    Joined,
    OutlineError,
    Polygons,
    Runs,
)

Mask = NDArray[np.uint8]

_STEPS_PER_PIXEL = 5
"""pycocotools follows a border in fifths of a pixel, and keeps 20 bytes for each."""

_LEAST_INSIDE = 0.5
"""The smallest share of an object's pixels in its box: a smaller one is another object's."""

_MOST_STEPS = 4_000_000
_MOST_SIDE = 2.0**26
"""The largest coordinate: five times as much fits in the integers of pycocotools."""


def rasterize(outline: DrawableOutline, size: Size) -> Mask:
    """Draws an outline on the image on which its annotators drew it.

    Args:
        outline: the outline.
        size: width and height of that image.

    Raises:
        OutlineError: `bad_polygon`, `bad_rle`, `bad_mask` or `mask_size`.
    """
    match outline:
        case Polygons():
            return _fill(_in_pixels(outline, size), size)
        case Runs():
            return _unroll(_check_runs(outline, size), size)
        case Bitmap():
            return _lay_out(outline, size)
        case Joined(shapes):
            return _unite(rasterize(each, size) for each in shapes)


def place_outline(outline: DrawableOutline, geometry: Geometry, drawn_on: Frame) -> Mask:
    """Draws an outline on the stored image.

    If the image is only turned, so is the mask. If it is resized, cropped or padded, polygons are
    moved first, and the pixels of other outlines are the nearest ones.

    Args:
        outline: the outline.
        geometry: how the stored image was made from its source.
        drawn_on: the orientation in which the outline was drawn.

    Returns:
        The mask, of the stored image's size. It may be empty.

    Raises:
        OutlineError: as for `rasterize`.
    """
    size = geometry.frame_size(drawn_on)
    if isinstance(outline, Joined):
        return _unite(place_outline(each, geometry, drawn_on) for each in outline.shapes)
    if isinstance(outline, Polygons) and geometry.resize is not None:
        return _fill_shown(_in_pixels(outline, size), geometry, drawn_on)
    return place_values(rasterize(outline, size), geometry, drawn_on)


def place_values(
    values: NDArray[PixelValue], geometry: Geometry, drawn_on: Frame, padding: int = 0
) -> NDArray[PixelValue]:
    """Moves the values of an image's pixels to the stored image.

    Each pixel takes the value of the one that is nearest: no new values appear.

    Args:
        values: an array of shape (height, width) of `geometry.frame_size(drawn_on)`.
        geometry: how the stored image was made from its source.
        drawn_on: the orientation of the values.
        padding: the value where the stored image shows nothing of its source.
    """
    turned = turn_values(values, geometry.turn_from(drawn_on))
    width, height = geometry.stored_size
    if geometry.resize is None:
        return np.ascontiguousarray(turned)
    (left, top, right, bottom), shown = geometry.find_shown()
    columns = _find_nearest(left, right, shown[0], shown[2])
    rows = _find_nearest(top, bottom, shown[1], shown[3])
    placed = np.full((height, width), padding, values.dtype)
    placed[shown[1] : shown[3], shown[0] : shown[2]] = turned[rows[:, None], columns]
    return placed


def resize_values(values: NDArray[PixelValue], shape: tuple[int, int]) -> NDArray[PixelValue]:
    """Resizes an array of pixels to a height and width; each takes the value of the nearest."""
    if values.shape == shape:
        return values
    rows, columns = (
        _find_nearest(0, old, 0, new) for old, new in zip(values.shape, shape, strict=True)
    )
    return values[rows[:, None], columns]


def find_frame(size: Size, geometry: Geometry, preferred: Frame) -> Frame:
    """Returns the orientation in which a mask of the whole image was drawn, by its size.

    Args:
        size: width and height of the mask.
        geometry: how the stored image was made from its source.
        preferred: what holds if the size fits both.

    Raises:
        OutlineError: `mask_size`: it fits neither.
    """
    other: Frame = "stored" if preferred == "displayed" else "displayed"
    for frame in (preferred, other):
        if size == geometry.frame_size(frame):
            return frame
    raise _wrong_size(size, geometry.frame_size(preferred))


def select_ids(values: MaskValues, ids: tuple[int, ...]) -> Mask:
    """Returns the mask of the pixels of a mask file that have one of several values."""
    return np.isin(values, ids).astype(np.uint8)


def is_in_box(mask: Mask, box: Box) -> bool:
    """Returns whether at least half of a mask's pixels are in a box; if it is empty, they are.

    The box may be a pixel off, since sides count from 0 or from 1.

    Args:
        mask: on the stored image.
        box: left, top, right and bottom in fractions of that image.
    """
    if not np.all(np.isfinite(box)):
        return True  # the box is dropped for its own fault
    height, width = mask.shape
    left, top, right, bottom = np.multiply(box, (width, height, width, height))
    rows = slice(max(0, math.floor(top) - 1), max(0, math.ceil(bottom)))
    columns = slice(max(0, math.floor(left) - 1), max(0, math.ceil(right)))
    inside = np.count_nonzero(mask[rows, columns])
    return bool(inside >= _LEAST_INSIDE * np.count_nonzero(mask))


def _unite(masks: Iterator[Mask]) -> Mask:
    """Returns the pixels that are in any of several masks; there is at least one mask."""
    united = next(masks)
    for mask in masks:
        united |= mask
    return united


def _in_pixels(shape: Polygons, size: Size) -> Polygons:
    """Returns polygons with coordinates in pixels of an image of this size."""
    if not shape.fractions:
        return shape
    sides = np.array(size, np.float64)
    parts = (np.reshape(part, (-1, 2)) * sides for part in shape.parts)
    return Polygons(tuple(tuple(part.ravel().tolist()) for part in parts))


def _fill(shape: Polygons, size: Size) -> Mask:
    """Draws polygons in pixels."""
    width, height = size
    parts = [part for part in shape.parts if len(part) >= 6]
    if not parts:
        raise OutlineError("bad_polygon", "it has fewer than 3 points")
    _check_border(parts)
    encoded = coco_mask.merge(coco_mask.frPyObjects([list(part) for part in parts], height, width))
    # Its own `decode` warns of NumPy's future.
    return _unroll(unpack_runs(encoded["counts"]), size)


def _check_border(parts: list[tuple[float, ...]]) -> None:
    """Checks that pycocotools can follow a border in bounded time and memory.

    Raises:
        OutlineError: `bad_polygon`.
    """
    steps = 0.0
    for part in parts:
        if len(part) % 2:
            raise OutlineError("bad_polygon", f"a part has {len(part)} coordinates, which is odd")
        corners = np.reshape(part, (-1, 2))
        if not np.all(np.abs(corners) <= _MOST_SIDE):  # false for NaN, too
            raise OutlineError("bad_polygon", "a coordinate is not finite, or far from the image")
        moves = np.abs(corners - np.roll(corners, -1, axis=0)).max(axis=1)
        steps += len(corners) + _STEPS_PER_PIXEL * float(moves.sum())
    if steps > _MOST_STEPS:
        length = _MOST_STEPS // _STEPS_PER_PIXEL
        raise OutlineError("bad_polygon", f"its border is longer than {length:,} pixels")


def _fill_shown(shape: Polygons, geometry: Geometry, drawn_on: Frame) -> Mask:
    """Draws polygons in pixels on the part of the stored image that shows the source."""
    size, orientation = geometry.frame_size(drawn_on), geometry.turn_from(drawn_on)
    (left, top, right, bottom), (first, upper, last, lower) = geometry.find_shown()
    shown = last - first, lower - upper
    scale = np.array((shown[0] / (right - left), shown[1] / (bottom - top)))
    moved = []
    for part in shape.parts:
        corners = np.array(part[: len(part) // 2 * 2], np.float64)
        points = np.stack(turn_point(corners[0::2], corners[1::2], size, orientation), axis=1)
        moved.append(tuple(((points - (left, top)) * scale).ravel().tolist()))
    mask = _fill(replace(shape, parts=tuple(moved)), shown)
    width, height = geometry.stored_size
    if shown == (width, height):
        return np.ascontiguousarray(mask)
    placed = np.zeros((height, width), np.uint8)
    placed[upper:lower, first:last] = mask
    return placed


def _unroll(runs: NDArray[np.int64], size: Size) -> Mask:
    """Draws runs that fill a mask; no more than the columns between its first and last pixel."""
    width, height = size
    mask = np.zeros((height, width), np.uint8)
    edges = np.concatenate(([0], np.cumsum(runs)))
    inside = np.flatnonzero(runs[1::2]) * 2 + 1
    if len(inside):
        first = edges[inside[0]] // height
        last = -(-edges[inside[-1] + 1] // height)
        clipped = np.clip(edges, first * height, last * height)
        values = np.zeros(len(runs), np.uint8)
        values[1::2] = 1
        columns = np.repeat(values, clipped[1:] - clipped[:-1])
        mask[:, first:last] = columns.reshape(last - first, height).T
    return mask


def _check_runs(runs: Runs, size: Size) -> NDArray[np.int64]:
    """Returns the runs of a mask of an image.

    Raises:
        OutlineError: `mask_size`, or `bad_rle` if they do not fill it.
    """
    if runs.size != size:
        raise _wrong_size(runs.size, size)
    width, height = size
    if min(runs.counts, default=0) < 0 or sum(runs.counts) != width * height:
        raise OutlineError("bad_rle", f"its runs do not fill {width} x {height} pixels")
    return np.array(runs.counts, np.int64)


def _lay_out(bitmap: Bitmap, size: Size) -> Mask:
    """Draws the mask of a part of an image; what is outside the image is left out."""
    values = decode_mask(bitmap.data, size).values
    height, width = values.shape
    mask = np.zeros(size[::-1], np.uint8)
    left, top = max(bitmap.left, 0), max(bitmap.top, 0)
    right, bottom = min(bitmap.left + width, size[0]), min(bitmap.top + height, size[1])
    if left < right and top < bottom:
        rows = slice(top - bitmap.top, bottom - bitmap.top)
        columns = slice(left - bitmap.left, right - bitmap.left)
        mask[top:bottom, left:right] = values[rows, columns] > 0
    return mask


def _find_nearest(start: float, end: float, first: int, last: int) -> NDArray[np.intp]:
    """Returns the pixel of a source for each of its pixels on the stored image, on one axis.

    Args:
        start: where the part of the source that is shown begins, in its pixels.
        end: where it ends.
        first: the pixel of the stored image where it begins.
        last: the pixel after its last one.
    """
    centers = np.arange(last - first) + 0.5
    # Multiplied first: the quotient is below a whole number only if it is exactly so.
    places = np.floor(start + centers * (end - start) / (last - first))
    return places.astype(np.intp)


def _wrong_size(size: Size, wanted: Size) -> OutlineError:
    width, height = size
    detail = f"the mask has {width} x {height} pixels, and the image {wanted[0]} x {wanted[1]}"
    return OutlineError("mask_size", detail)
