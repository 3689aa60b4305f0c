"""The sample's eight subjects, each time with another colour, size, place, light and background."""

import math
import random
from collections.abc import Callable

from PIL import Image, ImageDraw

from recordmill.pipeline import sample_scenes as scenes
from recordmill.pipeline.sample_scenes import BLACK, OVERSAMPLING, WHITE, Colour, Pen, hsl, mix

SIZES = [(320, 240), (320, 214), (288, 192), (240, 320), (214, 320), (180, 240), (256, 256), (284, 160)]


def draw(subject: str, chance: random.Random, shift: float = 0.0) -> Image.Image:
    """Draws one of `SUBJECTS` as an RGB image, moved to the right by `shift` times its size."""
    width, height = (side * OVERSAMPLING for side in chance.choice(SIZES))
    background, foreground = SUBJECTS[subject]
    image = Image.new("RGB", (width, height))
    background(image, chance)
    size = min(width, height) * chance.uniform(0.24, 0.36)
    centre = (width * chance.uniform(0.43, 0.57) + shift * size, height * chance.uniform(0.46, 0.54))
    pen = Pen(ImageDraw.Draw(image), centre, size, chance.uniform(-0.06, 0.06), chance.random() < 0.5)
    foreground(pen, chance)
    return scenes.as_photographed(image, chance)


def _paint(chance: random.Random) -> Colour:
    """A strong colour, as cars, sails, doors and petals have."""
    return hsl(chance.choice([0, 8, 28, 44, 190, 210, 225, 275, 320, 340]), chance.uniform(0.6, 0.9), 0.52)


def _sun(pen: Pen, chance: random.Random) -> None:
    yellow = hsl(chance.uniform(38, 52), 1.0, 0.56)
    rays, start = chance.randrange(9, 17), chance.uniform(0, 1)
    for ray in range(rays):
        angle, half = math.tau * (ray + start) / rays, 1.1 / rays
        reach = 1.15 if ray % 2 else 0.95
        tip = (reach * math.cos(angle), reach * math.sin(angle))
        base = [(0.72 * math.cos(a), 0.72 * math.sin(a)) for a in (angle - half, angle + half)]
        pen.polygon([*base, tip], mix(yellow, hsl(20, 1.0, 0.5), 0.25))
    pen.disc(0, 0, 0.62, yellow)
    pen.disc(-0.06, -0.06, 0.5, mix(yellow, WHITE, 0.25))
    pen.disc(-0.12, -0.12, 0.34, mix(yellow, WHITE, 0.45))


def _moon(pen: Pen, chance: random.Random) -> None:
    pale = hsl(chance.uniform(38, 58), chance.uniform(0.2, 0.7), 0.86)
    if chance.random() < 0.55:  # a crescent: the outer edge down, an inner one up again
        depth = chance.uniform(0.25, 0.7)
        angles = [math.pi * (i / 30 - 0.5) for i in range(31)]
        outer = [(0.95 * math.cos(a) - 0.3, 0.95 * math.sin(a)) for a in angles]
        inner = [(0.95 * depth * math.cos(a) - 0.3, 0.95 * math.sin(a)) for a in reversed(angles)]
        pen.polygon([*outer, *inner], pale)
        return
    pen.disc(0, 0, 0.85, pale)
    for _ in range(chance.randrange(5, 9)):
        angle, far = chance.uniform(0, math.tau), chance.uniform(0, 0.58)
        x, y, radius = far * math.cos(angle), far * math.sin(angle), chance.uniform(0.06, 0.19)
        pen.disc(x, y, radius, mix(pale, BLACK, 0.2))
        pen.disc(x + 0.02, y + 0.02, radius * 0.8, mix(pale, BLACK, 0.12))


def _tree(pen: Pen, chance: random.Random) -> None:
    bark = hsl(chance.uniform(18, 34), chance.uniform(0.25, 0.45), chance.uniform(0.2, 0.34))
    pen.oval(0, 1.08, 0.6, 0.08, hsl(100, 0.35, 0.27))
    pen.polygon([(-0.09, -0.2), (0.09, -0.2), (0.16, 1.1), (-0.16, 1.1)], bark)
    if chance.random() < 0.4:  # a fir
        green = hsl(chance.uniform(120, 165), 0.4, chance.uniform(0.2, 0.32))
        for tier, (top, wide) in enumerate([(-0.15, 0.72), (-0.6, 0.58), (-1.05, 0.42)]):
            pen.polygon([(0, top - 0.3), (wide, top + 0.78), (-wide, top + 0.78)], mix(green, WHITE, 0.08 * tier))
            pen.polygon([(0, top - 0.3), (0, top + 0.78), (-wide, top + 0.78)], mix(green, WHITE, 0.08 * tier + 0.1))
        return
    leaves = hsl(chance.choice([95, 110, 125, 125, 48, 30, 12, 340]), chance.uniform(0.45, 0.65), 0.36)
    blobs = [(-0.5, -0.1), (0.5, -0.1), (-0.38, -0.55), (0.4, -0.55), (0, -0.85), (0, -0.25)]
    for lift, share in [(0.0, 0.0), (0.12, 0.16), (0.24, 0.3)]:
        for x, y in blobs:
            wobble = chance.uniform(-0.05, 0.05)
            pen.disc(
                (x + wobble) * (1 - lift) - lift / 3, y - lift / 2, 0.44 * (1 - 2 * lift), mix(leaves, WHITE, share)
            )


def _house(pen: Pen, chance: random.Random) -> None:
    wall = hsl(chance.uniform(0, 360), chance.uniform(0.15, 0.5), chance.uniform(0.72, 0.88))
    roof = hsl(chance.choice([5, 15, 22, 210, 230]), chance.uniform(0.25, 0.6), chance.uniform(0.3, 0.45))
    wide, door, glass = chance.uniform(0.8, 1.1), _paint(chance), hsl(200, 0.5, chance.uniform(0.55, 0.8))
    chimney = wide * chance.uniform(0.35, 0.6)
    pen.box(chimney, -0.95, chimney + 0.2, -0.3, mix(roof, BLACK, 0.3))
    for puff in range(chance.randrange(0, 4)):
        pen.disc(chimney + 0.14 + 0.13 * puff, -1.06 - 0.2 * puff, 0.1 + 0.04 * puff, (232, 232, 234))
    pen.box(-wide, -0.2, wide, 0.9, wall)
    pen.box(wide * 0.55, -0.2, wide, 0.9, mix(wall, BLACK, 0.08))
    pen.polygon([(-wide - 0.16, -0.15), (0, chance.uniform(-1.05, -0.8)), (wide + 0.16, -0.15)], roof)
    pen.box(-0.16, 0.3, 0.18, 0.9, door)
    pen.disc(0.11, 0.62, 0.025, WHITE)
    for x in (-wide * 0.62, wide * 0.62):
        pen.box(x - 0.2, 0.1, x + 0.2, 0.5, WHITE)
        pen.box(x - 0.16, 0.14, x - 0.015, 0.46, glass)
        pen.box(x + 0.015, 0.14, x + 0.16, 0.46, glass)
    pen.polygon([(-0.16, 0.9), (0.18, 0.9), (0.4, 1.3), (-0.45, 1.3)], hsl(40, 0.25, 0.72))


def _fish(pen: Pen, chance: random.Random) -> None:
    scales, tall = _paint(chance), chance.uniform(0.36, 0.58)
    fin = mix(scales, _paint(chance), 0.7)
    pen.polygon([(-0.6, 0), (-1.2, -0.5), (-1.02, 0), (-1.2, 0.5)], fin)
    pen.polygon([(-0.3, -tall * 0.8), (0.05, -tall - 0.3), (0.45, -tall * 0.7)], fin)
    pen.polygon([(-0.15, tall * 0.8), (-0.2, tall + 0.25), (0.25, tall * 0.8)], fin)
    pen.oval(0, 0, 0.88, tall, scales)
    pen.oval(0.04, tall * 0.35, 0.74, tall * 0.55, mix(scales, WHITE, 0.35))
    if chance.random() < 0.6:
        for x in (-0.4, -0.1, 0.2):
            reach = tall * math.sqrt(1 - x * x / 0.78) * 0.92
            pen.oval(x, 0, 0.055, reach, mix(fin, WHITE, 0.5))
    pen.oval(0.02, 0.08, 0.2, 0.12, fin, turn=0.5)
    pen.disc(0.56, -tall * 0.25, 0.12, WHITE)
    pen.disc(0.59, -tall * 0.25, 0.06, BLACK)
    for bubble in range(chance.randrange(2, 6)):
        pen.disc(1.0 + chance.uniform(-0.1, 0.2), -0.2 - 0.22 * bubble, 0.04 + 0.015 * bubble, (205, 235, 245))


def _flower(pen: Pen, chance: random.Random) -> None:
    petal, petals, start = _paint(chance), chance.randrange(5, 14), chance.uniform(0, 1)
    stem = hsl(chance.uniform(95, 130), 0.45, chance.uniform(0.25, 0.36))
    pen.polygon([(-0.04, 0), (0.05, 0), (0.12, 2.4), (0.0, 2.4)], stem)
    pen.oval(0.34, 1.05, 0.34, 0.13, mix(stem, WHITE, 0.12), turn=-0.6)
    pen.oval(-0.28, 1.25, 0.34, 0.13, stem, turn=0.6)
    y, wide = -0.15, min(0.3, 2.2 / petals)
    for share, reach in [(0.0, 0.5), (0.3, 0.42)]:
        for number in range(petals):
            angle = math.tau * (number + start + share) / petals
            x_petal, y_petal = reach * math.cos(angle), y + reach * math.sin(angle)
            pen.oval(x_petal, y_petal, reach * 0.8, wide * (1 - share), mix(petal, WHITE, share), turn=angle)
    heart = hsl(chance.choice([28, 44, 48]), chance.uniform(0.6, 0.95), chance.uniform(0.35, 0.55))
    pen.disc(0, y, 0.25, heart)
    pen.disc(-0.04, y - 0.04, 0.16, mix(heart, WHITE, 0.2))


def _car(pen: Pen, chance: random.Random) -> None:
    paint, glass = _paint(chance), hsl(205, 0.35, chance.uniform(0.6, 0.8))
    roof = chance.uniform(-0.42, -0.25)
    rear = chance.uniform(-1.0, -0.6)
    pen.oval(0, 0.68, 1.25, 0.08, (52, 52, 58))
    pen.polygon([(rear, 0.12), (rear + 0.22, roof), (0.3, roof), (0.72, 0.12)], mix(paint, BLACK, 0.12))
    pen.polygon([(rear + 0.16, 0.1), (rear + 0.3, roof + 0.09), (-0.2, roof + 0.09), (-0.2, 0.1)], glass)
    pen.polygon([(-0.1, 0.1), (-0.1, roof + 0.09), (0.26, roof + 0.09), (0.58, 0.1)], mix(glass, WHITE, 0.25))
    pen.polygon([(-1.2, 0.14), (0.75, 0.08), (1.16, 0.2), (1.22, 0.52), (-1.22, 0.52)], paint)
    pen.box(-1.22, 0.42, 1.22, 0.54, mix(paint, BLACK, 0.25))
    pen.box(-0.17, 0.14, -0.145, 0.46, mix(paint, BLACK, 0.35))
    pen.box(-0.36, 0.2, -0.22, 0.24, mix(paint, WHITE, 0.6))
    pen.oval(1.12, 0.29, 0.07, 0.08, (255, 246, 200))
    pen.box(-1.22, 0.22, -1.13, 0.36, (214, 40, 40))
    for x in (-0.72, 0.72):
        pen.disc(x, 0.5, 0.25, (34, 34, 38))
        pen.disc(x, 0.5, 0.13, (196, 198, 204))
        pen.disc(x, 0.5, 0.05, (90, 92, 98))


def _boat(pen: Pen, chance: random.Random) -> None:
    hull, sail = _paint(chance), chance.choice([WHITE, (250, 240, 220), _paint(chance)])
    pen.box(-0.03, -1.1, 0.03, 0.4, hsl(28, 0.4, 0.3))
    pen.polygon([(0.06, -1.0), (0.06, 0.24), (chance.uniform(0.6, 0.85), 0.24)], sail)
    pen.polygon([(-0.06, -0.9), (-0.06, 0.24), (chance.uniform(-0.75, -0.45), 0.24)], mix(sail, BLACK, 0.12))
    pen.polygon([(0.0, -1.1), (0.0, -1.26), (-0.3, -1.16)], _paint(chance))
    pen.polygon([(-0.95, 0.32), (1.05, 0.32), (0.72, 0.78), (-0.7, 0.78)], hull)
    pen.polygon([(-0.95, 0.32), (1.05, 0.32), (1.0, 0.4), (-0.9, 0.4)], mix(hull, WHITE, 0.6))
    for x in (-0.4, 0.0, 0.4):
        pen.disc(x, 0.54, 0.07, mix(hull, WHITE, 0.75))
    foam = hsl(200, 0.5, 0.82)
    for x in (-0.9, -0.45, 0.0, 0.45, 0.9):
        pen.oval(x, 0.8, 0.3, 0.06, foam)


Background = Callable[[Image.Image, random.Random], None]
Foreground = Callable[[Pen, random.Random], None]

SUBJECTS: dict[str, tuple[Background, Foreground]] = {
    "boat": (scenes.sea, _boat),
    "car": (scenes.road, _car),
    "fish": (scenes.under_water, _fish),
    "flower": (scenes.garden, _flower),
    "house": (scenes.meadow, _house),
    "moon": (scenes.night, _moon),
    "sun": (scenes.sunny, _sun),
    "tree": (scenes.meadow, _tree),
}
