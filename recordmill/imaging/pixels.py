"""Decoded pixels as arrays: their form, their digest and their sums.

libjpeg-turbo and Pillow share the form of the arrays. JPEGs are decoded to such arrays. Arrays are
encoded in the form that is stored: JPEG, PNG or the pixels themselves. `PreparedImage` is the
result.
"""

import hashlib
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import simplejpeg
from crc32c import crc32c
from numpy.typing import NDArray
from PIL import Image

from recordmill.imaging.jpeg_header import JpegHeader, Subsampling
from recordmill.imaging.scan_work import MAX_SECONDS, estimate_seconds, find_end
from recordmill.schemas.rejection import Rejected, describe_error
from recordmill.schemas.settings.images import DEFAULT_MAX_PIXELS, ImageSettings

# Values 0 to 255, of shape (height, width, 1), gray, or (height, width, 4): red, green, blue and a
# byte without meaning. Pillow also uses four bytes per pixel, so its C code can use the same
# memory.
Raster: TypeAlias = NDArray[np.uint8]

Moments: TypeAlias = tuple[tuple[int, int], ...]

USUAL_DEPTH = 8
"""The bits of a value in a `Raster`."""

_DIGESTED = 64 * 2**10


_MODES = {1: ("L", "L"), 3: ("RGB", "RGB"), 4: ("RGB", "RGBX")}


def count_channels(raster: Raster) -> int:
    """Returns 1 or 3."""
    if raster.shape[2] == 1:
        return 1
    return 3


def to_image(raster: Raster) -> Image.Image:
    """Returns a copy as an image of mode L or RGB; pixels of three bytes are also accepted."""
    height, width, channels = raster.shape
    mode, raw = _MODES[channels]
    return Image.frombytes(mode, (width, height), raster, "raw", raw)


def to_raster(image: Image.Image) -> Raster:
    """Returns a copy of an image of mode L or RGB."""
    raw = image.tobytes("raw", "L" if image.mode == "L" else "RGBX")
    return np.frombuffer(raw, np.uint8).reshape(image.height, image.width, -1)


def copy_pixels(raster: Raster) -> NDArray[np.uint8]:
    """Returns a copy without the fourth byte: height, width, 1 or 3 channels, red first."""
    # Pillow removes the fourth byte in a quarter of the time of numpy's slice.
    if raster.shape[2] == 1:
        return raster.copy()
    return np.array(to_image(raster))


def digest_pixels(pixels: Raster | Image.Image, orientation: int) -> str:
    """Returns a digest of an image's pixels as decoded and of its orientation, in hex.

    It is the SHA-256 of the text `MODE WIDTH HEIGHT ORIENTATION`, a line feed, and the CRC-32C of
    each 64 KiB of the pixels, each as 4 bytes with the least significant first. An RGB pixel has 4
    bytes, the last of them 255. Images with a palette or a transparent color count as RGBA.
    Checksums are used for speed: a SHA-256 of all pixels would take as long as decoding them.
    """
    if isinstance(pixels, Image.Image):
        if pixels.mode in ("P", "PA") or "transparency" in pixels.info:
            pixels = pixels.convert("RGBA")
        (width, height), mode = pixels.size, pixels.mode
        data = memoryview(pixels.tobytes("raw", "RGBX") if mode == "RGB" else pixels.tobytes())
    else:
        height, width, channels = pixels.shape
        mode, data = "L" if channels == 1 else "RGB", pixels.reshape(-1).data
    parts = [
        crc32c(data[at : at + _DIGESTED]).to_bytes(4, "little")
        for at in range(0, len(data), _DIGESTED)
    ]
    return hashlib.sha256(
        f"{mode} {width} {height} {orientation}\n".encode() + b"".join(parts)
    ).hexdigest()


def view_image(raster: Raster) -> Image.Image:
    """Returns an image of mode L, RGB or RGBX, in general without a copy.

    Pixels of three bytes are also accepted.
    """
    height, width, channels = raster.shape
    mode = _MODES[channels][1]
    return Image.frombuffer(mode, (width, height), raster, "raw", mode, 0, 1)


def count_values(raster: Raster) -> NDArray[np.int64]:
    """Returns the number of pixels with each value 0 to 255, for each channel.

    Pixels of three bytes are also accepted.
    """
    return np.array(view_image(raster).histogram(), np.int64).reshape(-1, 256)[:3]


def moments(raster: Raster) -> Moments:
    """Returns each channel's exact sum and sum of squares.

    Pixels of three bytes are also accepted.
    """
    values = np.arange(256)
    counts = count_values(raster)
    return tuple(zip((counts @ values).tolist(), (counts @ values**2).tolist(), strict=True))


# Each scan visits every pixel, so a small file can take hours to decode. Real files have about ten
# scans, at most about thirty; libjpeg-turbo's own fuzzers stop at 500.
MAX_SCANS = 500
MAX_SCANS_OF_LARGEST = 28  # about five seconds at `max_pixels`
# Frame headers of images in several scans, each over all of it.
_PROGRESSIVE = (
    0xC2,
    0xC6,
    0xCA,
    0xCE,
)

# At an eighth of each side, only the mean of each block is transformed, but every coefficient is
# still decoded. On 2,000 truncated JPEGs and 2,000 with a flipped bit, libjpeg-turbo reported the
# same as at full size, in 0.7 of the time.
SMALLEST_REDUCTION = 8

# libjpeg's two warnings for missing data, JWRN_HIT_MARKER and JWRN_JPEG_EOF. It fills the gap with
# gray and goes on.
_MISSING_DATA = re.compile(r"premature end", re.IGNORECASE)


class UnusualJpeg(Exception):
    """libjpeg-turbo warned or failed, although the data do not end early: let Pillow decide."""


def decode_jpeg(data: bytes, header: JpegHeader, reduction: int = 1) -> Raster:
    """Decodes a widely readable JPEG; metadata are not applied.

    Args:
        data: the file.
        header: the result of `read_jpeg_header`.
        reduction: 1, 2, 4 or 8; divides the size by this number (rounded up), for a fraction of the
            time.

    Raises:
        Rejected: `truncated` or `decode_error`.
        UnusualJpeg: on any other trouble.
    """
    height = width = 0
    if reduction > 1:
        height, width = -(-header.height // reduction), -(-header.width // reduction)
    try:
        return simplejpeg.decode_jpeg(
            data,
            "GRAY" if header.components == 1 else "RGBX",
            min_height=height,
            min_width=width,
            strict=True,
        )
    except ValueError as error:
        if _MISSING_DATA.search(str(error)):
            raise Rejected("decode", "truncated", f"JPEG: {error}") from None
        raise UnusualJpeg(str(error)) from None
    except MemoryError as error:
        raise Rejected("decode", "decode_error", describe_error(error)) from None


def check_scans(data: bytes, header: JpegHeader, max_pixels: int, decoders: int = 1) -> None:
    """Rejects JPEGs whose scans take far longer than any real file's, as `too_much_work`.

    Unusual ones are read in full by two `decoders`, one after the other.
    """
    if has_one_scan(data, header):
        return
    problem = _describe_work(data, header, max_pixels, decoders)
    if problem and (end := find_end(data, header.scan_start)) < len(data):
        problem = _describe_work(data[:end], header, max_pixels, decoders)
    if problem:
        raise Rejected("decode", "too_much_work", problem)


def _describe_work(data: bytes, header: JpegHeader, max_pixels: int, decoders: int) -> str | None:
    """Says how many scans there are if they take too long; None if they do not."""
    scans = data.count(b"\xff\xda", header.scan_start)
    pixels, most = scans * header.width * header.height, max(max_pixels, DEFAULT_MAX_PIXELS)
    what = f"JPEG: {scans} scans of {header.width} x {header.height} pixels"
    if scans > MAX_SCANS or pixels > MAX_SCANS_OF_LARGEST * most:
        return what
    # Who allows larger images allows their scans.
    seconds = MAX_SECONDS * most / DEFAULT_MAX_PIXELS
    if decoders * estimate_seconds(data, header, scans) > seconds:
        return f"{what} in {len(data) - header.scan_start:,} bytes"
    return None


def has_one_scan(data: bytes, header: JpegHeader) -> bool:
    """Tells if a decoder reads only the first scan of a JPEG, as its code is not arithmetic."""
    in_first_scan = data[header.scan_start + 4 : header.scan_start + 5]
    is_whole = in_first_scan == bytes([header.components])
    return is_whole and header.process < 0xC9 and header.process not in _PROGRESSIVE


def stored_format(settings: ImageSettings) -> str:
    """Returns the format of re-encoded images: `JPEG`, `PNG` or `RAW`."""
    return {"png": "PNG", "raw": "RAW"}.get(settings.store, "JPEG")


def encode_raster(
    raster: Raster, settings: ImageSettings, header: JpegHeader | None = None
) -> bytes:
    """Returns the stored bytes of an image; same pixels, same bytes, on any thread.

    Args:
        raster: the pixels.
        settings: which form to use.
        header: of the JPEG that the (now upright) pixels come from; None for other formats.

    Returns:
        A baseline JFIF; a PNG of mode L or RGB without any metadata; or height x width x channels
        bytes, red first.
    """
    match stored_format(settings):
        case "RAW":
            return raster[:, :, : count_channels(raster)].tobytes()
        case "PNG":
            stream = io.BytesIO()
            to_image(raster).save(stream, "PNG")
            return stream.getvalue()
    is_gray = raster.shape[2] == 1
    if is_gray:
        sampling = "Gray"
    else:
        sampling = _choose_subsampling(settings, header).replace(":", "")
    return simplejpeg.encode_jpeg(raster, settings.quality, "GRAY" if is_gray else "RGBX", sampling)


def _choose_subsampling(settings: ImageSettings, header: JpegHeader | None) -> Subsampling:
    if settings.subsampling == "auto":
        if header:
            return header.upright_subsampling
        return "4:4:4"
    return settings.subsampling


@dataclass(slots=True)
class PreparedImage:
    """A checked image that is ready to be stored.

    Attributes:
        encoded: the stored bytes: the file's own bytes if `changes` is empty, without its metadata
            if it is `metadata_stripped`, otherwise a baseline JPEG, a PNG, or the pixels as height
            x width x channels bytes.
        format: of `encoded`: `JPEG`, `PNG` or `RAW`, as `images.store` says; with `reencode: never`
            any of the accepted formats, in upper case.
        height: in pixels, as seen by a reader of `encoded` that ignores metadata.
        width: in pixels, as seen by the same reader.
        channels: 1 or 3; with `reencode: never` also 2 (gray and alpha) or 4 (RGBA, CMYK).
        moments: the exact sum and sum of squares of the values (0 to 255) of each of one or three
            channels, over the pixels that `encoded` decodes to by libjpeg's accurate methods
            (TensorFlow's `INTEGER_ACCURATE`). None if they were not requested, if nothing was
            decoded, or if other readers would see other values: with `reencode: never`, for files
            other than JPEG and PNG or other than 8-bit gray or RGB.
        changes: sorted names from `schemas.settings.images.CHANGES`; empty if the bytes are
            unchanged.
        difference_hash: see `imaging.geometry.hash_differences`; None if it was not requested.
        pixels: digest of the file's pixels, see `imaging.pixels.digest_pixels`; None if they were
            not decoded in full.
        raster: the decoded pixels after all changes except re-encoding; None if they were not
            requested.
        sha256: of `encoded`, in hex, if it is known; else the empty string.
        has_position: whether the metadata in `encoded` has a GPS position.
        source: width, height and orientation of the file as Pillow loaded it; None if it was not
            loaded.
        losses: what of the file is not stored, or was chosen for it alone, see
            `imaging.depth.Losses`.
    """

    encoded: bytes
    format: str
    height: int
    width: int
    channels: int
    moments: tuple[tuple[int, int], ...] | None
    changes: tuple[str, ...]
    difference_hash: int | None = None
    pixels: str | None = field(default=None, compare=False)
    raster: Raster | None = field(default=None, compare=False, repr=False)
    sha256: str = field(default="", compare=False)
    has_position: bool = False
    source: tuple[int, int, int] | None = field(default=None, compare=False)
    losses: Mapping[str, int] = field(default_factory=dict)
