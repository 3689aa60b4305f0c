"""Which way up a picture is: the Orientation tag (Exif 2.3, 4.6.4), in Exif data or else in XMP."""

import re

from PIL import Image

from recordmill.imaging.exif import read_orientation

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


def find_orientation(exif: bytes | None, xmp: bytes | None) -> int:
    """The orientation, 1 to 8, in Exif data (with or without their `Exif` prefix) or XMP.

    Exif comes first, as in Pillow's `exif_transpose`. If neither has a valid value, it is 1: as stored.
    """
    value = read_orientation(exif) if exif else None
    if value is None and xmp and (match := _XMP_ORIENTATION.search(xmp)):
        value = int(match[1])
    return value if value in _TURNS else 1


def is_turned_sideways(orientation: int) -> bool:
    """Whether height and width are swapped."""
    return orientation >= 5


def turn(image: Image.Image, orientation: int) -> Image.Image:
    """Transforms the image according to `orientation`; returns the same image for 1."""
    return image.transpose(_TURNS[orientation]) if orientation in _TURNS else image
