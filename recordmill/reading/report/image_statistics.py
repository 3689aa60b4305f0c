"""Gathers statistics and small pictures for a dataset's report from its sidecars and records, in bounded memory.

One pass over the sidecars gives sizes, shapes and samples. Only the records have the sizes of boxes and the values of
columns. In a large dataset, a sample of records is read: the first of evenly spaced shards. Since records are in hash
order, these are as good as any others, and the same each time.
"""

import base64
import gzip
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from recordmill import storage
from recordmill.imaging import ImageSettings, Resize, prepare_image
from recordmill.imaging.acceptance import sniff
from recordmill.imaging.before_and_after import draw_boxes
from recordmill.imaging.geometry import Box
from recordmill.reading.dataset import Dataset, Shard
from recordmill.reading.example import DamagedExampleError, ParsedExample
from recordmill.schemas.dataset.side_files import SidecarRow
from recordmill.schemas.features import BOX_FIELDS, RECORD_FIELDS, Feature
from recordmill.schemas.formatting import most_frequent
from recordmill.schemas.rejection import Rejected
from recordmill.storage.tfrecord_file import FRAMING_BYTES, HEADER_BYTES

Counts = NDArray[np.int64]

BINS_PER_DOUBLING = 4
"""Bins of sizes and shapes: each begins at about 1.19 times the value of the one before."""

SIDE_BINS = 17 * BINS_PER_DOUBLING
"""Sides from 1 pixel to 2**17."""

ASPECT_BINS = 8 * BINS_PER_DOUBLING + 1
"""Width by height from 1:16 to 16:1, with squares in the middle bin; thinner images count at the ends."""

BYTE_BINS = 2 * 36
"""Two per doubling, from 1 byte to 64 GiB."""

MOST_SIZES = 50_000
"""The most sizes counted separately; images of further sizes count as others."""

MOST_BOXES_COUNTED = 1_000
"""Images with more boxes count as images with this number."""

_CHUNK = 20_000

Place = tuple[Shard, SidecarRow]
"""Where an image is: its shard, and its row of the sidecar."""


@dataclass(slots=True)
class ImageStatistics:
    """Totals of a dataset's images.

    Attributes:
        images: rows of images that have a height and a width.
        sizes: images by (width, height), at most `MOST_SIZES` different ones.
        sides: images by (bin of the width, bin of the height), see `SIDE_BINS`.
        aspects: images by bin of width / height, see `ASPECT_BINS`.
        file_bytes: images by bin of their source's bytes, see `BYTE_BINS`.
        channels: images by number of channels.
        pixels: of all images.
        smallest: width, height and key of the image with the fewest pixels, the first of several; None without images.
        largest: the same with the most.
        boxes: images by number of boxes, see `MOST_BOXES_COUNTED`, if the dataset has boxes.
        samples: places of sample images, by requested class.
        named: places of requested images, by split and key.
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
            without a class. An image with several classes is kept for the rarest that still lacks samples; it is kept
            for several only if one of them would have none.
        named: split and key of further images whose places are needed.

    Raises:
        OSError: a sidecar cannot be read.
    """
    found, samples = ImageStatistics(), _Samples(wanted)
    for shard in shards:
        every = shard.rows()
        while rows := list(islice(every, _CHUNK)):
            samples.add(shard, rows)
            found.boxes.update(
                min(row.boxes.get("written", 0), MOST_BOXES_COUNTED) for row in rows if row.boxes is not None
            )
            _count_sizes(found, [row for row in rows if row.height and row.width])
            if named:
                found.named |= {(shard.split, row.key): (shard, row) for row in rows if (shard.split, row.key) in named}
    found.samples = samples.chosen()
    return found


class _Samples:
    """Chooses samples: an image goes to its rarest class that still lacks one, but no class is left without any."""

    def __init__(self, wanted: Mapping[str, int]) -> None:
        self._missing = {name: count for name, count in wanted.items() if count > 0}
        self._rank = {name: rank for rank, name in enumerate(wanted)}
        self._chosen: dict[str, list[Place]] = {name: [] for name in wanted}
        self._first: dict[str, Place] = {}

    def add(self, shard: Shard, rows: Iterable[SidecarRow]) -> None:
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
        """The samples by class, in the order of the request."""
        return {
            name: kept or [self._first[name]] if name in self._first else kept for name, kept in self._chosen.items()
        }


def _count_sizes(found: ImageStatistics, rows: list[SidecarRow]) -> None:
    if not rows:
        return
    widths = np.array([row.width for row in rows], np.int64)
    heights = np.array([row.height for row in rows], np.int64)
    if min(widths.min(), heights.min()) < 1:
        raise ValueError("a row of a sidecar has a side of less than one pixel")
    found.images += len(rows)
    found.channels.update(row.channels or 0 for row in rows)
    for size, count in Counter(zip(widths.tolist(), heights.tolist(), strict=True)).items():
        if size in found.sizes or len(found.sizes) < MOST_SIZES:
            found.sizes[size] += count
    np.add.at(found.sides, (_bin(widths, SIDE_BINS), _bin(heights, SIDE_BINS)), 1)
    found.aspects += np.bincount(bin_aspects(widths / heights), minlength=ASPECT_BINS)
    sizes = np.array([row.bytes for row in rows], np.int64)
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
    """The bins of values; `n` begins at 2 ** (n / per_doubling)."""
    # Powers of two must not fall below their bin by a rounding error; sides of boxes have 24 bits.
    return np.clip(np.floor(np.log2(np.maximum(values, 1)) * per_doubling + 1e-6), 0, bins - 1).astype(np.int64)


def bin_aspects(aspects: NDArray[np.float64]) -> NDArray[np.int64]:
    """The bins of width / height, of equal ratio, with 1:1 in the middle of the middle one."""
    middle = ASPECT_BINS // 2
    return np.clip(np.rint(np.log2(aspects) * BINS_PER_DOUBLING) + middle, 0, ASPECT_BINS - 1).astype(np.int64)


T = TypeVar("T")

MOST_RECORDS = 10_000
MOST_BYTES = 128 * 2**20
MOST_SHARDS = 64
"""Larger datasets are sampled."""

MOST_COLUMNS = 60
"""The most columns read."""

MOST_VALUES = 200_000
"""The most values read from a column of lists."""

MOST_TEXTS = 1_000
"""The number of different strings that are counted in a column."""

MOST_TEXTS_SHOWN = 6

LONGEST_TEXT = 200
"""The most bytes read from a text."""

BINS = 24
"""Bins of a column's histogram, unless each bin is one integer."""

AREA_BINS = 20
"""Bins of box areas: bin `n` begins at 2 ** (n - 20) of the image's area, and the first includes all smaller boxes."""


@dataclass(slots=True)
class Column:
    """The values of one feature in the records that were read.

    Attributes:
        feature: the feature.
        missing: records without a value.
        lengths: the fewest and the most values of a record that has some.
        values: numbers.
        texts: occurrences of each string, for the first `MOST_TEXTS` different ones.
    """

    feature: Feature
    missing: int = 0
    lengths: tuple[int, int] = (0, 0)
    values: list[float] = field(default_factory=list)
    texts: Counter[bytes] = field(default_factory=Counter)

    def add(self, values: Sequence[Any]) -> None:
        """Adds the values of one record."""
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
        """The most frequent strings, if any occurs twice; bytes that are not UTF-8 become replacement signs."""
        if len(self.texts) == self.texts.total():
            return []
        ordered = sorted(self.texts.items(), key=lambda item: (-item[1], item[0]))[:MOST_TEXTS_SHOWN]
        return [(text.decode("utf-8", "replace"), count) for text, count in ordered]

    def histogram(self) -> tuple[NDArray[np.int64], list[float]]:
        """Counts by bin, and where each bin begins; empty without two different finite numbers.

        Integers within a small range have a bin each.
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
    """Values from the records.

    Attributes:
        records: number of records read.
        shards: number of their shards.
        whole: whether these are all.
        areas: boxes by their share of the image, see `AREA_BINS`.
        columns: the first `MOST_COLUMNS`.
        further: number of columns beyond.
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
            with np.errstate(invalid="ignore", over="ignore"):
                areas = (bottom - top) * (right - left)
            np.add.at(found.areas, _bin(areas[np.isfinite(areas)] * 2.0**AREA_BINS, AREA_BINS, 1), 1)
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
        for record in islice(shard.intact_records(), most):
            yield record
            left -= len(record)
            if left <= 0 and not found.whole:
                break


def choose_evenly(things: Sequence[T], most: int) -> Sequence[T]:
    """At most `most` of them, evenly spaced from first to last."""
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


MOST_CLASSES = 24
"""The most classes with images."""

MOST_IMAGES = 72
"""The most images shown, of all classes together."""

MOST_OF_CLASS = 24

ROW = 3
"""Images per row; only full rows are shown."""

SIDE = 112
"""The most pixels of a thumbnail's longer side; shown at half that size, it is sharp on a dense screen."""

MOST_WITH_BOXES = 24
"""The most images shown if boxes are drawn on them: fewer, and larger."""

MOST_CLASSES_WITH_BOXES = 96
"""The most classes shown then; if there are more than `MOST_WITH_BOXES`, each has one smaller picture."""

MOST_OF_CLASS_WITH_BOXES = 6

SIDE_WITH_BOXES = 384

SIDE_OF_MANY_WITH_BOXES = 224

MOST_UNPACKED = 8 * 2**20
"""Bytes of a compressed shard in which pictures are looked for: it can only be read from its start."""

MOST_PIXELS = 2**25
"""Larger pictures are not decoded for a thumbnail."""

_READERS = 8  # each read of an object store waits for a network


@dataclass(frozen=True, slots=True)
class Wanted:
    """An image to show: its place, the class whose boxes to highlight (None: all), and its maximum side."""

    place: Place
    class_name: str | None = None
    side: int = SIDE


def choose_samples(classes: Mapping[str, int], with_boxes: bool = False) -> dict[str, int]:
    """How many images to show, by class name, the largest class first.

    If there are too many classes, they are chosen evenly from the largest to the smallest, including both.

    Args:
        classes: images, or boxes, by class name.
        with_boxes: whether boxes are drawn on them.
    """
    most_classes, most, of_class, row = (
        (MOST_CLASSES_WITH_BOXES, MOST_WITH_BOXES, MOST_OF_CLASS_WITH_BOXES, 2)
        if with_boxes
        else (MOST_CLASSES, MOST_IMAGES, MOST_OF_CLASS, ROW)
    )
    chosen = choose_evenly(most_frequent(classes), most_classes)
    each = min(most // max(len(chosen), 1), of_class)
    return dict.fromkeys(chosen, max(each - each % row, 1))


def make_thumbnails(dataset: Dataset, wanted: Sequence[Wanted]) -> list[str]:
    """A `data:` URI for each image, its boxes drawn; the empty string for one that cannot be shown.

    Args:
        dataset: the dataset; if none of its features holds an encoded image, nothing can be shown.
        wanted: the images.

    Raises:
        OSError: a shard cannot be read.
    """
    keys = {feature.field: feature.key for feature in dataset.features}
    if "encoded" not in keys:
        return [""] * len(wanted)
    is_packed = dataset.marker is not None and dataset.marker.plan.settings.compression != "none"

    def make(each: Wanted) -> str:
        shard, row = each.place
        if not 0 < (row.height or 0) * (row.width or 0) <= MOST_PIXELS:
            return ""
        record = _read_record(shard.path, row.offset, row.length, is_packed)
        return _thumbnail(record, keys, each, dataset.labels) if record else ""

    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(make, wanted))


def _read_record(shard: str, offset: int, length: int, is_packed: bool) -> bytes:
    if not is_packed:
        return storage.read_range(shard, offset + HEADER_BYTES, length)
    if offset + length + FRAMING_BYTES > MOST_UNPACKED:
        return b""
    with storage.open_to_read(shard) as stored, gzip.GzipFile(fileobj=stored) as stream:
        return stream.read(offset + HEADER_BYTES + length)[offset + HEADER_BYTES :]


def _thumbnail(record: bytes, keys: Mapping[str, str], wanted: Wanted, labels: Mapping[str, int]) -> str:
    _, row = wanted.place
    settings = ImageSettings(reencode="always", resize=Resize(longest=wanted.side), quality=80, subsampling="4:2:0")
    shape = (row.height or 0, row.width or 0, row.channels or 0)
    try:
        example = ParsedExample(record)
        (stored,) = example.values(keys["encoded"]) or (b"",)
        is_raw = sniff(stored) is None and len(stored) == math.prod(shape) and shape[2] in (1, 3)
        prepared = prepare_image(np.frombuffer(stored, np.uint8).reshape(shape) if is_raw else stored, settings)
    except (Rejected, DamagedExampleError):  # stored without decoding (`check: header`), or an Example without an image
        return ""
    encoded, boxes = prepared.encoded, [tuple(box) for box in read_boxes(example, keys).tolist()]
    if boxes:
        own = _boxes_of_class(example, keys, boxes, wanted.class_name, labels)
        encoded = draw_boxes(encoded, own, set(boxes) - set(own))
    return f"data:image/jpeg;base64,{base64.b64encode(encoded).decode()}"


def _boxes_of_class(
    example: ParsedExample, keys: Mapping[str, str], boxes: list[Box], name: str | None, labels: Mapping[str, int]
) -> list[Box]:
    """The boxes to highlight: those of the class, or all if no class is given or the records have no classes."""
    for key, wanted in (("box_label_texts", (name or "").encode()), ("box_labels", labels.get(name or ""))):
        if name is not None and key in keys:
            found = example.values(keys[key]) or ()
            return [box for box, each in zip(boxes, found, strict=True) if each == wanted]
    return boxes
