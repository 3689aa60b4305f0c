"""Decodes and encodes JPEG with libjpeg-turbo (simplejpeg), which releases the GIL."""

import re

import simplejpeg

from recordmill.imaging.jpeg_header import JpegHeader, Subsampling
from recordmill.imaging.pixels import Raster
from recordmill.schemas.rejection import Rejected, describe_error
from recordmill.schemas.settings.images import DEFAULT_MAX_PIXELS

# Each scan visits every pixel, so a small file can take hours to decode. Real files have about ten scans, at
# most about thirty; libjpeg-turbo's own fuzzers stop at 500.
MAX_SCANS = 500
MAX_SCANS_OF_LARGEST = 28  # about five seconds at `max_pixels`

# At an eighth of each side, only the mean of each block is transformed, but every coefficient is still decoded. On
# 2,000 truncated JPEGs and 2,000 with a flipped bit, libjpeg-turbo reported the same as at full size, in 0.7 of the
# time.
SMALLEST_REDUCTION = 8

# libjpeg's two warnings for missing data, JWRN_HIT_MARKER and JWRN_JPEG_EOF. It fills the gap with gray and goes on.
_MISSING_DATA = re.compile(r"premature end", re.IGNORECASE)


class UnusualJpeg(Exception):
    """libjpeg-turbo warned or failed, although the data do not end early: let Pillow decide."""


def decode_jpeg(data: bytes, header: JpegHeader, reduction: int = 1) -> Raster:
    """Decodes a widely readable JPEG; metadata are not applied.

    Args:
        data: the file.
        header: the result of `read_jpeg_header`.
        reduction: 1, 2, 4 or 8; divides the size by this number (rounded up), for a fraction of the time.

    Raises:
        Rejected: `truncated` or `decode_error`.
        UnusualJpeg: on any other trouble.
    """
    try:
        return simplejpeg.decode_jpeg(
            data,
            "GRAY" if header.components == 1 else "RGBX",
            min_height=-(-header.height // reduction) if reduction > 1 else 0,
            min_width=-(-header.width // reduction) if reduction > 1 else 0,
            strict=True,
        )
    except ValueError as error:
        if _MISSING_DATA.search(str(error)):
            raise Rejected("decode", "truncated", f"JPEG: {error}") from None
        raise UnusualJpeg(str(error)) from None
    except MemoryError as error:
        raise Rejected("decode", "decode_error", describe_error(error)) from None


def check_scans(data: bytes, header: JpegHeader, max_pixels: int) -> None:
    """Rejects JPEGs whose scans visit far more pixels than those of any real file, as `too_much_work`."""
    in_first_scan = data[header.scan_start + 4 : header.scan_start + 5]
    if in_first_scan == bytes([header.components]) and not header.is_progressive:
        return  # the only scan that a decoder reads
    scans = data.count(b"\xff\xda", header.scan_start)
    pixels = scans * header.width * header.height
    if scans > MAX_SCANS or pixels > MAX_SCANS_OF_LARGEST * max(max_pixels, DEFAULT_MAX_PIXELS):
        raise Rejected("decode", "too_much_work", f"JPEG: {scans} scans of {header.width} x {header.height} pixels")


def check_end(data: bytes, header: JpegHeader) -> None:
    """Rejects a JPEG without an end marker after its first scan, as `truncated`. Data after the marker do no harm."""
    if data.rfind(b"\xff\xd9", header.scan_start) < 0:
        raise Rejected("decode", "truncated", "JPEG: no end of image marker")


def encode_jpeg(raster: Raster, quality: int, subsampling: Subsampling) -> bytes:
    """A baseline JFIF of the pixels; same pixels, same bytes, on any thread."""
    colour_space, sampling = ("GRAY", "Gray") if raster.shape[2] == 1 else ("RGBX", subsampling.replace(":", ""))
    return simplejpeg.encode_jpeg(raster, quality, colour_space, sampling)
