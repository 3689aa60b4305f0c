import numpy as np
import pytest

from transforms.imaging.pixels import count_channels, moments, to_image, to_raster


@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("RGB", 3)])
def test_images_and_rasters_hold_the_same_pixels(photo, mode, channels):
    image = photo.convert(mode)
    raster = to_raster(image)
    assert raster.shape == (64, 96, 1 if mode == "L" else 4)
    assert count_channels(raster) == channels
    assert to_image(raster) == image
    values = np.asarray(image).reshape(-1, channels).astype(int)
    assert moments(raster) == tuple(zip(values.sum(0).tolist(), (values**2).sum(0).tolist(), strict=True))


def test_moments_are_exact_beyond_32_bits():
    assert moments(np.full((400, 400, 1), 255, np.uint8)) == ((160_000 * 255, 160_000 * 255**2),)
