"""Draws boxes on an image, for people."""

import io
from collections.abc import Iterable

from PIL import Image, ImageDraw

from recordmill.imaging.geometry import Box

_INNER, _OUTER = (255, 214, 10), (20, 20, 20)  # one of them stands out on any image
_OTHER = (255, 255, 255, 150)

_THICK = 200  # length of the longer side, in pixels, from which lines are thicker


def draw_boxes(encoded: bytes, boxes: Iterable[Box], others: Iterable[Box] = ()) -> bytes:
    """Draws boxes on a small JPEG; returns a JPEG.

    Args:
        encoded: the JPEG.
        boxes: left, top, right and bottom of each, as fractions of width and height; boxes are clipped to the image.
        others: boxes that are drawn faintly.
    """
    with Image.open(io.BytesIO(encoded), formats=["JPEG"]) as stored:
        picture = stored.convert("RGB")
    width = 2 if max(picture.size) >= _THICK else 1
    pencil = ImageDraw.Draw(picture, "RGBA")
    for box in others:
        pencil.rectangle(_sides(box, picture), outline=_OTHER)
    for box in boxes:
        left, top, right, bottom = sides = _sides(box, picture)
        pencil.rectangle((left - 1, top - 1, right + 1, bottom + 1), outline=_OUTER)
        pencil.rectangle(sides, outline=_INNER, width=width)
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=80, subsampling=0)  # lines of one pixel keep their colour
    return stream.getvalue()


def _sides(box: Box, picture: Image.Image) -> tuple[int, int, int, int]:
    most = (picture.width - 1, picture.height - 1)
    left, top, right, bottom = (min(max(side, 0.0), 1.0) for side in box)
    return round(left * most[0]), round(top * most[1]), round(right * most[0]), round(bottom * most[1])
