"""Reads and writes images whose pixels are numbers: masks, and maps of ids.

No value is changed on the way: palettes, transparency and color profiles are not applied.
"""

import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile

from recordmill.imaging.acceptance import sniff
from recordmill.imaging.geometry import Size, turn_values
from recordmill.imaging.jpeg_header import read_jpeg_header
from recordmill.imaging.masks.outline import OutlineError
from recordmill.imaging.pillow_decode import decode_first_frame, open_image
from recordmill.imaging.pixels import check_scans
from recordmill.schemas.rejection import Rejected

MaskValues = NDArray[np.int32]

_FORMATS = ("PNG", "BMP", "TIFF", "JPEG", "GIF")

_SCALES = {"L;2": 85, "L;4": 17}
"""What Pillow multiplies gray values of few bits by, by the raw mode."""

_GRAY_MODES = ("1", "P", "L", "I;16", "I;16B", "I")

_GRAY_COLOR = 0x01_01_01
"""A gray pixel of an image with colors is a multiple of this, as `pack_color` gives it."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER = struct.Struct(">IIBBBBB")


@dataclass(frozen=True, slots=True)
class DecodedMask:
    """The pixels of a mask file.

    Attributes:
        values: an array of shape (height, width): gray values, the indices of a palette, 0 and 1 of
            one bit, or red + 256 green + 65,536 blue of a color. They are upright, if the file has
            an orientation.
        is_turned: whether it has one, and was turned.
        has_colors: whether they are colors, and some are not gray.
    """

    values: MaskValues
    is_turned: bool
    has_colors: bool = False


def decode_mask(data: bytes, most: Size, most_pixels: int | None = None) -> DecodedMask:
    """Decodes a PNG, BMP, TIFF, JPEG or GIF of a mask; of several frames, the first.

    Args:
        data: the file.
        most: its largest width and height; no pixels are decoded if it is larger.
        most_pixels: the most pixels that it may have; None for as many as fit in `most`.

    Raises:
        OutlineError: `mask_size` if it is larger, otherwise `bad_mask`.
    """
    file_format = sniff(data)
    if file_format not in _FORMATS:
        raise OutlineError("bad_mask", f"the mask is not in one of {', '.join(_FORMATS)}")
    try:
        opened = open_image(data, file_format)
        width, height = opened.size
        if width > most[0] or height > most[1]:
            detail = f"the mask has {width} x {height} pixels, more than {most[0]} x {most[1]}"
            raise OutlineError("mask_size", detail)
        if most_pixels is not None and width * height > most_pixels:
            detail = f"the mask has {width} x {height} pixels, and the image {most_pixels:,} pixels"
            raise OutlineError("mask_size", detail)
        if file_format == "JPEG":
            check_scans(data, read_jpeg_header(data), most[0] * most[1])
        raw_mode = _find_raw_mode(opened)
        loaded = decode_first_frame(opened, file_format)
    except Rejected as error:
        raise OutlineError("bad_mask", error.detail) from None
    image = loaded.image
    if file_format == "GIF":  # its writers sort palettes, so that indices mean nothing
        image = image.convert("RGB")
    values = _read_values(image, raw_mode)
    is_turned = loaded.orientation != 1 or "rotated" in loaded.changes
    is_gray = image.mode in (*_GRAY_MODES, "LA", "PA") or not np.any(values % _GRAY_COLOR)
    return DecodedMask(turn_values(values, loaded.orientation), is_turned, not is_gray)


def encode_values(values: NDArray[np.uint8] | NDArray[np.uint16]) -> bytes:
    """Returns a gray PNG without metadata of 8 or 16 bits, by the type of the values.

    The same values give the same bytes with the same version of zlib. Its strategy for runs, and
    rows without filters, take half of the time of Pillow's, and the files are smaller.

    Args:
        values: an array of shape (height, width).
    """
    height, width = values.shape
    pixels = np.ascontiguousarray(values, values.dtype.newbyteorder(">"))
    rows = np.zeros((height, 1 + width * values.itemsize), np.uint8)  # 0: a row has no filter
    rows[:, 1:] = pixels.view(np.uint8)
    compressor = zlib.compressobj(strategy=zlib.Z_RLE)
    header = _HEADER.pack(width, height, 8 * values.itemsize, 0, 0, 0, 0)
    chunks = (
        _frame_chunk(b"IHDR", header),
        _frame_chunk(b"IDAT", compressor.compress(rows.data) + compressor.flush()),
        _frame_chunk(b"IEND", b""),
    )
    return _SIGNATURE + b"".join(chunks)


def _frame_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pack_color(red: int, green: int, blue: int) -> int:
    """Returns the number that `decode_mask` gives a pixel of this color."""
    return red + 256 * green + 65_536 * blue


def _find_raw_mode(opened: ImageFile.ImageFile) -> str:
    """Returns the form of an opened file's pixels before Pillow converts them."""
    args = opened.tile[0].args
    if isinstance(args, tuple):
        return str(args[0])
    return str(args)


def _read_values(image: Image.Image, raw_mode: str) -> MaskValues:
    """Returns the values of a decoded mask.

    Raises:
        OutlineError: `bad_mask`: its pixels are not whole numbers, or Pillow has rounded them.
    """
    if image.mode in ("LA", "PA"):
        image = image.getchannel(0)
    if image.mode in _GRAY_MODES:
        return np.asarray(image).astype(np.int32) // _SCALES.get(raw_mode, 1)
    if image.mode not in ("RGB", "RGBA", "RGBX") or ";16" in raw_mode:
        detail = f"the mask has pixels of the form {raw_mode}: store it as gray, palette or RGB"
        raise OutlineError("bad_mask", detail)
    red, green, blue = np.asarray(image).astype(np.int32)[..., :3].transpose(2, 0, 1)
    return red | green << 8 | blue << 16
