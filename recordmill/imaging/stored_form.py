"""Encodes pixels in the form in which they are stored: JPEG, PNG, or the pixels themselves."""

import io

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
    """The pixels that readers of `encode_raster`'s result see: JPEG changes each of them a little, the others none."""
    return decode_jpeg(encoded, read_jpeg_header(encoded)) if stored_format(settings) == "JPEG" else raster
