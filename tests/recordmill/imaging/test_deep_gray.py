"""Gray images of 16 bits that are kept."""

import io

import numpy as np
import pytest
from PIL import Image

from recordmill.imaging import ImageSettings, Resize, prepare_image
from recordmill.imaging.geometry import turn_values
from recordmill.schemas.errors import SettingError

VALUES = (np.arange(80, dtype=np.uint16) * 819).reshape(8, 10)


def encode(values=VALUES, kind="PNG", orientation=1, **options):
    stream = io.BytesIO()
    if orientation != 1:
        options["exif"] = Image.Exif()
        options["exif"][0x0112] = orientation
    Image.fromarray(values).save(stream, kind, **options)
    return stream.getvalue()


def settings(**given):
    return ImageSettings(depth=16, store="png", **given)


def read(prepared):
    image = Image.open(io.BytesIO(prepared.encoded))
    assert image.mode == "I;16"
    assert (image.height, image.width) == (prepared.height, prepared.width)
    assert prepared.channels == 1
    return np.asarray(image)


def test_a_png_of_16_bits_is_copied():
    prepared = prepare_image(encode(), settings())
    assert prepared.encoded == encode()
    assert (prepared.changes, prepared.losses) == ((), {})


@pytest.mark.parametrize("kind", ["TIFF", "PPM"])
def test_other_formats_become_png_with_the_same_values(kind):
    prepared = prepare_image(encode(kind=kind), settings())
    assert np.array_equal(read(prepared), VALUES)
    assert (prepared.format, prepared.changes) == ("PNG", ("reencoded",))


def test_big_endian_values_are_read():
    image = Image.frombytes("I;16B", (10, 8), VALUES.astype(">u2").tobytes())
    stream = io.BytesIO()
    image.save(stream, "TIFF")
    assert np.array_equal(read(prepare_image(stream.getvalue(), settings())), VALUES)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_values_are_turned(kind, orientation):
    prepared = prepare_image(encode(kind=kind, orientation=orientation), settings())
    assert np.array_equal(read(prepared), turn_values(VALUES, orientation))
    assert ("rotated" in prepared.changes) == (orientation != 1)


@pytest.mark.parametrize(
    "resize",
    [
        Resize(longest=5),
        Resize(shortest=4),
        Resize(exact=(4, 4)),
        Resize(exact=(12, 12), fit="pad"),
    ],
    ids=str,
)
def test_resizing_is_that_of_8_bits(resize):
    smooth = np.add.outer(np.arange(40) * 800, np.arange(50) * 600).astype(np.uint16)
    high = (smooth >> 8).astype(np.uint8)
    given = {"resize": resize, "background": (40, 40, 40)}
    deep = read(prepare_image(encode(smooth), settings(**given)))
    stream = io.BytesIO(prepare_image(encode(high), ImageSettings(store="png", **given)).encoded)
    usual = np.asarray(Image.open(stream))
    assert deep.shape == usual.shape
    assert np.abs(deep / 257 - usual.astype(float)).max() <= 1.5


def test_other_images_keep_8_bits():
    color = encode(np.zeros((8, 10, 3), np.uint8))
    assert prepare_image(color, settings()).encoded == color
    floats = encode(np.linspace(0, 1, 80, dtype=np.float32).reshape(8, 10), "TIFF")
    prepared = prepare_image(floats, settings())
    assert Image.open(io.BytesIO(prepared.encoded)).mode == "L"
    assert "depth_reduced" in prepared.changes


def test_functions_and_hashes_see_the_high_byte():
    prepared = prepare_image(
        encode(), settings(moments=True, near_duplicates=True), keep_pixels=True
    )
    assert np.array_equal(prepared.raster[:, :, 0], VALUES >> 8)
    high = (VALUES >> 8).astype(np.uint8)
    usual = prepare_image(
        encode(high), ImageSettings(store="png", moments=True, near_duplicates=True)
    )
    assert prepared.moments == usual.moments
    assert prepared.difference_hash == usual.difference_hash


def test_damaged_files_are_rejected_as_before():
    from recordmill.schemas.rejection import Rejected

    with pytest.raises(Rejected) as raised:
        prepare_image(encode()[:-30], settings())
    assert raised.value.reason in ("truncated", "decode_error")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"store": "jpeg"}, "is 16, and images are stored as jpeg: set images.store to png"),
        ({"store": "raw"}, "is 16, and images are stored as raw: set images.store to png"),
        ({"bits": 12}, "chooses 8 of 16 bits, and images.depth is 16: remove one of them"),
        ({"grayscale": "expand"}, "three channels of 8 bits, and images.depth is 16"),
        ({"function": "a:b"}, "changes pixels of 8 bits, and images.depth is 16"),
        ({"reencode": "never"}, "needs re-encoding, and images.reencode is never"),
    ],
)
def test_contradictions_are_refused(given, said):
    with pytest.raises(SettingError, match=said):
        ImageSettings(depth=16, **given)
