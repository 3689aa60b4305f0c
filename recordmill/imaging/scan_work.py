"""Estimates how long the scans of a JPEG take to decode, from their headers and lengths.

Measured on noise on one core of a server: in files that only decoders see, 12 MB/s for scans that
refine coefficients, 30 MB/s for first ones; and 3 ns for each pixel that a scan visits.
"""

import re

from recordmill.imaging.jpeg_header import JpegHeader

MAX_SECONDS = 8.0
"""The most that scans may take, so that an image takes less than ten seconds."""

_SECONDS_PER_PIXEL = 3e-9
_REFINING, _FIRST, _ARITHMETIC = 1 / 12e6, 1 / 30e6, 1 / 8e6  # seconds for each byte
_SCAN = re.compile(rb"\xff\xda")
_ARITHMETIC_CODING = 0xC9  # the first of the frame headers


def estimate_seconds(data: bytes, header: JpegHeader, scans: int) -> float:
    """Returns about how long it takes to decode all scans.

    Args:
        data: the file.
        header: its header.
        scans: the number of scans, at most `pixels.MAX_SCANS`.
    """
    visits = scans * header.width * header.height * _SECONDS_PER_PIXEL
    size = len(data) - header.scan_start
    if header.process >= _ARITHMETIC_CODING:
        return visits + size * _ARITHMETIC
    most = visits + size * _REFINING
    if most <= MAX_SECONDS / 2:
        return most
    starts = [match.start() for match in _SCAN.finditer(data, header.scan_start)]
    lengths = [end - start for start, end in zip(starts, [*starts[1:], len(data)], strict=True)]
    return visits + sum(
        length * (_REFINING if _refines(data, start) else _FIRST)
        for start, length in zip(starts, lengths, strict=True)
    )


def _refines(data: bytes, start: int) -> bool:
    """Whether a scan refines coefficients: its header's last byte has their earlier precision."""
    end = start + 2 + int.from_bytes(data[start + 2 : start + 4], "big")
    return end <= len(data) and data[end - 1] >> 4 > 0
