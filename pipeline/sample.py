"""A sample collection: 250 small pictures in eight class folders, generated at first use.

Nothing is downloaded, and drawing gives the same bytes every time. As in real folders, not everything is in order:

    boat/cut_short.jpg         a JPEG without its last 40 %, closed with an end marker      rejected
    car/a_text.jpg             text under the name of a JPEG                                rejected
    car/on_its_side.jpg        stored turned right, EXIF orientation 8                      written upright
    fish/empty.jpg             no bytes at all                                              rejected
    fish/swimming.gif          a palette GIF of four frames                                 written, first frame
    flower/cut_out.png         an RGBA PNG, transparent around the flower                   written, flattened
    house/black_and_white.jpg  a grayscale JPEG                                             written
    moon/16_bit.png            a 16-bit grayscale PNG                                       written in 8 bits
    moon/for_print.jpg         a CMYK JPEG                                                  written as RGB
    moon/same_as_a_sun.jpg     the bytes of sun/sun_00.jpg under another label              written twice
    sun/png_inside.jpg         a PNG under the name of a JPEG                               written
    tree/on_its_side.jpg       stored turned left, EXIF orientation 6                       written upright
    tree/upside_down.jpg       stored upside down, EXIF orientation 3                       written upright
    .DS_Store, moon/Thumbs.db  files created by desktop systems                             ignored
"""

import io
import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageOps

FOLDER = Path("out", "sample-2")
"""The sample's folder, next to the dataset. Every change of a drawing needs another number: it replaces old samples."""

PER_CLASS = 30  # plain JPEGs, in addition to the odd files

# Each subject: the colours of its background at the top and at the bottom, and its shapes in a frame from -1 to 1 with
# y growing downwards. A shape is a colour and the points of a polygon, or the two corners of an ellipse. None is a
# colour that each picture chooses for itself.
_SUBJECTS: dict[str, tuple[str, str, list[tuple[str | None, list[tuple[float, float]]]]]] = {
    "boat": ("#bfe3fa", "#1f5f86", [
        ("#5a4632", [(-0.03, -1), (0.03, -1), (0.03, 0.4), (-0.03, 0.4)]),
        ("#fdf6e3", [(0.08, -0.9), (0.08, 0.3), (0.8, 0.3)]),
        (None, [(-0.9, 0.4), (0.9, 0.4), (0.6, 0.85), (-0.6, 0.85)]),
    ]),
    "car": ("#a9d3f5", "#4a4a50", [
        ("#cfe6f2", [(-0.7, 0.1), (-0.45, -0.4), (0.35, -0.4), (0.7, 0.1)]),
        (None, [(-1, 0.1), (0.9, 0.1), (1, 0.5), (-1, 0.5)]),
        ("#202024", [(-0.8, 0.3), (-0.35, 0.75)]),
        ("#202024", [(0.35, 0.3), (0.8, 0.75)]),
    ]),
    "fish": ("#4fb3c8", "#0b3c5d", [
        (None, [(-0.5, 0), (-1, -0.5), (-1, 0.5)]),
        (None, [(-0.7, -0.45), (0.9, 0.45)]),
        ("#ffffff", [(0.4, -0.25), (0.65, 0)]),
        ("#101010", [(0.5, -0.18), (0.6, -0.08)]),
    ]),
    "flower": ("#d9edc3", "#47702e", [
        ("#2f6b2f", [(-0.04, 0), (0.04, 0), (0.1, 1.6), (0, 1.6)]),
        *[(None, [(x - 0.35, y - 0.55), (x + 0.35, y + 0.15)]) for x, y in ((-0.4, 0), (0.4, 0), (0, -0.4), (0, 0.4))],
        ("#f2c230", [(-0.25, -0.45), (0.25, 0.05)]),
    ]),
    "house": ("#b5d8f7", "#6f9a4a", [
        ("#efe2c8", [(-0.8, -0.2), (0.8, -0.2), (0.8, 0.8), (-0.8, 0.8)]),
        (None, [(-1, -0.15), (0, -0.95), (1, -0.15)]),
        ("#6b4a2f", [(-0.15, 0.25), (0.2, 0.25), (0.2, 0.8), (-0.15, 0.8)]),
    ]),
    "moon": ("#0d1030", "#3a2f55", [
        ("#f4ecd0", [(-0.8, -0.8), (0.8, 0.8)]),
        ("#d5cbaa", [(-0.4, -0.5), (0, -0.1)]),
        ("#d5cbaa", [(0.1, 0.1), (0.45, 0.4)]),
    ]),
    "sun": ("#6db4ee", "#f3c98b", [
        ("#f7a823", [(0, -1), (0.25, 0), (0, 1), (-0.25, 0)]),
        ("#f7a823", [(-1, 0), (0, -0.25), (1, 0), (0, 0.25)]),
        ("#ffd23f", [(-0.6, -0.6), (0.6, 0.6)]),
    ]),
    "tree": ("#bfe0f5", "#5f8f3f", [
        ("#5b3f26", [(-0.1, 0), (0.1, 0), (0.15, 1), (-0.15, 1)]),
        ("#2f6b34", [(-0.75, -0.9), (0.25, 0.2)]),
        ("#3b7d3f", [(-0.25, -1), (0.75, 0.2)]),
    ]),
}  # fmt: skip
CLASSES = sorted(_SUBJECTS)
_PAINTS = ["#c8372d", "#e08a1e", "#d9b51c", "#2d8bba", "#3355b5", "#7a3fa0", "#c93a86"]
_SIZES = [(320, 240), (320, 214), (288, 192), (240, 320), (214, 320), (180, 240), (256, 256), (284, 160)]

# By EXIF orientation: how to store pixels so that a viewer who honours it shows them upright.
STORED = {3: Image.Transpose.ROTATE_180, 6: Image.Transpose.ROTATE_90, 8: Image.Transpose.ROTATE_270}


def ensure_sample(folder: Path = FOLDER) -> Path:
    """Draws the sample unless it exists, and returns its folder, which appears complete or not at all.

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
    """The content of every file by its path below the sample's folder."""
    plain = {
        f"{subject}/{subject}_{number:02}.jpg": _jpeg(_picture(subject, number))
        for subject in CLASSES
        for number in range(PER_CLASS)
    }
    whole = _jpeg(_picture("boat", "cut short"))
    sixteen_bits = np.asarray(_picture("moon", "16 bit").convert("L"), dtype=np.uint16) * 257
    return plain | {
        ".DS_Store": b"\0\0\0\1Bud1".ljust(6148, b"\0"),
        "boat/cut_short.jpg": whole[: len(whole) * 6 // 10] + b"\xff\xd9",
        "car/a_text.jpg": b"This was meant to be a picture of a car.\n",
        "car/on_its_side.jpg": _turned(_picture("car", "on its side"), 8),
        "fish/empty.jpg": b"",
        "fish/swimming.gif": _swimming_fish(),
        "flower/cut_out.png": _cut_out(_picture("flower", "cut out")),
        "house/black_and_white.jpg": _jpeg(_picture("house", "black and white").convert("L")),
        "moon/16_bit.png": _encode(Image.fromarray(sixteen_bits), "PNG"),
        "moon/Thumbs.db": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".ljust(4096, b"\0"),
        "moon/for_print.jpg": _jpeg(_picture("moon", "for print").convert("CMYK")),
        "moon/same_as_a_sun.jpg": plain["sun/sun_00.jpg"],
        "sun/png_inside.jpg": _encode(_picture("sun", "png inside"), "PNG"),
        "tree/on_its_side.jpg": _turned(_picture("tree", "on its side"), 6),
        "tree/upside_down.jpg": _turned(_picture("tree", "upside down"), 3),
    }


def _picture(subject: str, name: object, shift: float = 0.0) -> Image.Image:
    """A subject with a colour, size and position of its own, moved to the right by `shift` times its size."""
    chance = random.Random(f"{subject} {name}")
    top, bottom, shapes = _SUBJECTS[subject]
    width, height = chance.choice(_SIZES)
    image = ImageOps.colorize(Image.linear_gradient("L"), top, bottom).resize((width, height))
    paint, size = chance.choice(_PAINTS), min(width, height) * chance.uniform(0.24, 0.36)
    left, up = width * chance.uniform(0.4, 0.6) + shift * size, height * chance.uniform(0.45, 0.55)
    canvas = ImageDraw.Draw(image)
    for colour, points in shapes:
        pixels = [(left + x * size, up + y * size) for x, y in points]
        (canvas.ellipse if len(points) == 2 else canvas.polygon)(pixels, fill=colour or paint)
    # The same noise for all, like a camera's: without it, the files would be far smaller than photographs.
    noise = _noise()[:height, :width] + chance.randrange(-12, 13)
    return Image.fromarray((np.asarray(image, dtype=np.int16) + noise).clip(0, 255).astype(np.uint8))


@cache
def _noise() -> np.ndarray:
    return np.random.default_rng(7).normal(0, 4, (320, 320, 1)).round().astype(np.int16)


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


def _swimming_fish() -> bytes:
    frames = [_picture("fish", "swimming", shift).quantize(128) for shift in (-0.3, -0.1, 0.1, 0.3)]
    return _encode(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=150, loop=0)


def _cut_out(image: Image.Image) -> bytes:
    # The garden stays in the transparent pixels: dropping the alpha channel would reveal it.
    rim = Image.radial_gradient("L").point(lambda distance: max(0, min(255, 4 * (150 - distance))))
    image.putalpha(rim.resize(image.size))
    return _encode(image, "PNG")
