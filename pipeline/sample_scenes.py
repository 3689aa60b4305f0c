"""What the sample's drawings stand in: colours, a pen, backgrounds, and a camera's finish."""

import colorsys
import math
import random
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageOps

Colour = tuple[int, int, int]
Point = tuple[float, float]

OVERSAMPLING = 2  # drawn this many times larger, then averaged, which smooths the edges
NOISE = 4.0  # standard deviation, of 255


@dataclass(frozen=True, slots=True)
class Pen:
    """Draws in a subject's own frame: (0, 0) is its centre, 1 is `size` pixels away, and y grows downwards.

    Every shape is a polygon, so that turning and mirroring are a matter of the pen alone.
    """

    canvas: ImageDraw.ImageDraw
    centre: Point
    size: float
    turn: float = 0.0
    mirrored: bool = False

    def polygon(self, points: Iterable[Point], fill: Colour) -> None:
        """Fills the outline through `points`."""
        cos, sin = math.cos(self.turn) * self.size, math.sin(self.turn) * self.size
        side = -1 if self.mirrored else 1
        x0, y0 = self.centre
        self.canvas.polygon([(x0 + side * (x * cos - y * sin), y0 + x * sin + y * cos) for x, y in points], fill=fill)

    def oval(self, x: float, y: float, rx: float, ry: float, fill: Colour, turn: float = 0.0) -> None:
        """Fills the oval around (x, y) with half-axes rx and ry."""
        cos, sin = math.cos(turn), math.sin(turn)
        ring = [(rx * c, ry * s) for c, s in _circle()]
        self.polygon([(x + a * cos - b * sin, y + a * sin + b * cos) for a, b in ring], fill)

    def disc(self, x: float, y: float, radius: float, fill: Colour) -> None:
        """Fills the circle around (x, y)."""
        self.oval(x, y, radius, radius, fill)

    def box(self, left: float, top: float, right: float, bottom: float, fill: Colour) -> None:
        """Fills the rectangle between two corners."""
        self.polygon([(left, top), (right, top), (right, bottom), (left, bottom)], fill)


@cache
def _circle() -> list[Point]:
    return [(math.cos(math.tau * i / 40), math.sin(math.tau * i / 40)) for i in range(40)]


def hsl(hue: float, saturation: float, lightness: float) -> Colour:
    """A colour by hue (degrees), saturation and lightness (0 to 1)."""
    red, green, blue = colorsys.hls_to_rgb(hue / 360 % 1, lightness, saturation)
    return round(255 * red), round(255 * green), round(255 * blue)


def mix(one: Colour, other: Colour, share: float) -> Colour:
    """`one` with `share` (0 to 1) of `other` in it."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


WHITE, BLACK = (255, 255, 255), (0, 0, 0)


def as_photographed(image: Image.Image, chance: random.Random) -> Image.Image:
    """Averages the oversampled drawing down, and adds a camera's noise and a little more or less light."""
    image = image.reduce(OVERSAMPLING)
    left, top = chance.randrange(64), chance.randrange(64)
    noise = _noise()[top : top + image.height, left : left + image.width]
    pixels = np.asarray(image, dtype=np.int16) + noise + chance.randrange(-12, 13)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


@cache
def _noise() -> np.ndarray:
    # One sheet for all images, each taking another window of it: drawing noise anew would take longer than the images.
    sheet = np.random.default_rng(7).normal(0, NOISE, (400, 400, 1))
    return sheet.round().astype(np.int16)


def _gradient(image: Image.Image, top: Colour, bottom: Colour) -> None:
    image.paste(ImageOps.colorize(Image.linear_gradient("L"), top, bottom).resize(image.size))


def ridge(image: Image.Image, chance: random.Random, level: float, swing: float, fill: Colour) -> None:
    """Fills everything below a wavy line at `level` of the height: hills, dunes, waves."""
    width, height = image.size
    waves = chance.uniform(0.8, 2.2) * math.tau / width
    start = chance.uniform(0, math.tau)
    line = [(x, height * (level + swing * math.sin(start + waves * x))) for x in range(0, width + 8, 8)]
    ImageDraw.Draw(image).polygon([*line, (width, height), (0, height)], fill=fill)


def day(image: Image.Image, chance: random.Random) -> None:
    """A blue sky with clouds."""
    sky = hsl(chance.uniform(190, 225), chance.uniform(0.5, 0.85), chance.uniform(0.5, 0.68))
    _gradient(image, sky, mix(sky, WHITE, 0.75))
    width, height = image.size
    for _ in range(chance.randrange(1, 4)):
        puff = Pen(ImageDraw.Draw(image), (chance.uniform(0, width), height * chance.uniform(0.05, 0.3)), width * 0.08)
        for x in (-0.9, -0.3, 0.4, 1.0):
            puff.oval(x, chance.uniform(-0.25, 0.0), 0.65, chance.uniform(0.3, 0.5), mix(sky, WHITE, 0.85))


def meadow(image: Image.Image, chance: random.Random) -> None:
    """Two green hills below a sky."""
    day(image, chance)
    green = hsl(chance.uniform(75, 130), chance.uniform(0.3, 0.55), chance.uniform(0.36, 0.5))
    ridge(image, chance, 0.62, 0.05, mix(green, hsl(205, 0.5, 0.8), 0.35))
    ridge(image, chance, 0.74, 0.03, green)


def evening(image: Image.Image, chance: random.Random) -> None:
    """A sky at dusk."""
    sky = hsl(chance.choice([205, 215, 265, 330, 350]), 0.55, chance.uniform(0.5, 0.65))
    _gradient(image, sky, hsl(chance.uniform(25, 48), 0.95, 0.74))


def night(image: Image.Image, chance: random.Random) -> None:
    """A dark sky with stars."""
    sky = hsl(chance.uniform(215, 265), chance.uniform(0.4, 0.65), chance.uniform(0.09, 0.17))
    _gradient(image, sky, mix(sky, hsl(chance.choice([200, 260, 320]), 0.5, 0.5), 0.45))
    width, height = image.size
    for _ in range(chance.randrange(25, 60)):
        star = Pen(ImageDraw.Draw(image), (chance.uniform(0, width), chance.uniform(0, height)), 1.0)
        star.disc(0, 0, chance.choice([1.2, 1.6, 2.6]), mix(sky, WHITE, chance.uniform(0.5, 0.95)))


def sea(image: Image.Image, chance: random.Random) -> None:
    """Water up to the horizon."""
    (day if chance.random() < 0.65 else evening)(image, chance)
    water = hsl(chance.uniform(185, 215), chance.uniform(0.45, 0.7), chance.uniform(0.34, 0.46))
    ridge(image, chance, 0.62, 0.0, mix(water, WHITE, 0.3))
    ridge(image, chance, 0.7, 0.008, mix(water, WHITE, 0.12))


def under_water(image: Image.Image, chance: random.Random) -> None:
    """Deep water, sand and weed."""
    water = hsl(chance.uniform(170, 220), chance.uniform(0.5, 0.8), chance.uniform(0.5, 0.62))
    _gradient(image, water, mix(water, BLACK, 0.6))
    width, height = image.size
    ridge(image, chance, 0.9, 0.02, mix(hsl(42, 0.5, 0.6), water, 0.35))
    for _ in range(chance.randrange(3, 8)):
        x, top = chance.uniform(0, width), height * chance.uniform(0.55, 0.85)
        weed = hsl(chance.uniform(95, 150), 0.5, chance.uniform(0.2, 0.34))
        line = [(x + 9 * math.sin(y / 22 + x), y) for y in range(int(top), height + 8, 8)]
        ImageDraw.Draw(image).line(line, fill=weed, width=10, joint="curve")


def garden(image: Image.Image, chance: random.Random) -> None:
    """Leaves out of focus."""
    green = hsl(chance.uniform(80, 160), chance.uniform(0.25, 0.5), chance.uniform(0.3, 0.6))
    _gradient(image, mix(green, WHITE, 0.5), mix(green, BLACK, 0.35))
    width, height = image.size
    for _ in range(18):
        spot = Pen(ImageDraw.Draw(image), (chance.uniform(0, width), chance.uniform(0, height)), height * 0.1)
        y = spot.centre[1] / height
        spot.disc(
            0, 0, chance.uniform(0.3, 1.1), mix(green, WHITE, max(0.0, 0.55 - 0.6 * y + chance.uniform(-0.1, 0.1)))
        )


def road(image: Image.Image, chance: random.Random) -> None:
    """A road before hills or a dusk."""
    (meadow if chance.random() < 0.6 else evening)(image, chance)
    asphalt = hsl(230, 0.05, chance.uniform(0.32, 0.45))
    ridge(image, chance, 0.68, 0.0, mix(asphalt, WHITE, 0.35))
    ridge(image, chance, 0.7, 0.0, asphalt)
    width, height = image.size
    for x in range(chance.randrange(-60, 0), width, 120):
        ImageDraw.Draw(image).rectangle((x, height * 0.9, x + 64, height * 0.9 + 8), fill=mix(asphalt, WHITE, 0.7))


def sunny(image: Image.Image, chance: random.Random) -> None:
    """A sky by day or at dusk, over dark hills or a sea."""
    (day if chance.random() < 0.5 else evening)(image, chance)
    ground = hsl(chance.choice([100, 130, 205, 260]), 0.3, chance.uniform(0.25, 0.4))
    ridge(image, chance, 0.84, 0.03, mix(ground, WHITE, 0.25))
    ridge(image, chance, 0.91, 0.02, ground)
