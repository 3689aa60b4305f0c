"""Finds a record of a dataset by its number in a split, or by its source file."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from recordmill import storage
from recordmill.reading.dataset import Dataset
from recordmill.reading.example import DamagedExampleError, ParsedExample
from recordmill.reading.expectations import expect
from recordmill.reading.shard import Shard
from recordmill.reading.verify.verify_pixels import find_image
from recordmill.schemas.dataset.file_names import REJECTED
from recordmill.schemas.dataset.sidecar_row import SidecarRow
from recordmill.schemas.errors import LoadError
from recordmill.storage.record_bytes import StoredFile
from recordmill.storage.record_reader import Damage, RecordFile

_NAMES = ("image/filename", "image_name", "image/source_id", "filename")


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

    shard: Shard
    number: int
    place: int
    offset: int
    data: bytes
    row: SidecarRow | None = None

    def values(self) -> dict[str, tuple[str, list[Any]]]:
        """Kind and values of each feature by key, sorted; `empty` for a feature without a list.

        Raises:
            DamagedExampleError: it is not an Example.
        """
        example = ParsedExample(self.data)
        return {key: (kind or "empty", list(example.values(key) or ())) for key, kind, _ in example.profile}

    def is_example(self) -> bool:
        """Whether it can be parsed."""
        try:
            return bool(ParsedExample(self.data))
        except DamagedExampleError:
            return False

    def image(self, dataset: Dataset) -> bytes:
        """Its encoded image; empty if it has none."""
        try:
            return find_image(ParsedExample(self.data), expect(dataset))[1]
        except DamagedExampleError:
            return b""


def read_records(dataset: Dataset, split: str = "") -> Iterator[FoundRecord]:
    """Every intact record of a split, or of all splits, with its row.

    Raises:
        OSError: a file cannot be read.
    """
    for name in [split] if split else list(dataset.splits):
        before = 0
        for shard in dataset.splits[name]:
            place = -1
            rows = {row.offset: row for row in shard.rows()}
            with StoredFile(shard.path) as stored:
                for place, (offset, data) in enumerate(RecordFile(stored)):
                    if not isinstance(data, Damage):
                        yield FoundRecord(shard, before + place, place, offset, bytes(data), rows.get(offset))
            before += place + 1


def read_record(dataset: Dataset, split: str, number: int) -> FoundRecord:
    """One record by its number in its split, or in a file; earlier files are not read if their counts are known.

    Raises:
        LoadError: there is no such split, or no such record in it, or it is damaged.
        OSError: a file cannot be read.
    """
    shards = dataset.splits.get(split) or tuple(shard for shard in dataset.shards if shard.name == split)
    if not shards:
        known = ", ".join(dataset.splits)
        raise LoadError(f"there is no split and no file {split!r} with records: the splits are {known}")
    before = 0
    for shard in shards:
        if shard.records is not None and before + shard.records <= number:
            before += shard.records
            continue
        place = -1
        with StoredFile(shard.path) as stored:
            for place, (offset, data) in enumerate(RecordFile(stored)):
                if before + place == number:
                    if isinstance(data, Damage):
                        where = f"record {place:,} of {shard.name} at byte {offset:,}"
                        raise LoadError(f"{where} is damaged: {data.detail}")
                    row = next((row for row in shard.rows() if row.offset == offset), None)
                    return FoundRecord(shard, number, place, offset, bytes(data), row)
        before += place + 1
    raise LoadError(f"{split} has {before:,} records, numbered from 0: there is no {number:,}")


def find_source(dataset: Dataset, file: str) -> list[FoundRecord]:
    """The records that came from a file, by its name or, if it exists, by its bytes.

    Uses sidecars if there are any, otherwise the names in records and the images themselves.

    Args:
        dataset: of any kind.
        file: a path, or the end of one: `cat/0001.jpg`.

    Raises:
        LoadError: there is none; the message says why if it was rejected.
        OSError: a file cannot be read.
    """
    content = storage.read_range(file) if storage.size_of(file) is not None else None
    digest = hashlib.sha256(content).hexdigest() if content is not None else ""
    if any(shard.sidecar for shard in dataset.shards):
        found = list(_find_by_rows(dataset, file, digest))
    else:
        found = list(_find_by_records(dataset, file, content))
    if not found:
        raise LoadError(_say_why_not(dataset, file))
    return found


def _find_by_rows(dataset: Dataset, file: str, digest: str) -> Iterator[FoundRecord]:
    for split, shards in dataset.splits.items():
        before = 0
        for shard in shards:
            place = -1
            for place, row in enumerate(shard.rows()):
                if _is_same(row.key, file) or (digest and row.sha256 == digest):
                    yield read_record(dataset, split, before + place)
            before += place + 1


def _find_by_records(dataset: Dataset, file: str, content: bytes | None) -> Iterator[FoundRecord]:
    expected = expect(dataset)
    base = os.path.basename(file).encode("utf-8", "surrogateescape")
    for found in read_records(dataset):
        try:
            example = ParsedExample(found.data)
        except DamagedExampleError:
            continue
        names = [value for key in _NAMES for value in example.values(key) or () if isinstance(value, bytes)]
        named = base in names or file.encode("utf-8", "surrogateescape") in names
        if named or (content and find_image(example, expected)[1] == content):
            yield found


def _is_same(key: str, file: str) -> bool:
    """Whether one path ends with the other."""
    return key == file or key.endswith(f"/{file}") or file.endswith(f"/{key}")


def _say_why_not(dataset: Dataset, file: str) -> str:
    rejected = storage.join(dataset.folder, REJECTED)
    if dataset.marker and storage.size_of(rejected):
        for row in map(orjson.loads, storage.read_range(rejected).splitlines()):
            if _is_same(row["key"], file):
                return f"{row['key']} was rejected: {row['reason']} ({row['detail']})"
    return f"no record of {dataset.folder} comes from {file}"
