"""Functions for `images.function` and `keep`. Copy this file, and change it.

PYTHONPATH=examples recordmill run --input photos --output dataset --set
images.function=hooks:crop_square
"""

import numpy as np
from numpy.typing import NDArray

import recordmill


def crop_square(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The largest square in the middle of an image.

    Args:
        image: height x width x 1 or 3 values from 0 to 255, upright, in sRGB.
    """
    height, width, _ = image.shape
    side = min(height, width)
    if side < 8:
        raise recordmill.Reject(f"{width} x {height} pixels are too few")
    top, left = (height - side) // 2, (width - side) // 2
    return image[top : top + side, left : left + side]


def is_colorful(image: NDArray[np.uint8]) -> bool:
    """Whether red, green and blue differ by more than 8 on average.

    Args:
        image: as it is stored.
    """
    return bool(np.ptp(image.astype(np.int16), axis=2).mean() > 8)
