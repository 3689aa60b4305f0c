"""Opens a dataset: Recordmill's by its marker, others by the names and content of their files.

Loading, verifying and inspecting all find their files here.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from recordmill import storage
from recordmill.reading.found_shards import find_shards, match_files, name_shards, read_label_lines
from recordmill.reading.shard import Shard
from recordmill.reading.tfds_folder import DATASET_INFO, read_tfds_folder
from recordmill.schemas.dataset.file_names import DUPLICATES, LABELS, MARKER, REJECTED, staging_names
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.sidecar_row import SidecarRow
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import Feature
from recordmill.schemas.formatting import format_count
from recordmill.storage.dataset_files import DamagedMarkerError, read_marker
from recordmill.storage.record_reader import is_something_else
from recordmill.storage.versions import current_folder, explain_choice, split_version

Kind = Literal["recordmill", "tfds", "files"]

_NAME_ONE = "name a dataset's folder, a TFRecord file, or a pattern that matches some"


@dataclass(frozen=True, slots=True, repr=False)
class Dataset:
    """A dataset as it is known before any record is read.

    Attributes:
        folder: its folder; for a single file, the file's folder.
        kind: `recordmill` with a marker, `tfds` with a `dataset_info.json`, otherwise `files`.
        shards: the files, split by split in the dataset's own order.
        features: its features; empty if only the records show them.
        labels: class ids by name; empty if they are not known.
        marker: `recordmill.json`; None for other kinds.
        whole: False if files were opened instead of a folder.
    """

    folder: str
    kind: Kind
    shards: tuple[Shard, ...]
    features: tuple[Feature, ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict)
    marker: Marker | None = None
    whole: bool = True

    @property
    def counts(self) -> dict[str, int | None]:
        """The number of records per split according to the metadata; None if unknown."""
        return {split: self.count([split]) for split in self.splits}

    @property
    def notes(self) -> tuple[str, ...]:
        """The conversion's notes and remarks; empty for other kinds."""
        return (*self.marker.notes, *(self.marker.remarks or ())) if self.marker else ()

    @property
    def path(self) -> str:
        """The dataset's folder."""
        return self.folder

    def require_marker(self) -> Marker:
        """The marker.

        Raises:
            LoadError: there is none, or files were opened instead of the folder.
        """
        if not self.whole and storage.exists(storage.join(self.folder, MARKER)):
            raise LoadError(f"some files of {self.folder} are named, which its {MARKER} describes: name the folder")
        if self.marker is None or not self.whole:
            raise LoadError(f"{self.folder} holds no {MARKER}: name the folder of a finished dataset")
        return self.marker

    def __repr__(self) -> str:
        counts = ", ".join(f"{split}: {'?' if count is None else count}" for split, count in self.counts.items())
        return f"<dataset {self.folder} ({counts}; {format_count(len(self.labels), 'class')})>"

    @property
    def splits(self) -> dict[str, tuple[Shard, ...]]:
        """The shards by split; a split of a Recordmill dataset may have none."""
        stated = self.marker.splits if self.marker and self.whole else ()
        names = dict.fromkeys([*stated, *(shard.split for shard in self.shards)])
        return {name: tuple(shard for shard in self.shards if shard.split == name) for name in names}

    def split_names(self, split: str | Sequence[str]) -> tuple[str, ...]:
        """The splits that a caller names: one, several, or several in one string, joined by `+`.

        Raises:
            LoadError: one of them does not exist or is named twice, or none is named.
        """
        if isinstance(split, str):
            names = [split] if split in self.splits else [name.strip() for name in split.split("+")]
        else:
            names = list(split) if isinstance(split, Sequence) else []
        known = ", ".join(self.splits)
        if not names or not all(isinstance(name, str) for name in names):
            raise LoadError(f"split is {split!r}: name one of {known}, or several as ['a', 'b'] or 'a+b'")
        for number, name in enumerate(names):
            if name not in self.splits:
                raise LoadError(f"{self.folder} has no split {name!r}: choose one of {known}")
            if name in names[:number]:
                raise LoadError(f"split names {name!r} twice: name each split once")
        return tuple(names)

    def shards_of(self, split: str | Sequence[str]) -> tuple[Shard, ...]:
        """The shards of one split, or of several one after the other; see `split_names`.

        Raises:
            LoadError: there is no such split.
        """
        return tuple(shard for name in self.split_names(split) for shard in self.splits[name])

    def count(self, split: str | Sequence[str]) -> int | None:
        """The number of records in a split, or in several, according to the metadata; None if unknown.

        Raises:
            LoadError: there is no such split.
        """
        counts = [shard.records for shard in self.shards_of(split)]
        return None if None in counts else sum(count or 0 for count in counts)

    def rows(self) -> Iterator[tuple[Shard, SidecarRow]]:
        """The sidecars' rows of all records, each with its shard, in the order of `shards`; see `Shard.rows`."""
        for shard in self.shards:
            for row in shard.rows():
                yield shard, row


def open_dataset(path: str) -> Dataset:
    """Opens a dataset's folder, a TFRecord file, or the files that match a pattern.

    Records are read only from a single file that does not begin with one, up to the first intact record.

    Files in a dataset that lists them are opened with all metadata of the dataset. Of a folder with versions, the
    current one is opened.

    Args:
        path: on any of Beam's file systems. In a pattern, `*`, `?` and `[a-z]` match anything but slashes, and `**`
            matches any folders.

    Raises:
        LoadError: there is nothing of the kind, or a Recordmill folder whose publishing was interrupted.
        OSError: it cannot be read.
    """
    path = path.rstrip("/") or path
    if storage.size_of(path) is not None:
        opened = _open_files([path])
        if opened.kind == "files" and is_something_else(path):
            raise LoadError(f"{path} is not a TFRecord file, and no record is in it: {_NAME_ONE}")
        return opened
    if names := storage.folder_names(path):
        if MARKER not in names and (sentence := _find_unfinished(path, names)):
            raise LoadError(sentence)
        return _open_described(path) or _open_undescribed(path, names)
    if found := match_files(path):
        return _open_files(found)
    raise LoadError(f"{path} does not exist or is empty: {_NAME_ONE}")


def _find_unfinished(folder: str, names: Collection[str]) -> str:
    """A sentence about a folder without a marker: interrupted runs leave shards that are valid.

    Args:
        folder: its path.
        names: the names of the files and folders in it.

    Returns:
        The sentence; empty if there is no trace of a run.
    """
    for staging in staging_names(sorted(names)):
        if storage.exists(storage.join(folder, staging, MARKER)):
            left = f"{staging} with a complete dataset, because a publishing was cut or is under way"
            advice = "run the same command again to finish it"
        else:
            left = f"{staging} with the work of a run that failed, was cut or is under way"
            advice = "run its command again, corrected if it failed"
        return f"{folder} holds no {MARKER} but {left}: {advice}"
    if any(map(split_version, names)):
        return f"{folder} holds versions, but none is current: {explain_choice(folder)}"
    lists = [name for name in (REJECTED, DUPLICATES) if name in names]
    if "sidecars" in names and lists:
        return (
            f"{folder} holds no {MARKER} but sidecars/ and {lists[0]}, because a publishing was cut or the file was "
            "lost: run the command that made the dataset again, or name the files alone by a pattern in quotes"
        )
    return ""


def _open_described(folder: str) -> Dataset | None:
    """A dataset with metadata; None if there is none."""
    if storage.exists(storage.join(folder, MARKER)):
        return _open_ours(current_folder(folder))  # asked once: this version is read to the end
    if storage.exists(storage.join(folder, DATASET_INFO)):
        shards, labels = read_tfds_folder(folder)
        return Dataset(folder, "tfds", shards, labels=labels)
    return None


def _open_undescribed(folder: str, names: list[str]) -> Dataset:
    shards = find_shards(folder)
    if not shards:
        raise LoadError(f"{folder} holds no TFRecord file and no {MARKER}: {_NAME_ONE}")
    labels = read_label_lines(storage.join(folder, LABELS)) if LABELS in names else {}
    return Dataset(folder, "files", shards, labels=labels)


def _open_files(paths: list[str]) -> Dataset:
    folder, shards = name_shards(paths)
    described = _open_described(folder)
    stated = {shard.name: shard for shard in described.shards} if described else {}
    if described and stated.keys() >= {shard.name for shard in shards}:
        return replace(described, shards=tuple(stated[shard.name] for shard in shards), whole=False)
    return Dataset(folder, "files", shards, whole=False)


def _open_ours(folder: str) -> Dataset:
    at = partial(storage.join, folder)
    try:
        marker = read_marker(folder)
    except FileNotFoundError:
        raise LoadError(f"{folder} is being replaced by a run: try again when it has ended") from None
    except DamagedMarkerError as error:
        raise LoadError(f"{error}: restore it, or convert the dataset again") from None
    shards = tuple(
        Shard(split, own.name, at(own.name), own.records, own.bytes, own.sha256, at(own.sidecar), own.sidecar_sha256)
        for split, stated in marker.splits.items()
        for own in stated.shards
    )
    return Dataset(folder, "recordmill", shards, marker.example_features, marker.labels, marker)
