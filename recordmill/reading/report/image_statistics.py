"""Gathers statistics for a dataset's report, in bounded memory.

They come from the dataset's sidecars and records. One pass over the sidecars gives sizes, shapes
and samples. Only the records have the sizes of annotations and the values of columns. In a large
dataset, a sample of records is read: the first of evenly spaced shards. Since records are in hash
order, these are as good as any others, and the same each time.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from recordmill.annotations.kinds import RECORD_FIELDS
from recordmill.annotations.shapes import Shape
from recordmill.reading.dataset import Dataset, StoredShard
from recordmill.reading.example import ParsedExample
from recordmill.reading.trace_shapes import ShapeTracer
from recordmill.schemas.dataset.side_files import SidecarRow
from recordmill.schemas.features import Feature

BINS_PER_DOUBLING = 4
"""Each bin begins at about 1.19 times the value of the one before."""

SIDE_BINS = 17 * BINS_PER_DOUBLING
"""Sides from 1 pixel to 2**17."""

ASPECT_BINS = 8 * BINS_PER_DOUBLING + 1
"""Width by height from 1:16 to 16:1, with squares in the middle bin; thinner images count at the
ends."""

BYTE_BINS = 36 * BINS_PER_DOUBLING
"""From 1 byte to 64 GiB."""

MOST_SIZES = 50_000
"""The most sizes counted separately; images of further sizes count as others."""

MOST_COUNTED = 1_000
"""Images with more annotations of a kind count as images with this number."""

_CHUNK = 20_000

Counts = NDArray[np.int64]

ImagePlace = tuple[StoredShard, SidecarRow]
"""Where an image is: its shard, and its row of the sidecar."""


@dataclass(slots=True)
class ImageStatistics:
    """Totals of a dataset's images.

    Attributes:
        images: rows of images that have a height and a width.
        sizes: images by (width, height), at most `MOST_SIZES` different ones.
        widths: images by bin of the width, see `SIDE_BINS`.
        heights: images by bin of the height.
        aspects: images by bin of width / height, see `ASPECT_BINS`.
        file_bytes: images by bin of their source's bytes, see `BYTE_BINS`.
        annotated: for each kind of annotations, images by their number, see `MOST_COUNTED`.
        samples: places of sample images, by requested class.
        named: places of requested images, by split and key.
    """

    images: int = 0
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    widths: Counts = field(default_factory=lambda: np.zeros(SIDE_BINS, np.int64))
    heights: Counts = field(default_factory=lambda: np.zeros(SIDE_BINS, np.int64))
    aspects: Counts = field(default_factory=lambda: np.zeros(ASPECT_BINS, np.int64))
    file_bytes: Counts = field(default_factory=lambda: np.zeros(BYTE_BINS, np.int64))
    annotated: dict[str, Counter[int]] = field(default_factory=dict)
    samples: dict[str, list[ImagePlace]] = field(default_factory=dict)
    named: dict[tuple[str, str], ImagePlace] = field(default_factory=dict)


def gather_statistics(
    shards: Iterable[StoredShard],
    wanted: Mapping[str, int],
    named: Set[tuple[str, str]] = frozenset(),
) -> ImageStatistics:
    """Reads the sidecars of all shards once, in the order given.

    Args:
        shards: with sidecars.
        wanted: how many images to keep as samples, by class name; the empty name for images without
            a class. An image with several classes is a sample of those that have none yet,
            otherwise of the one with the fewest.
        named: split and key of further images whose places are needed.

    Raises:
        OSError: a sidecar cannot be read.
    """
    found = ImageStatistics(samples={name: [] for name in wanted})
    for shard in shards:
        every = shard.rows()
        while rows := list(islice(every, _CHUNK)):
            add_samples(found.samples, wanted, shard, rows)
            _count_annotations(found.annotated, rows)
            _count_sizes(found, [row for row in rows if row.height and row.width])
            if named:
                found.named |= {
                    (shard.split, row.key): (shard, row)
                    for row in rows
                    if (shard.split, row.key) in named
                }
    return found


def _count_annotations(annotated: dict[str, Counter[int]], rows: Iterable[SidecarRow]) -> None:
    for row in rows:
        for kind, counts in (row.annotations or {}).items():
            number = min(counts.get("written", 0), MOST_COUNTED)
            annotated.setdefault(kind, Counter())[number] += 1


def add_samples(
    samples: Mapping[str, list[ImagePlace]],
    wanted: Mapping[str, int],
    shard: StoredShard,
    rows: Iterable[SidecarRow],
) -> None:
    """Adds images of a shard to the samples of their classes, as `gather_statistics` says."""
    missing = {name for name, places in samples.items() if len(places) < wanted[name]}
    for row in rows if missing else ():
        names = missing.intersection(row.classes or [row.class_name or ""])
        fewest = sorted(names, key=lambda name: (len(samples[name]), name))
        for name in [each for each in fewest if not samples[each]] or fewest[:1]:
            samples[name].append((shard, row))
            if len(samples[name]) == wanted[name]:
                missing.discard(name)


def _count_sizes(found: ImageStatistics, rows: list[SidecarRow]) -> None:
    if not rows:
        return
    widths = np.array([row.width for row in rows], np.int64)
    heights = np.array([row.height for row in rows], np.int64)
    if min(widths.min(), heights.min()) < 1:
        raise ValueError("a row of a sidecar has a side of less than one pixel")
    found.images += len(rows)
    for size, count in Counter(zip(widths.tolist(), heights.tolist(), strict=True)).items():
        if size in found.sizes or len(found.sizes) < MOST_SIZES:
            found.sizes[size] += count
    found.widths += count_by_size(widths, SIDE_BINS)
    found.heights += count_by_size(heights, SIDE_BINS)
    found.aspects += count_aspects(widths / heights)
    found.file_bytes += count_by_size(np.array([row.bytes for row in rows], np.int64), BYTE_BINS)


def count_by_size(values: NDArray[Any], bins: int, per_doubling: int = BINS_PER_DOUBLING) -> Counts:
    """Counts values by bin; bin `n` begins at 2 ** (n / per_doubling).

    The first bin includes all smaller values.
    """
    # Powers of two must not fall below their bin by a rounding error; coordinates have 24 bits.
    places = np.floor(np.log2(np.maximum(values, 1)) * per_doubling + 1e-6)
    return np.bincount(np.clip(places, 0, bins - 1).astype(np.int64), minlength=bins)


def count_aspects(aspects: NDArray[np.float64]) -> Counts:
    """Counts width / height by bins of equal ratio, with 1:1 in the middle of the middle one."""
    places = np.rint(np.log2(aspects) * BINS_PER_DOUBLING) + ASPECT_BINS // 2
    return np.bincount(np.clip(places, 0, ASPECT_BINS - 1).astype(np.int64), minlength=ASPECT_BINS)


T = TypeVar("T")

MOST_RECORDS = 10_000
MOST_BYTES = 128 * 2**20
MOST_SHARDS = 64
"""Larger datasets are sampled."""

MOST_COLUMNS = 60
"""The most columns read."""

MOST_VALUES = 200_000
"""The most values read from a column of lists."""

AREA_BINS = 20
"""Bins of the areas of objects: bin `n` begins at 2 ** (n - 20) of the image's area, and the first
includes all smaller ones."""

HEAT_CELLS = 24
"""The rows and columns of the heat map of objects."""

_EDGES = np.linspace(0, 1, HEAT_CELLS + 1)
"""Where its cells begin and end along a side."""


@dataclass(slots=True)
class Column:
    """One feature in the records that were read.

    Attributes:
        feature: the feature.
        missing: records without a value.
        numbers: the finite values, if these are numbers.
    """

    feature: Feature
    missing: int = 0
    numbers: list[float] = field(default_factory=list)

    def add(self, values: Sequence[Any]) -> None:
        """Adds the values of one record."""
        self.missing += not values
        if self.feature.kind != "bytes" and len(self.numbers) < MOST_VALUES:
            self.numbers += filter(math.isfinite, values)


@dataclass(slots=True)
class ObjectPlaces:
    """Where the objects of one kind are on their images, and how large they are.

    Attributes:
        heat: the number of objects over each cell of the image, from its upper left corner; an
            object that covers a part of a cell counts as that part.
        shares: the shares of the image by class.
    """

    heat: NDArray[np.float64] = field(default_factory=lambda: np.zeros((HEAT_CELLS, HEAT_CELLS)))
    shares: dict[str, list[float]] = field(default_factory=dict)

    @property
    def areas(self) -> Counts:
        """Objects by their share of the image, see `AREA_BINS`."""
        shares = np.array([*chain.from_iterable(self.shares.values())])
        return count_by_size(shares * 2.0**AREA_BINS, AREA_BINS, 1)

    def add(self, shapes: Iterable[Shape]) -> None:
        """Adds the objects of one record."""
        sides = list[Sequence[float]]()
        for shape in shapes:
            share = shape.share
            if shape.sides is not None and share is not None:
                sides.append(shape.sides)
                self.shares.setdefault(shape.class_name or "", []).append(share)
        if sides:
            left, top, right, bottom = np.array(sides).T
            self.heat += _cover_cells(top, bottom).T @ _cover_cells(left, right)


def _cover_cells(starts: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the part of each cell along a side between fractions of the side.

    The result is of shape (objects, cells).
    """
    covered = np.minimum(ends[:, None], _EDGES[1:]) - np.maximum(starts[:, None], _EDGES[:-1])
    return np.clip(covered * HEAT_CELLS, 0, 1)


@dataclass(slots=True)
class StoredValues:
    """Values from the records.

    Attributes:
        records: number of records read.
        shards: number of their shards.
        whole: whether these are all.
        objects: where objects are, for each kind of annotations that have a place on their image.
        columns: the first `MOST_COLUMNS`.
        further: number of columns beyond.
    """

    records: int = 0
    shards: int = 0
    whole: bool = True
    objects: dict[str, ObjectPlaces] = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)
    further: int = 0


def gather_values(dataset: Dataset) -> StoredValues:
    """Reads the records of a Recordmill dataset if they have columns, or objects with places.

    Raises:
        LoadError: a record is damaged.
        OSError: a shard cannot be read.
    """
    columns = [
        Column(each) for each in dataset.features if each.field and each.field not in RECORD_FIELDS
    ]
    listed = {name for name, entry in dataset.marker.annotations.items() if entry.listed}
    tracer = ShapeTracer(dataset.features, dataset.labels, dataset.marker)
    kinds = [kind for kind in tracer.kinds if kind.name in listed]
    found = StoredValues(columns=columns[:MOST_COLUMNS], further=len(columns[MOST_COLUMNS:]))
    found.objects = {kind.name: ObjectPlaces() for kind in kinds}
    for record in _sample(dataset.shards, found) if columns or kinds else ():
        example = ParsedExample(record)
        for column in found.columns:
            column.add(example.values(column.feature.key) or ())
        for kind in kinds:
            found.objects[kind.name].add(tracer.trace(example, kind))
        found.records += 1
    return found


def _sample(shards: Sequence[StoredShard], found: StoredValues) -> Iterator[memoryview]:
    records, size = (
        sum(shard.records or 0 for shard in shards),
        sum(shard.bytes or 0 for shard in shards),
    )
    chosen = choose_evenly(shards, MOST_SHARDS)
    found.shards, found.whole = (
        len(chosen),
        records <= MOST_RECORDS and size <= MOST_BYTES and chosen is shards,
    )
    parts = 1 if found.whole else len(chosen)
    for shard in chosen:
        left = MOST_BYTES // parts
        for record in islice(shard.intact_records(), max(MOST_RECORDS // parts, 1)):
            yield record
            left -= len(record)
            if left <= 0:
                break


def choose_evenly(things: Sequence[T], most: int) -> Sequence[T]:
    """Returns at most `most` of them, evenly spaced from first to last."""
    if len(things) <= most:
        return things
    return [things[number * (len(things) - 1) // (most - 1)] for number in range(most)]
