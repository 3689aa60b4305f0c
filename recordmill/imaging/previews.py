"""Draws small pictures of files that were rejected, and layers over an image."""

import base64
import io
import math

import numpy as np
import simplejpeg
from PIL import Image

from recordmill.imaging.acceptance import sniff
from recordmill.imaging.color import lay_on
from recordmill.imaging.depth import is_deep
from recordmill.imaging.geometry import jpeg_reduction
from recordmill.imaging.jpeg_header import read_jpeg_header
from recordmill.imaging.pillow_decode import decode_first_frame, open_image
from recordmill.schemas.rejection import Rejected

SIDE = 160
"""The most pixels of the longer side of a preview."""

MOST_PIXELS = 2**25
"""Larger files are not decoded for a preview."""

_TRANSPARENT = (190, 190, 190)

_OPACITY = 115
"""Of a layer, from 0 to 255."""


def draw_preview(data: bytes) -> bytes | None:
    """Draws what can be seen of a file that was rejected, as a JPEG of at most `SIDE` pixels.

    Of a JPEG that was cut, the rows before the cut are shown, and the rest is gray. Returns None if
    nothing can be decoded, or if the picture is too large.
    """
    try:
        image = _decode_jpeg(data) if sniff(data) == "JPEG" else _decode(data)
    except (Rejected, ValueError):  # simplejpeg raises ValueError
        return None
    if image is None:
        return None
    image.thumbnail((SIDE, SIDE))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=80)
    return stream.getvalue()


def _decode_jpeg(data: bytes) -> Image.Image | None:
    header = read_jpeg_header(data)
    if header.width * header.height > MOST_PIXELS:
        return None
    reduction = jpeg_reduction((header.width, header.height), (SIDE, SIDE))
    pixels = simplejpeg.decode_jpeg(
        data,
        "RGB",
        min_height=-(-header.height // reduction),
        min_width=-(-header.width // reduction),
        strict=False,
    )
    return Image.fromarray(pixels)


def _decode(data: bytes) -> Image.Image | None:
    file_format = sniff(data)
    if file_format is None:
        return None
    opened = open_image(data, file_format)
    if opened.width * opened.height > MOST_PIXELS:
        return None
    image = decode_first_frame(opened, file_format).image
    if is_deep(image.mode) or image.mode == "LAB":  # these cannot be shown as they are
        return None
    if not image.has_transparency_data:
        return image.convert("RGB")
    layer = image.convert("RGBA")
    return lay_on(_TRANSPARENT, image.size, layer.convert("RGB"), alpha=layer.getchannel("A"))


def draw_layer(
    region: bytes, color: str, size: tuple[int, int] | None = None, most_side: int | None = None
) -> bytes:
    """Draws the region of an object as a layer that lets the image below shine through.

    Args:
        region: a gray PNG; pixels above 0 are the object.
        color: the color of the object, as `#rrggbb`.
        size: width and height of the layer in pixels; None for those of the region.
        most_side: the most pixels of the longer side of the region; larger ones are reduced.

    Returns:
        A palette PNG of that size, with transparency.
    """
    with Image.open(io.BytesIO(region), formats=["PNG"]) as stored:
        width, height = size or stored.size
        scale = min(1.0, (most_side or math.inf) / max(width, height))
        reduced = max(1, round(width * scale)), max(1, round(height * scale))
        shown = stored.resize(reduced, Image.Resampling.NEAREST)
    layer = Image.fromarray((np.asarray(shown) > 0).astype(np.uint8), "P")
    layer.putpalette(bytes(3) + bytes.fromhex(color.removeprefix("#")))
    stream = io.BytesIO()
    layer.save(stream, "PNG", transparency=bytes((0, _OPACITY)), bits=1, optimize=True)
    return stream.getvalue()


def as_data_uri(encoded: bytes, file_format: str) -> str:
    """Returns a `data:` URI of an encoded image; `file_format` is `jpeg` or `png`."""
    return f"data:image/{file_format};base64,{base64.b64encode(encoded).decode()}"
