"""Finds and removes metadata without decoding pixels, in JPEG, PNG and WebP.

The formats are described in T.81, annex B (JPEG), in PNG, third edition, section 5, and in
RFC 9649 (WebP).

Anything not known to matter to a decoder is removed: only segments and chunks on the lists below
stay.
"""

import re
import struct
import zlib
from collections.abc import Callable, Iterator

from recordmill.imaging.acceptance import find_chunks
from recordmill.imaging.exif import has_position, orientation_only
from recordmill.imaging.jpeg_header import DECODING, MAX_SEGMENTS, SEGMENT, read_segments
from recordmill.schemas.rejection import Rejected

POSITION = "GPS position"
_TAIL = "data after the end"
# Orientation-only Exif, and where its value is.
_BARE_BYTES, _BARE_VALUE = (
    len(orientation_only(1)),
    19,
)

# Except for SOI, EOI, SOS and restarts.
_ALL = frozenset(range(0xC0, 0xFF)) - frozenset(range(0xD0, 0xDB))
_APP0, _APP1, _APP2, _APP14, _COM = 0xE0, 0xE1, 0xE2, 0xEE, 0xFE
_EOI, _SOS, _DNL = 0xD9, 0xDA, 0xDC
# Libjpeg rejects files with any other unknown segment.
_SKIPPED = frozenset({*range(0xE0, 0xF0), _COM, _DNL})
# Tables, number of lines, another scan.
_AFTER_SCANS = frozenset({0xC4, 0xCC, 0xDB, 0xDD, _DNL, _SOS})
# A marker that ends compressed data: neither stuffing nor restart.
_IN_SCAN = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
_JFIF, _JFIF_BYTES, _ADOBE_BYTES = b"JFIF\0", 14, 12
_NAMES = (
    (_APP0, b"JFXX\0", "thumbnail"),
    (_APP1, b"Exif\0", "Exif"),
    (_APP1, b"http://ns.adobe.com/", "XMP"),
    (_APP2, b"MPF\0", "multi-picture index"),
    (0xED, b"Photoshop", "IPTC"),
    (_COM, b"", "comment"),
)

# Pixels, transparency, color space (11.3.2) and animation: not text, time, Exif, size in meters or
# anything private.
_PNG_CHUNKS = frozenset(
    b"IHDR PLTE IDAT IEND tRNS cHRM gAMA iCCP sBIT sRGB cICP mDCV mDCv cLLI cLLi acTL fcTL "
    b"fdAT".split()
)
_PNG_NAMES = {b"tEXt": "text", b"zTXt": "text", b"iTXt": "text", b"eXIf": "Exif", b"tIME": "time"}
_WEBP_FRAME_CHUNKS = frozenset((b"ALPH", b"VP8 ", b"VP8L"))
_WEBP_CHUNKS = _WEBP_FRAME_CHUNKS | {b"VP8X", b"ICCP", b"ANIM", b"ANMF"}
_WEBP_NAMES = {b"EXIF": "Exif", b"XMP ": "XMP"}
_FRAME_HEADER_BYTES = 16
_WEBP_EXIF, _WEBP_XMP = 0x08, 0x04  # flags of VP8X


class UnstrippableError(ValueError):
    """The file's structure cannot be followed to its end, so metadata might remain.

    The message says where.
    """


Parts = Iterator[tuple[str, bytes, bytes | memoryview]]
"""For each part of a file: the name (or empty) and content of removed metadata, and the bytes that
stay."""


def strip_metadata(data: bytes, file_format: str, orientation: int = 1) -> bytes:
    """Returns the same image, pixel by pixel, without metadata; its color profile stays.

    Args:
        data: the file.
        file_format: one of `settings.STRIPPABLE`.
        orientation: the only value in the result's Exif; 1 for no Exif.

    Returns:
        `data` itself if there is nothing to remove.

    Raises:
        UnstrippableError: the file's structure is damaged or unusual.
    """
    exif = orientation_only(orientation) if orientation != 1 else b""
    parts = list(_WALKS[file_format](data, exif))
    if not exif and not any(name for name, _, _ in parts):
        return data
    stripped = b"".join([kept for _, _, kept in parts])
    if file_format == "WEBP":
        stripped = stripped[:4] + (len(stripped) - 8).to_bytes(4, "little") + stripped[8:]
    if stripped == data:
        return data
    return stripped


def find_metadata(data: bytes, file_format: str) -> list[str]:
    """Returns the names of the metadata that `strip_metadata` would remove, sorted.

    Exif with nothing but an orientation is left out.

    Raises:
        UnstrippableError: the file's structure is damaged or unusual.
    """
    found = set()
    for name, content, _ in _WALKS[file_format](data, b""):
        exif = b""
        if name == "Exif":
            exif = content.removeprefix(b"Exif\0\0")
        if len(exif) != _BARE_BYTES or exif != orientation_only(exif[_BARE_VALUE]):
            found.add(name)
        if has_position(content):
            found.add(POSITION)
    return sorted(found - {""})


def _jpeg_parts(data: bytes, exif: bytes) -> Parts:
    try:
        segments, start, _ = read_segments(data, _ALL)
    except Rejected as rejected:
        raise UnstrippableError(rejected.detail) from None
    yield "", b"", data[:2]
    if start != 2 + sum([SEGMENT.size + len(payload) for _, payload in segments]):
        yield "bytes between segments", b"", b""
    for marker, payload in segments:
        whole, kept = _segment(marker, payload), _kept_of_segment(marker, payload)
        if exif and not (marker == _APP0 and kept):  # JFIF comes first
            yield "", b"", _segment(_APP1, b"Exif\0\0" + exif)
            exif = b""
        if kept == whole:
            yield "", b"", whole
        elif marker in _SKIPPED:
            yield (
                "thumbnail" if kept and marker == _APP0 else _name_segment(marker, payload),
                payload,
                kept,
            )
        else:
            raise UnstrippableError(
                f"JPEG: no decoder knows the segment {marker:02x} before the first scan"
            )
    yield from _parts_after_scan(data, start)


def _kept_of_segment(marker: int, payload: bytes) -> bytes:
    """Returns the part of a segment before the first scan that stays; empty if it is removed."""
    if marker in DECODING or (marker == _APP2 and payload.startswith(b"ICC_PROFILE\0")):
        return _segment(marker, payload)
    if marker == _APP0 and payload.startswith(_JFIF) and len(payload) >= _JFIF_BYTES:
        version = payload[5:7] if payload[5] == 1 else b"\1\1"  # libjpeg takes others for damage
        return _segment(marker, payload[:5] + version + payload[7 : _JFIF_BYTES - 2] + bytes(2))
    is_adobe = marker == _APP14 and payload.startswith(b"Adobe") and len(payload) >= _ADOBE_BYTES
    if is_adobe:
        return _segment(marker, payload[:_ADOBE_BYTES])
    return b""


def _segment(marker: int, payload: bytes) -> bytes:
    return SEGMENT.pack(0xFF, marker, 2 + len(payload)) + payload


def _name_segment(marker: int, payload: bytes) -> str:
    known = (name for app, start, name in _NAMES if marker == app and payload.startswith(start))
    return next(
        known, f"APP{marker - _APP0}" if _APP0 <= marker < _APP0 + 16 else f"segment {marker:02x}"
    )


def _parts_after_scan(data: bytes, position: int) -> Parts:
    """Yields the parts from the marker of the first scan on."""
    view = memoryview(data)
    for _ in range(MAX_SEGMENTS):
        while data[position + 1 : position + 2] == b"\xff":  # optional fill bytes before a marker
            position += 1
        fill, marker, length = SEGMENT.unpack(
            (data[position : position + SEGMENT.size] + bytes(4))[: SEGMENT.size]
        )
        end = position + 2 + length
        if fill == 0xFF and marker == _EOI:
            yield "", b"", view[position : position + 2]
            if position + 2 < len(data):
                yield _TAIL, b"", b""
            return
        if fill != 0xFF or length < 2 or end > len(data):
            break
        if marker in _AFTER_SCANS:
            if marker == _SOS:
                found = _IN_SCAN.search(data, end)
                end = found.start() if found else len(data)
            yield "", b"", view[position:end]
        elif marker in _SKIPPED:
            payload = data[position + SEGMENT.size : end]
            yield _name_segment(marker, payload), payload, b""
        else:
            break
        position = end
    raise UnstrippableError(
        f"JPEG: no marker can be read at byte {position:,}, after the first scan"
    )


def _png_parts(data: bytes, exif: bytes) -> Parts:
    view, stopped = memoryview(data), 8
    yield "", b"", data[:stopped]
    for kind, begin, end in find_chunks(data):
        if end > len(data) or (kind == b"IEND" and end > begin + 12):
            break
        stopped = end
        if kind in _PNG_CHUNKS:
            yield "", b"", view[begin:end]
        elif kind[:1].isupper():  # decoders reject the file (5.4)
            raise UnstrippableError(
                f"PNG: no decoder knows the critical chunk {kind.decode('latin-1')}"
            )
        else:
            content = data[begin + 8 : end - 4]
            name = _PNG_NAMES.get(kind, f"chunk {kind.decode('latin-1')}")
            yield "XMP" if content.startswith(b"XML:com.adobe.xmp") else name, content, b""
        if kind == b"IHDR" and exif:
            chunk = b"eXIf" + exif
            yield (
                "",
                b"",
                struct.pack(">I", len(exif)) + chunk + zlib.crc32(chunk).to_bytes(4, "big"),
            )
        elif kind == b"IEND":
            if end < len(data):
                yield _TAIL, b"", b""
            return
    raise UnstrippableError(
        f"PNG: no chunk can be read at byte {stopped:,}, and no chunk ends the image"
    )


def _webp_parts(data: bytes, exif: bytes) -> Parts:
    end = 8 + int.from_bytes(data[4:8], "little")
    yield "", b"", data[:12]
    has_header = data[12:16] == b"VP8X"
    if end > len(data) or (exif and not has_header):
        raise UnstrippableError(
            f"WEBP: it ends before byte {end:,}" if end > len(data) else "WEBP: it has no VP8X"
        )
    yield from _webp_chunks(data[:end], 12, _WEBP_CHUNKS, _WEBP_EXIF if exif else 0)
    if exif:
        yield "", b"", _webp_chunk(b"EXIF", exif)
    if len(data) > end + end % 2:
        yield _TAIL, b"", b""


def _webp_chunks(data: bytes, position: int, known: frozenset[bytes], flags: int = 0) -> Parts:
    """Yields the chunks from a position on, in the file or in a frame of an animation."""
    while position < len(data):
        kind = data[position : position + 4]
        start, length = position + 8, int.from_bytes(data[position + 4 : position + 8], "little")
        if start + length > len(data):
            raise UnstrippableError(f"WEBP: no chunk can be read at byte {position:,}")
        content, position = data[start : start + length], start + length + length % 2
        if kind not in known:
            yield _WEBP_NAMES.get(kind, f"chunk {kind.decode('latin-1')}"), content, b""
            continue
        if kind == b"VP8X" and content:
            content = bytes([content[0] & ~(_WEBP_EXIF | _WEBP_XMP) | flags]) + content[1:]
        elif kind == b"ANMF":
            frame = list(_webp_chunks(content, _FRAME_HEADER_BYTES, _WEBP_FRAME_CHUNKS))
            yield from ((name, removed, b"") for name, removed, _ in frame if name)
            content = b"".join([content[:_FRAME_HEADER_BYTES], *(kept for _, _, kept in frame)])
        yield "", b"", _webp_chunk(kind, content)


def _webp_chunk(kind: bytes, content: bytes) -> bytes:
    return kind + len(content).to_bytes(4, "little") + content + bytes(len(content) % 2)


_WALKS: dict[str, Callable[[bytes, bytes], Parts]] = {
    "JPEG": _jpeg_parts,
    "PNG": _png_parts,
    "WEBP": _webp_parts,
}
