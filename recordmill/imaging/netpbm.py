"""Reads the samples of PBM, PGM and PPM files with numpy; Pillow uses a Python loop at a microsecond per sample."""

import io
import re

import numpy as np
from numpy.typing import NDArray
from PIL import ImageFile

from recordmill.schemas.rejection import Rejected

_MAX_COMMENTS = 2**20
_PART = 2**24  # bytes of text that are parsed at a time
_COMMENT = re.compile(rb"#[^\r\n]*(?:[\r\n]|\Z)")
_TOO_FEW = "not enough image data"  # in Pillow's words
_SPACES = b" \t\n\r\v\f"
_SPACE = re.compile(rb"\s")
_NUMBERS = re.compile(rb"[0-9\s]*")
_TOO_LONG = re.compile(rb"[0-9]{11}")

Samples = NDArray[np.integer]


def read_samples(opened: ImageFile.ImageFile) -> None:
    """Replaces an opened file's data with the same samples in Pillow's own layout, if Pillow would loop over them.

    Args:
        opened: the file, in memory and not yet loaded.

    Raises:
        Rejected: `too_much_work`, for a million comments.
        ValueError: there are too few samples, or one is not a number up to the file's maximum.
    """
    codec, extents, offset, args = opened.tile[0]
    if codec not in ("ppm", "ppm_plain"):
        return
    assert isinstance(opened.fp, io.BytesIO)
    data = opened.fp.getvalue()
    wanted = opened.width * opened.height * len(opened.getbands())
    if opened.mode == "1":
        packed, layout = _read_bits(_without_comments(data[offset:]), wanted), "1;8"
    else:
        assert isinstance(args, tuple)
        largest = int(args[1])
        if codec == "ppm":
            samples = _read_binary(data, offset, wanted, largest)
        else:
            samples = _read_plain(_without_comments(data[offset:]), wanted, largest)
        packed, layout = _scale(samples, largest, opened.mode), "I;16B" if opened.mode == "I" else opened.mode
    opened.fp = io.BytesIO(packed)
    opened.tile = [ImageFile._Tile("raw", extents, 0, (layout, 0, 1))]


def _without_comments(text: bytes) -> bytes:
    if text.count(b"#") > _MAX_COMMENTS:
        raise Rejected("decode", "too_much_work", f"PPM: more than {_MAX_COMMENTS:,} comments")
    return _COMMENT.sub(b"", text)


def _read_bits(text: bytes, wanted: int) -> bytes:
    """Zeros are white; they need no space between them."""
    bits = text.translate(None, _SPACES)
    if bits.translate(None, b"01"):
        raise ValueError("a bit is neither 0 nor 1")
    if len(bits) < wanted:
        raise ValueError(_TOO_FEW)
    return bits[:wanted].translate(bytes.maketrans(b"01", b"\xff\0"))


def _read_binary(data: bytes, offset: int, wanted: int, largest: int) -> Samples:
    kind = np.dtype(np.uint8 if largest < 256 else ">u2")
    available = (len(data) - offset) // kind.itemsize
    if available < wanted:
        raise ValueError(_TOO_FEW)
    return np.frombuffer(data, kind, wanted, offset)


def _read_plain(text: bytes, wanted: int, largest: int) -> Samples:
    """Decimal numbers between spaces; anything may follow the last one needed."""
    samples = np.empty(wanted, np.uint16)
    found = position = 0
    while found < wanted and position < len(text):
        space = _SPACE.search(text, position + _PART)
        end = space.start() if space else len(text)
        match = _NUMBERS.match(text, position, end)
        assert match is not None  # an empty text matches too
        numbers = match[0] if match.end() == end else match[0].rstrip(b"0123456789")
        if _TOO_LONG.search(numbers):
            raise ValueError("a sample has more than ten digits")
        values = np.fromstring(numbers, np.int64, sep=" ")[: wanted - found]
        if len(values) < wanted - found and match.end() < end:
            raise ValueError("a sample is not a number")
        if np.max(values, initial=0) > largest:
            raise ValueError(f"a sample is larger than {largest}")
        samples[found : found + len(values)] = values
        found, position = found + len(values), end
    if found < wanted:
        raise ValueError(_TOO_FEW)
    return samples


def _scale(samples: Samples, largest: int, mode: str) -> bytes:
    """Scales 0 to `largest` to the whole range of 8 bits, or 16 in mode I, rounding half to even."""
    white = 65_535 if mode == "I" else 255
    values = np.arange(65_536 if largest > 255 else 256)
    table = np.minimum(np.rint(values / largest * white), white).astype(">u2" if mode == "I" else np.uint8)
    return table[samples].tobytes()
