"""Reads the header of a JPEG, up to its first scan (ITU-T T.81, annex B), without decoding it."""

import re
import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Literal

from recordmill.imaging.acceptance import check_directories
from recordmill.imaging.exif import find_orientation, has_position, is_turned_sideways
from recordmill.schemas.rejection import Rejected

_SOI, _EOI, _SOS = 0xD8, 0xD9, 0xDA
# SOF0 to SOF15 without DHT, JPG, DAC.
_FRAME_HEADERS = frozenset(range(0xC0, 0xD0)) - {
    0xC4,
    0xC8,
    0xCC,
}
WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD8)})
"""Markers without a segment: TEM, RST0 to RST7."""

# Except for reserved markers.
_WITH_LENGTH = frozenset(range(0xC0, 0xFF)) - WITHOUT_LENGTH - {_SOI, _EOI}
# APP0 to APP15, COM: libjpeg accepts any length of these.
_SKIPPED_BY_ALL = frozenset({*range(0xE0, 0xF0), 0xFE})
# Any number of 0xFF may precede a marker; 0xFF00 is not a marker.
_MARKER = re.compile(rb"\xff[^\x00\xff]")
SEGMENT = struct.Struct(">BBH")  # 0xFF, the marker, the segment's length including these two bytes
_APP0, _APP1, _APP2, _APP13, _APP14 = 0xE0, 0xE1, 0xE2, 0xED, 0xEE
# The segments that are read; all others are skipped.
_READ = _FRAME_HEADERS | {
    _APP0,
    _APP1,
    _APP2,
    _APP13,
    _APP14,
}
_HUFFMAN_DCT = frozenset({0xC0, 0xC1, 0xC2})  # baseline, extended sequential, progressive

Subsampling = Literal["4:4:4", "4:2:2", "4:2:0", "4:4:0", "4:1:1"]
"""A chroma subsampling that libjpeg-turbo can encode."""

# The factors by which chroma is reduced, across and down.
_SUBSAMPLINGS: dict[tuple[float, float], Subsampling] = {
    (2, 1): "4:2:2",
    (2, 2): "4:2:0",
    (1, 2): "4:4:0",
    (4, 1): "4:1:1",
}
_TURNED: dict[Subsampling, Subsampling] = {"4:2:2": "4:4:0", "4:4:0": "4:2:2", "4:1:1": "4:2:0"}

DECODING = _FRAME_HEADERS | {0xC4, 0xCC, 0xDB, 0xDD}
"""The markers of frame headers, tables and restarts."""

_EXIF = b"Exif\0"
_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_ICC = b"ICC_PROFILE\0"

# Readers in Python take a microsecond for each segment and each stray byte, and copy all of Exif
# for each part of it. Real headers have about twenty segments, at most 4,096 full ones in 256 MiB,
# and Exif of at most a few parts.
MAX_SEGMENTS = 131_072
MAX_STRAY_BYTES = 2**20
MAX_EXIF_BYTES = 2**24


class Soundness(IntEnum):
    """Whether all readers can be expected to read a header."""

    PLAIN = 0
    """Consecutive segments that every reader skips."""
    UNUSUAL = 1
    """Stray bytes, or a segment that some reader may fail on."""
    MALFORMED = 2
    """A segment shorter than its own length field."""


@dataclass(slots=True)
class JpegHeader:
    """The frame header and the metadata that affect how the image looks.

    Attributes:
        process: the frame header's marker, 0xC0 (baseline) to 0xCF.
        precision: bits per sample.
        height: height of the stored image in pixels, at least 1.
        width: width of the stored image in pixels, at least 1.
        components: 1 gray, 3 color, 4 CMYK.
        subsampling: of the stored image's colors. Gray, which has none, counts as 4:2:0; a rare
            sampling that cannot be encoded counts as 4:4:4, which loses nothing.
        orientation: 1 to 8, see `imaging.exif`.
        icc_profile: None if there is none, or only part of one.
        has_position: whether Exif or XMP has a GPS position.
        scan_start: the offset of the first scan's marker.
        soundness: whether readers other than libjpeg can be expected to read it.
    """

    process: int
    precision: int
    height: int
    width: int
    components: int
    subsampling: Subsampling
    orientation: int
    icc_profile: bytes | None
    has_position: bool
    scan_start: int
    soundness: Soundness

    @property
    def is_widely_readable(self) -> bool:
        """Returns whether every JPEG reader in the field decodes it.

        Such a JPEG is an 8-bit Huffman-coded DCT, gray or of three components.
        """
        return self.process in _HUFFMAN_DCT and self.precision == 8 and self.components in (1, 3)

    @property
    def upright_subsampling(self) -> Subsampling:
        """`subsampling` of the image after it is rotated as `orientation` requires."""
        turned = is_turned_sideways(self.orientation)
        if turned:
            return _TURNED.get(self.subsampling, self.subsampling)
        return self.subsampling


def read_jpeg_header(data: bytes) -> JpegHeader:
    """Reads everything before the first scan.

    It is as lenient as libjpeg: it skips bytes between segments, and unknown segments.

    Raises:
        Rejected: `truncated` if the data end before the first scan, `too_much_work` if there is far
            more before it than in any real file, otherwise `bad_header`.
    """
    segments, scan_start, soundness = read_segments(data, _READ)
    if soundness is Soundness.PLAIN and not _are_plain(segments):
        soundness = Soundness.UNUSUAL
    frames = [
        (marker, *_read_frame(payload)) for marker, payload in segments if marker in _FRAME_HEADERS
    ]
    if len(frames) != 1:
        raise Rejected(
            "decode", "bad_header", f"JPEG: {len(frames)} frame headers before the first scan"
        )
    metadata = [payload for marker, payload in segments if marker == _APP1]
    exif = [payload for payload in metadata if payload.startswith(_EXIF)]
    orientation = 1
    if metadata:
        xmp = next((payload for payload in metadata if payload.startswith(_XMP)), b"")
        orientation = find_orientation(next(iter(exif), b""), xmp)
    located = any(map(has_position, metadata))
    return JpegHeader(
        *frames[0], orientation, _icc_profile(segments), located, scan_start, soundness
    )


def check_exif(data: bytes) -> None:
    """Rejects a JPEG whose Exif takes Pillow far longer than any real file's.

    Pillow joins all parts. Other decoders ignore them, so that this is checked only for Pillow.

    Raises:
        Rejected: `too_much_work`, or as `read_jpeg_header` does.
    """
    segments, _, _ = read_segments(data, frozenset({_APP1}))
    exif = [payload for _, payload in segments if payload.startswith(_EXIF)]
    if len(exif) < 2:
        return
    if sum(map(len, exif)) > MAX_EXIF_BYTES:
        raise Rejected(
            "decode", "too_much_work", f"JPEG: more than {MAX_EXIF_BYTES:,} bytes of Exif"
        )
    check_directories(b"".join(part[6:] for part in exif))


def read_segments(
    data: bytes, kept: frozenset[int]
) -> tuple[list[tuple[int, bytes]], int, Soundness]:
    """Returns the segments to keep, the offset of the first scan's marker, and the soundness.

    Each segment is a marker and a payload.

    Raises:
        Rejected: as `read_jpeg_header` does.
    """
    segments: list[tuple[int, bytes]] = []
    position, stray, size, soundness = 2, 0, len(data), Soundness.PLAIN
    for _ in range(MAX_SEGMENTS):
        start = position + SEGMENT.size
        if start <= size:
            fill, marker, length = SEGMENT.unpack_from(data, position)
        else:
            fill, marker, length = 0, 0, 0
        end = position + 2 + length
        if fill != 0xFF or marker not in _WITH_LENGTH or length < 2 or end > size:
            marker, start, end = _search_segment(data, position)
            stray += start - 4 - position
            position = start - 4
            if stray > MAX_STRAY_BYTES:
                break
            is_malformed = start == end and data[start - 1] < 2
            if is_malformed:
                soundness = Soundness.MALFORMED
            else:
                soundness = max(soundness, Soundness.UNUSUAL)
        if marker in kept:
            segments.append((marker, data[start:end]))
        elif marker == _SOS:
            return segments, position, soundness
        position = end
    raise Rejected(
        "decode", "too_much_work", "JPEG: too many segments or stray bytes before the first scan"
    )


def _search_segment(data: bytes, position: int) -> tuple[int, int, int]:
    """Returns the next marker after any stray bytes, and the start and end of its payload.

    The search is as lenient as libjpeg.
    """
    found = _MARKER.search(data, position)
    if found is None or found[0][1] == _EOI:
        raise Rejected("decode", "truncated", "JPEG: ends before its first scan")
    marker, start = found[0][1], found.end() + 2
    if marker == _SOI:
        raise Rejected(
            "decode", "bad_header", "JPEG: a second start of image before the first scan"
        )
    if marker in WITHOUT_LENGTH:
        return marker, start, start - 2
    length = int.from_bytes(data[start - 2 : start], "big")
    if start + max(length - 2, 0) > len(data):
        raise Rejected("decode", "truncated", "JPEG: ends inside a header segment")
    if length < 2 and marker not in _SKIPPED_BY_ALL:
        raise Rejected("decode", "bad_header", "JPEG: a segment shorter than its own length field")
    return marker, start, start + max(length - 2, 0)


def _are_plain(segments: list[tuple[int, bytes]]) -> bool:
    """Returns whether Pillow is sure to open a file.

    Pillow reads more of some segments than libjpeg, and fails if they are cut. It reads Exif only
    for the resolution, if JFIF does not have it.
    """
    has_resolution = False
    for marker, payload in segments:
        match marker:
            case 0xE0:
                has_resolution |= (
                    payload.startswith(b"JFIF")
                    and payload[7:8] in (b"\1", b"\2")
                    and len(payload) >= 12
                )
                if len(payload) < 7:
                    return False
            case 0xE1 if payload.startswith(_EXIF) and not has_resolution:
                return False
            case 0xE2 if payload.startswith(b"MPF\0") or (
                payload.startswith(_ICC) and len(payload) < len(_ICC) + 2
            ):
                return False
            case 0xED if payload[-6:-2] == b"8BIM":  # only the number of a Photoshop resource
                return False
            case 0xEE if len(payload) < 7:
                return False
    return True


def _read_frame(payload: bytes) -> tuple[int, int, int, int, Subsampling]:
    """Returns precision, height, width, components, subsampling."""
    if len(payload) < 6 or len(payload) != 6 + 3 * payload[5]:
        raise Rejected(
            "decode", "bad_header", "JPEG: the frame header's length does not fit its components"
        )
    precision, height, width, components = struct.unpack_from(">BHHB", payload)
    if not height or not width or not components:
        raise Rejected(
            "decode", "bad_header", f"JPEG: {width} x {height} pixels, {components} components"
        )
    return precision, height, width, components, _read_subsampling(components, payload[7:16:3])


@lru_cache(64)  # nearly all files have one of a few values
def _read_subsampling(components: int, factors: bytes) -> Subsampling:
    if components < 3:
        if components == 1:
            return "4:2:0"
        return "4:4:4"
    (across, down), *colors = [(both >> 4, both & 15) for both in factors]
    if colors[0] != colors[1] or 0 in colors[0]:
        return "4:4:4"
    return _SUBSAMPLINGS.get((across / colors[0][0], down / colors[0][1]), "4:4:4")


def _icc_profile(segments: list[tuple[int, bytes]]) -> bytes | None:
    """Returns the profile, joined from its chunks, or None if it is incomplete.

    Chunks have up to 64 KB, and each has its number and their count (ICC.1, B.4).
    """
    bodies = [
        payload[len(_ICC) :]
        for marker, payload in segments
        if marker == _APP2 and payload.startswith(_ICC)
    ]
    chunks = {body[0]: body[2:] for body in bodies if len(body) > 2}
    if not chunks or sorted(chunks) != list(range(1, bodies[0][1] + 1)):
        return None
    return b"".join(chunks[number] for number in sorted(chunks))
