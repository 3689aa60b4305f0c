"""Images of 16 bits per channel whose values use fewer: `images.bits`, and what is lost without."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from recordmill.imaging import ImageSettings, prepare_image
from recordmill.schemas.rejection import Rejected

GRAY = (np.arange(40 * 50).reshape(40, 50) * 2 + 91).astype(np.uint16)  # 91 to 4,089
COLORS = np.stack([GRAY, GRAY[::-1], GRAY[:, ::-1]], 2)
HALF = np.stack([GRAY, np.full_like(GRAY, 65_535)], 2)  # gray and opaque


def png(samples, interlaced=False):
    """A PNG of 16 bits, as the standard says, with each row filtered in another way."""
    channels = samples.shape[2] if samples.ndim == 3 else 1
    height, width = samples.shape[:2]
    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    passes = [samples]
    if interlaced:
        starts = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4))
        starts += ((1, 0, 2, 2), (0, 1, 1, 2))
        passes = [samples[top::down, left::across] for left, top, across, down in starts]
    raw = bytearray()
    for part in passes:
        rows = part.astype(">u2").reshape(part.shape[0], -1).view(np.uint8).astype(np.int16)
        before = np.zeros(rows.shape[1:], np.int16)
        for number, row in enumerate(rows):
            left = np.concatenate([np.zeros(2 * channels, np.int16), row[: -2 * channels]])
            guess = [0 * row, left, before, (left + before) // 2][kind := number % 4]
            raw += bytes([kind]) + (row - guess).astype(np.uint8).tobytes()
            before = row
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 16, color, 0, 0, interlaced)),
        (b"IDAT", zlib.compress(bytes(raw))),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


def tiff(samples, order="<", depth=16, planar=False, compression="raw"):
    """An uncompressed TIFF of 16 bits per channel, or a packed one that Pillow writes."""
    if compression != "raw":
        file = io.BytesIO()
        Image.fromarray(samples).save(file, "TIFF", compression=compression)
        return file.getvalue()
    height, width = samples.shape[:2]
    channels = samples.shape[2] if samples.ndim == 3 else 1
    planes = [samples]
    if planar:
        planes = [samples[:, :, channel] for channel in range(channels)]
    head = b"II*\0" if order == "<" else b"MM\0*"
    body, offsets = bytearray(head + bytes(4)), []
    sizes = []
    for plane in planes:
        offsets.append(len(body))
        body += plane.astype(order + "u2").tobytes()
        sizes.append(len(body) - offsets[-1])

    def several(form, numbers):
        if len(numbers) == 1:
            return numbers[0]
        body.extend(struct.pack(order + form * len(numbers), *numbers))
        return len(body) - struct.calcsize(form) * len(numbers)

    entries = [
        (256, 4, 1, width),
        (257, 4, 1, height),
        (258, 3, channels, several("H", [depth] * channels)),
        (259, 3, 1, 1),
        (262, 3, 1, 2 if channels > 2 else 1),
        (273, 4, len(offsets), several("I", offsets)),
        (277, 3, 1, channels),
        (278, 4, 1, height),
        (279, 4, len(sizes), several("I", sizes)),
        (284, 3, 1, 2 if planar else 1),
    ]
    struct.pack_into(order + "I", body, 4, len(body))
    body += struct.pack(order + "H", len(entries))
    for tag, kind, count, value in entries:
        body += struct.pack(order + "HHI", tag, kind, count)
        body += struct.pack(order + ("H2x" if kind == 3 and count == 1 else "I"), value)
    return bytes(body + bytes(4))


def pnm(samples, largest=65_535):
    kind = b"P6" if samples.ndim == 3 else b"P5"
    height, width = samples.shape[:2]
    return kind + b" %d %d %d\n" % (width, height, largest) + samples.astype(">u2").tobytes()


def stored(data, bits=None):
    image = prepare_image(data, ImageSettings(store="raw", bits=bits))
    array = np.frombuffer(image.encoded, np.uint8).reshape(image.height, image.width, -1)
    return array[:, :, 0] if array.shape[2] == 1 else array, image


FILES = {
    "png": png(GRAY),
    "png, interlaced": png(GRAY, interlaced=True),
    "png, gray and alpha": png(HALF),
    "png, gray and alpha, interlaced": png(HALF, interlaced=True),
    "png, colors": png(COLORS),
    "png, colors, interlaced": png(COLORS, interlaced=True),
    "png, colors and alpha": png(np.dstack([COLORS, np.full_like(GRAY, 65_535)])),
    "tiff": tiff(GRAY),
    "tiff, big-endian": tiff(GRAY, ">"),
    "tiff, packed": tiff(GRAY, compression="tiff_lzw"),
    "tiff, deflated": tiff(GRAY, compression="tiff_adobe_deflate"),
    "tiff, colors": tiff(COLORS),
    "tiff, colors, big-endian": tiff(COLORS, ">"),
    "tiff, planes": tiff(COLORS, planar=True),
    "tiff, planes, big-endian": tiff(COLORS, ">", planar=True),
    "pgm": pnm(GRAY),
    "ppm": pnm(COLORS),
}


def expected(name, values):
    """The image's own form: gray and alpha are stored as color, as Pillow loads them."""
    if "gray and alpha" in name:
        return np.repeat(values[:, :, None], 3, 2)
    return values


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("bits", [12, 13, 15])
def test_the_highest_8_of_the_bits_are_stored(name, bits):
    samples = COLORS if "color" in name or "planes" in name or name == "ppm" else GRAY
    pixels, image = stored(FILES[name], bits)
    assert np.array_equal(pixels, expected(name, samples >> (bits - 8)))
    assert "depth_reduced" in image.changes
    assert image.losses == {}


@pytest.mark.parametrize("name", [name for name in FILES if name != "ppm"])
@pytest.mark.parametrize("bits", [None, 16])
def test_the_high_byte_is_stored_otherwise(name, bits):
    samples = COLORS if "color" in name or "planes" in name else GRAY
    pixels, image = stored(FILES[name], bits)
    assert np.array_equal(pixels, expected(name, samples >> 8))
    assert "depth_reduced" in image.changes
    assert image.losses == ({"brightest": 15} if bits is None else {})


@pytest.mark.parametrize("name", FILES)
def test_a_larger_value_rejects_the_image(name):
    with pytest.raises(Rejected) as caught:
        stored(FILES[name], 11)
    assert caught.value.reason == "value_too_large"
    assert caught.value.detail == "a value is 4,089, and images.bits is 11: at most 2,047"


def test_each_number_of_bits_holds_its_largest_value():
    for bits in range(9, 17):
        largest = np.full((4, 4), 2**bits - 1, np.uint16)
        for samples in (largest, np.dstack([largest] * 3)):
            assert (stored(png(samples), bits)[0] == 255).all()
        if bits < 16:
            with pytest.raises(Rejected, match="value_too_large"):
                stored(png(largest + 1), bits)


def test_transparency_of_fewer_bits_follows_the_colors():
    alpha = np.full_like(GRAY, 4_095)
    assert np.array_equal(stored(png(np.dstack([COLORS, alpha])), 12)[0], COLORS >> 4)


def test_a_transparent_color_keeps_its_place():
    data = png(COLORS)
    at = data.index(b"IDAT") - 4
    body = struct.pack(">HHH", *COLORS[0, 0])
    chunk = struct.pack(">I", 6) + b"tRNS" + body + struct.pack(">I", zlib.crc32(b"tRNS" + body))
    pixels, image = stored(data[:at] + chunk + data[at:], 12)
    assert pixels[0, 0].tolist() == [255, 255, 255]
    assert "flattened" in image.changes


@pytest.mark.parametrize("order", ["<", ">"])
def test_planes_of_a_tiff_are_read_with_their_depth(order):
    bright = COLORS * 16 + 5
    assert np.array_equal(stored(tiff(bright, order, planar=True))[0], bright >> 8)


def test_values_whose_range_is_declared_are_not_affected():
    data = pnm(GRAY, 4_095)
    plain, image = stored(data)
    assert np.array_equal(plain, np.rint(GRAY / 4_095 * 65_535).astype(np.uint16) >> 8)
    assert image.losses == {}
    assert np.array_equal(stored(data, 12)[0], plain)
    jpeg2000 = io.BytesIO()
    Image.fromarray(GRAY * 16).save(jpeg2000, "JPEG2000")
    settings = ImageSettings(formats=("JPEG2000",), store="raw", bits=None)
    assert prepare_image(jpeg2000.getvalue(), settings).losses == {"brightest": 255}


def test_a_tiff_of_12_bits_is_not_dark():
    packed = bytearray()
    for first, second in GRAY.reshape(-1, 2).tolist():
        packed += bytes([first >> 4, (first & 15) << 4 | second >> 8, second & 255])
    data = bytearray(tiff(GRAY, depth=12))
    data[8 : 8 + len(packed)] = packed
    pixels, image = stored(bytes(data))
    assert np.array_equal(pixels, GRAY >> 4)
    assert image.losses == {}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0.0, 0.5, 1.0], {"as_0_to_1": 1}),
        ([0.0, 200.0, 255.0], {"as_0_to_255": 1}),
        ([0.0, 2_000.0, 60_000.0], {"as_0_to_65535": 1}),
        ([-1.0, 0.0, 1.0], {"stretched": 1}),
        ([0.0, 1e6, 1e7], {"stretched": 1}),
        ([np.nan, 0.5, np.inf], {"as_0_to_1": 1}),
        ([np.nan, 0.0, np.inf], {}),
    ],
)
def test_the_range_that_floats_are_taken_to_have_is_kept(values, kind):
    file = io.BytesIO()
    Image.fromarray(np.array([values], np.float32)).save(file, "TIFF")
    for bits in (None, 12):
        assert stored(file.getvalue(), bits)[1].losses == kind


@pytest.mark.parametrize(
    ("values", "losses", "with_bits"),
    [
        ([0, 100, 255], {"as_0_to_255": 1}, [0, 6, 15]),
        ([0, 500, 4_095], {"brightest": 15}, [0, 31, 255]),
        ([0, 500, 70_000], {"stretched": 1}, "a value is 70,000"),
        ([-5, 0, 100], {"stretched": 1}, "a value is -5"),
    ],
)
def test_integers_of_32_bits_follow_the_setting(values, losses, with_bits):
    file = io.BytesIO()
    Image.fromarray(np.array([values], np.int32)).save(file, "TIFF")
    assert stored(file.getvalue())[1].losses == losses
    if isinstance(with_bits, str):
        with pytest.raises(Rejected, match=with_bits):
            stored(file.getvalue(), 12)
    else:
        assert stored(file.getvalue(), 12)[0].tolist() == [with_bits]


def test_the_pages_of_a_stack_are_counted():
    file = io.BytesIO()
    pages = [Image.new("L", (8, 8), shade) for shade in range(30)]
    pages[0].save(file, "TIFF", save_all=True, append_images=pages[1:])
    image = stored(file.getvalue())[1]
    assert image.losses == {"pages": 29}
    assert image.changes == ("first_frame", "reencoded")


def test_eight_bits_lose_nothing():
    for mode in ("1", "L", "RGB", "RGBA", "P"):
        file = io.BytesIO()
        Image.new(mode, (8, 8)).save(file, "PNG")
        assert stored(file.getvalue(), 12)[1].losses == {}


def test_a_file_that_is_copied_does_not_take_the_setting():
    with pytest.raises(ValueError, match=r"^bits needs re-encoding, and images\.reencode is never"):
        ImageSettings(reencode="never", bits=12)
