import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from recordmill.imaging.masks.outline import FaultyOutline, Joined, Polygons, Runs
from recordmill.imaging.masks.rasterize import rasterize
from recordmill.transforms.inputs.outlines import (
    angle_of,
    enclose_segmentation,
    polygons_of,
    read_segmentation,
    rotate_box,
)


def runs_of(mask):
    """The runs of a mask, column by column, beginning with those outside it."""
    pixels = mask.T.ravel()
    changes = np.flatnonzero(np.diff(np.concatenate([[False], pixels]))) if pixels.size else []
    edges = [0, *(int(each) for each in changes), pixels.size]
    return [end - start for start, end in pairwise(edges)]


def pack(runs):
    """The text for runs, as `rleToString` in cocoapi's maskApi.c makes it."""
    text = ""
    for number, run in enumerate(runs):
        value = run - runs[number - 2] if number > 2 else run
        more = True
        while more:
            group = value & 0x1F
            value >>= 5
            more = value != -1 if group & 0x10 else value != 0
            text += chr((group | 0x20 if more else group) + 48)
    return text


@given(arrays.arrays(bool, st.tuples(st.integers(1, 40), st.integers(1, 40))))
def test_the_box_of_a_mask_is_that_of_its_pixels_packed_or_not(mask):
    rows, columns = np.nonzero(mask)
    wanted = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1) if len(rows) else None
    runs, size = runs_of(mask), list(mask.shape)
    assert enclose_segmentation({"size": size, "counts": runs}) == wanted
    assert enclose_segmentation({"size": size, "counts": pack(runs)}) == wanted
    assert enclose_segmentation([{"size": size, "counts": pack(runs)}]) == wanted


@pytest.mark.parametrize(
    "outline",
    [
        None,
        [],
        "text",
        [[]],
        [["x", 1, 2, 3]],
        [[1, 2, 3]],
        [[1, 2, math.nan, 4]],
        {},
        {"size": [2, 2]},
        {"size": [2, 2], "counts": None},
        {"size": [2, 2], "counts": [1, 9]},
        {"size": [2, 2], "counts": [1, -1]},
        {"size": "ab", "counts": [1]},
        {"size": [2, 2], "counts": "~~~~~~~"},
        {"size": [2, 2], "counts": "é"},
        {"size": [-2, -2], "counts": [1, 3]},
        {"size": [2, 2], "counts": [1, 2**63 - 1, 2**63 - 1, 5]},
    ],
)
def test_a_malformed_outline_has_no_box(outline):
    assert enclose_segmentation(outline) is None


TRIANGLE = [1, 2, 5.5, 2, 5.5, 7]


@pytest.mark.parametrize("outline", [None, [], {}, ""])
def test_nothing_is_not_an_outline(outline):
    assert read_segmentation(outline) is None


@pytest.mark.parametrize(
    ("outline", "read"),
    [
        ([TRIANGLE], Polygons((tuple(map(float, TRIANGLE)),))),
        (TRIANGLE, Polygons((tuple(map(float, TRIANGLE)),))),
        ([TRIANGLE, [1, 2, "3", 4]], Polygons((tuple(map(float, TRIANGLE)), (1.0, 2.0, 3.0, 4.0)))),
        ({"size": [2, 3], "counts": [1, 2, 3]}, Runs((3, 2), (1, 2, 3))),
        ({"size": [2, 3], "counts": pack([1, 2, 3])}, Runs((3, 2), (1, 2, 3))),
        ([{"size": [2, 3], "counts": [6]}], Runs((3, 2), (6,))),
        (
            [{"size": [2, 3], "counts": [6]}, {"size": [2, 3], "counts": [0, 6]}],
            Joined((Runs((3, 2), (6,)), Runs((3, 2), (0, 6)))),
        ),
    ],
)
def test_a_segmentation_of_coco_is_an_outline(outline, read):
    assert read_segmentation(outline) == read


@given(arrays.arrays(bool, st.tuples(st.integers(1, 40), st.integers(1, 40))))
def test_the_pixels_of_a_mask_come_back_packed_or_not(mask):
    size = mask.shape[::-1]
    for counts in (runs_of(mask), pack(runs_of(mask))):
        outline = read_segmentation({"size": list(mask.shape), "counts": counts})
        assert np.array_equal(rasterize(outline, size), mask)


@pytest.mark.parametrize(
    ("outline", "reason"),
    [
        ("text", "bad_polygon"),
        (7, "bad_polygon"),
        ([[]], "bad_polygon"),
        ([["x", 1, 2, 3]], "bad_polygon"),
        ([[1, 2, 3, 4]], "bad_polygon"),
        ([TRIANGLE[:5]], "bad_polygon"),
        ([TRIANGLE, TRIANGLE[:5]], "bad_polygon"),
        ([[*TRIANGLE[:5], math.nan]], "bad_polygon"),
        ([[*TRIANGLE[:5], math.inf]], "bad_polygon"),
        ([[*TRIANGLE[:5], 10**400]], "bad_polygon"),
        ([[*TRIANGLE[:5], None]], "bad_polygon"),
        ([[[1, 2], [3, 4], [5, 6]]], "bad_polygon"),
        ([[1.0] * 1_000_002], "bad_polygon"),
        ({"size": [2, 2]}, "bad_rle"),
        ({"size": [2, 2], "counts": None}, "bad_rle"),
        ({"size": [2, 2], "counts": []}, "bad_rle"),
        ({"size": [2, 2], "counts": [1, 9]}, "bad_rle"),
        ({"size": [2, 2], "counts": [1, 2]}, "bad_rle"),
        ({"size": [2, 2], "counts": [1, -1, 4]}, "bad_rle"),
        ({"size": [2, 2], "counts": [1, 2**62, 2**62, 2**62, 2**62, 3]}, "bad_rle"),
        ({"size": [2, 2], "counts": [1, 2**70]}, "bad_rle"),
        ({"size": [2, 2], "counts": ["a"]}, "bad_rle"),
        ({"size": [-2, -2], "counts": [4]}, "bad_rle"),
        ({"size": [2, 2, 2], "counts": [8]}, "bad_rle"),
        ({"size": "ab", "counts": [1]}, "bad_rle"),
        ({"size": [2, 2], "counts": "~~~~~~~"}, "bad_rle"),
        ({"size": [2, 2], "counts": "é"}, "bad_rle"),
        ({"size": [2, 2], "counts": "0" * 4_000_001}, "bad_rle"),
        ([{"size": [2, 2], "counts": [4]}, [1, 2]], "bad_rle"),
    ],
)
def test_a_malformed_segmentation_has_a_reason(outline, reason):
    read = read_segmentation(outline)
    assert isinstance(read, FaultyOutline)
    assert read.reason == reason
    assert len(read.detail) < 200


def test_polygons_may_be_in_fractions():
    read = polygons_of([[0.1, 0.2, 0.3, 0.2, 0.3, 0.9]], fractions=True)
    assert read == Polygons(((0.1, 0.2, 0.3, 0.2, 0.3, 0.9),), fractions=True)


@given(
    st.floats(-1000, 1000),
    *(st.floats(-100, 100) for _ in range(2)),
    *(st.floats(0, 100) for _ in range(2)),
)
def test_the_box_around_a_rotated_rectangle_touches_its_corners(degrees, left, top, width, height):
    (found, is_rotated) = rotate_box((left, top, left + width, top + height), degrees)
    angle = math.radians(degrees)
    x, y = left + width / 2, top + height / 2
    corners = [
        (
            x + dx * math.cos(angle) - dy * math.sin(angle),
            y + dx * math.sin(angle) + dy * math.cos(angle),
        )
        for dx in (-width / 2, width / 2)
        for dy in (-height / 2, height / 2)
    ]
    xs, ys = zip(*corners, strict=True)
    assert found == pytest.approx((min(xs), min(ys), max(xs), max(ys)), abs=1e-6)
    assert is_rotated == (degrees % 180 != 0)


@pytest.mark.parametrize(
    ("value", "angle"),
    [(90, 90.0), ("90.0", 90.0), ("left", 0.0), ("", 0.0), (None, 0.0), (True, 0.0), ([], 0.0)],
)
def test_an_angle_is_a_number_or_the_text_of_one(value, angle):
    assert angle_of(value) == angle
