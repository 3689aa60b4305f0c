"""Which way up a picture is: the Orientation tag (Exif 2.3, 4.6.4), in Exif data or else in XMP."""

import re
import struct

from PIL import Image

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

_ORIENTATION_TAG = 0x0112
_FIELD_FORMATS = {1: "B", 3: "H", 4: "I"}  # SHORT is the standard's type; some writers use BYTE or LONG

_XMP_ORIENTATION = re.compile(rb'tiff:Orientation(?:="|>)([0-9])')


def find_orientation(exif: bytes | None, xmp: bytes | None) -> int:
    """The orientation, 1 to 8, in Exif data (with or without their `Exif` prefix) or XMP.

    Exif comes first, as in Pillow's `exif_transpose`. If neither has a valid value, it is 1: as stored.
    """
    value = _exif_orientation(exif) if exif else None
    if value is None and xmp and (match := _XMP_ORIENTATION.search(xmp)):
        value = int(match[1])
    return value if value in _TURNS else 1


def is_turned_sideways(orientation: int) -> bool:
    """Whether height and width are swapped."""
    return orientation >= 5


def turn(image: Image.Image, orientation: int) -> Image.Image:
    """Transforms the image according to `orientation`; returns the same image for 1."""
    return image.transpose(_TURNS[orientation]) if orientation in _TURNS else image


def _exif_orientation(exif: bytes) -> int | None:
    prefixed = 0
    while exif.startswith(b"Exif\0\0", prefixed):
        prefixed += 6
    exif = exif[prefixed:]
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(exif[:4])
    if order is None:
        return None
    try:
        (start,) = struct.unpack_from(order + "I", exif, 4)
        (count,) = struct.unpack_from(order + "H", exif, start)
        for entry in range(start + 2, start + 2 + 12 * count, 12):
            tag, kind = struct.unpack_from(order + "HH", exif, entry)
            if tag == _ORIENTATION_TAG and kind in _FIELD_FORMATS:
                return int(struct.unpack_from(order + _FIELD_FORMATS[kind], exif, entry + 8)[0])
    except struct.error:  # the directory points outside the data
        return None
    return None
