import numpy as np
import pytest
from PIL import Image

from recordmill.imaging.geometry import jpeg_reduction, resize_image, target_size
from recordmill.schemas.settings.images import Resize


@pytest.mark.parametrize(
    ("size", "resize", "target"),
    [
        ((300, 200), None, (300, 200)),
        ((300, 200), Resize(longest=150), (150, 100)),
        ((200, 300), Resize(longest=150), (100, 150)),
        ((300, 200), Resize(longest=300), (300, 200)),
        ((30, 20), Resize(longest=300), (30, 20)),
        ((5000, 1), Resize(longest=10), (10, 1)),
        ((300, 200), Resize(shortest=100), (150, 100)),
        ((200, 300), Resize(shortest=100), (100, 150)),
        ((300, 200), Resize(shortest=200), (300, 200)),
        ((5000, 10), Resize(shortest=300), (5000, 10)),
        ((5000, 3), Resize(shortest=1), (1667, 1)),
        ((300, 200), Resize(exact=(7, 9)), (9, 7)),
    ],
)
def test_targets(size, resize, target):
    assert target_size(size, resize) == target


@pytest.mark.parametrize(
    ("size", "target", "reduction"),
    [
        ((1600, 1200), (800, 600), 1),
        ((1600, 1200), (400, 300), 2),
        ((1600, 1200), (100, 75), 8),
        ((10, 1600), (10, 100), 1),
    ],
)
def test_jpeg_reductions_leave_twice_the_target(size, target, reduction):
    assert jpeg_reduction(size, target) == reduction


# 120 x 40.
STRIPES = Image.fromarray(
    np.repeat(np.array([[10] * 40 + [100] * 40 + [200] * 40], np.uint8), 40, axis=0)
)


def test_crop_shows_the_middle():
    cropped = resize_image(STRIPES, (20, 20), Resize(exact=(20, 20)), (0, 0, 0))
    assert (cropped.size, cropped.getpixel((10, 10))) == ((20, 20), 100)
    assert cropped.getextrema()[1] < 150


def test_pad_shows_all_on_the_background():
    padded = np.asarray(
        resize_image(STRIPES, (60, 60), Resize(exact=(60, 60), fit="pad"), (77, 77, 77))
    )
    assert padded.shape == (60, 60)
    assert set(padded[:20].ravel()) == set(padded[40:].ravel()) == {77}
    assert [int(padded[30, x]) for x in (5, 30, 55)] == [10, 100, 200]


def test_a_colored_background_makes_gray_color():
    padded = resize_image(STRIPES, (60, 60), Resize(exact=(60, 60), fit="pad"), (255, 0, 0))
    assert (padded.mode, padded.getpixel((0, 0))) == ("RGB", (255, 0, 0))


@pytest.mark.parametrize("size", [(1, 1), (1, 999), (999, 1), (3, 7)])
@pytest.mark.parametrize("fit", ["crop", "pad"])
def test_extreme_shapes_fit_exactly(size, fit):
    assert resize_image(
        Image.new("RGB", size), (5, 4), Resize(exact=(4, 5), fit=fit), (0, 0, 0)
    ).size == (5, 4)
