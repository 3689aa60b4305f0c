"""Pictures for people: thumbnails of a changed image, as in its file and as stored, and boxes on an image."""

import io
from collections.abc import Iterable

import numpy as np
from PIL import Image, ImageDraw

from recordmill.imaging.acceptance import sniff
from recordmill.imaging.geometry import Box
from recordmill.imaging.pillow_decode import load_image, open_image
from recordmill.imaging.pixels import PreparedImage, to_image
from recordmill.schemas.rejection import Rejected

SIDE = 192
"""Maximum length of a thumbnail's longer side, in pixels."""

CROP = 64
"""Side of the crop, in pixels, if only the encoding differs; it is enlarged three times."""

MOST_PIXELS = 2**25
"""Larger images are not decoded again."""

_TRANSPARENT = frozenset({"LA", "PA", "RGBA", "La", "RGBa"})
_PLAIN = frozenset({"1", "L", "P", "RGB", "RGBX", "CMYK", "YCbCr"})


def draw_before_and_after(data: bytes, stored: PreparedImage) -> tuple[bytes, bytes] | None:
    """Two JPEGs, the second of the stored image; None for images that cannot be shown this way.

    If only the encoding differs, these are enlarged crops from where it differs most; otherwise the whole images,
    the first without any of the changes: not rotated, colours unconverted, transparency as a checkerboard.

    Args:
        data: the file's bytes.
        stored: the image made from them.
    """
    before, after = _decode(data), _decode_stored(stored)
    if before is None or after is None:
        return None
    if stored.changes == ("reencoded",) and before.size == after.size:
        return _crops(before, after)
    return _whole(before), _whole(after)


def _decode(data: bytes) -> Image.Image | None:
    file_format = sniff(data)
    if file_format is None:
        return None
    try:
        opened = open_image(data, file_format)
        if opened.width * opened.height > MOST_PIXELS:
            return None
        image = load_image(opened, file_format).image
    except Rejected:
        return None
    if image.mode in _TRANSPARENT or "transparency" in image.info:
        layer = image.convert("RGBA")
        ground = Image.fromarray(_chequered(*image.size))
        ground.paste(layer, mask=layer.getchannel("A"))
        return ground
    return image.convert("RGB") if image.mode in _PLAIN else None  # 16 bits cannot be shown as they are


def _decode_stored(stored: PreparedImage) -> Image.Image | None:
    if stored.format != "RAW":
        return _decode(stored.encoded)
    if stored.height * stored.width > MOST_PIXELS:
        return None
    pixels = np.frombuffer(stored.encoded, np.uint8).reshape(stored.height, stored.width, stored.channels)
    return to_image(pixels).convert("RGB")


def _chequered(width: int, height: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    square = max(width, height) // 16 + 1
    dark = (np.arange(height)[:, None] // square + np.arange(width) // square) % 2
    return np.repeat(np.where(dark, 190, 240).astype(np.uint8)[..., None], 3, axis=2)


def _whole(image: Image.Image) -> bytes:
    small = image.copy()
    small.thumbnail((SIDE, SIDE))
    return _encode(small)


def _crops(before: Image.Image, after: Image.Image) -> tuple[bytes, bytes]:
    difference = np.abs(np.asarray(before, np.int16) - np.asarray(after, np.int16)).sum(2)
    rows, columns = (range(0, max(side - CROP, 0) + 1, CROP // 2) for side in (before.height, before.width))
    places = [
        (int(difference[top : top + CROP, left : left + CROP].sum()), -top, -left) for top in rows for left in columns
    ]
    _, top, left = max(places)
    box = (-left, -top, min(CROP - left, before.width), min(CROP - top, before.height))
    first, second = (
        _encode(cut.resize((3 * cut.width, 3 * cut.height), Image.Resampling.NEAREST))
        for cut in (before.crop(box), after.crop(box))
    )
    return first, second


def _encode(image: Image.Image, quality: int = 92) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=quality, subsampling=0)  # lines of one pixel keep their colour
    return stream.getvalue()


_INNER, _OUTER = (255, 214, 10), (20, 20, 20)  # one of them stands out on any image

_THICK = 200  # length of the longer side, in pixels, from which lines are thicker


def draw_boxes(encoded: bytes, boxes: Iterable[Box]) -> bytes:
    """Draws boxes on a small JPEG; returns a JPEG.

    Args:
        encoded: the JPEG.
        boxes: left, top, right and bottom of each, as fractions of width and height; boxes are clipped to the image.
    """
    with Image.open(io.BytesIO(encoded), formats=["JPEG"]) as stored:
        picture = stored.convert("RGB")
    width = 2 if max(picture.size) >= _THICK else 1
    pencil = ImageDraw.Draw(picture)
    for box in boxes:
        left, top, right, bottom = sides = _sides(box, picture)
        pencil.rectangle((left - 1, top - 1, right + 1, bottom + 1), outline=_OUTER)
        pencil.rectangle(sides, outline=_INNER, width=width)
    return _encode(picture, quality=80)


def _sides(box: Box, picture: Image.Image) -> tuple[int, int, int, int]:
    most = (picture.width - 1, picture.height - 1)
    left, top, right, bottom = (min(max(side, 0.0), 1.0) for side in box)
    return round(left * most[0]), round(top * most[1]), round(right * most[0]), round(bottom * most[1])
