"""Estimates how long the scans of a JPEG take to decode, from their headers and lengths.

Measured on noise on one core of a server: in files that only decoders see, 12 MB/s for scans that
refine coefficients, 30 MB/s for first ones; and 3 ns for each pixel that a scan visits.
"""

import re

from recordmill.imaging.jpeg_header import MAX_SEGMENTS, WITHOUT_LENGTH, JpegHeader

MAX_SECONDS = 8.0
"""The most that scans may take, so that an image takes less than ten seconds."""

_SECONDS_PER_PIXEL = 3e-9
_REFINING, _FIRST, _ARITHMETIC = 1 / 12e6, 1 / 30e6, 1 / 8e6  # seconds for each byte
_SCAN = re.compile(rb"\xff\xda")
_MARKER, _END = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]"), 0xD9  # other than restarts
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


def find_end(data: bytes, scan_start: int) -> int:
    """Returns where the image ends, after its last scan; all of the data if no marker says so.

    Other pictures, videos or metadata may follow. The marker of the end inside a segment between
    two scans is data.

    Args:
        data: the file.
        scan_start: the offset of the first scan's marker.
    """
    position = scan_start
    for _ in range(MAX_SEGMENTS):
        found = _MARKER.search(data, position)
        if found is None:
            break
        position, marker = found.end(), data[found.end() - 1]
        if marker == _END:
            return position
        if marker not in WITHOUT_LENGTH:
            position += max(2, int.from_bytes(data[position : position + 2], "big"))
    return len(data)


def _refines(data: bytes, start: int) -> bool:
    """Returns whether a scan refines coefficients.

    Its header's last byte has their earlier precision.
    """
    end = start + 2 + int.from_bytes(data[start + 2 : start + 4], "big")
    return end <= len(data) and data[end - 1] >> 4 > 0
