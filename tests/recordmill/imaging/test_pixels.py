import hashlib

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from recordmill.imaging import pixels
from recordmill.imaging.pixels import copy_pixels, count_channels, digest_pixels, moments, to_image, to_raster


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


def test_the_digest_of_pixels_is_as_documented():
    image = Image.new("RGB", (200, 100), (1, 2, 3))
    block = bytes((1, 2, 3, 255)) * 2**14
    sums = (crc32c(block).to_bytes(4, "little"), crc32c(block[: 4 * 20_000 - 2**16]).to_bytes(4, "little"))
    expected = hashlib.sha256(b"RGB 200 100 6\n" + b"".join(sums)).hexdigest()
    assert digest_pixels(image, 6) == digest_pixels(to_raster(image), 6) == expected
    palette = image.quantize(4)
    assert digest_pixels(palette, 1) == digest_pixels(palette.convert("RGBA"), 1)
    assert digest_pixels(to_raster(image.convert("L")), 1) == digest_pixels(image.convert("L"), 1)


@pytest.mark.parametrize("kind", ["pixel", "orientation", "size", "mode"])
def test_images_that_look_different_have_other_digests(photo, kind):
    before, orientation = digest_pixels(photo, 1), 1 + (kind == "orientation")
    if kind == "pixel":
        photo.putpixel((95, 63), tuple(255 - each for each in photo.getpixel((95, 63))))
    elif kind == "size":
        photo = Image.frombytes("RGB", photo.size[::-1], photo.tobytes())
    elif kind == "mode":
        photo = photo.convert("L")
    assert digest_pixels(photo, orientation) != before


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
