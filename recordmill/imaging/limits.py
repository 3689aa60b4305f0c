"""Checks before anything is decoded: size in bytes, format, size in pixels, and the work that a file can cause.

Some structures make Pillow take many small steps in Python.
"""

import io
import re
import struct
from itertools import islice

from recordmill.imaging.png_soundness import find_chunks
from recordmill.imaging.sniff import sniff, sniff_other
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.images import OPTIONAL_FORMATS, ImageSettings


def accepted_format(data: bytes, settings: ImageSettings) -> str:
    """The file's format, one of `settings.formats`.

    Raises:
        Rejected: `empty`, `too_many_bytes`, `unknown_format` or `format_not_allowed`.
    """
    if not data:
        raise Rejected("decode", "empty", "no bytes")
    if len(data) > settings.max_bytes:
        raise Rejected("decode", "too_many_bytes", f"{len(data):,} bytes; max_bytes is {settings.max_bytes:,}")
    found = sniff(data)
    if found in settings.formats:
        return found
    other = found or sniff_other(data)
    if other is None:
        text = re.match(rb"[ -~]{4,24}", data)  # a page, a table, a pointer of Git LFS
        shown = f" ({text[0].decode()!r})" if text else ""
        raise Rejected("decode", "unknown_format", f"unknown format: the file begins with {data[:8].hex(' ')}{shown}")
    remedy = f"; to accept it, add {other} to images.formats" if other in OPTIONAL_FORMATS else ""
    accepted = f"{other}; accepted are {', '.join(settings.formats)}{remedy}"
    raise Rejected("decode", "format_not_allowed", accepted)


def check_size(width: int, height: int, settings: ImageSettings) -> None:
    """Rejects images whose header announces too many pixels.

    Raises:
        Rejected: `bad_header`, `side_too_long` or `too_many_pixels`.
    """
    if width < 1 or height < 1:
        raise Rejected("decode", "bad_header", f"{width} x {height} pixels")
    if max(width, height) > settings.max_side:
        raise Rejected("decode", "side_too_long", f"{width} x {height} pixels; max_side is {settings.max_side:,}")
    if width * height > settings.max_pixels:
        raise Rejected("decode", "too_many_pixels", f"{width} x {height} pixels; max_pixels is {settings.max_pixels:,}")


# The number of reads that Pillow may make: it needs a few for each chunk of a PNG, strip of a TIFF or byte of a PPM's
# header. GIFs may have fewer, since each read of a comment copies what was read of it before. BMPs need one per run.
_MAX_READS = {"GIF": 2**15, "BMP": 2**22}
_MAX_READS_ELSEWHERE = 2**19

_MAX_PROFILES = 1_000  # in a PNG, which should have one; each may unpack to a megabyte
_MAX_EMPTY_BYTES = 2**24  # of a PNG's packed pixels, beyond twice what they unpack to
_MAX_PNG_PIXEL_BYTES = 8  # four channels of 16 bits
_MAX_RUN_LENGTH_PIXELS = 2**25  # of a run-length encoded BMP, which is filled pixel by pixel

# A TIFF has at most 65,500 rows in four planes, so this is also the largest number of strips.
_MAX_VALUES = 2**18
_MAX_ENTRIES = 2**16
_MAX_SHARED_BYTES = 2**26
_DIRECTORIES = (34665, 34853, 40965)  # tags of those that Pillow reads: Exif, GPS, interoperability
_VALUE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}  # by type


class CountedReads(io.BytesIO):
    """A file that may be read a limited number of times: further reads raise Rejected `too_much_work`."""

    def __init__(self, data: bytes, file_format: str) -> None:
        super().__init__(data)
        self._format = file_format
        self._reads = 0
        self._max_reads = _MAX_READS.get(file_format, _MAX_READS_ELSEWHERE)

    def read(self, size: int | None = -1, /) -> bytes:
        """Reads like any file, and counts."""
        self._reads += 1
        if self._reads > self._max_reads:
            raise Rejected("decode", "too_much_work", f"{self._format}: more than {self._max_reads:,} pieces")
        return super().read(size)


def check_structure(data: bytes, file_format: str) -> None:
    """Rejects, as `too_much_work` and before Pillow opens them, files that cause much work with few reads."""
    if file_format == "TIFF":
        check_directories(data)
    elif file_format == "PNG" and len(data) > 2**20 and (profiles := data.count(b"iCCP")) > _MAX_PROFILES:
        raise Rejected("decode", "too_much_work", f"PNG: {profiles:,} profiles")


def check_runs(width: int, height: int) -> None:
    """Rejects a run-length encoded BMP that is too large to be filled pixel by pixel, as `too_much_work`."""
    if width * height > _MAX_RUN_LENGTH_PIXELS:
        raise Rejected("decode", "too_much_work", f"BMP: {width} x {height} pixels, run-length encoded")


def check_packed_pixels(data: bytes, width: int, height: int) -> None:
    """Rejects a PNG whose compressed pixels are far larger than its pixels, because of empty blocks (RFC 1951).

    Raises:
        Rejected: `too_much_work`.
    """
    if len(data) <= _MAX_EMPTY_BYTES:
        return
    chunks = islice(find_chunks(data), _MAX_READS_ELSEWHERE)
    packed = sum(end - begin - 12 for kind, begin, end in chunks if kind == b"IDAT")
    if packed > _MAX_EMPTY_BYTES + 2 * _MAX_PNG_PIXEL_BYTES * width * height:
        raise Rejected("decode", "too_much_work", f"PNG: {packed:,} bytes of {width} x {height} pixels")


def check_directories(data: bytes) -> None:
    """Rejects directories (TIFF 6.0, section 2) whose values share bytes, and so add up to far more than the file.

    Args:
        data: a TIFF, or Exif without its prefix.

    Raises:
        Rejected: `too_much_work`. Damage is left to Pillow.
    """
    order = "<" if data[:2] == b"II" else ">"
    big = data[2:3] == b"+"
    start, count, entry = (struct.Struct(order + form) for form in (("Q", "Q", "HHQQ") if big else ("I", "H", "HHII")))
    try:
        waiting = [start.unpack_from(data, 8 if big else 4)[0]]
    except struct.error:
        return
    seen: set[int] = set()
    shared = entries = 0
    while waiting:
        position = waiting.pop()
        if position in seen or position + count.size > len(data):
            continue
        seen.add(position)
        first = position + count.size
        last = min(first + count.unpack_from(data, position)[0] * entry.size, len(data) - entry.size + 1)
        for place in range(first, last, entry.size):
            tag, kind, values, value = entry.unpack_from(data, place)
            size = values * _VALUE_BYTES.get(kind, 0)
            entries += 1
            shared += max(0, min(size, len(data) - value)) if size > start.size else 0
            if entries > _MAX_ENTRIES or shared > 2 * len(data) + _MAX_SHARED_BYTES:
                raise Rejected("decode", "too_much_work", "directories (TIFF, Exif) of more values than bytes")
            if values > _MAX_VALUES and _VALUE_BYTES.get(kind, 1) > 1:
                raise Rejected("decode", "too_much_work", f"directories (TIFF, Exif): {values:,} values of tag {tag}")
            if tag in _DIRECTORIES:
                waiting.append(value)
