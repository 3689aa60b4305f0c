"""Finds the records that earlier datasets have for a shard's references, and reads them in the order of their files.

Both orders come from the same hashes of keys. Of an earlier dataset only those shards are read whose hashes overlap.
"""

import hashlib
import io
import struct
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import orjson
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from recordmill import storage
from recordmill.imaging import imaging_versions
from recordmill.schemas.dataset.json_values import differences, to_json
from recordmill.schemas.dataset.marker import PLAN_VERSION, Marker, ShardEntry
from recordmill.schemas.dataset.sidecar_row import SidecarRow
from recordmill.schemas.errors import LoadError
from recordmill.schemas.image_ref import ImageRef, Notice
from recordmill.schemas.record_digests import RecordDigests, take_image
from recordmill.schemas.reference_digest import source_digest_of
from recordmill.storage.dataset_files import find_marker, parse_rows, read_marker
from recordmill.storage.record_bytes import StoredFile
from recordmill.transforms.planning.key_hashes import hash_key
from recordmill.transforms.planning.plan import ReusableDataset
from recordmill.transforms.records.earlier_record import EarlierRecord

Numbers = NDArray[np.uint64]

_BLOCK = 2**20
_HEADER = 12  # bytes of a frame before its record

_DECISIVE = ("images", "decode", "keep", "features", "versions", "plan_version")
"""Parts of a recipe that decide whether and how an image is stored, and what its row says of its pixels."""


def find_reusable(folders: Iterable[str], recipe: Mapping[str, Any]) -> tuple[tuple[ReusableDataset, ...], list[str]]:
    """Those datasets whose stored images are the same as a conversion would store, and a note on each other one.

    Args:
        folders: datasets, or outputs that do not hold one yet.
        recipe: the settings of the conversion.
    """
    new = to_json({**recipe, "versions": imaging_versions(), "plan_version": PLAN_VERSION})
    usable, notes = [], []
    for folder in folders:
        marker = find_marker(folder)
        if marker is None:
            continue
        if why := _find_obstacle(marker, new):
            notes.append(f"no image of {folder} could be reused: {why}")
        else:
            same_source = marker.plan.recipe.get("source") == new.get("source")
            usable.append(ReusableDataset(folder, marker.run.id, same_source))
    return tuple(usable), notes


def _find_obstacle(marker: Marker, new: Mapping[str, Any]) -> str:
    old = marker.plan.recipe
    if marker.index is None:
        return "it has format 1; the dataset that this run makes can be reused"
    if marker.plan.settings.compression != "none":
        return "it is compressed"
    if new["features"] or new.get("functions") or new.get("hooks"):
        return "the settings call functions"
    changed = [each for key in _DECISIVE for each in differences(old.get(key) or {}, new.get(key) or {}, key)]
    return ", ".join(changed) or ("" if marker.images else "its records have no images")


def join_earlier(
    datasets: Sequence[ReusableDataset], refs: Sequence[ImageRef], seed: int
) -> Generator[tuple[ImageRef, EarlierRecord | None], None, None]:
    """Each reference with its record in the first dataset that has one.

    Args:
        datasets: those that `find_reusable` gave.
        refs: of one shard, in its order.
        seed: of the dataset; the earlier ones have the same.
    """
    with ExitStack() as stack:
        found: dict[str, tuple[_OpenShard, SidecarRow, int]] = {}
        if datasets and refs:
            first, last = (hash_key(seed, each.key).order for each in (refs[0], refs[-1]))
            keys = {ref.key for ref in refs if not isinstance(ref, Notice)}
            for dataset in reversed(datasets):
                for shard in _open_dataset(dataset).overlapping(first, last):
                    opened = stack.enter_context(_OpenShard(shard))
                    rows = opened.rows(first, last, seed)
                    found.update((row.key, (opened, row, source)) for row, source in rows if row.key in keys)
        for ref in refs:
            there = None if isinstance(ref, Notice) else found.pop(ref.key, None)
            if there is None:
                yield ref, None
                continue
            opened, row, source = there
            yield ref, opened.read(row, is_current=source != 0 and source == source_digest_of(ref))


@dataclass(frozen=True, slots=True)
class _EarlierShard:
    """A shard of an earlier dataset.

    Attributes:
        folder: the dataset's.
        entry: the shard, as the marker describes it.
        images: the features that hold the image, see `find_images`.
        start: the number of its first record in the dataset.
        versions: path of the digests of the files' versions; empty if there are none, or sources must be read again.
        hashes: of its records' keys, ascending.
    """

    folder: str
    entry: ShardEntry
    images: dict[str, str]
    start: int
    versions: str
    hashes: Numbers


@dataclass(frozen=True, slots=True)
class _EarlierDataset:
    shards: tuple[_EarlierShard, ...]

    def overlapping(self, first: int, last: int) -> Iterator[_EarlierShard]:
        """The shards that may hold records with hashes in a range."""
        return (each for each in self.shards if each.hashes[0] <= last and each.hashes[-1] >= first)


@lru_cache(4)
def _open_dataset(dataset: ReusableDataset) -> _EarlierDataset:
    """A dataset's shards; none if it is not there any more, or its index is damaged."""
    folder, shards = dataset.folder, []
    try:
        marker = read_marker(folder)
        if marker.run.id != dataset.run:
            return _EarlierDataset(())
        index = storage.read_range(storage.join(folder, marker.index or ""))
        entries = [entry for _, split in sorted(marker.splits.items()) for entry in split.shards]
        places = np.frombuffer(index, "<u8", offset=struct.calcsize("<8s2Q") + 40 * len(entries)).reshape(-1, 3)
        hashes = places[:, 2].copy()
        start = 0
        for entry in entries:
            own = hashes[start : start + entry.records]
            if len(own) != entry.records:
                return _EarlierDataset(())
            known = marker.run.file_versions if dataset.same_source else ""
            versions = storage.join(folder, known) if known else ""
            shards.append(_EarlierShard(folder, entry, marker.images, start, versions, own))
            start += entry.records
    except (OSError, LoadError, ValueError):
        return _EarlierDataset(())
    return _EarlierDataset(tuple(shards))


@lru_cache(2)
def _read_sidecar(path: str, sha256: str) -> bytes:
    """A whole sidecar, since parts of a shard are converted one after the other; empty if it is damaged."""
    content = storage.read_range(path)
    return content if hashlib.sha256(content).hexdigest() == sha256 else b""


def _find_line(content: bytes, first: int, seed: int) -> int:
    """Where the first row begins whose key has at least this hash; all rows are in the order of the hashes."""
    low, high = 0, len(content)
    while low < high:
        middle = (low + high) // 2
        begin, end = content.rfind(b"\n", 0, middle) + 1, content.find(b"\n", middle) + 1
        start, key = begin, orjson.loads(content[begin:end])["key"]
        while not key and end < high:  # what was excluded has no key
            start, end = end, content.find(b"\n", end) + 1
            key = orjson.loads(content[start:end])["key"]
        if key and hash_key(seed, key).order < first:
            low = end
        else:
            high = begin
    return low


class _OpenShard:
    """Reads the records of a shard, in their order, in blocks."""

    def __init__(self, shard: _EarlierShard) -> None:
        self._shard = shard
        self._stored: StoredFile | None = None
        self._block, self._start = b"", 0

    def rows(self, first: int, last: int, seed: int) -> Iterator[tuple[SidecarRow, int]]:
        """The rows of records whose keys have hashes in a range, with the digests of their sources.

        There are none if the sidecar is damaged.
        """
        shard = self._shard
        begin, end = (int(np.searchsorted(shard.hashes, *each)) for each in ((first, "left"), (last, "right")))
        try:
            path = storage.join(shard.folder, shard.entry.sidecar)
            content = _read_sidecar(path, shard.entry.sidecar_sha256) if begin < end else b""
        except OSError:
            return
        versions = b""
        with suppress(OSError):
            versions = storage.read_range(shard.versions, 8 * (shard.start + begin), 8 * (end - begin))
        known = len(versions) == 8 * (end - begin)
        sources = np.frombuffer(versions, "<u8").tolist() if known else [0] * (end - begin)
        lines = io.BytesIO(content)
        lines.seek(_find_line(content, first, seed))
        rows = (row for row in parse_rows(lines) if isinstance(row, SidecarRow))
        yield from zip(rows, sources, strict=False)

    def read(self, row: SidecarRow, is_current: bool) -> EarlierRecord | None:
        """The record of a row; None if it is damaged."""
        try:
            record = self._read(row.offset + _HEADER, row.length)
        except OSError:
            return None
        try:
            image, rest = take_image(record, self._shard.images)
        except (DecodeError, ValueError):
            return None
        digests = RecordDigests.of(rest, hashlib.sha256(image).hexdigest())
        return EarlierRecord(row, image, digests.image, is_current) if digests.record == row.record else None

    def _read(self, offset: int, length: int) -> bytes:
        at = offset - self._start
        if at < 0 or at + length > len(self._block):
            self._stored = self._stored or StoredFile(storage.join(self._shard.folder, self._shard.entry.name))
            self._block, self._start = self._stored.read_at(offset, max(length, _BLOCK)), offset
            at = 0
        return self._block[at : at + length]

    def __enter__(self) -> "_OpenShard":
        return self

    def __exit__(self, *_: object) -> None:
        if self._stored:
            self._stored.__exit__()
