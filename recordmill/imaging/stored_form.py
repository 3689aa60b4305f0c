"""Encodes pixels in the form that is stored: JPEG, PNG, or the pixels themselves.

Also lists the versions of the libraries that the stored bytes depend on, and finds missing ones.
"""

import io
from collections.abc import Collection
from importlib import metadata
from importlib.util import find_spec

import simplejpeg
from PIL import __version__ as pillow_version
from PIL import features

from recordmill.imaging.jpeg_codec import decode_jpeg, encode_jpeg
from recordmill.imaging.jpeg_header import JpegHeader, Subsampling, read_jpeg_header
from recordmill.imaging.pixels import Raster, count_channels, to_image
from recordmill.schemas.settings.images import ImageSettings


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
