"""Finds the rows that earlier datasets have for a shard's references, and reads their records in the files' order.

Both orders come from the same hashes of keys. Of an earlier dataset only those shards are read whose hashes overlap.
"""

import hashlib
import io
import struct
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, repeat
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import orjson
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from recordmill import storage
from recordmill.schemas.dataset.file_names import INDEX, VERSIONS
from recordmill.schemas.dataset.json_values import differences, to_json
from recordmill.schemas.dataset.marker import Marker, ShardEntry
from recordmill.schemas.dataset.record_index import list_shards, pack_head, parse_places
from recordmill.schemas.dataset.row_origins import (
    SECTION_BYTES,
    UNKNOWN,
    RowOrigin,
    Section,
    parse_origins,
    parse_table,
)
from recordmill.schemas.dataset.sidecar_row import RejectedRow, Row, SidecarRow
from recordmill.schemas.errors import LoadError
from recordmill.schemas.formatting import show_names
from recordmill.schemas.image_ref import ImageRef, Notice
from recordmill.schemas.key_hashes import order_of
from recordmill.schemas.record_digests import RecordDigests, take_image
from recordmill.schemas.reference_digest import source_digest_of
from recordmill.storage.dataset_files import find_marker, parse_rows, read_marker
from recordmill.storage.many_files import digest_of, map_each
from recordmill.storage.record_bytes import GzipBytes, PlainBytes, StoredFile
from recordmill.storage.record_reader import HEADER_BYTES
from recordmill.transforms.planning.plan import ReusableDataset
from recordmill.transforms.records.earlier_record import EarlierRecord, find_decisive

_DECISIVE = ("images", "decode", "keep", "features", "versions", "plan_version")
"""Parts of a recipe that decide whether and how an image is stored, and what its row says of its pixels."""

_BLOCK, _MOST_UNPACKING = 2**20, 2
_MOST_HASH = 2**64 - 1


def find_reusable(folders: Iterable[str], recipe: Mapping[str, Any]) -> tuple[tuple[ReusableDataset, ...], list[str]]:
    """The datasets whose records or images can be used, and a note on each other one.

    Args:
        folders: datasets, or outputs that do not hold one yet.
        recipe: see `describe_settings`.
    """
    new, usable, notes = to_json(find_decisive(recipe)), [], []
    for folder in folders:
        marker = find_marker(folder)
        if marker is None:
            continue
        old = find_decisive(marker.plan.recipe)
        obstacle = _find_obstacle(marker, old, new)
        if marker.index is None or (obstacle and differences(old, new)):
            notes.append(f"no image of {folder} could be reused: {obstacle}")
        else:
            usable.append(ReusableDataset(folder, marker.run.id, old.get("source") == new["source"], not obstacle))
    return tuple(usable), notes


def note_damages(datasets: Iterable[ReusableDataset]) -> Iterator[str]:
    """A note on each dataset with files that are missing or damaged; of shards, only the size is checked."""
    for dataset in datasets:
        if (marker := find_marker(dataset.folder)) is None:
            continue
        digests = {each.sidecar: each.sidecar_sha256 for each in marker.shards}
        digests |= {name: digest for name, digest in (marker.run.digests or {}).items() if name in (INDEX, VERSIONS)}
        sizes = {each.name: each.bytes for each in marker.shards}
        found: list[str | int | None] = [
            *map_each(_find_digest, (storage.join(dataset.folder, name) for name in digests)),
            *map_each(storage.size_of, (storage.join(dataset.folder, name) for name in sizes)),
        ]
        damaged = [
            f"{name} is {'missing' if there is None else 'damaged'}"
            for (name, expected), there in zip({**digests, **sizes}.items(), found, strict=True)
            if there != expected
        ]
        if damaged:
            yield f"in {dataset.folder}, {show_names(damaged, 3)}: affected images are read again"


def _find_digest(path: str) -> str | None:
    with suppress(OSError):
        return digest_of(path)
    return None


def _find_obstacle(marker: Marker, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Why the images of a dataset cannot be in other records; the empty string if they can."""
    if marker.index is None:
        return "it has format 1; the dataset that this run makes can be reused"
    if new["features"] or new.get("functions") or new.get("hooks"):
        return "the settings call functions"
    changed = [each for key in _DECISIVE for each in differences(old.get(key) or {}, new.get(key) or {}, key)]
    return ", ".join(changed) or ("" if marker.images else "its records have no images")


class _Found(NamedTuple):
    """A row of an earlier dataset for a reference, and where it is."""

    shard: "_OpenShard"
    row: Row
    origin: RowOrigin
    is_current: bool
    is_same: bool

    def contradicts(self, other: "_Found") -> bool:
        """Whether both claim to be of the same source, and say different things of it."""
        if (self.is_current, self.is_same) != (other.is_current, other.is_same):
            return False
        return self.row.sha256 != other.row.sha256 or (self.is_same and self.digest != other.digest)

    @property
    def digest(self) -> str | None:
        """The record's; None if there is none."""
        return self.row.record if isinstance(self.row, SidecarRow) else None


def join_earlier(
    datasets: Sequence[ReusableDataset],
    refs: Sequence[ImageRef],
    seed: int,
    digest: Callable[[ImageRef], int] = lambda ref: 0,
) -> Generator[tuple[ImageRef, EarlierRecord | None], None, None]:
    """Each reference with its row in the first dataset whose row fits best.

    Args:
        datasets: those that `find_reusable` gave.
        refs: of one shard, in its order.
        seed: of the dataset; the earlier ones have the same.
        digest: of a reference, see `ReferenceDigests`; by default, no row is copied.
    """
    with ExitStack() as stack:
        by_key = {ref.key: ref for ref in refs if not isinstance(ref, Notice)} if datasets else {}
        found: dict[str, list[_Found]] = {}
        if by_key:
            first, last = (order_of(seed, each.key) for each in (refs[0], refs[-1]))
            for dataset in datasets:
                overlapping = (each for each in _open_dataset(dataset) if each.first <= last and each.last >= first)
                for shard in overlapping:
                    opened = stack.enter_context(_OpenShard(shard))
                    for row, origin in opened.rows(first, last, seed):
                        if (ref := by_key.get(row.key)) and (one := opened.compare(ref, row, origin, digest)):
                            found.setdefault(row.key, []).append(one)
        for ref in refs:
            rows = () if isinstance(ref, Notice) else found.pop(ref.key, ())
            if not rows:
                yield ref, None
                continue
            best = max(rows, key=lambda each: (each.is_current, each.is_same))
            record = best.shard.read(best)
            if record is not None and any(map(best.contradicts, rows)):
                record = replace(record, is_disputed=True)
            yield ref, record


class KnownDigests:
    """The SHA-256 of the sources that earlier datasets were made from, in 48 bytes for each."""

    def __init__(self, datasets: Iterable[ReusableDataset], seed: int) -> None:
        self._seed = seed
        numbers, digests = [], []
        for shard in (shard for each in datasets if each.same_source for shard in _open_dataset(each)):
            for row, origin in _OpenShard(shard).rows(0, _MOST_HASH, seed):
                if row.sha256 and origin.source:
                    numbers.append((origin.source, order_of(seed, row.key)))
                    digests.append(bytes.fromhex(row.sha256))
        found = np.array(numbers, np.uint64).reshape(-1, 2)
        order = np.argsort(found[:, 0], kind="stable")
        self._sources, self._hashes = found[order].T
        self._digests = np.frombuffer(b"".join(digests), "V32")[order]

    def find(self, ref: ImageRef) -> str:
        """The hex digest of a reference's source, if that is known to be unchanged; otherwise the empty string."""
        if not (source := source_digest_of(ref)):
            return ""
        place = int(np.searchsorted(self._sources, np.uint64(source)))
        if place == len(self._sources) or int(self._sources[place]) != source:
            return ""
        is_same = int(self._hashes[place]) == order_of(self._seed, ref.key)
        return self._digests[place].tobytes().hex() if is_same else ""


_read_known_digests, _reading = lru_cache(1)(KnownDigests), Lock()


def find_known_digests(datasets: tuple[ReusableDataset, ...], seed: int) -> KnownDigests:
    """Those of these datasets, which have this seed; they are read once for all threads of a process."""
    with _reading:
        return _read_known_digests(datasets, seed)


@dataclass(frozen=True, slots=True)
class _EarlierShard:
    """A shard of an earlier dataset.

    Attributes:
        dataset: the dataset.
        entry: the shard, as the marker describes it.
        compression: `none` or `gzip`.
        images: the features that hold the image, see `find_images`.
        first: the least hash of a key that its sidecar may hold.
        last: the greatest.
        versions: path of the origins of rows.
        section: where those of this shard are; None if they are unknown.
    """

    dataset: ReusableDataset
    entry: ShardEntry
    compression: str
    images: dict[str, str]
    first: int
    last: int
    versions: str
    section: Section | None

    def path_of(self, name: str) -> str:
        """Where a file of the dataset is."""
        return storage.join(self.dataset.folder, name)


@lru_cache(4)
def _open_dataset(dataset: ReusableDataset) -> tuple[_EarlierShard, ...]:
    """A dataset's shards; none if it is not there any more, or its index is damaged."""
    folder, shards = dataset.folder, []
    try:
        marker = read_marker(folder)
        entries, compression, images = list_shards(marker), marker.plan.settings.compression, marker.images
        head, index = pack_head(entries), storage.read_range(storage.join(folder, marker.index or ""))
        if marker.run.id != dataset.run or not index.startswith(head):
            return ()
        hashes = parse_places(index[len(head) :])[:, 2]
        versions = storage.join(folder, marker.run.file_versions or "")
        sections, ends = _find_sections(versions, len(entries)), [*accumulate(each.records for each in entries)]
        borders = {entries.index(split.shards[0]) for split in marker.splits.values() if split.shards}
        for number, (entry, end) in enumerate(zip(entries, ends, strict=True)):
            # What was rejected may have a hash between those of two shards' records.
            first = 0 if number in borders else int(hashes[ends[number - 1] - 1])
            last = _MOST_HASH if number + 1 in {*borders, len(entries)} else int(hashes[end])
            places = (first, last, versions, sections[number])
            shards.append(_EarlierShard(dataset, entry, compression, images, *places))
    except (OSError, LoadError, ValueError, IndexError):
        return ()
    return tuple(shards)


def _find_sections(versions: str, count: int) -> Sequence[Section | None]:
    try:
        return parse_table(storage.read_range(versions, 0, count * SECTION_BYTES))
    except (OSError, struct.error):
        return [None] * count


@lru_cache(2)
def _read_sidecar(path: str, sha256: str) -> bytes:
    """A whole sidecar, since parts of a shard are converted one after the other; empty if it is damaged."""
    content = storage.read_range(path)
    return content if hashlib.sha256(content).hexdigest() == sha256 else b""


@lru_cache(2)
def _read_origins(path: str, section: Section) -> tuple[bytes, NDArray[np.intp]]:
    """The lines about all rows of a shard, and where each ends; none if they are damaged."""
    content = storage.read_range(path, section.offset, section.length)
    content = content if hashlib.sha256(content).digest() == section.sha256 else b""
    return content, np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n"))


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
        if key and order_of(seed, key) < first:
            low = end
        else:
            high = begin
    return low


_unpacking: dict[str, tuple[GzipBytes, int]] = {}
"""How far compressed shards were unpacked, by the SHA-256 of the file: parts are read one after the other."""


class _OpenShard:
    """Reads the records of a shard, in their order, in blocks."""

    def __init__(self, shard: _EarlierShard) -> None:
        self._shard = shard
        self._stored: StoredFile | None = None
        self._source: PlainBytes | GzipBytes | None = None
        self._block, self._start = memoryview(b""), 0

    def rows(self, first: int, last: int, seed: int) -> Iterator[tuple[Row, RowOrigin]]:
        """The rows of a range of hashes, with what they were made from; none if the sidecar is damaged."""
        shard = self._shard
        try:
            content = _read_sidecar(shard.path_of(shard.entry.sidecar), shard.entry.sidecar_sha256)
        except OSError:
            return
        lines = io.BytesIO(content)
        start = lines.seek(_find_line(content, first, seed))
        origins = self._origins(content.count(b"\n", 0, start))
        for row, origin in zip(parse_rows(lines), origins, strict=False):
            if row.key:  # else it was excluded
                if order_of(seed, row.key) > last:
                    return
                yield row, origin

    def _origins(self, number: int) -> Iterator[RowOrigin]:
        """Those of all rows from this number on."""
        lines, ends = b"", np.zeros(0, np.intp)
        with suppress(OSError):
            if self._shard.section:
                lines, ends = _read_origins(self._shard.versions, self._shard.section)
        if number >= len(ends):
            return repeat(UNKNOWN)
        return parse_origins(io.BytesIO(lines[int(ends[number - 1]) + 1 if number else 0 :]))

    def compare(self, ref: ImageRef, row: Row, origin: RowOrigin, digest: Callable[[ImageRef], int]) -> _Found | None:
        """What a row is worth to a reference; None if it cannot be used, even if the source has not changed."""
        dataset = self._shard.dataset
        is_current = dataset.same_source and origin.source != 0 and origin.source == source_digest_of(ref)
        is_same = origin.reference != 0 and origin.reference == digest(ref)
        if not is_same and (isinstance(row, RejectedRow) or not dataset.same_images):
            return None
        return _Found(self, row, origin, is_current, is_same)

    def read(self, found: _Found) -> EarlierRecord | None:
        """A row with its record; None if that is damaged."""
        earlier = EarlierRecord(found.row, found.origin, found.is_current, found.is_same)
        if not isinstance(row := found.row, SidecarRow):
            return earlier
        try:
            record = self._read(row.offset + HEADER_BYTES, row.length)
            image, rest = take_image(record, self._shard.images) if self._shard.images else (b"", b"")
        except (OSError, DecodeError, ValueError):
            return None
        digests = RecordDigests.of(rest, hashlib.sha256(image).hexdigest())
        digest = digests.record if self._shard.images else hashlib.sha256(record).hexdigest()
        return replace(earlier, record=record, encoded=image, sha256=digests.image) if digest == row.record else None

    def _read(self, offset: int, length: int) -> bytes:
        at = offset - self._start
        if at < 0 or at + length > len(self._block):
            source = self._source = self._source or self._open(offset)
            self._block, self._start, at = source.read(offset, max(length, _BLOCK)), offset, 0
        return bytes(self._block[at : at + length])

    def _open(self, offset: int) -> PlainBytes | GzipBytes:
        self._stored = StoredFile(self._shard.path_of(self._shard.entry.name))
        if self._shard.compression == "none":
            return PlainBytes(self._stored)
        source, done = _unpacking.pop(self._shard.entry.sha256, (None, 0))
        if source is None or done > offset:
            return GzipBytes(self._stored)
        source.resume(self._stored)
        return source

    def __enter__(self) -> "_OpenShard":
        return self

    def __exit__(self, *_: object) -> None:
        if self._stored:
            self._stored.__exit__()
        if isinstance(self._source, GzipBytes):
            _unpacking[self._shard.entry.sha256] = (self._source, self._start)
            while len(_unpacking) > _MOST_UNPACKING:  # other threads do the same
                _unpacking.pop(next(iter(tuple(_unpacking)), ""), None)
