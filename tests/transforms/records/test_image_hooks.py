import numpy as np
import pytest

from recordmill.imaging.pixels import to_image, to_raster
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import LeftOut
from recordmill.schemas.settings.dataset import KeepSettings
from recordmill.schemas.settings.images import ImageSettings
from recordmill.transforms.records.image_functions import check_kept, make_hooks, measure_sharpness

RANDOM = np.random.default_rng(7)


@pytest.mark.parametrize("shape", [(3, 3), (3, 9), (40, 31)])
def test_sharpness_is_the_variance_of_the_laplacian(shape):
    gray = RANDOM.integers(0, 256, shape, np.uint8)
    height, width = shape
    kernel = np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]])
    edges = [
        (gray[y - 1 : y + 2, x - 1 : x + 2] * kernel).sum()
        for y in range(1, height - 1)
        for x in range(1, width - 1)
    ]
    assert measure_sharpness(gray) == pytest.approx(np.var(edges))


@pytest.mark.parametrize("shape", [(1, 1), (2, 9), (9, 2)])
def test_an_image_without_inner_pixels_has_no_sharpness(shape):
    assert measure_sharpness(np.zeros(shape, np.uint8)) == 0


def test_the_extremes_do_not_overflow():
    board = (np.indices((400, 400)).sum(0) % 2 * 255).astype(np.uint8)
    assert measure_sharpness(board) == 1020**2


@pytest.mark.parametrize(
    ("keep", "size", "reason"),
    [
        ({"min_side": 10}, (10, 30), ""),
        ({"min_side": 11}, (10, 30), "too_small"),
        ({"min_side": 11}, (30, 10), "too_small"),
        ({"max_aspect": 3}, (10, 30), ""),
        ({"max_aspect": 2.9}, (30, 10), "too_long"),
        ({"max_aspect": 2.9}, (10, 30), "too_long"),
        ({"max_aspect": 1}, (30, 30), ""),
        ({}, (1, 60_000), ""),
    ],
)
def test_filters_of_sizes(keep, size, reason):
    hooks = make_hooks(ImageRef("a", "/a"), ImageSettings(), KeepSettings(**keep))
    assert hooks.change is None
    assert reason_of(lambda: hooks.check_size and hooks.check_size(*size)) == reason


def reason_of(check):
    try:
        check()
    except LeftOut as left_out:
        return left_out.reason
    return ""


NOISE = RANDOM.integers(0, 256, (20, 20, 3), np.uint8)


@pytest.mark.parametrize(
    ("keep", "pixels", "reason"),
    [
        ({"min_brightness": 100}, NOISE, ""),
        ({"min_brightness": 100}, NOISE // 4, "too_dark"),
        ({"min_brightness": 100}, NOISE[:, :, :1] // 4, "too_dark"),
        ({"min_brightness": 255}, np.full((3, 3, 1), 255, np.uint8), ""),
        ({"min_sharpness": 100}, NOISE, ""),
        ({"min_sharpness": 100}, NOISE // 200 * 3, "too_blurred"),
        ({"min_side": 1000}, NOISE, ""),
    ],
)
def test_filters_of_pixels(keep, pixels, reason):
    raster = to_raster(to_image(pixels))
    assert reason_of(lambda: check_kept(raster, KeepSettings(**keep), "a")) == reason
