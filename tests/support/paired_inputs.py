"""Small collections of images, and of images with masks or other second images."""

import io
import random

from PIL import Image


def photo(seed: object, kind: str = "JPEG") -> bytes:
    """A photograph-like picture, another one for each seed."""
    noise = random.Random(f"{seed}").randbytes(6 * 4 * 3)
    return _encoded(Image.frombytes("RGB", (6, 4), noise).resize((24, 16)), kind)


def mask(seed: object, kind: str = "PNG", mode: str = "L") -> bytes:
    """A mask of two values, of the same size; `RGB` is a colored one."""
    draw = random.Random(f"{seed} mask")
    image = Image.new("L", (24, 16), 0)
    image.paste(255, (2, 2, draw.randrange(6, 22), draw.randrange(6, 14)))
    if mode == "P":
        image = image.convert("P")
    if mode == "RGB":
        colored = Image.new("RGB", (24, 16), (128, 64, 0))
        colored.paste((0, 64, 128), (3, 3, draw.randrange(6, 22), 12))
        image = colored
    return _encoded(image, kind)


def digit(seed: object, values: int = 120) -> bytes:
    """A drawing in gray, as MNIST's are: black around strokes of many grays."""
    draw = random.Random(f"{seed} digit")
    image = Image.new("L", (28, 28), 0)
    for at in range(values):
        image.putpixel((4 + at % 20, 4 + at // 20), draw.randrange(1, 256))
    return _encoded(image, "PNG")


def _encoded(image: Image.Image, kind: str) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind)
    return stream.getvalue()


def photos(folder: str, names: list[str], ending: str = "jpg") -> dict[str, bytes]:
    """Photographs in a folder, of these names."""
    kind = {"jpg": "JPEG", "png": "PNG", "bmp": "BMP"}[ending]
    return {f"{folder}/{name}.{ending}": photo((folder, name), kind) for name in names}


def masks(folder: str, names: list[str], mode: str = "L", after: str = "") -> dict[str, bytes]:
    """Masks in a folder, of these names."""
    return {f"{folder}/{name}{after}.png": mask((folder, name), mode=mode) for name in names}


def counted(most: int, first: int = 0) -> list[str]:
    """Names that are counters."""
    return [f"{number:03}" for number in range(first, first + most)]
