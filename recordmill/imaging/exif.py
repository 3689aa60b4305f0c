"""Reads an image's orientation, and whether it has a location, from Exif (2.3, 4.6) and XMP."""

import re
import struct
from collections.abc import Iterator
from contextlib import suppress

from PIL import Image

_ORIENTATION, _GPS = 0x0112, 0x8825
_LATITUDE = 0x0002
# SHORT is the standard's type; some writers use BYTE or LONG.
_FIELD_FORMATS = {
    1: "B",
    3: "H",
    4: "I",
    13: "I",
}
# As the module `struct` writes them, by the first bytes.
_BYTE_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}
_PREFIXES = re.compile(rb"\A(?:Exif\0\0)+")
_GPS_TAGS = (_GPS.to_bytes(2, "big"), _GPS.to_bytes(2, "little"))


def has_position(metadata: bytes) -> bool:
    """Returns whether Exif or XMP has a latitude.

    Damaged Exif that refers to a position counts, too.

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
    """Returns the shortest Exif data, without prefix, with this orientation and nothing else."""
    return struct.pack(">2sHIHHHIHHI", b"MM", 42, 8, 1, _ORIENTATION, 3, 1, orientation, 0, 0)


def _without_prefix(exif: bytes) -> bytes:
    return _PREFIXES.sub(b"", exif, count=1)


def _values(exif: bytes, wanted: int) -> Iterator[int]:
    """Yields the values of a tag in the first directory."""
    order = _BYTE_ORDERS.get(exif[:4])
    if order is not None:
        for tag, kind, place in _entries(exif, struct.unpack_from(order + "I", exif, 4)[0]):
            if tag == wanted and kind in _FIELD_FORMATS:
                yield struct.unpack_from(order + _FIELD_FORMATS[kind], exif, place)[0]


def _entries(exif: bytes, start: int) -> Iterator[tuple[int, int, int]]:
    """Yields the tag, the type and the place of the value of each entry of a directory.

    Raises:
        struct.error: an entry is outside the data.
    """
    order = _BYTE_ORDERS[exif[:4]]
    (count,) = struct.unpack_from(order + "H", exif, start)
    for entry in range(start + 2, start + 2 + 12 * count, 12):
        tag, kind = struct.unpack_from(order + "HH", exif, entry)
        yield tag, kind, entry + 8


# How the stored image must be transformed to be upright; other values of the tag have no meaning.
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

_XMP_ORIENTATION = re.compile(rb'tiff:Orientation(?:="|>)([0-9])')


def find_orientation(exif: bytes, xmp: bytes) -> int:
    """Returns the orientation, 1 to 8, in Exif data or XMP; each may be empty.

    Exif data may be with or without their `Exif` prefix. Exif takes precedence, as in Pillow's
    `exif_transpose`. If neither has a valid value, the orientation is 1: as stored.
    """
    value = None
    with suppress(struct.error):  # the directory points outside the data
        value = next(_values(_without_prefix(exif), _ORIENTATION), None)
    if value is None and (match := _XMP_ORIENTATION.search(xmp)):
        value = int(match[1])
    if value in _TURNS:
        return value
    return 1


def is_turned_sideways(orientation: int) -> bool:
    """Returns whether height and width are swapped."""
    return orientation >= 5


def turn(image: Image.Image, orientation: int) -> Image.Image:
    """Transforms the image according to `orientation`; returns the same image for 1."""
    if orientation in _TURNS:
        return image.transpose(_TURNS[orientation])
    return image
