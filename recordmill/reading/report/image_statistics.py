"""What the sidecars of a dataset add up to for its report: sizes, shapes, samples; one pass, in bounded memory."""

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recordmill.reading.shard import Shard
from recordmill.schemas.dataset.sidecar_row import SidecarRow

Counts = NDArray[np.int64]

BINS_PER_DOUBLING = 4
"""Of sizes and shapes: each bin reaches about 1.19 times as far as the one before."""

SIDE_BINS = 17 * BINS_PER_DOUBLING
"""Sides from 1 pixel to 2**17."""

ASPECT_BINS = 8 * BINS_PER_DOUBLING + 1
"""Width by height from 1:16 to 16:1, square in the middle bin; what is thinner counts at the ends."""

BYTE_BINS = 2 * 36
"""Two a doubling, from 1 byte to 64 GiB."""

MOST_SIZES = 50_000
"""Different sizes that are counted apart; images of further ones count as others."""

MOST_BOXES_COUNTED = 1_000
"""Images with more boxes count as images with this number."""

_CHUNK = 20_000

Place = tuple[Shard, SidecarRow]
"""Where an image is: its shard, and its row of the sidecar."""


@dataclass(slots=True)
class ImageStatistics:
    """The totals.

    Attributes:
        images: rows of images that have a height and a width.
        sizes: images by (width, height), at most `MOST_SIZES` different ones.
        sides: images by (bin of the width, bin of the height), see `SIDE_BINS`.
        aspects: images by bin of width / height, see `ASPECT_BINS`.
        file_bytes: images by bin of their source's bytes, see `BYTE_BINS`.
        channels: images by number of channels.
        pixels: of all images together.
        smallest: width, height and key of the image with the fewest pixels, the first of several; None without images.
        largest: the same with the most.
        boxes: images by number of boxes, see `MOST_BOXES_COUNTED`, where the dataset has boxes.
        samples: for each class asked for, places of images of it.
        named: places of the images asked for, by split and key.
    """

    images: int = 0
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    sides: Counts = field(default_factory=lambda: np.zeros((SIDE_BINS, SIDE_BINS), np.int64))
    aspects: Counts = field(default_factory=lambda: np.zeros(ASPECT_BINS, np.int64))
    file_bytes: Counts = field(default_factory=lambda: np.zeros(BYTE_BINS, np.int64))
    channels: Counter[int] = field(default_factory=Counter)
    pixels: int = 0
    smallest: tuple[int, int, str] | None = None
    largest: tuple[int, int, str] | None = None
    boxes: Counter[int] = field(default_factory=Counter)
    samples: dict[str, list[Place]] = field(default_factory=dict)
    named: dict[tuple[str, str], Place] = field(default_factory=dict)


def gather_statistics(
    shards: Iterable[Shard], wanted: Mapping[str, int], named: Set[tuple[str, str]] = frozenset()
) -> ImageStatistics:
    """Reads the sidecars of all shards once, in the order given.

    Args:
        shards: with sidecars.
        wanted: how many images to keep as samples, by class name, the largest class first; the empty name for images
            without one. An image with several classes is kept for the rarest that still lacks a sample; one image
            stands for several classes only where one of them would have none.
        named: split and key of further images whose places are asked for.

    Raises:
        OSError: a sidecar cannot be read.
    """
    found, samples = ImageStatistics(), _Samples(wanted)
    for shard in shards:
        every = shard.rows()
        while rows := list(islice(every, _CHUNK)):
            samples.look_at(shard, rows)
            found.boxes.update(
                min(row.boxes.get("written", 0), MOST_BOXES_COUNTED) for row in rows if row.boxes is not None
            )
            _count_sizes(found, [row for row in rows if row.height and row.width])
            if named:
                found.named |= {(shard.split, row.key): (shard, row) for row in rows if (shard.split, row.key) in named}
    found.samples = samples.chosen()
    return found


class _Samples:
    """Chooses samples: the rarest class that lacks one has first claim on an image, and none is left without any."""

    def __init__(self, wanted: Mapping[str, int]) -> None:
        self._missing = {name: count for name, count in wanted.items() if count > 0}
        self._rank = {name: rank for rank, name in enumerate(wanted)}
        self._chosen: dict[str, list[Place]] = {name: [] for name in wanted}
        self._first: dict[str, Place] = {}

    def look_at(self, shard: Shard, rows: Iterable[SidecarRow]) -> None:
        for row in rows if self._missing else ():
            names = self._missing.keys() & (row.classes or [row.class_name or ""])
            if not names:
                continue
            for name in names:
                self._first.setdefault(name, (shard, row))
            rarest = max(names, key=self._rank.__getitem__)
            self._chosen[rarest].append((shard, row))
            self._missing[rarest] -= 1
            if not self._missing[rarest]:
                del self._missing[rarest]

    def chosen(self) -> dict[str, list[Place]]:
        """By class, in the order in which they were asked for."""
        return {
            name: kept or [self._first[name]] if name in self._first else kept for name, kept in self._chosen.items()
        }


def _count_sizes(found: ImageStatistics, rows: list[SidecarRow]) -> None:
    if not rows:
        return
    widths = np.array([row.width for row in rows], np.int64)
    heights = np.array([row.height for row in rows], np.int64)
    found.images += len(rows)
    found.channels.update(row.channels or 0 for row in rows)
    for size, count in Counter(zip(widths.tolist(), heights.tolist(), strict=True)).items():
        if size in found.sizes or len(found.sizes) < MOST_SIZES:
            found.sizes[size] += count
    np.add.at(found.sides, (_bin(widths, SIDE_BINS), _bin(heights, SIDE_BINS)), 1)
    found.aspects += np.bincount(bin_aspects(widths / heights), minlength=ASPECT_BINS)
    sizes = np.array([row.bytes for row in rows], np.float64)
    found.file_bytes += np.bincount(_bin(sizes, BYTE_BINS, 2), minlength=BYTE_BINS)
    pixels = widths * heights
    found.pixels += int(pixels.sum())
    least, most = (
        (int(widths[at]), int(heights[at]), rows[at].key) for at in (int(pixels.argmin()), int(pixels.argmax()))
    )
    found.smallest = min(found.smallest or least, least, key=_area)
    found.largest = max(found.largest or most, most, key=_area)


def _area(size: tuple[int, int, str]) -> int:
    return size[0] * size[1]


def _bin(values: NDArray[Any], bins: int, per_doubling: int = BINS_PER_DOUBLING) -> NDArray[np.int64]:
    """Bin `n` begins at 2 ** (n / per_doubling)."""
    # Powers of two must not fall below their bin by a rounding error.
    return np.clip(np.floor(np.log2(np.maximum(values, 1)) * per_doubling + 1e-9), 0, bins - 1).astype(np.int64)


def bin_aspects(aspects: NDArray[np.float64]) -> NDArray[np.int64]:
    """The bins of width / height: of equal ratio, with 1:1 in the middle of the middle one."""
    middle = ASPECT_BINS // 2
    return np.clip(np.rint(np.log2(aspects) * BINS_PER_DOUBLING) + middle, 0, ASPECT_BINS - 1).astype(np.int64)
