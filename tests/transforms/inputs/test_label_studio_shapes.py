"""Regions in Label Studio's JSON."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.imaging.masks.outline import FaultyOutline, OutlineError, Polygons
from recordmill.imaging.masks.rasterize import rasterize
from recordmill.transforms.inputs.label_studio_shapes import (
    read_point_of_label_studio,
    read_shape_of_label_studio,
    unpack_brush,
)

SIZE = 40, 30


def pack_brush(values, literals):
    """Packs values as rle-pack does, in runs, or some of them as they are."""
    digits = f"{len(values):032b}{7:05b}" + "".join(f"{size - 1:04b}" for size in (3, 4, 8, 16))
    at = 0
    while at < len(values):
        as_it_is = literals and literals.pop(0)
        end = at + 1
        while end < len(values) and (values[end] == values[at] or as_it_is) and end - at < 200:
            end += 1
        digits += f"{0 if as_it_is else 1}10{end - at - 1:08b}"
        digits += "".join(
            f"{each:08b}" for each in (values[at:end] if as_it_is else values[at : at + 1])
        )
        at = end
    digits += "0" * (-len(digits) % 8)
    return [int(digits[start : start + 8], 2) for start in range(0, len(digits), 8)]


def brush_of(mask, literals=()):
    pixels = np.zeros((*mask.shape, 4), np.uint8)
    pixels[mask] = (255, 0, 7, 255)
    pixels[~mask, 0] = 9  # a color of what is not marked
    return pack_brush(pixels.ravel().tolist(), list(literals))


def read(**value):
    return read_shape_of_label_studio(value, SIZE)


def test_a_rectangle_is_in_percent():
    shape = read(x=10, y=20, width=50, height=10, rotation=0, rectanglelabels=["cat"])
    assert (shape.box, shape.is_enclosed, shape.outline) == ((4, 6, 24, 9), False, None)


def test_a_rectangle_turns_about_its_upper_left_corner():
    shape = read(x=50, y=20, width=25, height=10, rotation=90)
    assert shape.outline == Polygons(((20.0, 6.0, 20.0, 16.0, 17.0, 16.0, 17.0, 6.0),))
    assert (shape.box, shape.is_enclosed) == ((17, 6, 20, 16), True)


def test_a_polygon_is_in_percent():
    shape = read(points=[[10, 10], [50, 10], [50, 90]], closed=True, polygonlabels=["cat"])
    assert shape.outline == Polygons(((4.0, 3.0, 20.0, 3.0, 20.0, 27.0),))
    assert (shape.box, shape.is_enclosed) == ((4, 3, 20, 27), True)


def test_an_ellipse_has_radii_in_percent():
    shape = read(x=50, y=50, radiusX=10, radiusY=20, rotation=0)
    assert shape.box == pytest.approx((16, 9, 24, 21), abs=0.1)
    assert rasterize(shape.outline, SIZE).sum() == pytest.approx(math.pi * 4 * 6, rel=0.05)


def test_a_key_point_has_a_place_and_no_shape():
    value = {"x": 50, "y": 25.5, "width": 0.5, "keypointlabels": ["nose"]}
    assert read(**value) is None
    assert read_point_of_label_studio(value, (40, 30)) == (20, 7.65)
    assert str(read_point_of_label_studio({"x": None, "y": 10}, (40, 30))) == "(nan, 3.0)"


@pytest.mark.parametrize("value", [{"choices": ["cat"]}, {"text": ["a"]}, {"rating": 4}, {}])
def test_other_values_have_no_shape(value):
    assert read(**value) is None


@given(st.integers(0, 2**32 - 1), st.lists(st.booleans(), max_size=30))
def test_a_brush_marks_the_pixels_with_alpha(seed, literals):
    mask = np.random.default_rng(seed).random((SIZE[1], SIZE[0])) < 0.3
    assert np.array_equal(unpack_brush(brush_of(mask, literals), SIZE), mask)


def test_a_brush_has_a_box_and_runs():
    mask = np.zeros((30, 40), bool)
    mask[5:9, 10:20] = mask[9, 12] = True
    shape = read(rle=brush_of(mask), format="rle", brushlabels=["cat"])
    assert (shape.box, shape.is_enclosed) == ((10, 5, 20, 10), True)
    assert np.array_equal(rasterize(shape.outline, SIZE), mask)


def test_an_empty_brush_has_an_empty_box():
    shape = read(rle=brush_of(np.zeros((30, 40), bool)))
    assert shape.box == (0, 0, 0, 0)
    assert rasterize(shape.outline, SIZE).sum() == 0


GOOD = brush_of(np.ones((30, 40), bool))


@pytest.mark.parametrize(
    ("rle", "reason"),
    [
        (None, "bad_rle"),
        ("text", "bad_rle"),
        ([1, 2, 300], "bad_rle"),
        ([1, 2, -3], "bad_rle"),
        ([0.5], "bad_rle"),
        ([[1]], "bad_rle"),
        (10**12, "bad_rle"),
        ([], "bad_rle"),
        (GOOD[:20], "bad_rle"),
        (brush_of(np.ones((31, 40), bool)), "mask_size"),
        ([255] * 40, "mask_size"),
    ],
)
def test_a_malformed_brush_has_a_reason(rle, reason):
    shape = read(rle=rle)
    assert isinstance(shape.outline, FaultyOutline)
    assert shape.outline.reason == reason
    assert not any(map(math.isfinite, shape.box))


def test_a_brush_on_a_huge_image_is_not_unpacked():
    with pytest.raises(OutlineError, match="mask_size: the mask has 30000 x 30000 pixels"):
        unpack_brush(GOOD, (30_000, 30_000))


@pytest.mark.parametrize(
    "value",
    [
        {"x": "a", "y": 1, "width": 2, "height": 3},
        {"x": True, "y": 1, "width": 2, "height": 3},
        {"x": 10**400, "y": 1, "width": 2, "height": 3},
        {"x": 1, "y": 1, "width": None, "height": 3},
        {"x": 1, "y": 1, "radiusX": 2},
        {"points": [[1, 2], [3]]},
        {"points": 7},
        {"points": []},
    ],
)
def test_a_malformed_region_has_no_finite_box(value):
    assert not all(map(math.isfinite, read(**value).box))
