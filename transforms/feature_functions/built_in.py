"""The functions that need no code of the user's, by the names that YAML gives them."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from PIL import Image

from schemas.content import Pixels
from schemas.features import Kind
from transforms.imaging.difference_hash import difference_hash as hash_of
from transforms.imaging.pixels import to_raster

BINS = 8
"""Of the colour histogram, for each channel."""


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A function and what it gives.

    Attributes:
        function: what computes it: of pixels (height, width, 1 or 3 channels), or of a file's bytes and uri.
        of: which of the two.
        kind: the list of an Example that its values go to.
        many: whether it gives a list.
        meaning: one line for people.
    """

    function: Callable[..., Any]
    of: Literal["image", "file"]
    kind: Kind
    many: bool
    meaning: str


def mean_std(image: Pixels) -> list[float]:
    """Mean of red, green and blue, then their standard deviations, 0 to 255; gray counts as three equal channels."""
    counts = _channel_counts(image).astype(np.float64)
    values = np.arange(256)
    means = counts @ values / counts.sum(1)
    variances = counts @ values**2 / counts.sum(1) - means**2
    found = np.concatenate([means, np.sqrt(np.maximum(variances, 0))])
    return [float(value) for value in found]


def color_histogram(image: Pixels) -> list[float]:
    """Shares of pixels by red, then green, then blue, in eight bins each: 24 numbers, each eight of which sum to 1."""
    counts = _channel_counts(image).reshape(3, BINS, -1).sum(2)
    return [float(value) for value in (counts / counts.sum(1, keepdims=True)).ravel()]


def difference_hash(image: Pixels) -> bytes:
    """64 bits in hex, of which few differ where images look alike; see `transforms.imaging.difference_hash`."""
    return f"{hash_of(to_raster(_as_image(image))):016x}".encode()


def pixels_sha256(image: Pixels) -> bytes:
    """SHA-256 in hex of the pixels, row by row, the channels of each together."""
    return hashlib.sha256(image.tobytes()).hexdigest().encode()


def file_sha256(data: bytes, uri: str) -> bytes:
    """SHA-256 in hex of the file's bytes."""
    return hashlib.sha256(data).hexdigest().encode()


def _channel_counts(image: Pixels) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How often each value occurs: (3, 256)."""
    histogram = _as_image(image).histogram()  # several times numpy's speed
    counts = np.array(histogram, dtype=np.int64).reshape(-1, 256)
    return counts.repeat(3, axis=0) if image.shape[2] == 1 else counts


def _as_image(image: Pixels) -> Image.Image:
    return Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image)


BUILT_IN = {
    "mean_std": BuiltIn(
        mean_std, "image", "float", True, "mean of red, green and blue, then their standard deviations, 0 to 255"
    ),
    "color_histogram": BuiltIn(
        color_histogram, "image", "float", True, "shares of pixels in 8 bins of red, 8 of green and 8 of blue"
    ),
    "difference_hash": BuiltIn(
        difference_hash, "image", "bytes", False, "64 bits in hex, which differ little for images that look alike"
    ),
    "pixels_sha256": BuiltIn(pixels_sha256, "image", "bytes", False, "SHA-256 of the decoded pixels, in hex"),
    "file_sha256": BuiltIn(file_sha256, "file", "bytes", False, "SHA-256 of the file, in hex"),
}
"""By name."""
