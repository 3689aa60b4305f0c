"""Mask files are read and written without a change of any value."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from recordmill.imaging.geometry import turn_values
from recordmill.imaging.masks.mask_file import decode_mask, encode_values, pack_color
from recordmill.imaging.masks.mask_values import read_gray
from recordmill.imaging.masks.outline import OutlineError

MOST = 1_000, 1_000


def save(image, kind="PNG", **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def some_values(most, dtype=np.uint8):
    return np.random.default_rng(1).integers(0, most, (31, 45), dtype, endpoint=True)


def png_of_rows(rows, width, bits, color_type):
    """A PNG of rows of packed samples, in forms that Pillow does not write."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, len(rows), bits, color_type, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    chunks = chunk(b"IHDR", header), chunk(b"IDAT", pixels), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def gray_png(values, bits):
    """A gray PNG of few bits."""
    height, width = values.shape
    digits = (values[..., None] >> np.arange(bits - 1, -1, -1) & 1).astype(np.uint8)
    packed = np.packbits(digits.reshape(height, -1), axis=1)
    return png_of_rows([row.tobytes() for row in packed], width, bits, 0)


def palette_image(values, transparency=None):
    image = Image.fromarray(values)
    image = image.convert("L")
    image.putpalette([channel for number in range(256) for channel in (number, 255 - number, 7)])
    if transparency is not None:
        image.info["transparency"] = transparency
    return image


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "BMP"])
def test_gray_values_stay(kind):
    values = some_values(255)
    assert np.array_equal(decode_mask(save(Image.fromarray(values), kind), MOST).values, values)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_values_of_16_bits_stay(kind):
    values = some_values(65_535, np.uint16)
    assert np.array_equal(decode_mask(save(Image.fromarray(values), kind), MOST).values, values)


def test_values_of_32_bits_stay():
    values = some_values(2**31 - 1, np.int32)
    assert np.array_equal(decode_mask(save(Image.fromarray(values), "TIFF"), MOST).values, values)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "BMP"])
def test_one_bit_is_0_or_1(kind):
    values = some_values(1).astype(bool)
    assert np.array_equal(decode_mask(save(Image.fromarray(values), kind), MOST).values, values)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize("transparency", [None, 1])
def test_a_palette_gives_its_indices(bits, transparency):
    values = some_values(2**bits - 1)
    data = save(palette_image(values, transparency), bits=bits)
    assert np.array_equal(decode_mask(data, MOST).values, values)


@pytest.mark.parametrize("bits", [2, 4])
def test_gray_of_few_bits_is_not_stretched(bits):
    values = some_values(2**bits - 1)
    assert np.array_equal(decode_mask(gray_png(values, bits), MOST).values, values)


@pytest.mark.parametrize("alpha", [False, True])
def test_colors_are_one_number_each(alpha):
    channels = np.random.default_rng(1).integers(0, 255, (31, 45, 3 + alpha), np.uint8)
    values = decode_mask(save(Image.fromarray(channels)), MOST).values
    red, green, blue = channels[3, 4, :3].tolist()
    assert values[3, 4] == pack_color(red, green, blue) == red + 256 * green + 65_536 * blue
    assert len(np.unique(values)) == len(np.unique(channels[..., :3].reshape(-1, 3), axis=0))


def test_gray_with_alpha_gives_the_gray_values():
    values = some_values(255)
    image = Image.merge("LA", (Image.fromarray(values), Image.new("L", (45, 31), 3)))
    assert np.array_equal(decode_mask(save(image), MOST).values, values)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_file_with_an_orientation_is_upright(kind, orientation):
    values, exif = some_values(255), Image.Exif()
    exif[0x0112] = orientation
    mask = decode_mask(save(Image.fromarray(values), kind, exif=exif), MOST)
    assert np.array_equal(mask.values, turn_values(values, orientation))
    assert mask.is_turned == (orientation != 1)


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        (Image.new("F", (4, 4)), "TIFF"),
        (Image.new("CMYK", (4, 4)), "TIFF"),
        (Image.new("RGB", (4, 4)), "WEBP"),
    ],
)
def test_other_pixels_and_formats_are_refused(image, kind):
    with pytest.raises(OutlineError, match="bad_mask"):
        decode_mask(save(image, kind), MOST)


def test_colors_of_16_bits_are_refused():
    with pytest.raises(OutlineError, match="bad_mask: the mask has pixels of the form RGB;16B"):
        decode_mask(png_of_rows([bytes(12)] * 2, 2, 16, 2), MOST)


@pytest.mark.parametrize("cut", [8, 30, 60])
def test_damaged_files_are_refused(cut):
    with pytest.raises(OutlineError, match="bad_mask") as caught:
        decode_mask(save(Image.fromarray(some_values(255)))[:cut], MOST)
    assert "\n" not in caught.value.detail


def test_a_mask_that_is_too_large_is_not_decoded(monkeypatch):
    monkeypatch.setattr("recordmill.imaging.masks.mask_file.decode_first_frame", None)
    data = save(Image.new("1", (4_000, 4_000)), compress_type=3, compress_level=1)
    with pytest.raises(OutlineError, match="mask_size: the mask has 4000 x 4000 pixels"):
        decode_mask(data, MOST)


@pytest.mark.parametrize(("dtype", "mode"), [(np.uint8, "L"), (np.uint16, "I;16")])
def test_values_are_written_as_gray_png(dtype, mode):
    values = some_values(np.iinfo(dtype).max, dtype)
    data = encode_values(values)
    opened = Image.open(io.BytesIO(data))
    assert (opened.format, opened.mode, opened.info) == ("PNG", mode, {})
    assert np.array_equal(np.asarray(opened), values)
    assert np.array_equal(decode_mask(data, MOST).values, values)
    assert encode_values(values.T.copy().T) == data  # in any order of memory


def test_a_mask_takes_less_than_pillow_makes_by_default():
    rows, columns = np.ogrid[:480, :640]
    mask = ((rows - 200) ** 2 + (columns - 300) ** 2 < 100**2).astype(np.uint8)
    assert len(encode_values(mask)) < len(save(Image.fromarray(mask)))


def test_gifs_have_the_colors_of_their_palette():
    ids = np.random.default_rng(9).integers(0, 200, (16, 24), np.uint8)
    stream = io.BytesIO()
    Image.fromarray(ids).save(stream, "GIF")
    decoded = decode_mask(stream.getvalue(), (24, 16))
    assert np.array_equal(read_gray(decoded.values), ids)
    assert not decoded.has_colors


@pytest.mark.parametrize(("color", "expected"), [((9, 9, 9), False), ((128, 0, 0), True)])
def test_colors_are_distinguished_from_gray(color, expected):
    assert decode_mask(save(Image.new("RGB", (3, 2), color)), MOST).has_colors == expected
    palette = Image.new("P", (3, 2), 1)
    palette.putpalette([0, 0, 0, *color])
    assert not decode_mask(save(palette), MOST).has_colors
