"""Summarizes a dataset, and finds records by their number in a split or by their source file.

The summary (splits, features, labels, sizes) comes from the marker, or from reading every record
once.
"""

import hashlib
import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any

from recordmill import storage
from recordmill.annotations.stored_fields import mark_unfilled
from recordmill.imaging.acceptance import sniff
from recordmill.reading.dataset import Dataset, StoredShard
from recordmill.reading.example import (
    Expectations,
    ParsedExample,
    Profile,
    expect,
    find_image,
    parse_intact,
)
from recordmill.reading.records import Records
from recordmill.reading.split_index import read_index
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.side_files import RejectedRow, SidecarRow
from recordmill.schemas.errors import LoadError
from recordmill.storage.dataset_files import read_rows
from recordmill.storage.tfrecord_file import Damage, RecordFile


@dataclass(frozen=True, slots=True)
class FeatureSummary:
    """One feature.

    Attributes:
        kind: `bytes`, `float`, `int64`; several joined by `or` if records differ; `empty` if no
            list is set.
        shape: `[]` for one value, `[4]` for always four, `[0..7]` for a range, `[?]` if the records
            were not read.
        records: number of records that have it; None if the records were not read.
        meaning: one line, if known.
    """

    kind: str
    shape: str
    records: int | None
    meaning: str = ""


@dataclass(slots=True)
class SplitInspection:
    """One split.

    Attributes:
        files: number of files.
        records: number of intact records.
        bytes: size of its files.
        damages: number of places where a frame or an Example was expected and not found.
        labels: records by label: class names, or ids as text.
    """

    files: int = 0
    records: int = 0
    bytes: int = 0
    damages: int = 0
    labels: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Inspection:
    """The content of a dataset.

    Attributes:
        dataset: the dataset.
        splits: by name.
        features: by key, sorted.
        scanned: whether every record was read; otherwise the summary is the marker's.
    """

    dataset: Dataset
    splits: dict[str, SplitInspection]
    features: dict[str, FeatureSummary]
    scanned: bool

    def as_dict(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        marker = self.dataset.marker_or_none
        return {
            "path": self.dataset.folder,
            "kind": self.dataset.kind,
            "convention": marker.convention if marker else "",
            "fingerprint": marker.fingerprint.dataset if marker else "",
            "scanned": self.scanned,
            "splits": {name: asdict(split) for name, split in self.splits.items()},
            "features": {key: asdict(feature) for key, feature in self.features.items()},
            "labels": dict(self.dataset.labels),
        }


def summarize_dataset(
    dataset: Dataset, progress: Callable[[int], None] = lambda records: None
) -> Inspection:
    """Summarizes a dataset.

    Args:
        dataset: of any kind.
        progress: called repeatedly with the number of records since the last call.

    Raises:
        OSError: a file cannot be read.
    """
    if dataset.marker_or_none and dataset.whole:
        return _read_marker(dataset, dataset.marker)
    label_keys = expect(dataset).label_keys
    splits = {name: SplitInspection(len(shards)) for name, shards in dataset.splits.items()}
    profiles: Counter[Profile] = Counter()
    for shard in dataset.shards:
        split = splits[shard.split]
        with shard.open() as stored:
            split.bytes += stored.size
            for number, (_, data) in enumerate(RecordFile(stored), start=1):
                if not number % 256:
                    progress(256)
                if (example := parse_intact(data)) is None:
                    split.damages += 1
                    continue
                split.records += 1
                profiles[example.profile] += 1
                for label in next(filter(None, map(example.values, label_keys)), ()):
                    if isinstance(label, bytes):
                        text = label.decode("utf-8", "replace")
                    else:
                        text = str(label)
                    split.labels[text] = split.labels.get(text, 0) + 1
    names = {str(label_id): name for name, label_id in dataset.labels.items()}
    for split in splits.values():
        split.labels = {
            names.get(label, label): count for label, count in sorted(split.labels.items())
        }
    meanings = {feature.key: feature.meaning for feature in dataset.features}
    return Inspection(dataset, splits, _describe(profiles, meanings), True)


def _read_marker(dataset: Dataset, marker: Marker) -> Inspection:
    splits = {}
    for name, entry in marker.splits.items():
        labels = {label: count for label, count in entry.class_counts.items() if label}
        splits[name] = SplitInspection(len(entry.shards), entry.records, entry.bytes, labels=labels)
    features = {
        feature.key: FeatureSummary(
            feature.kind, "[?]" if feature.many else "[]", None, feature.meaning
        )
        for feature in sorted(
            mark_unfilled(dataset.features, marker.annotations), key=lambda feature: feature.key
        )
    }
    return Inspection(dataset, splits, features, False)


def _describe(profiles: Counter[Profile], meanings: dict[str, str]) -> dict[str, FeatureSummary]:
    """Returns features by key, from the records' profiles."""
    kinds: dict[str, Counter[str]] = {}
    counts: dict[str, list[int]] = {}
    for profile, times in profiles.items():
        for key, kind, values in profile:
            kinds.setdefault(key, Counter())[kind or "empty"] += times
            counts.setdefault(key, []).append(values)
    features = {}
    for key in sorted(kinds):
        fewest, most = min(counts[key]), max(counts[key])
        named = " or ".join(name for name, _ in kinds[key].most_common())
        features[key] = FeatureSummary(
            named, _show_shape(fewest, most), kinds[key].total(), meanings.get(key, "")
        )
    return features


def _show_shape(fewest: int, most: int) -> str:
    """Returns the numbers of a feature's values in the records: `[]` for one in each."""
    if fewest < most:
        return f"[{fewest}..{most}]"
    if most == 1:
        return "[]"
    return f"[{most}]"


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """One record.

    Attributes:
        shard: the file that it is in.
        number: its number in its split, from 0, counted through the split's files.
        place: its number in its file.
        offset: the byte at which its frame begins, in the unpacked file.
        data: the record.
        row: its row in the sidecar; None if there is none.
    """

    shard: StoredShard
    number: int
    place: int
    offset: int
    data: bytes
    row: SidecarRow | None

    def values(self) -> dict[str, tuple[str, list[Any]]]:
        """Returns kind and values of each feature by key, sorted.

        `empty` for a feature without a list.

        Raises:
            DamagedExampleError: it is not an Example.
        """
        return {
            key: (kind or "empty", list(values))
            for key, kind, values in ParsedExample(self.data).items()
        }

    def image(self, expected: Expectations) -> bytes:
        """Returns its encoded image; empty if it has none."""
        example = parse_intact(self.data)
        if example:
            return find_image(example, expected)[1]
        return b""


def read_records(dataset: Dataset) -> Iterator[FoundRecord]:
    """Yields every intact record, split by split, with its row.

    Raises:
        LoadError: a sidecar is damaged.
        OSError: a file cannot be read.
    """
    for shards in dataset.splits.values():
        yield from _read_files(shards)


def _read_files(shards: Iterable[StoredShard]) -> Iterator[FoundRecord]:
    before = 0
    for shard in shards:
        place = -1
        with shard.open() as stored:
            rows = {row.offset: row for row in shard.rows()}
            for place, (offset, data) in enumerate(RecordFile(stored)):
                if not isinstance(data, Damage):
                    yield FoundRecord(
                        shard, before + place, place, offset, bytes(data), rows.get(offset)
                    )
        before += place + 1


def read_record(dataset: Dataset, split: str, number: int) -> FoundRecord:
    """Reads one record by its number in its split, or in a file.

    The index says where it is. Compressed files have none: they are read up to the record.

    Raises:
        LoadError: there is no such split, or no such record in it, or it or its sidecar is damaged.
        OSError: a file cannot be read.
    """
    shards = dataset.splits.get(split) or tuple(
        shard for shard in dataset.shards if shard.name == split
    )
    if not shards:
        known = ", ".join(dataset.splits)
        raise LoadError(
            f"there is no split and no file {split!r} with records: the splits are {known}"
        )
    try:
        index = read_index(dataset, shards)
    except LoadError:
        found = next((each for each in _read_files(shards) if each.number == number), None)
        if found is None:
            raise LoadError(f"{split} has no intact record {number:,}, counted from 0") from None
        return found
    data = Records(index)[number]
    place = bisect_right(index.starts, number) - 1
    shard, offset = shards[place], int(index.entries[number, 0])
    row = next((row for row in shard.rows() if row.offset == offset), None)
    return FoundRecord(shard, number, number - index.starts[place], offset, data, row)


def find_key(dataset: Dataset, key: str) -> list[FoundRecord]:
    """Finds the record of a key, such as `cat/0001.jpg`, by the dataset's index.

    Without an index, it searches like `find_source`.

    Raises:
        LoadError: there is none; the message says why if it was rejected.
        OSError: a file cannot be read.
    """
    for split, shards in dataset.splits.items():
        try:
            number = read_index(dataset, shards).find_key(key)
        except LoadError:  # compressed files, or no keys
            return find_source(dataset, key)
        if number is not None:
            return [read_record(dataset, split, number)]
    raise LoadError(_explain_absence(dataset, key))


def find_source(dataset: Dataset, file: str) -> list[FoundRecord]:
    """Returns the records that came from a file, by its name or, if it exists, by its bytes.

    Uses sidecars if there are any, otherwise the images in the records.

    Args:
        dataset: of any kind.
        file: a path, or the end of one: `cat/0001.jpg`.

    Raises:
        LoadError: there is none; the message says why if it was rejected or left out.
        OSError: a file cannot be read.
    """
    content, digest = None, ""
    if storage.size_of(file) is not None:
        content = storage.read_range(file)
        digest = hashlib.sha256(content).hexdigest()
    if any(shard.sidecar for shard in dataset.shards):
        found = list(_find_by_rows(dataset, file, digest))
    else:
        expected = expect(dataset)
        found = [
            each for each in read_records(dataset) if content and each.image(expected) == content
        ]
    if not found:
        raise LoadError(_explain_absence(dataset, file))
    return found


def _find_by_rows(dataset: Dataset, file: str, digest: str) -> Iterator[FoundRecord]:
    for split, shards in dataset.splits.items():
        rows = chain.from_iterable(shard.rows() for shard in shards)
        for number, row in enumerate(rows):
            if _paths_match(row.key, file) or (digest and row.sha256 == digest):
                yield read_record(dataset, split, number)


def _paths_match(key: str, file: str) -> bool:
    """Returns whether one path ends with the other."""
    return key == file or key.endswith(f"/{file}") or file.endswith(f"/{key}")


def _explain_absence(dataset: Dataset, file: str) -> str:
    sidecars = [shard.sidecar for shard in dataset.shards if shard.sidecar]
    if dataset.marker_or_none:
        names = dataset.marker.sidecars_without_records
        sidecars += [storage.join(dataset.folder, name) for name in names]
    for row in chain.from_iterable(map(read_rows, sidecars)):
        if isinstance(row, RejectedRow) and _paths_match(row.key, file):
            if row.reason is None:
                fate = f"left out: {row.left_out}"
            else:
                fate = f"rejected: {row.reason}"
            return f"{row.key} was {fate} ({row.detail})"
    return f"no record of {dataset.folder} comes from {file}"


def extract_images(
    dataset: Dataset, folder: str, chosen: Iterable[FoundRecord] | None = None
) -> int:
    """Writes the encoded images of records, unchanged, to `folder/<split>/<number>.<format>`.

    Args:
        dataset: the dataset.
        folder: a local folder, new or empty.
        chosen: the records; None for all.

    Returns:
        The number of images written.

    Raises:
        LoadError: the folder is not empty, or no record has an image.
        OSError: a file cannot be read or written.
    """
    if os.path.isdir(folder) and os.listdir(folder):
        raise LoadError(f"{folder} is not empty: name a new folder for the images")
    count, expected = 0, expect(dataset)
    for found in read_records(dataset) if chosen is None else chosen:
        if image := found.image(expected):
            split = os.path.join(folder, _safe(found.shard.split))
            os.makedirs(split, exist_ok=True)
            extension = (sniff(image) or "bin").lower()
            with open(os.path.join(split, f"{found.number:06d}.{extension}"), "xb") as file:
                file.write(image)
            count += 1
    if not count:
        raise LoadError(f"no record of {dataset.folder} that was read has an encoded image")
    return count


def _safe(text: str) -> str:
    """A file name that is valid on every file system, and never a path into another folder."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", text).strip(".") or "_"
