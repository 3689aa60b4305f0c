"""Pictures whose pixels follow from their names by whole numbers alone.

Never change what is drawn here: every golden in `tests/golden` depends on it. Pillow encodes the
pixels, and requirements.lock pins Pillow with its codecs.
"""

import hashlib
import io
import struct
import zlib
from typing import Any

import numpy as np
from PIL import Image

GRID = 4
"""Random values along each side of a picture, between which its pixels are interpolated."""


def draw_pixels(name: str, width: int = 24, height: int = 16, channels: int = 3) -> bytes:
    """height x width x channels bytes: soft blots with a little grain."""
    noise = np.frombuffer(hashlib.sha512(name.encode()).digest(), np.uint8)[
        : GRID * GRID * channels
    ].astype(np.int64)
    grid = noise.reshape(GRID, GRID, channels)
    rows, columns = _interpolate(height), _interpolate(width)
    smooth = np.einsum("yi,xj,ijc->yxc", rows, columns, grid, optimize=True) >> 16
    y, x, channel = np.ogrid[:height, :width, :channels]
    return np.minimum(smooth + (x * 7 + y * 13 + channel * 5) % 4, 255).astype(np.uint8).tobytes()


def _interpolate(length: int) -> np.ndarray:
    """The share of each of the grid's values in each pixel of a side, in parts of 256."""
    places = np.arange(length) * ((GRID - 1) * 256) // max(length - 1, 1)
    return np.maximum(0, 256 - np.abs(places[:, None] - 256 * np.arange(GRID)))


def draw_image(name: str, size: tuple[int, int] = (24, 16), mode: str = "RGB") -> Image.Image:
    """A picture in one of Pillow's modes of 8 bits, or in 1, P, I;16, I or F."""
    width, height = size
    if mode == "I;16":
        return Image.frombytes(mode, size, draw_pixels(name, width, height, 2))
    if mode == "I":
        values = (
            np.frombuffer(draw_pixels(name, width, height, 1), np.uint8).astype(np.int32) * 70_001
            - 5_000
        )
        return Image.frombytes(mode, size, values.tobytes())
    if mode == "F":
        fractions = (
            np.frombuffer(draw_pixels(name, width, height, 1), np.uint8).astype(np.float32) / 256
        )
        return Image.frombytes(mode, size, fractions.tobytes())
    if mode == "1":
        return Image.frombytes(mode, size, draw_pixels(name, (width + 7) // 8, height, 1))
    if mode == "P":
        image = Image.frombytes(
            "P", size, bytes(each % 16 for each in draw_pixels(name, width, height, 1))
        )
        image.putpalette(draw_pixels(f"colours of {name}", 16, 1, 3))
        return image
    return Image.frombytes(mode, size, draw_pixels(name, width, height, len(mode)))


def encode(image: Image.Image, kind: str, **options: Any) -> bytes:
    """A picture as a file of some format."""
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def draw_jpeg(
    name: str,
    size: tuple[int, int] = (24, 16),
    mode: str = "RGB",
    orientation: int = 1,
    **options: Any,
) -> bytes:
    """A JPEG of quality 90 without subsampled colours, unless `options` say otherwise."""
    exif = {"exif": exif_of(orientation)} if orientation != 1 else {}
    return encode(
        draw_image(name, size, mode),
        "JPEG",
        **{"quality": 90, "subsampling": "4:4:4", **exif, **options},
    )


def draw_png(
    name: str, size: tuple[int, int] = (24, 16), mode: str = "RGB", **options: Any
) -> bytes:
    """A PNG."""
    return encode(draw_image(name, size, mode), "PNG", **options)


def exif_of(orientation: int) -> bytes:
    """Exif metadata that hold an orientation alone."""
    return (
        b"Exif\0\0II*\0\x08\0\0\0\1\0" + struct.pack("<HHII", 0x0112, 3, 1, orientation) + bytes(4)
    )


def swapped_profile() -> bytes:
    """An ICC profile like that of sRGB, but with red and green swapped, and a gamma of 2."""
    curve = b"curv" + struct.pack(">IIH", 0, 1, 2 << 8)
    colours = {
        b"gXYZ": (28578, 14581, 912),
        b"rXYZ": (25241, 46982, 6362),
        b"bXYZ": (9376, 3970, 46799),
    }
    tags = {name: b"XYZ " + struct.pack(">Iiii", 0, *xyz) for name, xyz in colours.items()}
    tags[b"wtpt"] = b"XYZ " + struct.pack(">Iiii", 0, 63190, 65536, 54061)
    return _profile(b"RGB ", tags | {name: curve for name in (b"rTRC", b"gTRC", b"bTRC")})


def gray_profile() -> bytes:
    """An ICC profile of gray with a gamma of 3."""
    white = b"XYZ " + struct.pack(">Iiii", 0, 63190, 65536, 54061)
    return _profile(b"GRAY", {b"kTRC": b"curv" + struct.pack(">IIH", 0, 1, 3 << 8), b"wtpt": white})


def _profile(space: bytes, tags: dict[bytes, bytes]) -> bytes:
    text = b"made for tests"
    tags = tags | {
        b"desc": b"desc"
        + struct.pack(">II", 0, len(text) + 1)
        + text
        + bytes(1 + 4 + 4 + 2 + 1 + 67),
        b"cprt": b"text" + bytes(4) + text + b"\0",
    }
    table, content = b"", b""
    for name, value in sorted(tags.items()):
        table += name + struct.pack(">II", 128 + 4 + 12 * len(tags) + len(content), len(value))
        content += value + bytes(-len(value) % 4)
    body = struct.pack(">I", len(tags)) + table + content
    header = (
        struct.pack(">I", 128 + len(body)) + bytes(4) + b"\x02\x40\0\0" + b"mntr" + space + b"XYZ "
    )
    header += struct.pack(">6H", 2026, 1, 1, 0, 0, 0) + b"acsp" + bytes(28)
    header += struct.pack(">iii", 63190, 65536, 54061)
    return header + bytes(128 - len(header)) + body


def store_in_gzip(content: bytes) -> bytes:
    """A gzip file that holds its content as it is: other versions of zlib would pack it
    differently."""
    blocks = [content[start : start + 65_535] for start in range(0, len(content), 65_535)] or [b""]
    stored = b"".join(
        struct.pack("<BHH", block is blocks[-1], len(block), len(block) ^ 0xFFFF) + block
        for block in blocks
    )
    return (
        b"\x1f\x8b\x08"
        + bytes(6)
        + b"\xff"
        + stored
        + struct.pack("<II", zlib.crc32(content), len(content))
    )
