import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from recordmill.imaging import acceptance
from recordmill.imaging.acceptance import (
    accepted_format,
    check_packed_pixels,
    check_size,
    is_sound_png,
    sniff,
    sniff_other,
)
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.images import ImageSettings


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM"])
def test_what_pillow_writes_is_recognized(photo, save, file_format):
    assert sniff(save(photo, file_format)) == file_format


@pytest.mark.parametrize(
    ("start", "file_format"),
    [
        (b"GIF87a", "GIF"),
        (b"MM\0*", "TIFF"),
        (b"II+\0", "TIFF"),
        (b"P1\n", "PPM"),
        (b"P4#", "PPM"),
        (b"Pf\n", "PPM"),
    ],
)
def test_rarer_beginnings(start, file_format):
    assert sniff(start + bytes(40)) == file_format


@pytest.mark.parametrize(
    "start", [b"", b"\xff\xd8", b"RIFF____WAVE", b"Please", b"P7\n", b"GIF88a", b"\x89PNG\n"]
)
def test_other_beginnings_are_not(start):
    assert sniff(start) is None


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"8BPS\0\1", "PSD"),
        (b"\0\0\2" + bytes(13) + b"\x18\0", "TGA"),
        (b"%PDF-1.7", "PDF"),
        (b"\0\0\2\0\1\0\x20\x20", "CUR"),
        (b"icns\0\0\x9b\xa2", "ICNS"),
        (b"\1\xda\1\1", "SGI"),
        (b"\n\5\1\x08", "PCX"),
        (b"LinS", "MSP"),
        (b"GRIB\0\0\2\1", "GRIB"),
        (b"\xb1\x68\xde\x3a", "DCX"),
        (b"\x59\xa6\x6a\x95", "SUN"),
        (b"\xd7\xcd\xc6\x9a", "WMF"),
        (b"/* XPM */\n", "XPM"),
        (b"#define im_width 16\n", "XBM"),
        (b"BLP2", "BLP"),
        (b"hello, world and all", None),
    ],
)
def test_known_formats_have_names(start, name):
    assert sniff_other(start) == name


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"\0\0\0\x1cftypavif", "AVIF"),
        (b"\0\0\0\x1cftypavis", "AVIF"),
        (b"\0\0\0\x20ftypmif1\0\0\0\0mif1miafavif", "AVIF"),
        (b"\0\0\0\x1cftypmif1\0\0\0\0mif1heic", "HEIC"),
        (b"\0\0\0\x1cftypheic", "HEIC"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", "JPEG2000"),
        (b"\xff\x4f\xff\x51", "JPEG2000"),
    ],
)
def test_optional_formats(start, name):
    assert sniff(start) == name


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty"),
        (b"\xff\xd8\xff" + bytes(98), "too_many_bytes"),
        (b"what is this?", "unknown_format"),
        (b"8BPS", "format_not_allowed"),
        (b"GIF89a", "format_not_allowed"),
    ],
)
def test_files(data, code):
    with pytest.raises(Rejected) as caught:
        accepted_format(data, ImageSettings(max_bytes=100, formats=("JPEG", "PNG")))
    assert caught.value.reason == code


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"<html>\n<body>", "3c 68 74 6d 6c 3e 0a 3c ('<html>')"),
        (
            b"version https://git-lfs.github.com/spec/v1",
            "76 65 72 73 69 6f 6e 20 ('version https://git-lfs.')",
        ),
        (b"abc\0", "61 62 63 00"),
        (b"\0abcdefgh", "00 61 62 63 64 65 66 67"),
    ],
)
def test_what_begins_as_text_is_shown_as_text_too(data, shown):
    with pytest.raises(Rejected) as caught:
        accepted_format(data, ImageSettings())
    assert caught.value.detail == f"unknown format: the file begins with {shown}"


@pytest.mark.parametrize(
    ("data", "name"),
    [(b"....ftypavif", "AVIF"), (b"....ftypheic", "HEIC"), (b"\xff\x4f\xff\x51", "JPEG2000")],
)
def test_the_setting_that_accepts_a_file_is_named(data, name):
    with pytest.raises(Rejected) as caught:
        accepted_format(data, ImageSettings(formats=("JPEG", "PNG")))
    assert (
        caught.value.detail
        == f"{name}; accepted are JPEG, PNG; to accept it, add {name} to images.formats"
    )
    assert accepted_format(data, ImageSettings(formats=(name,))) == name


def test_allowed_files():
    assert accepted_format(b"\xff\xd8\xff" + bytes(97), ImageSettings(max_bytes=100)) == "JPEG"


@pytest.mark.parametrize(
    ("size", "code"),
    [((0, 5), "bad_header"), ((101, 1), "side_too_long"), ((100, 21), "too_many_pixels")],
)
def test_sizes(size, code):
    settings = ImageSettings(max_side=100, max_pixels=2_000)
    check_size(100, 20, settings)
    with pytest.raises(Rejected) as caught:
        check_size(*size, settings)
    assert caught.value.reason == code


def chunk(kind, body=b""):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def header(width=8, height=8, depth=8, color=0, compression=0, filtering=0, interlace=0):
    return chunk(
        b"IHDR",
        struct.pack(">IIBBBBB", width, height, depth, color, compression, filtering, interlace),
    )


ROWS = zlib.compress(bytes(8 * 9))
PIXELS, TEXT, END = chunk(b"IDAT", ROWS), chunk(b"tEXt", b"a\0b"), chunk(b"IEND")
HALVES = chunk(b"IDAT", ROWS[:5]), chunk(b"IDAT", ROWS[5:])


def is_sound(*chunks):
    return is_sound_png(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
@pytest.mark.parametrize("size", [(1, 1), (13, 7), (64, 65)])
def test_what_pillow_writes_is_sound(save, mode, size, monkeypatch):
    monkeypatch.setattr(acceptance, "_PIECE", 100)
    assert is_sound_png(save(Image.new(mode, size), "PNG"))


@pytest.mark.parametrize(
    "chunks",
    [
        (header(), PIXELS, END),
        (header(), TEXT, *HALVES, TEXT, END),
        (header(), chunk(b"PLTE", bytes(3)), PIXELS, END),
        (header(), PIXELS, END, b"anything"),
    ],
)
def test_sound(chunks):
    assert is_sound(*chunks)


@pytest.mark.parametrize(
    "chunks",
    [
        (),
        (header(), PIXELS),
        (header(), PIXELS, END[:-1]),
        (header(), PIXELS[:-1] + b"\0", END),
        (header(), TEXT[:-1] + b"\0", PIXELS, END),
        (TEXT, header(), PIXELS, END),
        (header(), header(), PIXELS, END),
        (header(), chunk(b"ABCD"), PIXELS, END),
        (header(), PIXELS, chunk(b"PLTE", bytes(3)), END),
        (header(), HALVES[0], TEXT, HALVES[1], END),
        (header(), HALVES[0], END),
        (header(), chunk(b"IDAT", b"?" + ROWS[1:]), END),
        (header(), chunk(b"IDAT", ROWS[:-1] + b"x"), END),
        (header(height=9), PIXELS, END),
        (header(height=7), PIXELS, END),
        (header(width=9), PIXELS, END),
        (header(color=1), PIXELS, END),
        (header(compression=1), PIXELS, END),
        (header(filtering=1), PIXELS, END),
        (header(interlace=2), PIXELS, END),
        (chunk(b"IHDR", bytes(14)), PIXELS, END),
    ],
)
def test_not_sound(chunks):
    assert not is_sound(*chunks)


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (5, 1), (8, 8), (9, 17)])
@pytest.mark.parametrize("bits", [1, 4, 24])
def test_interlaced_rows_are_those_of_seven_pictures(size, bits):
    passes = [
        (np.s_[0::8, 0::8]),
        (np.s_[0::8, 4::8]),
        (np.s_[4::8, 0::4]),
        (np.s_[0::4, 2::4]),
        (np.s_[2::4, 0::2]),
    ]
    passes += [np.s_[0::2, 1::2], np.s_[1::2, 0::1]]
    width, height = size
    parts = [np.zeros((height, width))[part].shape for part in passes]
    rows = b"".join(bytes(1 + -(-across * bits // 8)) * down for down, across in parts if across)
    color, depth = {1: (0, 1), 4: (0, 4), 24: (2, 8)}[bits]
    top = header(width, height, depth, color, interlace=1)
    assert is_sound(top, chunk(b"IDAT", zlib.compress(rows)), END)
    assert not is_sound(top, chunk(b"IDAT", zlib.compress(rows[1:])), END)


def test_pixels_that_a_png_only_claims_to_have_do_not_count_as_work(save):
    data = save(Image.new("L", (2, 2)), "PNG")
    at = data.index(b"IDAT") - 4
    check_packed_pixels(data[:at] + (2**30).to_bytes(4, "big") + data[at + 4 :], 2, 2)
