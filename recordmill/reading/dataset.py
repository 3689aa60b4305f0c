"""Opens a dataset: Recordmill's by its marker, others by the names and content of their files.

Loading, verifying and inspecting all find their files here. A folder of TensorFlow Datasets is read
by its `dataset_info.json`, without TensorFlow. TFRecord files that no metadata lists are found by
their names or first bytes; their splits are in their names. `SplitInfo` describes a split to
training code.
"""

import glob
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any, Literal, NoReturn

import orjson

from recordmill import storage
from recordmill.annotations.kinds import KINDS
from recordmill.schemas.dataset.file_names import (
    LABELS,
    MARKER,
    REJECTED,
    UNPUBLISHED,
    is_of_saved_model,
    looks_like_shard,
    staging_names,
    stem_of_shard,
)
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.side_files import SidecarRow
from recordmill.schemas.dataset.tfds_shards import DATASET_INFO, FILE_FORMAT, list_tfds_shards
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import Feature
from recordmill.schemas.formatting import format_count
from recordmill.schemas.str_path import StrPath
from recordmill.storage import dataset_files
from recordmill.storage.stored_names import find_problem
from recordmill.storage.tfrecord_file import (
    Damage,
    RecordFile,
    StoredFile,
    is_not_tfrecord,
    looks_like_records,
)

FORGED = (orjson.JSONDecodeError, AttributeError, KeyError, OverflowError, TypeError, ValueError)
"""Errors that reading a row may raise if Recordmill did not write it."""


MOST_MORE_BYTES = 2**32
"""A shard that is larger than its dataset says by more than this is not read."""


@dataclass(frozen=True, slots=True)
class StoredShard:
    """One TFRecord file of a dataset. Unknown values are None, or the empty string.

    Attributes:
        split: the split that it belongs to.
        name: its path below the dataset's folder.
        path: its full path.
        records: its number of records, according to the metadata.
        bytes: its size, according to the metadata.
        sha256: hex digest of the file, according to the metadata.
        sidecar: path of its sidecar.
        sidecar_sha256: hex digest of the sidecar, according to the metadata.
    """

    split: str
    name: str
    path: str
    records: int | None = None
    bytes: int | None = None
    sha256: str = ""
    sidecar: str = ""
    sidecar_sha256: str = ""

    def find_fault(self) -> str | None:
        """Returns a sentence if the file cannot be read from start to end."""
        try:
            size = storage.size_of(self.path)
            storage.read_range(self.path, 0, 1)
        except FileNotFoundError:
            return f"the shard {self.path} is missing: restore it, or convert the dataset again"
        except OSError as error:
            return f"the shard {self.path} cannot be read: {error}"
        if self.bytes in (None, size):
            return None
        return self._explain_size(size)

    def _explain_size(self, size: int | None) -> str:
        return (
            f"the shard {self.path} has {size:,} bytes where {self.bytes:,} were written: "
            "restore it"
        )

    def open(self) -> StoredFile:
        """Opens the file to read it from start to end; the caller closes it.

        Raises:
            LoadError: it is so much larger than the metadata say that reading it may never end.
            OSError: it cannot be opened.
        """
        size = storage.size_of(self.path) or 0
        if self.bytes is not None and size > self.bytes + MOST_MORE_BYTES:
            raise LoadError(self._explain_size(size))
        return StoredFile(self.path)

    def rows(self) -> Iterator[SidecarRow]:
        """Yields the sidecar's rows for the file's records, in file order.

        None if there is no sidecar.

        Raises:
            OSError: the sidecar cannot be read.
            LoadError: its content is malformed.
        """
        if not self.sidecar:
            return
        rows = dataset_files.read_rows(self.sidecar)
        try:
            yield from (row for row in rows if isinstance(row, SidecarRow))
        except FORGED as error:
            raise LoadError(
                f"the sidecar {self.sidecar} cannot be understood ({error}): restore it"
            ) from None

    def intact_records(self) -> Iterator[memoryview]:
        """Yields the file's records, in file order.

        Raises:
            OSError: the file cannot be read.
            LoadError: a record is damaged.
        """
        with self.open() as stored:
            for number, (offset, data) in enumerate(RecordFile(stored)):
                if isinstance(data, Damage):
                    raise LoadError(
                        f"{self.path} is damaged: record {number} at byte {offset}: {data.detail}"
                    )
                yield data


def read_tfds_folder(folder: str) -> tuple[tuple[StoredShard, ...], dict[str, int]]:
    """Reads the shards that `dataset_info.json` lists, with their counts, and the class ids.

    There are class ids only if the dataset has one label feature.

    Raises:
        LoadError: the file is malformed, or describes a format other than TFRecord.
    """
    path = storage.join(folder, DATASET_INFO)
    try:
        info: Any = orjson.loads(storage.read_whole(path, dataset_files.MOST_OBJECT_BYTES))
        file_format = info.get("fileFormat", FILE_FORMAT)
        listed = list(list_tfds_shards(info, file_format))
        for each in listed:
            if problem := find_problem(each.name):
                raise ValueError(f"{each.name!r} {problem}")
        shards = tuple(
            StoredShard(split, name, storage.join(folder, name), records)
            for split, name, records in listed
        )
    except FORGED as error:
        raise LoadError(
            f"{path} cannot be understood ({error!r}): move it away to open the files alone"
        ) from None
    if file_format != FILE_FORMAT:
        raise LoadError(f"{path} describes {file_format} files: only TFRecord files can be opened")
    labels = [name for name in storage.folder_names(folder) if name.endswith(".labels.txt")]
    if len(labels) != 1:
        return shards, {}
    content = storage.read_whole(
        storage.join(folder, labels[0]), dataset_files.MOST_OBJECT_BYTES
    ).decode("utf-8", "replace")
    return shards, {line: number for number, line in enumerate(content.splitlines())}


_SPLIT = re.compile(r"train(?:ing)?|validation|valid|val|test(?:ing)?|eval|dev", re.IGNORECASE)
_OTHER = (
    ".json",
    ".jsonl",
    ".txt",
    ".yaml",
    ".pbtxt",
    ".idx",
    ".md",
    ".csv",
    ".tsv",
    ".html",
    ".py",
)


def find_shards(folder: str) -> tuple[StoredShard, ...]:
    """Finds all TFRecord files below a folder, sorted by name, except hidden ones."""
    found = names_below(folder, hidden=False)  # a store lists hidden files, too
    names = [name for name in found if "/." not in f"/{name}"]
    return _in_splits(
        {name: path for name in names if _holds_records(path := storage.join(folder, name), name)}
    )


def match_files(pattern: str) -> list[str]:
    """Returns the local files that match a pattern, whatever their content.

    Object stores have no patterns.
    """
    return [path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path)]


def gather_shards(paths: list[str]) -> tuple[str, tuple[StoredShard, ...]]:
    """Returns the common folder of the files, and the files as its shards, sorted by name."""
    folders = [path.split("/")[:-1] for path in paths]
    common = os.path.commonprefix(folders)  # noqa: RUF071  # of lists of names
    below = {"/".join(path.split("/")[len(common) :]): path for path in paths}
    return "/".join(common) or ("/" if common else "."), _in_splits(below)


def _in_splits(paths: Mapping[str, str]) -> tuple[StoredShard, ...]:
    """Makes shards of paths by name, and sorts them."""
    shards = (StoredShard(split_of(name), name, path) for name, path in paths.items())
    return tuple(sorted(shards, key=lambda shard: (shard.split, shard.name)))


def split_of(name: str) -> str:
    """Returns the split in a file name, such as `train`, or the name without its shard number."""
    parts = name.split("/")
    for part in reversed(parts):
        words = [word for word in re.split(r"[-_.]", part) if _SPLIT.fullmatch(word)]
        if words:
            return words[-1]
    return stem_of_shard(parts[-1]) or parts[-1]


def names_below(folder: str, hidden: bool = True) -> Iterator[str]:
    """Yields the paths of all files below a folder, at any depth, relative to it.

    Without `hidden`, hidden folders on this machine are not read.

    Raises:
        OSError: a folder cannot be read.
    """

    def fail(error: OSError) -> NoReturn:
        raise error

    if storage.is_local(folder):  # without Beam
        for place, folders, files in os.walk(folder, onerror=fail):
            folders[:] = [name for name in folders if hidden or not name.startswith(".")]
            below = os.path.relpath(place, folder)
            yield from (name if below == "." else f"{below}/{name}" for name in files)
    else:
        prefix = folder.rstrip("/") + "/"
        yield from (file.path.removeprefix(prefix) for file in storage.list_below(folder))


def _holds_records(path: str, name: str) -> bool:
    """Whether a file holds records, by its name (even if it is damaged) or by its first bytes."""
    base = name.rpartition("/")[2]
    if base.lower().endswith(_OTHER) or is_of_saved_model(base):
        return False
    return looks_like_shard(base) or looks_like_records(path)


def read_label_lines(path: str) -> dict[str, int]:
    """Reads class ids by name from `0:daisy` lines, as slim and Recordmill write them.

    There are none if a line has no number.
    """
    content = storage.read_whole(path, dataset_files.MOST_OBJECT_BYTES)
    lines = content.decode("utf-8", "replace").splitlines()
    numbered = [re.fullmatch(r"(-?\d{1,18}):(.*)", line) for line in lines]
    if all(numbered):
        return {match[2]: int(match[1]) for match in numbered if match}
    return {}


DatasetKind = Literal["recordmill", "tfds", "files"]

_NAME_ONE = "name a dataset's folder, a TFRecord file, or a pattern that matches local ones"


@dataclass(frozen=True, slots=True, repr=False)
class Dataset:
    """A dataset's files and metadata, before any record is read.

    Attributes:
        folder: its folder; for a single file, the file's folder.
        kind: `recordmill` with a marker, `tfds` with a `dataset_info.json`, otherwise `files`.
        shards: the files, split by split in the dataset's own order.
        features: its features; empty if the metadata does not list them.
        labels: class ids by name; empty if they are not known.
        marker_or_none: `recordmill.json`; None for other kinds.
        whole: whether its folder was opened; False for single files.
    """

    folder: str
    kind: DatasetKind
    shards: tuple[StoredShard, ...]
    features: tuple[Feature, ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict)
    marker_or_none: Marker | None = None
    whole: bool = True

    @property
    def marker(self) -> Marker:
        """`recordmill.json`, which every dataset of the kind `recordmill` has.

        Raises:
            LoadError: the dataset is of another kind.
        """
        if self.marker_or_none is None:
            raise LoadError(
                f"{self.folder} holds no {MARKER}: name the folder of a finished dataset"
            )
        return self.marker_or_none

    @property
    def counts(self) -> dict[str, int | None]:
        """The number of records per split according to the metadata; None if unknown."""
        return {split: self.count([split]) for split in self.splits}

    @property
    def notes(self) -> tuple[str, ...]:
        """The conversion's notes and remarks; empty without a marker."""
        if self.marker_or_none:
            return (*self.marker.notes, *self.marker.remarks)
        return ()

    def require_marker(self) -> Marker:
        """Returns the marker of a dataset that was opened by its folder.

        Raises:
            LoadError: there is no marker, or files were opened instead of the folder.
        """
        is_part = not self.whole
        if is_part and (self.marker_or_none or storage.exists(storage.join(self.folder, MARKER))):
            raise LoadError(
                f"some files of {self.folder} are named, which its {MARKER} describes: name the "
                "folder"
            )
        return self.marker

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{split}: {'?' if count is None else count}" for split, count in self.counts.items()
        )
        return f"<dataset {self.folder} ({counts}; {format_count(len(self.labels), 'class')})>"

    @property
    def splits(self) -> dict[str, tuple[StoredShard, ...]]:
        """The shards by split; a split of a Recordmill dataset may have none."""
        if self.marker_or_none and self.whole:
            listed = tuple(self.marker.splits)
        else:
            listed = ()
        by_split: dict[str, list[StoredShard]] = {name: [] for name in listed}
        for shard in self.shards:
            by_split.setdefault(shard.split, []).append(shard)
        return {name: tuple(shards) for name, shards in by_split.items()}

    def split_names(self, split: str | Sequence[str]) -> tuple[str, ...]:
        """Returns the splits that a caller names.

        One, several, or several in one string, joined by `+`.

        Raises:
            LoadError: one of them does not exist or is named twice, or none is named.
        """
        known = list(self.splits)
        names = list(split)
        if isinstance(split, str):
            names = [split] if split in known else split.split("+")
        if not names or not all(name in known for name in names) or len(set(names)) < len(names):
            raise LoadError(
                f"split is {split!r}, and {self.folder} has {', '.join(known)}: "
                "name one of them, or several as ['a', 'b'] or 'a+b', each once"
            )
        return tuple(names)

    def shards_of(self, split: str | Sequence[str]) -> tuple[StoredShard, ...]:
        """Returns the shards of one split, or of several one after the other; see `split_names`.

        Raises:
            LoadError: there is no such split.
        """
        names, splits = self.split_names(split), self.splits
        return tuple(chain.from_iterable(splits[name] for name in names))

    def count(self, split: str | Sequence[str]) -> int | None:
        """Returns the number of records in one or several splits, or None if it is unknown.

        The number is the one in the metadata.

        Raises:
            LoadError: there is no such split.
        """
        counts = [shard.records for shard in self.shards_of(split)]
        if None in counts:
            return None
        return sum(count or 0 for count in counts)

    def lines(self, name: str) -> Iterator[dict[str, Any]]:
        """Yields the lines of one of its files of JSON lines.

        Raises:
            OSError: the file cannot be read.
            orjson.JSONDecodeError: a line is damaged.
        """
        yield from map(orjson.loads, storage.read_lines(storage.join(self.folder, name)))

    def rows(self) -> Iterator[tuple[StoredShard, SidecarRow]]:
        """Yields the sidecar rows of all records, each with its shard, in the order of `shards`.

        See `StoredShard.rows`.
        """
        for shard in self.shards:
            for row in shard.rows():
                yield shard, row


def open_dataset(path: StrPath) -> Dataset:
    """Opens a dataset's folder, a TFRecord file, or the files that match a pattern.

    No records are read, except that a single file that does not begin with one is searched for an
    intact record.

    Files that a dataset's metadata lists are opened with that metadata. In a folder with versions,
    the current one is opened. The unfinished work of a run that rejected too much is opened as the
    dataset that would have been published.

    Example:
        dataset = recordmill.open_dataset("dataset")
        print(dataset.splits, dataset.marker.ledger.written)

    Args:
        path: on any of Beam's file systems. In a pattern of local files, `*`, `?` and `[a-z]` match
            anything but slashes, and `**` matches any folders.

    Raises:
        LoadError: there are no such files, or publishing them was interrupted.
        OSError: the files cannot be read.
    """
    path = os.fspath(path)
    path = path.rstrip("/") or path
    if storage.size_of(path) is not None:
        opened = _open_files([path])
        if opened.kind == "files" and is_not_tfrecord(path):
            raise LoadError(f"{path} is not a TFRecord file, and no record is in it: {_NAME_ONE}")
        return opened
    if names := storage.folder_names(path):
        if UNPUBLISHED in names and MARKER not in names:
            return describe_by_marker(path, *dataset_files.read_unpublished(path))
        if MARKER not in names and (sentence := _find_unfinished(path, names)):
            raise LoadError(sentence)
        if described := _open_described(path):
            return described
        if not (shards := find_shards(path)):
            raise LoadError(f"{path} holds no TFRecord file and no {MARKER}: {_NAME_ONE}")
        if LABELS in names:
            labels = read_label_lines(storage.join(path, LABELS))
        else:
            labels = {}
        return Dataset(path, "files", shards, labels=labels)
    if found := match_files(path):
        return _open_files(found)
    raise LoadError(f"{path} does not exist or is empty: {_NAME_ONE}")


def _find_unfinished(folder: str, names: Collection[str]) -> str | None:
    """Explains why a folder has no marker: an interrupted run may have left valid shards in it.

    Args:
        folder: its path.
        names: the names of the files and folders in it.

    Returns:
        One sentence; None if there is no trace of a run.
    """
    if found := staging_names(sorted(names)):
        return (
            f"{folder} is not finished: it holds {found[0]}, of a run that is still working on it, "
            "or was interrupted, or failed: run the same command again, corrected if it failed"
        )
    if any(map(dataset_files.split_version, names)):
        return (
            f"{folder} holds versions, but none is current: {dataset_files.explain_choice(folder)}"
        )
    if {"sidecars", REJECTED} <= {*names}:
        return (
            f"{folder} holds no {MARKER} but sidecars/ and {REJECTED}: its publication was "
            "interrupted, or the file was lost: run the command that made the dataset again, or "
            "name the files alone by a "
            "pattern in quotes"
        )
    return None


def _open_described(folder: str) -> Dataset | None:
    """Returns a dataset with metadata; None if there is none."""
    if storage.exists(storage.join(folder, MARKER)):
        # Resolved once: this version is read to the end.
        return _open_ours(dataset_files.current_folder(folder))
    if storage.exists(storage.join(folder, DATASET_INFO)):
        shards, labels = read_tfds_folder(folder)
        return Dataset(folder, "tfds", shards, labels=labels)
    return None


def _open_files(paths: list[str]) -> Dataset:
    folder, shards = gather_shards(paths)
    described = _open_described(folder)
    if described:
        listed = {shard.name: shard for shard in described.shards}
    else:
        listed = {}
    if described and listed.keys() >= {shard.name for shard in shards}:
        return replace(described, shards=tuple(listed[shard.name] for shard in shards), whole=False)
    return Dataset(folder, "files", shards, whole=False)


def _open_ours(folder: str) -> Dataset:
    try:
        marker = dataset_files.read_marker(folder)
    except FileNotFoundError:
        raise LoadError(
            f"{folder} is being replaced by a run: try again when it has ended"
        ) from None
    except dataset_files.DamagedMarkerError as error:
        raise LoadError(f"{error}: restore it, or convert the dataset again") from None
    return describe_by_marker(folder, marker)


def describe_by_marker(
    folder: str, marker: Marker, stored_as: Mapping[str, str] | None = None
) -> Dataset:
    """Returns the dataset in a folder whose marker has been read already.

    Args:
        folder: the folder.
        marker: the marker.
        stored_as: the names of files in the folder by their names in the marker, if they differ.
    """
    names = stored_as or {}

    def at(name: str) -> str:
        return storage.join(folder, names.get(name, name))

    shards = tuple(
        StoredShard(
            split,
            own.name,
            at(own.name),
            own.records,
            own.bytes,
            own.sha256,
            at(own.sidecar),
            own.sidecar_sha256,
        )
        for split, entry in marker.splits.items()
        for own in entry.shards
    )
    return Dataset(folder, "recordmill", shards, marker.example_features, marker.labels, marker)


@dataclass(frozen=True)
class SplitInfo:
    """One split of a dataset, or several read as one, as the marker describes it.

    Attributes:
        folder: the dataset's folder.
        split: the split's name; several joined by `+`.
        features: the features of an Example, sorted by key.
        labels: class ids by name, as they are stored.
        class_counts: records by class name, for the classes in the split; if records may
            have several annotations, the number of these.
        shards: the files, in the marker's order.
        compression: `gzip` or `none`.
        raw: whether images are stored as uint8 pixels, height by width by channels, instead of
            encoded.
        attributes: the ids of the words of each attribute of objects, by its name; empty for truth
            values and whole numbers.
        loaded_types: the names of the types of arrays of annotations, by kind.
    """

    folder: str
    split: str
    features: tuple[Feature, ...]
    labels: Mapping[str, int]
    class_counts: Mapping[str, int]
    shards: tuple[StoredShard, ...]
    compression: str
    raw: bool
    attributes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    loaded_types: Mapping[str, str] = field(default_factory=dict)

    @property
    def num_examples(self) -> int:
        """The number of records in the split."""
        return sum(shard.records or 0 for shard in self.shards)

    @property
    def num_classes(self) -> int:
        """The number of classes of the dataset, including those that are not in this split."""
        return len(self.labels)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The class names in the order of their ids."""
        return tuple(self.labels_to_names.values())

    @property
    def labels_to_names(self) -> dict[int, str]:
        """Class names by id, in the order of the ids."""
        return dict(sorted((label_id, name) for name, label_id in self.labels.items()))

    @property
    def label_depth(self) -> int:
        """Returns the largest id plus one.

        It is the length of a one-hot label, and the number of outputs that a classifier needs.
        """
        return max(self.labels.values(), default=-1) + 1

    @property
    def class_weights(self) -> dict[int, float]:
        """Returns weights by id that balance the classes, for Keras's `class_weight`.

        Their mean over records is 1. A class's weight is n / (k * n_class), for n labels in the k
        classes of the split; other classes have none.
        """
        total = sum(self.class_counts.values())
        return {
            self.labels[name]: total / (len(self.class_counts) * count)
            for name, count in sorted(
                self.class_counts.items(), key=lambda item: self.labels[item[0]]
            )
        }

    @property
    def items_to_descriptions(self) -> dict[str, str]:
        """What each feature means, by its key."""
        return {feature.key: feature.meaning for feature in self.features}

    def key_of(self, field: str) -> str | None:
        """Returns the key of the feature that a field fills (`encoded`, `label`, ...), or None."""
        return next((feature.key for feature in self.features if feature.field == field), None)

    @cached_property
    def image_size(self) -> tuple[int, int] | None:
        """Returns the height and width of all images, or None if they differ or are unknown.

        The first rows of the first sidecar decide.
        """
        try:
            if self.shards:
                rows = list(islice(self.shards[0].rows(), 1_000))
            else:
                rows = []
        except FileNotFoundError:  # files that were copied without their sidecars can still be read
            return None
        sizes = {
            (row.height, row.width)
            for row in rows
            if row.height is not None and row.width is not None
        }
        if len(sizes) == 1:
            return sizes.pop()
        return None


def describe_split(path: StrPath, split: str | Sequence[str] = "train") -> SplitInfo:
    """Opens a dataset's folder and describes one of its splits, or several as one.

    This needs no TensorFlow.

    Example:
        info = recordmill.describe_split("dataset", "train")
        print(info.num_examples, info.class_names)

    Args:
        path: the folder that contains `recordmill.json`, on any of Beam's file systems.
        split: the split's name; several as a sequence, or joined by `+`.

    Raises:
        LoadError: there is no dataset, or no such split, or the dataset is of another version of
            Recordmill.
    """
    return describe_open_split(open_dataset(path), split)


def describe_open_split(dataset: Dataset, split: str | Sequence[str]) -> SplitInfo:
    """Describes a split of a dataset that is already open, as `describe_split` does."""
    marker, names = dataset.require_marker(), dataset.split_names(split)
    recipe = marker.plan.for_readers
    counts = sum((Counter(marker.splits[name].class_counts) for name in names), Counter[str]())
    return SplitInfo(
        folder=dataset.folder,
        split="+".join(names),
        features=dataset.features,
        labels=dataset.labels,
        class_counts={name: count for name, count in sorted(counts.items()) if name and count},
        shards=dataset.shards_of(names),
        compression=recipe.compression,
        raw=recipe.is_raw,
        attributes=marker.attributes or {},
        loaded_types={
            name: kind.find_loaded_type(marker.plan.recipe) for name, kind in KINDS.items()
        },
    )
