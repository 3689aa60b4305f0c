"""Masks have the pixels of pycocotools and of faster-coco-eval, and move with their image."""

import io
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from faster_coco_eval.core import mask as other_mask
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pycocotools import mask as coco_mask

from recordmill.imaging.geometry import Geometry, turn_values
from recordmill.imaging.masks.outline import Bitmap, Joined, OutlineError, Polygons, Runs
from recordmill.imaging.masks.rasterize import find_frame, place_outline, place_values, rasterize
from recordmill.schemas.settings.images import Resize

SIZE = 160, 120

coordinate = (
    st.floats(-80, 240, allow_nan=False)
    | st.integers(-80, 240).map(float)
    | st.integers(-160, 480).map(lambda half: half / 2)
    | st.integers(-8_000, 24_000).map(lambda hundredth: hundredth / 100)
)
parts = st.integers(3, 12).flatmap(
    lambda count: st.lists(coordinate, min_size=2 * count, max_size=2 * count).map(tuple)
)
orientations = st.integers(1, 8)
frames = st.sampled_from(["displayed", "stored"])
some_pixels = st.integers(0, 2**32 - 1).map(
    lambda seed: (np.random.default_rng(seed).random((SIZE[1], SIZE[0])) < 0.4).astype(np.uint8)
)


def runs_of(mask):
    changes = np.flatnonzero(np.diff(mask.T.ravel(), prepend=0)).tolist()
    counts = np.diff([0, *changes, mask.size]).tolist()
    return Runs((mask.shape[1], mask.shape[0]), tuple(counts))


def bitmap_of(mask, left=0, top=0):
    stream = io.BytesIO()
    Image.fromarray(mask.astype(bool)).save(stream, "PNG")
    return Bitmap(left, top, stream.getvalue())


def decode_with(library, encoded):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy, in pycocotools
        return library.decode(encoded)


def draw_with(library, polygons):
    encoded = library.frPyObjects(polygons, SIZE[1], SIZE[0])
    return decode_with(library, library.merge(encoded))


def star(x, y, radius, corners=40):
    """A polygon without thin parts."""
    angles = np.linspace(0, 2 * math.pi, corners, endpoint=False)
    radii = radius * (1 + 0.2 * np.cos(5 * angles))
    around = np.stack([x + radii * np.cos(angles), y + radii * np.sin(angles)], axis=1)
    return Polygons((tuple(around.ravel().tolist()),))


def overlap(one, other):
    """Intersection over union."""
    return (one & other).sum() / (one | other).sum()


def geometry(orientation=1, turned=True, resize=None, stored=None, size=SIZE):
    found = Geometry(size, orientation, turned, resize, size)
    return replace(
        found, stored_size=stored or found.frame_size("displayed" if turned else "stored")
    )


@given(st.lists(parts, min_size=1, max_size=3))
def test_polygons_have_the_pixels_of_faster_coco_eval_and_pycocotools(polygons):
    mask = rasterize(Polygons(tuple(polygons)), SIZE)
    assert (mask.dtype, mask.shape) == (np.uint8, (120, 160))
    for library in (other_mask, coco_mask):
        assert np.array_equal(mask, draw_with(library, [list(each) for each in polygons]))


@given(some_pixels)
def test_runs_have_the_pixels_of_faster_coco_eval_and_pycocotools(mask):
    drawn = rasterize(runs_of(mask), SIZE)
    assert np.array_equal(drawn, mask)
    for library in (other_mask, coco_mask):
        encoded = {"size": [120, 160], "counts": list(runs_of(mask).counts)}
        assert np.array_equal(drawn, decode_with(library, library.frPyObjects(encoded, 120, 160)))


def test_a_square_covers_the_pixels_between_its_corners():
    mask = rasterize(Polygons(((2.0, 3.0, 5.0, 3.0, 5.0, 4.0, 2.0, 4.0),)), (8, 6))
    assert np.argwhere(mask).tolist() == [[3, 2], [3, 3], [3, 4]]


def test_parts_are_united_and_a_hole_of_runs_stays():
    inner = (4.0, 4.0, 6.0, 4.0, 6.0, 6.0, 4.0, 6.0)
    outer = (2.0, 2.0, 8.0, 2.0, 8.0, 8.0, 2.0, 8.0)
    assert rasterize(Polygons((outer, inner)), (10, 10)).sum() == 36
    with_hole = np.zeros((10, 10), np.uint8)
    with_hole[2:8, 2:8] = 1
    with_hole[4:6, 4:6] = 0
    assert np.array_equal(rasterize(runs_of(with_hole), (10, 10)), with_hole)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_joined_shapes_are_united(orientation):
    shapes = star(40, 50, 20), bitmap_of(np.ones((20, 30)), 100, 60), star(50, 50, 20)
    on = geometry(orientation)
    mask = place_outline(Joined(shapes), on, "stored")
    apart = [place_outline(each, on, "stored") for each in shapes]
    assert np.array_equal(mask, np.maximum.reduce(apart))
    assert np.array_equal(
        rasterize(Joined(shapes), SIZE),
        turn_values(mask, {6: 8, 8: 6}.get(orientation, orientation)),
    )


def test_fractions_are_of_the_annotated_image():
    pixels = Polygons(((16.0, 12.0, 80.0, 12.0, 80.0, 90.0),))
    fractions = Polygons(((0.1, 0.1, 0.5, 0.1, 0.5, 0.75),), fractions=True)
    assert np.array_equal(rasterize(fractions, SIZE), rasterize(pixels, SIZE))


@pytest.mark.parametrize(("left", "top"), [(0, 0), (-5, 3), (150, 110), (-30, -30), (200, 0)])
def test_bitmaps_are_laid_at_their_place_and_cut_at_the_border(left, top):
    part = np.random.default_rng(2).random((20, 15)) < 0.5
    canvas = np.zeros((320, 360), np.uint8)
    canvas[100 + top : 120 + top, 100 + left : 115 + left] = part
    mask = rasterize(bitmap_of(part, left, top), SIZE)
    assert np.array_equal(mask, canvas[100:220, 100:260])


@given(some_pixels, orientations, st.booleans(), frames)
def test_runs_and_bitmaps_turn_exactly(mask, orientation, turned, drawn_on):
    on = geometry(orientation, turned)
    frame = on.frame_size(drawn_on)
    mask = np.ascontiguousarray(mask if frame == SIZE else mask.T)
    expected = mask
    if turned and drawn_on == "stored":
        expected = turn_values(mask, orientation)
    elif not turned and drawn_on == "displayed":
        expected = turn_values(mask, {6: 8, 8: 6}.get(orientation, orientation))
    for shape in (runs_of(mask), bitmap_of(mask)):
        placed = place_outline(shape, on, drawn_on)
        assert placed.shape == on.stored_size[::-1]
        assert placed.flags.c_contiguous
        assert np.array_equal(placed, expected)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_values_turn_as_pillow_turns_images(orientation):
    pixels = np.arange(SIZE[0] * SIZE[1]).reshape(SIZE[1], SIZE[0]).astype(np.int32)
    image = Image.fromarray(pixels)
    image.getexif()[0x0112] = orientation
    stream = io.BytesIO()
    image.save(stream, "TIFF", exif=image.getexif())
    turned = Image.open(io.BytesIO(stream.getvalue()))
    turned.load()
    assert np.array_equal(turn_values(pixels, orientation), np.asarray(turned))


@given(st.lists(parts, min_size=1, max_size=2), orientations, st.booleans(), frames)
def test_polygons_of_turned_images_are_drawn_before_they_turn(polygons, orientation, turned, frame):
    on = geometry(orientation, turned)
    shape = Polygons(tuple(polygons))
    drawn = rasterize(shape, on.frame_size(frame))
    assert np.array_equal(place_outline(shape, on, frame), turn_values(drawn, on.turn_from(frame)))


RESIZED = [
    (Resize(longest=96), (96, 72)),
    (Resize(exact=(128, 128), fit="pad"), (128, 128)),
    (Resize(exact=(128, 112), fit="crop"), (112, 128)),
    (Resize(exact=(90, 400), fit="pad"), (400, 90)),
    (Resize(exact=(240, 320), fit="crop"), (320, 240)),
]


@pytest.mark.parametrize(("resize", "stored"), RESIZED)
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("drawn_on", ["displayed", "stored"])
def test_resized_polygons_are_where_the_pixels_are(resize, stored, orientation, drawn_on):
    on = geometry(orientation)
    if resize.exact is None and orientation >= 5:
        stored = stored[::-1]
    on = replace(on, resize=resize, stored_size=stored)
    width, height = on.frame_size(drawn_on)
    shape = star(0.45 * width, 0.55 * height, 40)
    moved_first = place_outline(shape, on, drawn_on)
    drawn_first = place_values(rasterize(shape, (width, height)), on, drawn_on)
    assert moved_first.shape == drawn_first.shape == stored[::-1]
    assert drawn_first.sum() > 1_000
    assert overlap(moved_first, drawn_first) >= 0.95


@given(some_pixels, st.integers(1, 300), st.integers(1, 300))
def test_pixels_are_resized_to_the_nearest(mask, width, height):
    on = geometry(resize=Resize(longest=max(width, height)), stored=(width, height))
    columns = [(2 * place + 1) * SIZE[0] // (2 * width) for place in range(width)]
    rows = [(2 * place + 1) * SIZE[1] // (2 * height) for place in range(height)]
    assert np.array_equal(place_outline(runs_of(mask), on, "displayed"), mask[rows][:, columns])


@given(some_pixels, st.sampled_from([(40, 30), (80, 60), (160, 60), (320, 240)]))
def test_pixels_are_resized_as_pillow_does(mask, size):
    on = geometry(resize=Resize(longest=max(size)), stored=size)
    expected = Image.fromarray(mask).resize(size, Image.Resampling.NEAREST)
    assert np.array_equal(place_outline(runs_of(mask), on, "displayed"), np.asarray(expected))


def test_a_crop_takes_the_middle_and_padding_is_outside():
    mask = np.ones((120, 160), np.uint8)
    mask[:, :40] = 0
    cropped = geometry(resize=Resize(exact=(60, 60), fit="crop"), stored=(60, 60))
    assert place_outline(runs_of(mask), cropped, "displayed")[0].tolist() == [0] * 10 + [1] * 50
    padded = geometry(resize=Resize(exact=(80, 80), fit="pad"), stored=(80, 80))
    placed = place_outline(runs_of(mask), padded, "displayed")
    assert placed[:, 40].tolist() == [0] * 10 + [1] * 60 + [0] * 10
    ids = place_values(mask.astype(np.uint16) * 300, padded, "displayed", padding=255)
    assert ids[:, 40].tolist() == [255] * 10 + [300] * 60 + [255] * 10


def test_a_polygon_beyond_its_image_does_not_reach_into_the_padding():
    padded = geometry(resize=Resize(exact=(80, 80), fit="pad"), stored=(80, 80))
    beyond = Polygons(((-90.0, -90.0, 250.0, -90.0, 250.0, 250.0, -90.0, 250.0),))
    assert (
        place_outline(beyond, padded, "displayed")[:, 40].tolist() == [0] * 10 + [1] * 60 + [0] * 10
    )


def test_the_size_of_a_mask_says_on_which_image_it_was_drawn():
    sideways = geometry(6)
    assert find_frame((160, 120), sideways, "displayed") == "stored"
    assert find_frame((120, 160), sideways, "stored") == "displayed"
    upside_down = geometry(3)
    assert find_frame((160, 120), upside_down, "stored") == "stored"
    with pytest.raises(OutlineError, match="mask_size: the mask has 80 x 60 pixels") as caught:
        find_frame((80, 60), sideways, "displayed")
    assert caught.value.reason == "mask_size"


MILLION = tuple(float(number % 97) for number in range(2_000_000))


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        (Polygons(()), "bad_polygon"),
        (Polygons(((1.0, 2.0, 3.0, 4.0),)), "bad_polygon"),
        (Polygons(((1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0),)), "bad_polygon"),
        (Polygons(((1.0, math.nan, 3.0, 4.0, 5.0, 6.0),)), "bad_polygon"),
        (Polygons(((1.0, math.inf, 3.0, 4.0, 5.0, 6.0),)), "bad_polygon"),
        (Polygons(((0.0, 0.0, 1e9, 0.0, 0.0, 1e9),)), "bad_polygon"),
        (Polygons(((1e300, 0.0, 1e300, 1.0, 1e300, 2.0),)), "bad_polygon"),
        (Polygons(((0.0, 0.0, 6e7, 6e7, 0.0, 6e7),)), "bad_polygon"),
        (Polygons((MILLION,)), "bad_polygon"),
        (Runs((160, 121), (160 * 121,)), "mask_size"),
        (Runs((30_000, 30_000), (900_000_000,)), "mask_size"),
        (Runs(SIZE, (160 * 120 + 1,)), "bad_rle"),
        (Runs(SIZE, (160 * 120 - 1,)), "bad_rle"),
        (Runs(SIZE, (160 * 120 + 5, -5)), "bad_rle"),
        (Runs(SIZE, (2**62, 2**62, 2**62, 2**62, 160 * 120)), "bad_rle"),
        (Runs(SIZE, ()), "bad_rle"),
        (Bitmap(0, 0, b"no image"), "bad_mask"),
        (Bitmap(0, 0, b"\x89PNG\r\n\x1a\n"), "bad_mask"),
        (bitmap_of(np.ones((121, 10), np.uint8)), "mask_size"),
    ],
)
def test_hostile_outlines_are_refused(shape, reason):
    for place in (
        rasterize,
        lambda shape, size: place_outline(shape, geometry(size=size), "stored"),
    ):
        with pytest.raises(OutlineError) as caught:
            place(shape, SIZE)
        assert caught.value.reason == reason
        assert "\n" not in caught.value.detail


def test_enlarging_cannot_make_a_border_too_long_to_follow():
    enlarged = geometry(resize=Resize(exact=(6_000, 8_000), fit="pad"), stored=(8_000, 6_000))
    zigzag = tuple(float(side) for step in range(3_000) for side in (step % 160, 119 * (step % 2)))
    with pytest.raises(OutlineError, match="its border is longer than 800,000 pixels"):
        place_outline(Polygons((zigzag,)), enlarged, "displayed")
