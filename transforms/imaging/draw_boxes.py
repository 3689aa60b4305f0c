"""Boxes drawn on a picture, for people to look at."""

import io
from collections.abc import Iterable

from PIL import Image, ImageDraw

from recordmill.transforms.imaging.geometry import Box

_INNER, _OUTER = (255, 214, 10), (20, 20, 20)  # one of them stands out on any picture


def draw_boxes(encoded: bytes, boxes: Iterable[Box]) -> bytes:
    """A small JPEG with its boxes, as a JPEG.

    Args:
        encoded: the picture.
        boxes: left, top, right and bottom of each, as fractions of width and height; what lies beyond is cut off.
    """
    with Image.open(io.BytesIO(encoded), formats=["JPEG"]) as stored:
        picture = stored.convert("RGB")
    right, bottom = picture.width - 1, picture.height - 1
    pencil = ImageDraw.Draw(picture)
    for box in boxes:
        sides = [
            round(min(max(side, 0.0), 1.0) * most)
            for side, most in zip(box, (right, bottom, right, bottom), strict=True)
        ]
        around = [sides[0] - 1, sides[1] - 1, sides[2] + 1, sides[3] + 1]
        pencil.rectangle(around, outline=_OUTER)
        pencil.rectangle(sides, outline=_INNER)
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=80, subsampling=0)  # lines of one pixel keep their colour
    return stream.getvalue()
