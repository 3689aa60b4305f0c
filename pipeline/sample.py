"""A sample collection: 250 small pictures in six class folders, generated at first use.

Nothing is downloaded, and drawing gives the same bytes every time. As in real folders, not
everything is in order:

    circle/16_bit.png             a 16-bit grayscale PNG                        written in 8 bits
    circle/for_print.jpg          a CMYK JPEG                                   written as RGB
    circle/png_inside.jpg         a PNG under the name of a JPEG                written
    circle/same_as_a_square.jpg   bytes of square/square_00.jpg, another label  written twice
    hexagon/empty.jpg             no bytes at all                               rejected
    hexagon/moving.gif            a palette GIF of four frames                  written, first frame
    octagon/a_text.jpg            text under the name of a JPEG                 rejected
    octagon/on_its_side.jpg       stored turned right, EXIF orientation 8       written upright
    pentagon/cut_out.png          an RGBA PNG, transparent around the shape     written, flattened
    square/black_and_white.jpg    a grayscale JPEG                              written
    square/cut_short.jpg          a JPEG cut at 60 %, with an end marker        rejected
    triangle/on_its_side.jpg      stored turned left, EXIF orientation 6        written upright
    triangle/upside_down.jpg      stored upside down, EXIF orientation 3        written upright
    .DS_Store, circle/Thumbs.db   files created by desktop systems              ignored
"""

import io
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageOps

FOLDER = Path("out", "sample-3")
"""The sample's folder, next to the dataset. Every change of a drawing needs another number: it
replaces old samples."""

SIDES = {"circle": 60, "hexagon": 6, "octagon": 8, "pentagon": 5, "square": 4, "triangle": 3}
"""The classes: polygons, by their numbers of sides."""

PER_CLASS = 40  # plain JPEGs, in addition to the odd files

_PAINTS = ["#c8372d", "#e08a1e", "#f2c230", "#7a3fa0", "#c93a86", "#fdf6e3"]
_SIZES = [
    (320, 240),
    (320, 214),
    (288, 192),
    (240, 320),
    (214, 320),
    (180, 240),
    (256, 256),
    (284, 160),
]

# By EXIF orientation: how to store pixels so that a viewer who honors it shows them upright.
STORED = {
    3: Image.Transpose.ROTATE_180,
    6: Image.Transpose.ROTATE_90,
    8: Image.Transpose.ROTATE_270,
}


def ensure_sample(folder: Path = FOLDER) -> Path:
    """Draws the sample unless it exists, and returns its folder.

    The folder appears complete or not at all.

    Raises:
        OSError: it cannot be written.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        drawn = Path(scratch, "sample")
        for path, content in _files().items():
            file = drawn / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        try:
            drawn.rename(folder)
        except OSError:
            if not folder.is_dir():  # otherwise, another run has just created it
                raise
    return folder


def _files() -> dict[str, bytes]:
    """Returns the content of every file by its path below the sample's folder."""
    plain = {}
    for name in SIDES:
        for number in range(PER_CLASS):
            plain[f"{name}/{name}_{number:02}.jpg"] = _jpeg(_picture(name, number))
    whole = _jpeg(_picture("square", "cut short"))
    sixteen_bits = np.asarray(_picture("circle", "16 bit").convert("L"), dtype=np.uint16) * 257
    # The sky stays in the transparent pixels: dropping the alpha channel would reveal it.
    cut_out = _picture("pentagon", "cut out")
    cut_out.putalpha(ImageOps.invert(Image.radial_gradient("L")).resize(cut_out.size))
    frames = [
        _picture("hexagon", "moving", shift).quantize(128) for shift in (-0.3, -0.1, 0.1, 0.3)
    ]
    return plain | {
        ".DS_Store": b"\0\0\0\1Bud1".ljust(6148, b"\0"),
        "circle/16_bit.png": _encode(Image.fromarray(sixteen_bits), "PNG"),
        "circle/Thumbs.db": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".ljust(4096, b"\0"),
        "circle/for_print.jpg": _jpeg(_picture("circle", "for print").convert("CMYK")),
        "circle/png_inside.jpg": _encode(_picture("circle", "png inside"), "PNG"),
        "circle/same_as_a_square.jpg": plain["square/square_00.jpg"],
        "hexagon/empty.jpg": b"",
        "hexagon/moving.gif": _encode(
            frames[0], "GIF", save_all=True, append_images=frames[1:], duration=150
        ),
        "octagon/a_text.jpg": b"This was meant to be a picture of an octagon.\n",
        "octagon/on_its_side.jpg": _turned(_picture("octagon", "on its side"), 8),
        "pentagon/cut_out.png": _encode(cut_out, "PNG"),
        "square/black_and_white.jpg": _jpeg(_picture("square", "black and white").convert("L")),
        "square/cut_short.jpg": whole[: len(whole) * 6 // 10] + b"\xff\xd9",
        "triangle/on_its_side.jpg": _turned(_picture("triangle", "on its side"), 6),
        "triangle/upside_down.jpg": _turned(_picture("triangle", "upside down"), 3),
    }


def _picture(shape: str, name: object, shift: float = 0.0) -> Image.Image:
    """Returns a polygon between sky and ground, moved to the right by `shift` times its radius."""
    chance = random.Random(f"{shape} {name}")
    width, height = chance.choice(_SIZES)
    image = ImageOps.colorize(Image.linear_gradient("L"), "#a9d3f5", "#47702e").resize(
        (width, height)
    )
    radius = min(width, height) * chance.uniform(0.24, 0.36)
    center = (
        width * chance.uniform(0.4, 0.6) + shift * radius,
        height * chance.uniform(0.45, 0.55),
    )
    turn, paint = chance.uniform(-10, 10), chance.choice(_PAINTS)
    ImageDraw.Draw(image).regular_polygon((center, radius), SIDES[shape], turn, fill=paint)
    # The same noise for all, like a camera's: without it, the files would be far smaller than
    # photographs.
    noise = np.random.default_rng(7).integers(-7, 8, (height, width, 1), dtype=np.int16)
    return Image.fromarray((np.asarray(image) + noise).clip(0, 255).astype(np.uint8))


def _jpeg(image: Image.Image, **options: Any) -> bytes:
    return _encode(image, "JPEG", quality=88, **options)


def _encode(image: Image.Image, form: str, **options: Any) -> bytes:
    encoded = io.BytesIO()
    image.save(encoded, form, **options)
    return encoded.getvalue()


def _turned(image: Image.Image, orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return _jpeg(image.transpose(STORED[orientation]), exif=exif)
