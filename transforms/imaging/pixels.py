"""Decoded pixels as arrays, the form that libjpeg-turbo reads and writes, and their way to Pillow and back."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

# Values 0 to 255, of shape (height, width, 1), gray, or (height, width, 4): red, green, blue and a byte without
# meaning. Four bytes a pixel are also what Pillow works on, so that its C code can take the same memory.
Raster: TypeAlias = NDArray[np.uint8]

Moments: TypeAlias = tuple[tuple[int, int], ...]

_SLAB_BYTES = 2**17  # what stays in a processor's cache while it is squared and added up


_MODES = {1: ("L", "L"), 3: ("RGB", "RGB"), 4: ("RGB", "RGBX")}


def count_channels(raster: Raster) -> int:
    """1 or 3."""
    return 1 if raster.shape[2] == 1 else 3


def to_image(raster: Raster) -> Image.Image:
    """A copy as an image of mode L or RGB; also of pixels of three bytes."""
    height, width, channels = raster.shape
    mode, raw = _MODES[channels]
    return Image.frombytes(mode, (width, height), raster, "raw", raw)


def to_raster(image: Image.Image) -> Raster:
    """A copy of an image of mode L or RGB."""
    raw = image.tobytes("raw", "L" if image.mode == "L" else "RGBX")
    return np.frombuffer(raw, np.uint8).reshape(image.height, image.width, -1)


def copy_pixels(raster: Raster) -> NDArray[np.uint8]:
    """A copy of the pixels alone: height, width, 1 or 3 channels, red first."""
    # Pillow takes the fourth byte away in a quarter of the time of numpy's slice.
    return raster.copy() if raster.shape[2] == 1 else np.array(to_image(raster))


def moments(raster: Raster) -> Moments:
    """Each channel's sum and sum of squares, exact; also of pixels of three bytes.

    It takes what Pillow's histogram takes, but lets other threads run meanwhile.
    """
    height, width, channels = raster.shape
    rows = raster.reshape(height, width * channels)
    # No more than 2**16 rows, so that squares of 255 stay below 2**32.
    step = max(1, min(2**16, _SLAB_BYTES // max(1, rows.shape[1])))
    sums = np.zeros((2, rows.shape[1]), np.uint64)
    for start in range(0, height, step):
        slab = rows[start : start + step]
        sums[0] += np.add.reduce(slab, axis=0, dtype=np.uint32)
        sums[1] += np.add.reduce(np.multiply(slab, slab, dtype=np.uint16), axis=0, dtype=np.uint32)
    totals = sums.reshape(2, width, channels).sum(axis=1)[:, : count_channels(raster)]
    return tuple((total, squares) for total, squares in totals.T.tolist())
