"""The two values of Exif data that matter here (Exif 2.3, 4.6): which way up an image is, and where it was taken."""

import struct
from collections.abc import Iterator

_ORIENTATION, _GPS = 0x0112, 0x8825
_LATITUDE = 0x0002
_FIELD_FORMATS = {1: "B", 3: "H", 4: "I", 13: "I"}  # SHORT is the standard's type; some writers use BYTE or LONG
_GPS_TAGS = (_GPS.to_bytes(2, "big"), _GPS.to_bytes(2, "little"))


def read_orientation(exif: bytes) -> int | None:
    """The value of the Orientation tag, which may be meaningless; None if there is none.

    Args:
        exif: with or without its `Exif` prefix.
    """
    try:
        return next(_values(_without_prefix(exif), _ORIENTATION), None)
    except struct.error:  # the directory points outside the data
        return None


def has_position(metadata: bytes) -> bool:
    """Whether Exif or XMP have a latitude; damaged Exif of a position counts as one.

    Args:
        metadata: Exif, with or without its prefix, or XMP; a TIFF file begins like Exif, too.
    """
    if b"GPSLatitude" in metadata:
        return True
    if not any(tag in metadata for tag in _GPS_TAGS):
        return False
    exif = _without_prefix(metadata)
    try:
        start = next(_values(exif, _GPS), None)
        return start is not None and any(tag == _LATITUDE for tag, _, _ in _entries(exif, start))
    except struct.error:
        return True


def orientation_only(orientation: int) -> bytes:
    """The shortest Exif data, without prefix, with this orientation and nothing else."""
    return struct.pack(">2sHIHHHIHHI", b"MM", 42, 8, 1, _ORIENTATION, 3, 1, orientation, 0, 0)


def _without_prefix(exif: bytes) -> bytes:
    prefixed = 0
    while exif.startswith(b"Exif\0\0", prefixed):
        prefixed += 6
    return exif[prefixed:]


def _values(exif: bytes, wanted: int) -> Iterator[int]:
    """The values of a tag in the first directory."""
    order = _order(exif)
    if order:
        for tag, kind, place in _entries(exif, struct.unpack_from(order + "I", exif, 4)[0]):
            if tag == wanted and kind in _FIELD_FORMATS:
                yield struct.unpack_from(order + _FIELD_FORMATS[kind], exif, place)[0]


def _entries(exif: bytes, start: int) -> Iterator[tuple[int, int, int]]:
    """Tag, type, and the place of the value, of each entry of a directory; raises struct.error outside the data."""
    order = _order(exif)
    (count,) = struct.unpack_from(order + "H", exif, start)
    for entry in range(start + 2, start + 2 + 12 * count, 12):
        tag, kind = struct.unpack_from(order + "HH", exif, entry)
        yield tag, kind, entry + 8


def _order(exif: bytes) -> str:
    return {b"II*\0": "<", b"MM\0*": ">"}.get(exif[:4], "")
