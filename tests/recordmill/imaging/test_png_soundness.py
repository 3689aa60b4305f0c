import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from recordmill.imaging import png_soundness
from recordmill.imaging.png_soundness import is_sound_png


def chunk(kind, body=b""):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def header(width=8, height=8, depth=8, colour=0, compression=0, filtering=0, interlace=0):
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, compression, filtering, interlace))


ROWS = zlib.compress(bytes(8 * 9))
PIXELS, TEXT, END = chunk(b"IDAT", ROWS), chunk(b"tEXt", b"a\0b"), chunk(b"IEND")
HALVES = chunk(b"IDAT", ROWS[:5]), chunk(b"IDAT", ROWS[5:])


def is_sound(*chunks):
    return is_sound_png(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
@pytest.mark.parametrize("size", [(1, 1), (13, 7), (64, 65)])
def test_what_pillow_writes_is_sound(save, mode, size, monkeypatch):
    monkeypatch.setattr(png_soundness, "_PIECE", 100)
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
        (header(colour=1), PIXELS, END),
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
    passes = [(np.s_[0::8, 0::8]), (np.s_[0::8, 4::8]), (np.s_[4::8, 0::4]), (np.s_[0::4, 2::4]), (np.s_[2::4, 0::2])]
    passes += [np.s_[0::2, 1::2], np.s_[1::2, 0::1]]
    width, height = size
    parts = [np.zeros((height, width))[part].shape for part in passes]
    rows = b"".join(bytes(1 + -(-across * bits // 8)) * down for down, across in parts if across)
    colour, depth = {1: (0, 1), 4: (0, 4), 24: (2, 8)}[bits]
    top = header(width, height, depth, colour, interlace=1)
    assert is_sound(top, chunk(b"IDAT", zlib.compress(rows)), END)
    assert not is_sound(top, chunk(b"IDAT", zlib.compress(rows[1:])), END)
