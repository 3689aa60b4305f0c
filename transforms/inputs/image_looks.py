"""What images look like: photographs, drawings or masks."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from PIL import Image

from recordmill.transforms.inputs.pair_names import AGREEMENT

T = TypeVar("T")

LOSSLESS = (".png", ".gif", ".bmp", ".tif", ".tiff")
"""Extensions of masks: JPEG would change their values."""

SAMPLED_FILES = 16
SAMPLED_FOLDERS = 8
"""How many files are read, in how many folders."""

MOST_LEVELS = 64
"""The most values in a mask."""

MOST_GRAY_LEVELS = 8
"""The same if the photographs are gray, too."""

MOST_OF_ONE_VALUE = 0.6
"""The largest share of a photograph's pixels that have the same value: drawings have more."""

MOST_PIXELS = 2**25
"""Larger images are not decoded, which would take long."""


@dataclass(frozen=True, slots=True)
class Appearance:
    """What an image looks like.

    Attributes:
        channels: 1 if it has one channel or a palette, or shades of gray only.
        levels: its values, at most 256; 2 if nearly all are near two values.
        most: the largest share of pixels that have the same value.
    """

    channels: int
    levels: int
    most: float = 0.0

    @property
    def is_mask(self) -> bool:
        """Whether it looks like a mask."""
        return self.channels == 1 and self.levels <= MOST_LEVELS

    @property
    def is_drawn(self) -> bool:
        """Whether it has few values or colors, as masks and drawings in color have."""
        return self.levels <= MOST_LEVELS

    @property
    def is_photograph(self) -> bool:
        """Whether it looks like a photograph, not like a mask or a drawing."""
        return not self.is_mask and self.most <= MOST_OF_ONE_VALUE


def look_at_image(data: bytes) -> Appearance | None:
    """Looks at a file's pixels; None if it cannot be decoded."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.draft(None, (512, 512))
            if image.width * image.height > MOST_PIXELS:
                return None
            one_channel = image.mode in ("1", "L", "P", "I", "I;16", "F")
            colors: Any = (image if one_channel else image.convert("RGB")).getcolors(65_536) or []
    except Exception:  # noqa: BLE001  # the conversion says what is wrong with it
        return None
    total = sum(count for count, _ in colors)
    most = max((count for count, _ in colors), default=0) / max(total, 1)
    if not one_channel and colors and all(max(value) - min(value) <= 6 for _, value in colors):
        colors = [(count, value[1]) for count, value in colors]
        one_channel = True
    if one_channel:
        return Appearance(1, _count_levels(colors), most)
    return Appearance(3, min(len(colors) or 256, 256), most)


def look_at_wide_gray(data: bytes) -> Appearance | None:
    """Looks at the pixels of a gray image of 16 bits; None if it is none, or cannot be decoded.

    Only where names say what images are: a mask is as flat as many measurements.
    """
    try:
        with Image.open(io.BytesIO(data)) as image:
            is_wide = image.mode in ("I", "I;16", "I;16B")
            if not is_wide or image.width * image.height > MOST_PIXELS:
                return None
            values, counts = np.unique(np.asarray(image), return_counts=True)
    except Exception:  # noqa: BLE001  # the conversion says what is wrong with it
        return None
    levels = _count_levels([*zip(counts.tolist(), values.tolist(), strict=True)])
    return Appearance(1, levels, int(counts.max()) / int(counts.sum()))


def _count_levels(colors: Sequence[tuple[int, float]]) -> int:
    """Returns the number of values, or 2 if nearly all pixels are near two of them."""
    if not colors:
        return 256
    total = sum(count for count, _ in colors)
    low, high = min(value for _, value in colors), max(value for _, value in colors)
    near = (high - low) / 10
    ends = [
        sum(count for count, value in colors if abs(value - end) <= near) for end in (low, high)
    ]
    between = total - sum(ends)
    levels = len({value for _, value in colors})
    if levels > 2 and between <= min((1 - AGREEMENT) * total, min(ends) / 2):
        return 2
    return min(levels, 256)


Looker = Callable[[str], Appearance | None]
"""Looks at the image with that path below the input; None if it cannot be read."""


def spread(items: Sequence[T], most: int) -> list[T]:
    """Returns a sample of the items, from the first to the last."""
    count = min(most, len(items))
    return [items[at * len(items) // count] for at in range(count)]
