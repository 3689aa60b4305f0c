"""Opening a dataset: one of ours by its marker, anybody else's by what its files are called and hold."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import orjson

from reading.found_shards import find_shards, read_label_lines, split_of
from reading.shard import Shard
from reading.tfds_folder import DATASET_INFO, DamagedInfoError, read_tfds_folder
from schemas.conventions import convention_names, load_convention
from schemas.features import Feature
from transforms.files import storage
from transforms.planning.output_state import MARKER, DamagedMarkerError, read_marker
from transforms.publishing.marker import LABELS, MARKER_FORMAT

Kind = Literal["recordmill", "tfds", "files"]


class OpenError(ValueError):
    """There is no dataset to open; the message is one sentence that says why."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """What is known of a dataset before any record is read.

    Attributes:
        folder: where it lies; of a single file its folder.
        kind: `recordmill` with our marker, `tfds` with a `dataset_info.json`, else `files`.
        shards: the files, split by split in the dataset's own order.
        features: its features; empty where only the records can tell.
        labels: class ids by name; empty where they are not known.
        marker: the whole of `recordmill.json`; empty for other kinds.
        whole: False where one file of a dataset was opened.
    """

    folder: str
    kind: Kind
    shards: tuple[Shard, ...]
    features: tuple[Feature, ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict)
    marker: Mapping[str, Any] = field(default_factory=dict)
    whole: bool = True

    @property
    def splits(self) -> dict[str, tuple[Shard, ...]]:
        """The shards by split; a split of one of ours may have none."""
        stated = self.marker.get("splits", ()) if self.whole else ()
        names = dict.fromkeys([*stated, *(shard.split for shard in self.shards)])
        return {name: tuple(shard for shard in self.shards if shard.split == name) for name in names}

    def count(self, split: str) -> int | None:
        """How many records a split is said to hold; None where nobody has counted.

        Raises:
            KeyError: there is no such split.
        """
        counts = [shard.records for shard in self.splits[split]]
        return None if None in counts else sum(count or 0 for count in counts)

    def rows(self) -> Iterator[tuple[Shard, dict[str, Any]]]:
        """The sidecars' rows of all records, each with its shard, in the order of `shards`; see `Shard.rows`."""
        for shard in self.shards:
            for row in shard.rows():
                yield shard, row


def open_dataset(path: str) -> Dataset:
    """Opens a dataset's folder, or one TFRecord file; no record is read.

    A file that lies in a dataset which lists it is opened with all that the dataset says of it.

    Args:
        path: on any of Beam's file systems.

    Raises:
        OpenError: there is nothing of the kind.
        OSError: it cannot be looked at.
    """
    path = path.rstrip("/") or path
    if storage.size_of(path) is not None:
        return _open_file(path)
    names = storage.folder_names(path)
    if not names:
        raise OpenError(f"{path} is not there, or holds nothing: name a dataset's folder, or a TFRecord file")
    return _open_folder(path, names)


def _open_folder(folder: str, names: list[str]) -> Dataset:
    if MARKER in names:
        return _open_ours(folder)
    if DATASET_INFO in names:
        try:
            shards, labels = read_tfds_folder(folder, names)
        except DamagedInfoError as error:
            raise OpenError(str(error)) from None
        return Dataset(folder, "tfds", shards, labels=labels)
    shards = find_shards(folder)
    if not shards:
        raise OpenError(f"{folder} holds no TFRecord file and no {MARKER}: name a dataset's folder, or a TFRecord file")
    labels = read_label_lines(storage.join(folder, LABELS)) if LABELS in names else {}
    return Dataset(folder, "files", shards, labels=labels)


def _open_file(path: str) -> Dataset:
    folder, _, name = path.rpartition("/")
    folder = folder or ("/" if path.startswith("/") else ".")
    names = set(storage.folder_names(folder)) if storage.is_local(path) else set()
    listed = None
    if MARKER in names or (not names and storage.exists(storage.join(folder, MARKER))):
        listed = _open_ours(folder)
    elif DATASET_INFO in names:
        listed = _open_folder(folder, sorted(names))
    mine = [shard for shard in listed.shards if shard.name == name] if listed else []
    if listed and mine:
        return replace(listed, shards=tuple(mine), whole=False)
    return Dataset(folder, "files", (Shard(split_of(name), name, path),), whole=False)


def _open_ours(folder: str) -> Dataset:
    try:
        marker = read_marker(folder)
        if marker.get("recordmill") != MARKER_FORMAT:
            raise OpenError(f"{folder}/{MARKER} is of another version of Recordmill: open it with that one")
        return Dataset(folder, "recordmill", _our_shards(folder, marker), _features(marker), marker["labels"], marker)
    except FileNotFoundError:
        raise OpenError(f"{folder} is being replaced by a run: try again when it has ended") from None
    except (orjson.JSONDecodeError, DamagedMarkerError, KeyError, TypeError, AttributeError) as error:
        detail = f"{type(error).__name__}: {error}"
        raise OpenError(f"{folder}/{MARKER} cannot be understood ({detail}): restore it, or make it anew") from None


def _our_shards(folder: str, marker: Mapping[str, Any]) -> tuple[Shard, ...]:
    return tuple(
        Shard(
            split=split,
            name=shard["name"],
            path=storage.join(folder, shard["name"]),
            records=shard["records"],
            bytes=shard["bytes"],
            sha256=shard["sha256"],
            sidecar=storage.join(folder, shard["sidecar"]),
            sidecar_sha256=shard["sidecar_sha256"],
        )
        for split, stated in marker["splits"].items()
        for shard in stated["shards"]
    )


def _features(marker: Mapping[str, Any]) -> tuple[Feature, ...]:
    """As stated; a feature of the convention also knows its field and its default."""
    name = marker["convention"]
    known = load_convention(name).features if name in convention_names() else ()
    by_key = {feature.key: feature for feature in known}
    features = []
    for key, stated in marker["features"].items():
        feature = Feature(key, stated["kind"], field="", meaning=stated["meaning"], many=stated["shape"] != [])
        own = by_key.get(key, feature)
        features.append(own if (own.kind, own.many) == (feature.kind, feature.many) else feature)
    return tuple(features)
