"""Opens what a viewer shows: a dataset, the unfinished work of a failed run, or TFRecord files.

Images are numbered from 0, in the order of the dataset's files. The values of all of them are read
once, in the background; a record is read when it is shown.
"""

import os
import posixpath
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain, pairwise
from threading import Lock
from typing import Literal, Protocol

from recordmill import storage
from recordmill.annotations.shapes import Shape
from recordmill.imaging.acceptance import sniff
from recordmill.imaging.pillow_decode import open_image
from recordmill.reading.dataset import FORGED, Dataset, StoredShard, open_dataset, split_of
from recordmill.reading.example import (
    Expectations,
    ParsedExample,
    expect,
    find_image,
    parse_intact,
)
from recordmill.reading.records import Records
from recordmill.reading.split_index import read_index
from recordmill.reading.trace_shapes import ShapeTracer
from recordmill.schemas.conventions import convention_names, load_convention
from recordmill.schemas.dataset.file_names import DONE, SHARD, staging_names
from recordmill.schemas.dataset.side_files import SidecarRow
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import Feature
from recordmill.schemas.rejection import Rejected
from recordmill.storage.dataset_files import work_folders
from recordmill.storage.tfrecord_file import (
    Damage,
    RecordFile,
    compression_of,
    frame_bytes,
    unframe,
)
from recordmill.storage.unpacked_bytes import UnpackedBytes
from recordmill.viewing.image_table import (
    UNKNOWN_NUMBER,
    ImageFacts,
    ImageTable,
    pack_images,
)

ViewedKind = Literal["recordmill", "unfinished", "tfds", "files"]


class RecordReader(Protocol):
    """Reads the record of an image."""

    def read(self, number: int) -> bytes:
        """Returns the serialized Example of the image with this number.

        Raises:
            LoadError: it is damaged, or its place is not known yet.
            OSError: it cannot be read.
        """

    def close(self) -> None:
        """Closes the files that it has opened, if they do not close themselves."""


class IndexedRecords(RecordReader):
    """Reads records through the index of a dataset, split by split."""

    def __init__(self, dataset: Dataset) -> None:
        self._splits: list[Records] = []
        for shards in dataset.splits.values():
            self._splits.append(Records(read_index(dataset, shards)))
        self._starts = [0, *accumulate(map(len, self._splits))]

    def read(self, number: int) -> bytes:
        """Returns the serialized Example of an image; see `RecordReader`."""
        split = bisect_right(self._starts, number) - 1
        record: bytes = self._splits[split][number - self._starts[split]]
        return record

    def close(self) -> None:
        """Does nothing: its files close themselves."""


class PlacedRecords(RecordReader):
    """Reads records by the places that are in the table of images."""

    def __init__(self, shards: Sequence[StoredShard], table: ImageTable) -> None:
        self._shards, self._table = shards, table
        self._packed: dict[int, UnpackedBytes | None] = {}
        self._opening = Lock()

    def read(self, number: int) -> bytes:
        """Returns the serialized Example of an image; see `RecordReader`."""
        facts = self._table.facts(number)
        if facts is None:
            raise LoadError(f"image {number:,} has not been read yet: wait until it has been")
        shard, size = self._shards[facts.shard], frame_bytes(facts.length)
        packed = self._open(facts.shard)
        if packed is None:
            frame = storage.read_range(shard.path, facts.offset, size)
        else:
            frame = packed.read(facts.offset, size)
        record = unframe(frame, facts.length)
        if record is None:
            raise LoadError(f"{shard.path}, at byte {facts.offset:,}, is damaged")
        return record

    def _open(self, place: int) -> UnpackedBytes | None:
        """Opens a packed file once; None if the file is not packed."""
        with self._opening:
            if place not in self._packed:
                path = self._shards[place].path
                packed = compression_of(storage.read_range(path, 0, 16)) != "none"
                self._packed[place] = UnpackedBytes(path) if packed else None
            return self._packed[place]

    def close(self) -> None:
        """Closes the packed files."""
        for packed in filter(None, self._packed.values()):
            packed.close()


def find_unfinished(path: str) -> Dataset | None:
    """Returns the finished shards of a run that has not published its dataset; None without any.

    Args:
        path: the output of the run, or its hidden folder in it.

    Raises:
        OSError: the folder cannot be read.
    """
    if staging_names([posixpath.basename(path)]):
        folders = [path]
    else:
        folders = []
        for folder in work_folders(path):
            names = staging_names(storage.folder_names(folder))
            folders += [storage.join(folder, name) for name in names]
    for folder in folders:
        names = storage.folder_names(folder)
        done = (name.removesuffix(DONE) for name in sorted(names) if name.endswith(DONE))
        shards = [_finished_shard(folder, stem) for stem in done if f"{stem}.{SHARD}" in names]
        if shards:
            return Dataset(folder, "files", tuple(shards), whole=False)
    return None


def _finished_shard(folder: str, stem: str) -> StoredShard:
    return StoredShard(
        split=stem.rpartition("-")[0],
        name=f"{stem}.{SHARD}",
        path=storage.join(folder, f"{stem}.{SHARD}"),
        sidecar=storage.join(folder, f"{stem}.jsonl"),
    )


def guess_features(example: ParsedExample) -> tuple[Feature, ...]:
    """Returns the features of the shipped convention that fits a record best; none if none fits.

    It has the most keys of the record, with their types, then the fewest others; one of them is an
    image.
    """
    kinds = {key: kind for key, kind, _ in example.items()}
    best: tuple[int, int, tuple[Feature, ...]] = (0, 0, ())
    for name in convention_names():
        features = load_convention(name).example_features
        fitting = [each for each in features if kinds.get(each.key) == each.kind]
        if any(each.field == "encoded" for each in fitting):
            rank = (len(fitting), -len(features))
            if rank > best[:2]:
                best = (*rank, tuple(fitting))
    return best[2]


@dataclass(frozen=True, slots=True)
class ViewedPlace:
    """Where an image is.

    Attributes:
        shard: its file.
        number: its number in its split, from 0.
        in_file: its number in its file, from 0.
    """

    shard: StoredShard
    number: int
    in_file: int


@dataclass(frozen=True, slots=True)
class ReadingProgress:
    """How far the values of images have been read.

    Attributes:
        images: the number of images that have been read.
        total: the number of all images; None if it is not known yet.
        files: the number of files that have been read.
        files_total: the number of all files.
        damages: the number of damaged parts that were skipped.
        is_complete: whether images can be selected and sorted.
        fault: why reading ended early; None if it did not.
    """

    images: int
    total: int | None
    files: int
    files_total: int
    damages: int
    is_complete: bool
    fault: str | None


class ViewedDataset:
    """A dataset that is shown.

    Attributes:
        dataset: its files and metadata.
        kind: what it is.
        features: the features of its records; guessed from the first record without metadata.
        table: the values of its images so far.
        is_complete: whether all of them have been read.
    """

    def __init__(self, dataset: Dataset, kind: ViewedKind, features: tuple[Feature, ...]) -> None:
        self.dataset, self.kind, self.features = dataset, kind, features
        # Numbers follow splits, as those of `IndexedRecords` do.
        self.shards = list(chain.from_iterable(dataset.splits.values()))
        self.table = ImageTable()
        self.is_complete = False
        self._files = self._damages = 0
        self._fault: str | None = None
        self._starts = list(accumulate((shard.records or 0 for shard in self.shards), initial=0))

    @cached_property
    def expected(self) -> Expectations:
        """The properties of its records."""
        return expect(replace(self.dataset, features=self.features))

    @cached_property
    def tracer(self) -> ShapeTracer:
        """Gives the annotations in its Examples as shapes."""
        return ShapeTracer(self.features, self.dataset.labels, self.dataset.marker_or_none)

    @cached_property
    def class_names(self) -> Mapping[int, str]:
        """The names of classes by their ids."""
        return {label: name for name, label in self.dataset.labels.items()}

    @cached_property
    def records(self) -> RecordReader:
        """Reads its records.

        Raises:
            LoadError: the index does not fit the shards.
            OSError: the index cannot be read.
        """
        marker = self.dataset.marker_or_none
        if marker and marker.plan.for_readers.compression == "none":
            return IndexedRecords(self.dataset)
        return PlacedRecords(self.shards, self.table)

    @cached_property
    def is_packed(self) -> bool:
        """Whether its files are packed, as the first one is."""
        start = storage.read_range(self.shards[0].path, 0, 16) if self.shards else b""
        return compression_of(start) != "none"

    @property
    def title(self) -> str:
        """Its name; if it has none, that of its folder."""
        marker, folder = self.dataset.marker_or_none, self.dataset.folder
        if marker and marker.name:
            return marker.name
        if storage.is_local(folder):
            folder = os.path.abspath(folder)
        return posixpath.basename(folder) or folder

    @property
    def split_places(self) -> dict[str, tuple[int, int]]:
        """By split, the numbers of its first image and of the first one after it."""
        places: dict[str, tuple[int, int]] = {}
        for shard, (begin, end) in zip(self.shards, pairwise(self._starts), strict=True):
            first, _ = places.get(shard.split, (begin, end))
            places[shard.split] = (first, end)
        return {split: places.get(split, (0, 0)) for split in self.dataset.splits}

    def locate(self, number: int) -> ViewedPlace:
        """Returns where an image is, which has been read or which the metadata counts."""
        facts = self.table.facts(number)
        place = bisect_right(self._starts, number) - 1 if facts is None else facts.shard
        shard = self.shards[place]
        first, _ = self.split_places[shard.split]
        return ViewedPlace(shard, number - first, number - self._starts[place])

    def show_python(self, place: ViewedPlace) -> str:
        """Returns the line of Python that opens a record."""
        path, split, number = self.dataset.folder, place.shard.split, place.number
        if self.kind == "unfinished":
            path, split, number = place.shard.path, split_of(place.shard.name), place.in_file
        if self.kind == "unfinished" or self.is_packed or self._damages:
            examples = f"recordmill.examples_as_numpy({path!r}, {split!r})"
            return f"next(itertools.islice({examples}, {number}, None))"
        return f"recordmill.open({path!r}, form='numpy')[{split!r}][{number}]"

    @property
    def total(self) -> int | None:
        """The number of its images, according to the metadata, or once they have been read."""
        if self.is_complete:
            return len(self.table)
        counts = [shard.records for shard in self.shards]
        if None in counts:
            return None
        return sum(count or 0 for count in counts)

    @property
    def progress(self) -> ReadingProgress:
        """How far its images have been read."""
        return ReadingProgress(
            images=len(self.table),
            total=self.total,
            files=self._files,
            files_total=len(self.shards),
            damages=self._damages,
            is_complete=self.is_complete,
            fault=self._fault,
        )

    def read_table(self) -> None:
        """Reads the values of all images, file by file; `progress` says how far it is."""
        try:
            for block in pack_images(self.table.classes, self._read_all()):
                self.table.add(block)
            self.is_complete = True
        except FORGED as error:
            self._fault = f"the values of images cannot be read: {error}"
        except OSError as error:
            self._fault = f"{error.filename or self.dataset.folder} cannot be read: {error}"

    def close(self) -> None:
        """Closes its files."""
        self.records.close()

    def _read_all(self) -> Iterator[ImageFacts]:
        """Reads the values of all images, and counts those before each file."""
        read = 0
        for place, shard in enumerate(self.shards):
            self._starts[place] = read
            for facts in self._read_rows(place, shard):
                yield facts
                read += 1
            self._starts[place + 1] = max(self._starts[place + 1], read)
            self._files += 1

    def _read_rows(self, place: int, shard: StoredShard) -> Iterator[ImageFacts]:
        if shard.sidecar:
            for row in shard.rows():
                yield _facts_of_row(row, place)
        else:
            yield from self._scan(place, shard)

    def _scan(self, place: int, shard: StoredShard) -> Iterator[ImageFacts]:
        """Reads a file whose images nothing describes."""
        with shard.open() as stored:
            for number, (offset, data) in enumerate(RecordFile(stored)):
                example = parse_intact(data)
                if example is None or isinstance(data, Damage):
                    self._damages += 1
                    continue
                facts = self._facts_of(example, f"{shard.name}#{number}")
                facts.offset, facts.length, facts.shard = offset, len(data), place
                yield facts

    def _facts_of(self, example: ParsedExample, name: str) -> ImageFacts:
        fields = {each.field: example.values(each.key) for each in self.features}
        text = next(iter(fields.get("filename") or ()), b"")
        key = text.decode("utf-8", "replace") if isinstance(text, bytes) and text else name
        width, height = _size_of(fields, find_image(example, self.expected)[1])
        facts = ImageFacts(key, self._own_classes(example), width=width, height=height)
        if self.tracer.kinds:
            shapes = self.tracer.list_objects(example)
            facts.objects = len(shapes)
            facts.classes = [*facts.classes, *filter(None, map(self.class_of, shapes))]
        return facts

    def _own_classes(self, example: ParsedExample) -> list[str]:
        keys = [each.key for each in self.features if each.field in ("label_text", "label")]
        keys.sort(key=lambda key: example.values(key) is None)
        if not self.features:
            keys += self.expected.label_keys
        for key in keys:
            if values := example.values(key):
                return [self.name_class(each) for each in values]
        return []

    def name_class(self, value: bytes | int | float) -> str:
        """Returns the name of a class that a record has as text or as an id."""
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return self.show_class(str(value))

    def class_of(self, shape: Shape) -> str | None:
        """Returns the name of a shape's class, or else its id; None without either."""
        if shape.class_name is None and shape.class_id is not None:
            return str(shape.class_id)
        return shape.class_name

    def show_class(self, name: str) -> str:
        """Returns the name of a class, whose id may stand in its place as text."""
        if name.isdigit():
            return self.class_names.get(int(name), name)
        return name


def _facts_of_row(row: SidecarRow, shard: int) -> ImageFacts:
    own = () if row.class_name is None else (row.class_name,)
    dropped = 0
    for counts in (row.annotations or {}).values():
        dropped += sum(counts.get("dropped", {}).values())
    return ImageFacts(
        row.key,
        own if row.classes is None else row.classes,
        UNKNOWN_NUMBER if row.classes is None else len(row.classes),
        dropped,
        UNKNOWN_NUMBER if row.width is None else row.width,
        UNKNOWN_NUMBER if row.height is None else row.height,
        row.changes,
        row.offset,
        row.length,
        row.sha256,
        shard,
    )


def _size_of(fields: Mapping[str, Sequence[object] | None], image: bytes) -> tuple[int, int]:
    """Returns the width and height of an image by its record, or else by its header."""
    declared = [next(iter(fields.get(name) or ()), None) for name in ("width", "height")]
    width, height = declared
    if isinstance(width, int) and isinstance(height, int):
        return width, height
    kind = sniff(image)
    if kind is None:
        return UNKNOWN_NUMBER, UNKNOWN_NUMBER
    try:
        return open_image(image, kind).size
    except Rejected:
        return UNKNOWN_NUMBER, UNKNOWN_NUMBER


def open_viewed(path: str) -> ViewedDataset:
    """Opens a dataset, the unfinished work of a run, or TFRecord files.

    Raises:
        LoadError: the path leads to nothing of the kind.
        OSError: the files cannot be read.
    """
    try:
        dataset = open_dataset(path)
    except LoadError:
        unfinished = find_unfinished(path)
        if unfinished is None:
            raise
        return ViewedDataset(unfinished, "unfinished", _first_features(unfinished))
    if dataset.marker_or_none:
        return ViewedDataset(dataset, dataset.kind, dataset.features)
    return ViewedDataset(dataset, dataset.kind, _first_features(dataset))


def _first_features(dataset: Dataset) -> tuple[Feature, ...]:
    """Guesses the features of records from the first intact one."""
    for shard in dataset.shards:
        with shard.open() as stored:
            for _, data in RecordFile(stored):
                if example := parse_intact(data):
                    return guess_features(example)
    return ()
