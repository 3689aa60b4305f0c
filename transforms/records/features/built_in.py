"""The functions that need no code of the user's, by the names that YAML gives them."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from recordmill.imaging.pixels import copy_pixels, moments, to_image, to_raster
from recordmill.imaging.resize import difference_hash as hash_of
from recordmill.schemas.content import Pixels

BINS = 8
"""Of the colour histogram, for each channel."""


def mean_std(image: Pixels) -> list[float]:
    """Mean of red, green and blue, then their standard deviations, 0 to 255; gray counts as three equal channels."""
    taken = np.array(moments(np.ascontiguousarray(image)), dtype=np.float64) / (image.shape[0] * image.shape[1])
    means, squares = np.broadcast_to(taken, (3, 2)).T
    found = np.concatenate([means, np.sqrt(np.maximum(squares - means**2, 0))])
    return [float(value) for value in found]


def color_histogram(image: Pixels) -> list[float]:
    """Shares of pixels by red, then green, then blue, in eight bins each: 24 numbers; each group of eight sums to 1."""
    channels = image.shape[2]
    mode = "RGBX" if channels == 4 else "L" if channels == 1 else "RGB"
    size = (image.shape[1], image.shape[0])
    shown = Image.frombuffer(mode, size, np.ascontiguousarray(image), "raw", mode, 0, 1)
    counts = np.array(shown.histogram(), dtype=np.int64).reshape(-1, BINS, 256 // BINS)[:3].sum(2)
    shares = np.broadcast_to(counts / counts.sum(1, keepdims=True), (3, BINS))
    return [float(value) for value in shares.ravel()]


def difference_hash(image: Pixels) -> bytes:
    """64 bits in hex; few differ where images look alike: see `imaging.dhash`."""
    raster = np.ascontiguousarray(image)
    return f"{hash_of(raster if image.shape[2] != 3 else to_raster(to_image(raster))):016x}".encode()


def pixels_sha256(image: Pixels) -> bytes:
    """SHA-256 in hex of the pixels, row by row, the channels of each together."""
    pixels = image if image.shape[2] != 4 else copy_pixels(image)
    return hashlib.sha256(np.ascontiguousarray(pixels).data).hexdigest().encode()


def file_sha256(data: bytes, uri: str) -> bytes:
    """SHA-256 in hex of the file's bytes."""
    return hashlib.sha256(data).hexdigest().encode()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (mean_std, color_histogram, difference_hash, pixels_sha256, file_sha256)
}
"""By the names that `schemas.settings.feature_function` knows; of pixels (height, width, 1 or 3 channels, or 4 whose
last one says nothing), or of a file's bytes and uri."""
