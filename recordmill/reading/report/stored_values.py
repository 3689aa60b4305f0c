"""What only the records say: how large boxes are, and what the columns hold; of all records, or of a bounded sample.

A sample is the first records of shards that are spread evenly over all. Shards are in the order of hashes, so these
records are as good as any others, and the same each time.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from recordmill.reading.dataset import Dataset
from recordmill.reading.example import ParsedExample
from recordmill.reading.shard import Shard
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import Feature
from recordmill.schemas.record_fields import BOX_FIELDS, RECORD_FIELDS
from recordmill.storage.record_bytes import StoredFile
from recordmill.storage.record_reader import Damage, RecordFile

T = TypeVar("T")

MOST_RECORDS = 10_000
MOST_BYTES = 128 * 2**20
MOST_SHARDS = 64
"""Larger datasets are sampled."""

MOST_COLUMNS = 60
"""The number of columns that are read."""

MOST_VALUES = 200_000
"""The number of values that are read of a column of lists."""

MOST_TEXTS = 1_000
"""Different texts of a column that are counted."""

MOST_TEXTS_SHOWN = 6

LONGEST_TEXT = 200
"""The number of bytes that are read of a text."""

BINS = 24
"""Of a column's histogram, unless each bin is one whole number."""

AREA_BINS = 20
"""Of boxes: bin `n` begins at 2 ** (n - 20) of the image's area, and the first takes all that are smaller."""


@dataclass(slots=True)
class Column:
    """What the records that were read hold of one feature.

    Attributes:
        feature: which one.
        missing: records without a value.
        lengths: the fewest and the most values of a record that has some.
        values: numbers.
        texts: how often each text is there, the first `MOST_TEXTS` different ones.
    """

    feature: Feature
    missing: int = 0
    lengths: tuple[int, int] = (0, 0)
    values: list[float] = field(default_factory=list)
    texts: Counter[bytes] = field(default_factory=Counter)

    def add(self, values: Sequence[Any]) -> None:
        """Takes in what one record has."""
        if not values:
            self.missing += 1
            return
        shortest, longest = self.lengths
        self.lengths = min(shortest or len(values), len(values)), max(longest, len(values))
        if self.feature.kind == "bytes":
            for text in (value[:LONGEST_TEXT] for value in values):
                if text in self.texts or len(self.texts) < MOST_TEXTS:
                    self.texts[text] += 1
        elif len(self.values) < MOST_VALUES:
            self.values += values

    @property
    def finite(self) -> list[float]:
        """The numbers without infinity and NaN."""
        return [value for value in self.values if math.isfinite(value)]

    @property
    def frequent(self) -> list[tuple[str, int]]:
        """The most frequent texts, if any occurs twice; bytes that are not UTF-8 become replacement signs."""
        if len(self.texts) == self.texts.total():
            return []
        ordered = sorted(self.texts.items(), key=lambda item: (-item[1], item[0]))[:MOST_TEXTS_SHOWN]
        return [(text.decode("utf-8", "replace"), count) for text, count in ordered]

    def histogram(self) -> tuple[NDArray[np.int64], list[float]]:
        """Counts by bin, and where each bin begins; none where there are not two different finite numbers.

        Whole numbers that do not reach far have a bin each.
        """
        numbers = np.array(self.finite, np.float64)
        if not len(numbers) or numbers.min() == numbers.max():
            return np.zeros(0, np.int64), []
        least, most = float(numbers.min()), float(numbers.max())
        if self.feature.kind == "int64" and most - least < BINS:
            bins = int(most - least) + 1
            return np.bincount((numbers - least).astype(np.int64), minlength=bins), [least + at for at in range(bins)]
        share = (numbers / 2 - least / 2) / (most / 2 - least / 2)  # halves: the largest floats do not overflow
        places = np.minimum((share * BINS).astype(np.int64), BINS - 1)
        return np.bincount(places, minlength=BINS), [least + (most - least) * (at / BINS) for at in range(BINS + 1)]


@dataclass(slots=True)
class StoredValues:
    """What was found.

    Attributes:
        records: that were read.
        shards: that they are in.
        whole: whether these are all.
        areas: boxes by their share of the image, see `AREA_BINS`.
        columns: the first `MOST_COLUMNS`.
        further: how many columns there are beyond.
    """

    records: int = 0
    shards: int = 0
    whole: bool = True
    areas: NDArray[np.int64] = field(default_factory=lambda: np.zeros(AREA_BINS, np.int64))
    columns: list[Column] = field(default_factory=list)
    further: int = 0


def gather_values(dataset: Dataset) -> StoredValues:
    """Reads the records of a Recordmill dataset if they have boxes or columns.

    Raises:
        LoadError: a record is damaged.
        OSError: a shard cannot be read.
    """
    columns = [Column(each) for each in dataset.features if each.field and each.field not in RECORD_FIELDS]
    keys = {each.field: each.key for each in dataset.features}
    has_boxes = bool(dataset.marker and dataset.marker.boxes) and not BOX_FIELDS.isdisjoint(keys)
    found = StoredValues(columns=columns[:MOST_COLUMNS], further=len(columns[MOST_COLUMNS:]))
    for record in _sample(dataset.shards, found) if columns or has_boxes else ():
        example = ParsedExample(record)
        for column in found.columns:
            column.add(example.values(column.feature.key) or ())
        if has_boxes:
            left, top, right, bottom = read_boxes(example, keys).T
            np.add.at(found.areas, _bin_areas((bottom - top) * (right - left)), 1)
        found.records += 1
    return found


def _sample(shards: Sequence[Shard], found: StoredValues) -> Iterator[memoryview]:
    records, size = sum(shard.records or 0 for shard in shards), sum(shard.bytes or 0 for shard in shards)
    found.whole = records <= MOST_RECORDS and size <= MOST_BYTES and len(shards) <= MOST_SHARDS
    chosen = shards if found.whole else choose_evenly(shards, MOST_SHARDS)
    found.shards = len(chosen)
    for shard in chosen:
        most = MOST_RECORDS if found.whole else max(1, MOST_RECORDS // len(chosen))
        left = MOST_BYTES if found.whole else MOST_BYTES // len(chosen)
        with StoredFile(shard.path) as stored:
            for number, (offset, record) in enumerate(islice(RecordFile(stored), most)):
                if isinstance(record, Damage):
                    raise LoadError(f"{shard.path} is damaged: record {number} at byte {offset}: {record.detail}")
                yield record
                left -= len(record)
                if left <= 0 and not found.whole:
                    break


def choose_evenly(things: Sequence[T], most: int) -> Sequence[T]:
    """At most `most` of them, from the first to the last."""
    if len(things) <= most:
        return things
    return [things[number * (len(things) - 1) // (most - 1)] for number in range(most)]


def read_boxes(example: ParsedExample, keys: Mapping[str, str]) -> NDArray[np.float64]:
    """The boxes of an Example, of shape (boxes, 4): left, top, right and bottom as fractions of the image.

    Args:
        example: the Example.
        keys: the keys of its features by their fields.
    """
    if "bbox" in keys:
        return np.array(example.values(keys["bbox"]) or (), np.float64).reshape(-1, 4)[:, [1, 0, 3, 2]]
    sides = [example.values(keys.get(side, "")) or () for side in ("xmin", "ymin", "xmax", "ymax")]
    return np.array(sides if all(sides) else [()] * 4, np.float64).T


def _bin_areas(areas: NDArray[np.float64]) -> NDArray[np.int64]:
    exponents = np.floor(np.log2(np.maximum(areas, 2.0**-AREA_BINS)) + 1e-6)  # what rounding does to powers of two
    return np.clip(exponents + AREA_BINS, 0, AREA_BINS - 1).astype(np.int64)
