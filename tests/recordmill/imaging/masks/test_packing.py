"""Outlines come back from their packed form exactly, and the form is small."""

import math

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.imaging.masks.outline import (
    Bitmap,
    FaultyOutline,
    FileIds,
    Joined,
    MaskFile,
    NumberedObject,
    Polygons,
    Runs,
)
from recordmill.imaging.masks.packing import pack_outlines, unpack_outlines

ONE = MaskFile("masks/a.png", "gs://bucket/masks/a.png", 120, "17")
OTHER = MaskFile("masks/b.png", "/data/masks/b.png")

OUTLINES = [
    None,
    Polygons(((1.0, 2.0, 3.5, 2.25, 3.0, 7.75),)),
    Polygons(((0.0, 0.0, 10.0, 0.0, 10.0, 10.0), (20.5, 20.0, 30.0, 20.0, 25.0, 29.01))),
    Polygons((), fractions=True),
    Runs((640, 480), (0, 5, 300_000, 7_195)),
    Runs((1, 1), ()),
    Bitmap(-3, 12, b"\x89PNG anything"),
    FileIds(ONE, (1, 26_001, -1)),
    FileIds(OTHER, ()),
    FileIds(ONE, (2,)),
    NumberedObject(OTHER, 3, 17),
    Joined((Polygons(((1.0, 2.0),)), Runs((2, 2), (1, 3)), Bitmap(0, 0, b""))),
    FaultyOutline("bad_rle", "its runs do not fill 3 x 4 pixels of §"),
]

any_float = st.floats(allow_nan=False)
decimal = st.integers(-(10**7), 10**7).map(lambda number: number / 100)
points = st.lists(decimal, max_size=12) | st.lists(any_float, max_size=12)
polygons = st.builds(Polygons, st.lists(points.map(tuple), max_size=3).map(tuple), st.booleans())
runs = st.builds(
    Runs,
    st.tuples(st.integers(1, 2**31), st.integers(1, 2**31)),
    st.lists(st.integers(0, 2**40), max_size=9).map(tuple),
)
bitmaps = st.builds(Bitmap, st.integers(-9, 9), st.integers(-9, 9), st.binary(max_size=9))


def test_each_form_comes_back_as_it_was():
    assert unpack_outlines(pack_outlines(OUTLINES)) == tuple(OUTLINES)


def test_a_file_of_many_objects_is_named_once():
    packed = pack_outlines([FileIds(ONE, (number,)) for number in range(100)])
    assert packed.count(ONE.uri.encode()) == 1
    assert len(packed) < 500


@given(st.lists(st.none() | polygons | runs | bitmaps, max_size=5))
def test_anything_comes_back_as_it_was(outlines):
    assert unpack_outlines(pack_outlines(outlines)) == tuple(outlines)


@pytest.mark.parametrize("value", [1e300, 5e-324, 0.1 + 0.2, math.inf, 2.0**53 + 2])
def test_numbers_with_many_digits_come_back(value):
    outlines = (Polygons(((1.5, value, 2.0, 3.0, 4.0, 5.0),)),)
    assert unpack_outlines(pack_outlines(outlines)) == outlines


def draw_like_coco(random, objects):
    """Polygons as in COCO's own files: corners a few pixels apart, with two decimals."""
    outlines = []
    for _ in range(objects):
        count = int(random.integers(8, 60))
        angles = np.sort(random.uniform(0, 2 * math.pi, count))
        radii = random.uniform(10, 120) * random.uniform(0.8, 1.2, count)
        x = random.uniform(100, 500) + radii * np.cos(angles)
        y = random.uniform(100, 380) + radii * np.sin(angles)
        outlines.append(Polygons((tuple(np.round(np.stack([x, y], 1).ravel(), 2).tolist()),)))
    return outlines


def test_polygons_take_at_most_0_35_of_their_compact_text():
    random = np.random.default_rng(1)
    images = [draw_like_coco(random, 7) for _ in range(50)]
    packed = sum(len(pack_outlines(outlines)) for outlines in images)
    text = sum(len(orjson.dumps([each.parts for each in outlines])) for outlines in images)
    assert packed <= 0.35 * text


def test_runs_take_less_than_the_packed_text_of_coco():
    mask = np.zeros((480, 640), np.uint8)
    rows, columns = np.ogrid[:480, :640]
    mask[(rows - 200) ** 2 + (columns - 300) ** 2 < 100**2] = 1
    from pycocotools import mask as coco_mask

    text = coco_mask.encode(np.asfortranarray(mask))["counts"]
    changes = np.flatnonzero(np.diff(mask.T.ravel(), prepend=0, append=1))
    counts = tuple(np.diff(changes, prepend=0).tolist())
    assert sum(counts) == 480 * 640
    assert len(pack_outlines([Runs((640, 480), counts)])) <= 1.05 * len(text)
