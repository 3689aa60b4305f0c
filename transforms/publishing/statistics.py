"""What the sidecars of a dataset add up to: sizes, shapes, bytes, examples; one pass, in bounded memory.

The sidecars are read in the order given, so that the same dataset gives the same statistics wherever it was made.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recordmill.schemas.dataset.shard_report import ShardReport
from recordmill.schemas.dataset.sidecar_row import RejectedRow, Row, SidecarRow
from recordmill.storage.dataset_files import read_rows, shard_path
from recordmill.transforms.publishing.digest_index import DigestIndex, Digests

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

LOSSLESS = (".bmp", ".gif", ".pbm", ".pgm", ".png", ".ppm", ".tif", ".tiff")
"""How the names of files end whose formats keep every pixel, nearly always: sidecars do not say the format."""

REJECTED_EXAMPLES = 5
"""Rejected images that are kept of each reason."""

MOST_BOXES_COUNTED = 1_000
"""Images with more boxes count as images with this number."""

_CHUNK = 20_000


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A shard's sidecar: its split, and where it and its TFRecord file are."""

    split: str
    path: str
    shard: str


Place = tuple[Sidecar, SidecarRow]
"""Where an image is: its shard's sidecar, and its row there."""


def list_sidecars(reports: Iterable[ShardReport], staging: str) -> list[Sidecar]:
    """The sidecars of shards in a staging folder, in the shards' order."""
    ordered = sorted(reports, key=attrgetter("place"))
    return [
        Sidecar(
            report.split,
            shard_path(staging, report.split, report.index, "jsonl"),
            shard_path(staging, report.split, report.index, "tfrecord"),
        )
        for report in ordered
    ]


@dataclass(slots=True)
class Reencoded:
    """Images whose bytes were changed: how many, the bytes of their files, and of their records."""

    images: int = 0
    before: int = 0
    after: int = 0

    def add(self, row: SidecarRow) -> None:
        """Counts one image."""
        self.images += 1
        self.before += row.bytes
        self.after += row.length


@dataclass(slots=True)
class Statistics:
    """The totals.

    Attributes:
        images: rows of written images that have a height and a width.
        contents: the first 64 bits of each written image's SHA-256, in the rows' order.
        hashes: the difference hashes, in the same order, 8 bytes each; empty where they were not taken.
        sizes: images by (width, height), at most `MOST_SIZES` different ones.
        sides: images by (bin of the width, bin of the height), see `SIDE_BINS`.
        aspects: images by bin of width / height, see `ASPECT_BINS`.
        file_bytes: images by bin of their source's bytes, see `BYTE_BINS`.
        channels: images by number of channels.
        pixels: of all images together.
        smallest: width, height and key of the image with the fewest pixels, the first of several; None without images.
        largest: the same with the most.
        reencoded: images whose bytes were changed.
        lossless: those of them whose names are those of formats without loss.
        boxes: images by number of boxes, see `MOST_BOXES_COUNTED`, where the dataset has boxes.
        samples: for each class asked for, images of it as (sidecar, row).
        rejected: the first rejected rows of each reason.
    """

    images: int = 0
    contents: DigestIndex = field(default_factory=DigestIndex)
    hashes: Digests = field(default_factory=lambda: np.zeros(0, np.uint64))
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    sides: Counts = field(default_factory=lambda: np.zeros((SIDE_BINS, SIDE_BINS), np.int64))
    aspects: Counts = field(default_factory=lambda: np.zeros(ASPECT_BINS, np.int64))
    file_bytes: Counts = field(default_factory=lambda: np.zeros(BYTE_BINS, np.int64))
    channels: Counter[int] = field(default_factory=Counter)
    pixels: int = 0
    smallest: tuple[int, int, str] | None = None
    largest: tuple[int, int, str] | None = None
    reencoded: Reencoded = field(default_factory=Reencoded)
    lossless: Reencoded = field(default_factory=Reencoded)
    boxes: Counter[int] = field(default_factory=Counter)
    samples: dict[str, list[Place]] = field(default_factory=dict)
    rejected: dict[str, list[RejectedRow]] = field(default_factory=dict)


def gather_statistics(sidecars: Iterable[Sidecar], wanted: Mapping[str, int]) -> Statistics:
    """Reads all sidecars once.

    Args:
        sidecars: of all shards.
        wanted: how many images to keep as samples, by class name, the largest class first; the empty name for images
            without one. An image with several classes is kept for the rarest that still lacks a sample; one image
            stands for several classes only where one of them would have none.

    Raises:
        OSError: a sidecar cannot be read.
    """
    found, samples = Statistics(), _Samples(wanted)
    hashes = [found.hashes]
    for sidecar in sidecars:
        for rows in read_chunks(sidecar.path):
            written = [row for row in rows if isinstance(row, SidecarRow)]
            for row in rows if len(written) < len(rows) else ():
                if isinstance(row, RejectedRow):
                    found.rejected.setdefault(row.rejected, []).append(row)
                    del found.rejected[row.rejected][REJECTED_EXAMPLES:]
            samples.look_at(sidecar, written)
            boxes = (row.boxes.get("written", 0) for row in written if row.boxes is not None)
            found.boxes.update(min(count, MOST_BOXES_COUNTED) for count in boxes)
            hashes.append(_from_hex([row.difference_hash for row in written if row.difference_hash is not None]))
            found.contents.add(digests_of(written))
            _count_sizes(found, [row for row in written if row.height and row.width])
    found.hashes = np.concatenate(hashes)
    found.samples = samples.chosen()
    return found


def read_chunks(path: str) -> Iterator[list[Row]]:
    """A sidecar's rows, some thousands at a time."""
    rows = read_rows(path)
    while chunk := list(islice(rows, _CHUNK)):
        yield chunk


def digests_of(rows: Iterable[SidecarRow]) -> Digests:
    """The first 64 bits of the SHA-256 of each row's image."""
    return _from_hex([row.sha256[:16] for row in rows])


def _from_hex(texts: list[str]) -> Digests:
    """16 hex digits each, as numbers."""
    return np.frombuffer(bytes.fromhex("".join(texts)), ">u8").astype(np.uint64)


class _Samples:
    """Chooses samples: the rarest class that lacks one has first claim on an image, and none is left without any."""

    def __init__(self, wanted: Mapping[str, int]) -> None:
        self._wanted = wanted
        self._missing = {name: count for name, count in wanted.items() if count > 0}
        self._rank = {name: rank for rank, name in enumerate(wanted)}
        self._chosen: dict[str, list[Place]] = {name: [] for name in wanted}
        self._first: dict[str, Place] = {}

    def look_at(self, sidecar: Sidecar, rows: Iterable[SidecarRow]) -> None:
        for row in rows if self._missing else ():
            names = self._missing.keys() & (row.classes or [row.class_name or ""])
            if not names:
                continue
            for name in names:
                self._first.setdefault(name, (sidecar, row))
            rarest = max(names, key=self._rank.__getitem__)
            self._chosen[rarest].append((sidecar, row))
            self._missing[rarest] -= 1
            if not self._missing[rarest]:
                del self._missing[rarest]

    def chosen(self) -> dict[str, list[Place]]:
        """By class, in the order in which they were asked for."""
        return {
            name: kept or [self._first[name]] if name in self._first else kept for name, kept in self._chosen.items()
        }


def _count_sizes(found: Statistics, rows: list[SidecarRow]) -> None:
    if not rows:
        return
    widths = np.array([row.width for row in rows], np.int64)
    heights = np.array([row.height for row in rows], np.int64)
    found.images += len(rows)
    for row in rows:
        if row.changes:
            found.reencoded.add(row)
            if row.key.lower().endswith(LOSSLESS):
                found.lossless.add(row)
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
    least, most = int(pixels.argmin()), int(pixels.argmax())
    if found.smallest is None or pixels[least] < found.smallest[0] * found.smallest[1]:
        found.smallest = int(widths[least]), int(heights[least]), rows[least].key
    if found.largest is None or pixels[most] > found.largest[0] * found.largest[1]:
        found.largest = int(widths[most]), int(heights[most]), rows[most].key


def _bin(values: NDArray[Any], bins: int, per_doubling: int = BINS_PER_DOUBLING) -> NDArray[np.int64]:
    """Bin `n` begins at 2 ** (n / per_doubling)."""
    # Powers of two must not fall below their bin by a rounding error.
    return np.clip(np.floor(np.log2(np.maximum(values, 1)) * per_doubling + 1e-9), 0, bins - 1).astype(np.int64)


def bin_aspects(aspects: NDArray[np.float64]) -> NDArray[np.int64]:
    """The bins of width / height: of equal ratio, with 1:1 in the middle of the middle one."""
    middle = ASPECT_BINS // 2
    return np.clip(np.rint(np.log2(aspects) * BINS_PER_DOUBLING) + middle, 0, ASPECT_BINS - 1).astype(np.int64)
