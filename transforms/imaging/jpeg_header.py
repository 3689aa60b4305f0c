"""What a JPEG says about itself before its first scan (ITU-T T.81, annex B), read without decoding anything."""

import struct
from dataclasses import dataclass
from typing import Literal

from recordmill.transforms.imaging.bad_image import BadImage
from recordmill.transforms.imaging.orientation import find_orientation, is_turned_sideways

_SOI, _EOI, _SOS = 0xD8, 0xD9, 0xDA
_FRAME_HEADERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # SOF0 to SOF15 without DHT, JPG, DAC
_WITHOUT_LENGTH = frozenset({0x00, 0x01, *range(0xD0, 0xD8)})  # a stuffed zero, TEM, RST0 to RST7
_WITH_LENGTH = frozenset(range(0x02, 0xFF)) - _WITHOUT_LENGTH - {_SOI, _EOI, _SOS}
_SEGMENT = struct.Struct(">BBH")  # 0xFF, the marker, the length of what follows with these two bytes
_APP1, _APP2 = 0xE1, 0xE2
_READ = _FRAME_HEADERS | {_APP1, _APP2}  # what is looked into; tables and comments are only stepped over
_HUFFMAN_DCT = frozenset({0xC0, 0xC1, 0xC2})  # baseline, extended sequential, progressive

Subsampling = Literal["4:4:4", "4:2:2", "4:2:0", "4:4:0", "4:1:1"]
"""How many samples of colour a JPEG has for its samples of brightness, as libjpeg-turbo can encode it."""

# By how many times fewer samples of colour there are, across and down.
_SUBSAMPLINGS: dict[tuple[float, float], Subsampling] = {
    (2, 1): "4:2:2",
    (2, 2): "4:2:0",
    (1, 2): "4:4:0",
    (4, 1): "4:1:1",
}
_TURNED: dict[Subsampling, Subsampling] = {"4:2:2": "4:4:0", "4:4:0": "4:2:2", "4:1:1": "4:2:0"}

_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_ICC = b"ICC_PROFILE\0"


@dataclass(slots=True)
class JpegHeader:
    """The frame header and the metadata that change how the picture looks.

    Attributes:
        process: the frame header's marker, 0xC0 (baseline) to 0xCF.
        precision: bits a sample.
        height: of the stored picture in pixels, at least 1.
        width: likewise.
        components: 1 gray, 3 colour, 4 CMYK.
        subsampling: of the stored picture's colours. Gray, which has none, counts as 4:2:0; a rare sampling that cannot
            be encoded counts as 4:4:4, which loses nothing.
        orientation: 1 to 8, see `transforms.imaging.orientation`.
        icc_profile: None where there is none, or not all of it.
        scan_start: where in the file the first scan's marker stands.
    """

    process: int
    precision: int
    height: int
    width: int
    components: int
    subsampling: Subsampling
    orientation: int
    icc_profile: bytes | None
    scan_start: int

    @property
    def is_widely_readable(self) -> bool:
        """Whether every JPEG reader in the field decodes it: 8-bit Huffman-coded DCT, gray or three components."""
        return self.process in _HUFFMAN_DCT and self.precision == 8 and self.components in (1, 3)

    @property
    def upright_subsampling(self) -> Subsampling:
        """`subsampling` of the picture once it is turned as `orientation` asks for."""
        turned = is_turned_sideways(self.orientation)
        return _TURNED.get(self.subsampling, self.subsampling) if turned else self.subsampling

    @property
    def is_progressive(self) -> bool:
        """Whether the picture comes in many scans over all of it."""
        return self.process in (0xC2, 0xC6, 0xCA, 0xCE)


def read_jpeg_header(data: bytes) -> JpegHeader:
    """Reads everything before the first scan.

    As lenient as libjpeg: bytes between segments are skipped, and unknown segments too.

    Raises:
        BadImage: `truncated` where the data end before the first scan, else `bad_header`.
    """
    segments, scan_start = _header_segments(data)
    frames = [(marker, *_read_frame(payload)) for marker, payload in segments if marker in _FRAME_HEADERS]
    if len(frames) != 1:
        raise BadImage("bad_header", f"JPEG: {len(frames)} frame headers before the first scan")
    exif = _first(segments, _APP1, b"Exif\0")
    xmp = _first(segments, _APP1, _XMP)
    return JpegHeader(*frames[0], find_orientation(exif, xmp), _icc_profile(segments), scan_start)


def _header_segments(data: bytes) -> tuple[list[tuple[int, bytes]], int]:
    """Markers and payloads of what is read, up to the first scan, and where in the file its marker stands."""
    segments, position = _adjacent_segments(data)
    marker, position = _next_marker(data, position)
    while marker != _SOS:
        if marker == _SOI:
            raise BadImage("bad_header", "JPEG: a second start of image before the first scan")
        if marker == _EOI:
            raise BadImage("truncated", "JPEG: ends before its first scan")
        if marker not in _WITHOUT_LENGTH:
            start, position = position + 2, _segment_end(data, position)
            if marker in _READ:
                segments.append((marker, data[start:position]))
        marker, position = _next_marker(data, position)
    _segment_end(data, position)  # the scan's own header is there in full
    return segments, position - 2


def _adjacent_segments(data: bytes) -> tuple[list[tuple[int, bytes]], int]:
    """What of the header is well-formed, without bytes between segments, and where that ends: a quick first look."""
    segments = []
    position = 2
    while position + _SEGMENT.size <= len(data):
        fill, marker, length = _SEGMENT.unpack_from(data, position)
        end = position + 2 + length
        if fill != 0xFF or marker not in _WITH_LENGTH or length < 2 or end > len(data):
            break
        if marker in _READ:
            segments.append((marker, data[position + 4 : end]))
        position = end
    return segments, position


def _next_marker(data: bytes, position: int) -> tuple[int, int]:
    """The next marker and the position behind it."""
    while (position := data.find(b"\xff", position)) >= 0:
        position += 1
        if position == len(data):
            break
        if data[position] not in (0x00, 0xFF):  # any number of 0xFF may precede a marker; 0xFF00 is none
            return data[position], position + 1
    raise BadImage("truncated", "JPEG: ends before its first scan")


def _segment_end(data: bytes, position: int) -> int:
    """The position behind the segment whose length stands at `position`."""
    length = int.from_bytes(data[position : position + 2], "big")
    end = position + length
    if position + 2 > len(data) or end > len(data):
        raise BadImage("truncated", "JPEG: ends inside a header segment")
    if length < 2:
        raise BadImage("bad_header", "JPEG: a segment shorter than its own length field")
    return end


def _read_frame(payload: bytes) -> tuple[int, int, int, int, Subsampling]:
    """Precision, height, width, components, subsampling."""
    if len(payload) < 6:
        raise BadImage("bad_header", "JPEG: the frame header is too short")
    precision, height, width, components = struct.unpack_from(">BHHB", payload)
    if not height or not width or not components:
        raise BadImage("bad_header", f"JPEG: {width} x {height} pixels, {components} components")
    return precision, height, width, components, _read_subsampling(components, payload[7::3])


def _read_subsampling(components: int, factors: bytes) -> Subsampling:
    if components < 3 or len(factors) < 3:
        return "4:2:0" if components == 1 else "4:4:4"
    (across, down), *colours = [(both >> 4, both & 15) for both in factors[:3]]
    if colours[0] != colours[1] or 0 in colours[0]:
        return "4:4:4"
    return _SUBSAMPLINGS.get((across / colours[0][0], down / colours[0][1]), "4:4:4")


def _first(segments: list[tuple[int, bytes]], marker: int, prefix: bytes) -> bytes | None:
    return next((payload for found, payload in segments if found == marker and payload.startswith(prefix)), None)


def _icc_profile(segments: list[tuple[int, bytes]]) -> bytes | None:
    """The profile, joined: it comes in chunks of up to 64 KB, each with its number and their count (ICC.1, B.4)."""
    bodies = [payload[len(_ICC) :] for marker, payload in segments if marker == _APP2 and payload.startswith(_ICC)]
    chunks = {body[0]: body[2:] for body in bodies if len(body) > 2}
    if not chunks or sorted(chunks) != list(range(1, bodies[0][1] + 1)):
        return None
    return b"".join(chunks[number] for number in sorted(chunks))
