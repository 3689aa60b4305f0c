"""Encodes pixels in the form that is stored: JPEG, PNG, or the pixels themselves; decodes and encodes JPEG.

Also lists the versions of the libraries that the stored bytes depend on, and finds missing ones.
"""

import io
import re
from collections.abc import Collection
from importlib import metadata
from importlib.util import find_spec

import simplejpeg
from PIL import __version__ as pillow_version
from PIL import features

from recordmill.imaging.jpeg_header import JpegHeader, Subsampling, read_jpeg_header
from recordmill.imaging.pixels import Raster, count_channels, to_image
from recordmill.schemas.rejection import Rejected, describe_error
from recordmill.schemas.settings.images import DEFAULT_MAX_PIXELS, ImageSettings

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


def stored_format(settings: ImageSettings) -> str:
    """The format of re-encoded images: `JPEG`, `PNG` or `RAW`."""
    return {"png": "PNG", "raw": "RAW"}.get(settings.store, "JPEG")


def encode_raster(raster: Raster, settings: ImageSettings, header: JpegHeader | None = None) -> bytes:
    """The stored bytes of an image; same pixels, same bytes, on any thread.

    Args:
        raster: the pixels.
        settings: which form to use.
        header: of the JPEG that they were decoded from; None for other formats. See `choose_subsampling`.

    Returns:
        A baseline JFIF; a PNG of mode L or RGB without any metadata; or height x width x channels bytes, red first.
    """
    match stored_format(settings):
        case "RAW":
            return raster[:, :, : count_channels(raster)].tobytes()
        case "PNG":
            stream = io.BytesIO()
            to_image(raster).save(stream, "PNG")
            return stream.getvalue()
    return encode_jpeg(raster, settings.quality, choose_subsampling(settings, header))


def choose_subsampling(settings: ImageSettings, header: JpegHeader | None) -> Subsampling:
    """The subsampling of a re-encoded JPEG.

    Args:
        settings: the image settings.
        header: of the JPEG that the (now upright) pixels come from; None for other formats.
    """
    if settings.subsampling == "auto":
        return header.upright_subsampling if header else "4:4:4"
    if settings.subsampling == "by_format":
        return "4:2:0" if header else "4:4:4"
    return settings.subsampling


def as_stored(raster: Raster, encoded: bytes, settings: ImageSettings) -> Raster:
    """The pixels that readers of `encode_raster`'s result see: JPEG changes them a little, the others do not."""
    return decode_jpeg(encoded, read_jpeg_header(encoded)) if stored_format(settings) == "JPEG" else raster


# simplejpeg contains its own libjpeg-turbo, determined by its version and not reported separately.
_PILLOW_LIBRARIES = {
    "jpg": "libjpeg",
    "libtiff": "libtiff",
    "webp": "libwebp",
    "zlib": "zlib",
    "littlecms2": "littlecms2",
}

_OPTIONAL = {"AVIF": ("avif", "libavif"), "JPEG2000": ("jpg_2000", "openjpeg")}


def find_missing_decoder(formats: Collection[str]) -> str:
    """A sentence about the first format that cannot be decoded here; empty if there is none."""
    for name, (feature, library) in _OPTIONAL.items():
        if name in formats and not features.check(feature):
            return f"{name} needs a Pillow with {library}, and the one installed lacks it"
    if "HEIC" in formats and find_spec("pillow_heif") is None:
        return "HEIC needs pillow-heif, which is not installed: pip install '.[heic]' in a clone"
    return ""


def imaging_versions(formats: Collection[str] = ()) -> dict[str, str]:
    """Versions of the libraries that decode, convert and encode pixels: same versions and same input, same bytes.

    Args:
        formats: the accepted formats; for those in `settings.OPTIONAL_FORMATS`, the decoders are added.
    """
    versions = {"pillow": pillow_version, "simplejpeg": simplejpeg.__version__}
    if (turbo := features.version_feature("libjpeg_turbo")) is not None:
        versions["pillow.libjpeg_turbo"] = turbo
    optional = dict(decoder for name, decoder in _OPTIONAL.items() if name in formats)
    for feature, library in (_PILLOW_LIBRARIES | optional).items():
        versions[f"pillow.{library}"] = features.version(feature) or "absent"
    if "HEIC" in formats:
        versions["pillow_heif"] = metadata.version("pillow_heif")
    return versions
