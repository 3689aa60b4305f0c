"""Outlines of LabelMe's shapes."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from recordmill.imaging.masks.outline import Bitmap, FaultyOutline, Polygons
from recordmill.imaging.masks.rasterize import rasterize
from recordmill.transforms.inputs.labelme_outlines import read_outline_of_labelme as read

SIZE = 60, 40


def count(outline):
    return int(rasterize(outline, SIZE).sum())


@pytest.mark.parametrize("kind", ["polygon", "oriented_rectangle"])
def test_corners_are_taken_as_they_are(kind):
    points = [(1.5, 2.0), (9.0, 2.0), (9.0, 7.0), (1.5, 7.0)]
    assert read(kind, points) == Polygons(((1.5, 2.0, 9.0, 2.0, 9.0, 7.0, 1.5, 7.0),))


def test_a_rectangle_is_given_by_two_corners():
    assert read("rectangle", [(9, 7), (1, 2)]) == Polygons(((9, 7, 1, 7, 1, 2, 9, 2),))


def test_a_circle_is_given_by_its_center_and_its_rim():
    assert count(read("circle", [(30, 20), (30, 30)])) == pytest.approx(314, rel=0.03)


def test_lines_and_points_are_as_wide_as_labelme_draws_them():
    assert count(read("line", [(10, 20), (50, 20)])) == 400
    assert count(read("linestrip", [(10, 10), (50, 10), (50, 30)])) == 400 + 200 - 25
    assert count(read("point", [(30, 20)])) == pytest.approx(78, abs=4)
    assert count(read("points", [(10, 20), (40, 20)])) == pytest.approx(157, abs=8)


def test_a_mask_is_at_its_first_point():
    pixels = np.random.default_rng(1).random((5, 4)) < 0.5
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    outline = read("mask", [(7.0, 3.0), (10.0, 7.0)], base64.b64encode(stream.getvalue()).decode())
    assert outline == Bitmap(7, 3, stream.getvalue())
    mask = np.zeros((40, 60), np.uint8)
    mask[3:8, 7:11] = pixels
    assert np.array_equal(rasterize(outline, SIZE), mask)


@pytest.mark.parametrize(
    ("kind", "points", "mask", "reason"),
    [
        ("polygon", [(1, 2), (3, 4)], None, "bad_polygon"),
        ("circle", [(1, 2)], None, "bad_polygon"),
        ("rectangle", [(1, 2)], None, "bad_polygon"),
        ("line", [(1, 2)], None, "bad_polygon"),
        ("star", [(1, 2), (3, 4), (5, 6)], None, "bad_polygon"),
        ("mask", [(1, 2), (3, 4)], None, "bad_mask"),
        ("mask", [(1, 2), (3, 4)], "", "bad_mask"),
        ("mask", [(1, 2), (3, 4)], "???", "bad_mask"),
        ("mask", [(1, 2), (3, 4)], "é", "bad_mask"),
    ],
)
def test_a_malformed_shape_has_a_reason(kind, points, mask, reason):
    outline = read(kind, points, mask)
    assert isinstance(outline, FaultyOutline)
    assert outline.reason == reason
