"""Draws thumbnails of a changed image, as in its file and as stored, and boxes on an image."""

import io
from collections.abc import Iterable

import numpy as np
from PIL import Image, ImageDraw

from recordmill.imaging.acceptance import sniff
from recordmill.imaging.color import lay_on
from recordmill.imaging.depth import is_deep
from recordmill.imaging.geometry import Box
from recordmill.imaging.pillow_decode import decode_first_frame, open_image
from recordmill.imaging.pixels import PreparedImage, to_image
from recordmill.schemas.rejection import Rejected

SIDE = 192
"""Maximum length of a thumbnail's longer side, in pixels."""

CROP = 64
"""Side of the crop, in pixels, if only the encoding differs; it is enlarged three times."""

MOST_PIXELS = 2**25
"""Larger images are not decoded again."""

_TRANSPARENT = (190, 190, 190)


def draw_before_and_after(data: bytes, stored: PreparedImage) -> tuple[bytes, bytes] | None:
    """Returns two JPEGs, the second of the stored image.

    Returns None for images that cannot be shown this way.

    If only the encoding differs, these are enlarged crops of the middle; otherwise the whole
    images, the first without any of the changes: not rotated, colors unconverted, transparency as
    gray.

    Args:
        data: the file's bytes.
        stored: the image made from them.
    """
    before, after = _decode(data), _decode_stored(stored)
    if before is None or after is None:
        return None
    if stored.changes == ("reencoded",) and before.size == after.size:
        return _enlarge_middle(before), _enlarge_middle(after)
    before.thumbnail((SIDE, SIDE))
    after.thumbnail((SIDE, SIDE))
    return _encode(before), _encode(after)


def _decode(data: bytes) -> Image.Image | None:
    file_format = str(sniff(data))  # it was accepted
    try:
        opened = open_image(data, file_format)
        if opened.width * opened.height > MOST_PIXELS:
            return None
        image = decode_first_frame(opened, file_format).image
    except Rejected:
        return None
    if is_deep(image.mode) or image.mode == "LAB":  # these cannot be shown as they are
        return None
    if not image.has_transparency_data:
        return image.convert("RGB")
    layer = image.convert("RGBA")
    return lay_on(_TRANSPARENT, image.size, layer.convert("RGB"), alpha=layer.getchannel("A"))


def _decode_stored(stored: PreparedImage) -> Image.Image | None:
    if stored.format != "RAW":
        return _decode(stored.encoded)
    if stored.height * stored.width > MOST_PIXELS:
        return None
    pixels = np.frombuffer(stored.encoded, np.uint8).reshape(
        stored.height, stored.width, stored.channels
    )
    return to_image(pixels).convert("RGB")


def _enlarge_middle(image: Image.Image) -> bytes:
    left, top = (max(side - CROP, 0) // 2 for side in image.size)
    cut = image.crop((left, top, min(left + CROP, image.width), min(top + CROP, image.height)))
    return _encode(cut.resize((3 * cut.width, 3 * cut.height), Image.Resampling.NEAREST))


def _encode(image: Image.Image, quality: int = 92) -> bytes:
    stream = io.BytesIO()
    # Lines of one pixel keep their color.
    image.save(stream, "JPEG", quality=quality, subsampling=0)
    return stream.getvalue()


_INNER, _OUTER = (255, 214, 10), (20, 20, 20)  # one of them stands out on any image


def draw_boxes(encoded: bytes, boxes: Iterable[Box]) -> bytes:
    """Draws boxes on a small JPEG; returns a JPEG.

    Args:
        encoded: the JPEG.
        boxes: left, top, right and bottom of each, as fractions of width and height; boxes are
            clipped to the image.
    """
    with Image.open(io.BytesIO(encoded), formats=["JPEG"]) as stored:
        picture = stored.convert("RGB")
    width = 2 if max(picture.size) >= 200 else 1
    pencil = ImageDraw.Draw(picture)
    most = (picture.width - 1, picture.height - 1)
    for box in boxes:
        sides = [
            round(min(max(side, 0.0), 1.0) * end) for side, end in zip(box, most * 2, strict=True)
        ]
        left, top, right, bottom = sides
        pencil.rectangle((left - 1, top - 1, right + 1, bottom + 1), outline=_OUTER)
        pencil.rectangle(sides, outline=_INNER, width=width)
    return _encode(picture, quality=80)
