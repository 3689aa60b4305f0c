"""Decoded pixels as arrays, the form that libjpeg-turbo reads and writes, and their way to Pillow and back."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

# Values 0 to 255, of shape (height, width, 1), gray, or (height, width, 4): red, green, blue and a byte without
# meaning. Four bytes a pixel are also what Pillow works on, so that its C code can take the same memory.
Raster: TypeAlias = NDArray[np.uint8]

Moments: TypeAlias = tuple[tuple[int, int], ...]

_VALUES = np.arange(256, dtype=np.int64)
_POWERS = np.stack([_VALUES, _VALUES**2], axis=1)  # (256, 2): times the histogram, sum and sum of squares


def count_channels(raster: Raster) -> int:
    """1 or 3."""
    return 1 if raster.shape[2] == 1 else 3


def to_image(raster: Raster) -> Image.Image:
    """A copy as an image of mode L or RGB."""
    height, width, channels = raster.shape
    mode, raw = ("L", "L") if channels == 1 else ("RGB", "RGBX")
    return Image.frombytes(mode, (width, height), raster, "raw", raw)


def to_raster(image: Image.Image) -> Raster:
    """A copy of an image of mode L or RGB."""
    raw = image.tobytes("raw", "L" if image.mode == "L" else "RGBX")
    return np.frombuffer(raw, np.uint8).reshape(image.height, image.width, -1)


def pixels_of(raster: Raster) -> NDArray[np.uint8]:
    """The pixels alone, as a view: height, width, 1 or 3 channels, red first."""
    return raster[:, :, : count_channels(raster)]


def moments(raster: Raster) -> Moments:
    """Each channel's sum and sum of squares, exact: a picture's squares of 255 stay far below 2**63."""
    height, width, channels = raster.shape
    mode = "L" if channels == 1 else "RGBX"
    shown = Image.frombuffer(mode, (width, height), raster, "raw", mode, 0, 1)  # no copy; several times numpy's speed
    histogram = np.array(shown.histogram(), dtype=np.int64).reshape(-1, 256)[: count_channels(raster)]
    return tuple((total, squares) for total, squares in (histogram @ _POWERS).tolist())
