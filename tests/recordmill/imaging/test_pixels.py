import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from recordmill.imaging import pixels
from recordmill.imaging.pixels import copy_pixels, count_channels, moments, to_image, to_raster


@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("RGB", 3)])
def test_images_and_rasters_hold_the_same_pixels(photo, mode, channels):
    image = photo.convert(mode)
    raster = to_raster(image)
    assert raster.shape == (64, 96, 1 if mode == "L" else 4)
    assert count_channels(raster) == channels
    assert to_image(raster) == image
    assert to_image(raster[:, :, :channels].copy()) == image
    copy = copy_pixels(raster)
    assert np.array_equal(copy, np.asarray(image).reshape(64, 96, channels))
    copy[:] = 0  # whoever is given it may write into it
    assert to_image(raster) == image
    values = np.asarray(image).reshape(-1, channels).astype(int)
    assert moments(raster) == tuple(zip(values.sum(0).tolist(), (values**2).sum(0).tolist(), strict=True))


@given(
    st.tuples(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3, 4])).flatmap(
        lambda shape: arrays.arrays(np.uint8, shape)
    ),
    st.integers(1, 50),
    st.integers(1, 257),
)
def test_moments_do_not_hang_on_how_pixels_are_taken_together(raster, line, lines):
    values = raster.reshape(-1, raster.shape[2]).astype(int)[:, : count_channels(raster)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pixels, "_LINE", line)
        patch.setattr(pixels, "_LINES", lines)
        assert moments(raster) == tuple(zip(values.sum(0).tolist(), (values**2).sum(0).tolist(), strict=True))


@pytest.mark.parametrize("shape", [(66_000, 1, 1), (1, 66_000, 1), (66_000, 3, 4)])
def test_moments_of_long_sides(shape):
    count = shape[0] * shape[1]
    assert moments(np.full(shape, 255, np.uint8)) == ((count * 255, count * 255**2),) * (3 if shape[2] == 4 else 1)


def test_moments_are_exact_beyond_32_bits():
    assert moments(np.full((400, 400, 1), 255, np.uint8)) == ((160_000 * 255, 160_000 * 255**2),)
