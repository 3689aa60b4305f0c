"""Outlines of LabelMe's shapes."""

import base64
import io
import json
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from PIL import Image

from recordmill.imaging.masks.outline import Bitmap, FaultyOutline, Polygons
from recordmill.imaging.masks.rasterize import rasterize
from recordmill.transforms.inputs.labelme_outlines import read_outline_of_labelme as read

SIZE = 60, 40


def count(outline):
    return int(rasterize(outline, SIZE).sum())


@pytest.mark.parametrize("kind", ["polygon", "oriented_rectangle", "rectangle", "rotation"])
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


def test_a_mask_of_more_bytes_than_any_needs_is_faulty():
    outline = read("mask", [(7.0, 3.0), (10.0, 7.0)], "AAAA" * 5_592_406)
    assert outline == FaultyOutline("bad_mask", "its mask has 16,777,218 bytes")


EXAMPLES = Path(os.environ.get("RECORDMILL_CLONES", "no clones"), "wkentaro/labelme/examples")


def draw_objects(shapes, size):
    """The number of the object at each pixel, as LabelMe's own scripts give it."""
    objects, is_ignored, found = np.zeros(size[::-1], np.int32), np.zeros(size[::-1], bool), []
    for at, shape in enumerate(shapes):
        key = shape["label"], at if shape["group_id"] is None else f"group {shape['group_id']}"
        found += [] if key in found else [key]
        inside = rasterize(read(shape["shape_type"], shape["points"]), size) == 1
        objects[inside] = found.index(key) + 1
        is_ignored[inside] = shape["label"] == "__ignore__"
    return np.where(is_ignored, 0, objects)


@pytest.mark.skipif(not EXAMPLES.exists(), reason="needs RECORDMILL_CLONES with wkentaro/labelme")
@pytest.mark.parametrize("name", ["2011_000003", "2011_000006", "2011_000025"])
def test_labelmes_own_objects_differ_at_borders_alone(name):
    folder = EXAMPLES / "instance_segmentation"
    drawn = json.loads((folder / f"data_annotated/{name}.json").read_text())
    expected = np.load(folder / f"data_dataset_voc/SegmentationObjectNpy/{name}.npy")
    found = draw_objects(drawn["shapes"], (drawn["imageWidth"], drawn["imageHeight"]))
    around = sliding_window_view(np.pad(expected, 1, constant_values=-1), (3, 3))
    is_border = around.min(axis=(2, 3)) != around.max(axis=(2, 3))
    # Pillow, which draws them, also paints the border itself, and parts that are thinner.
    assert ((found != expected) & ~is_border).mean() <= 1e-4
    for value in set(np.unique(expected).tolist()) - {0}:
        one, other = found == value, expected == value
        assert other.sum() < 1_000 or (one & other).sum() / (one | other).sum() >= 0.95


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
