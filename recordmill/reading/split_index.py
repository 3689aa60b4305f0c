"""Finds where records begin: from the dataset's index, its sidecars, or one pass over the files.

docs/format.md describes the dataset's index. The index of a file without metadata is kept in the
user's cache folder. Either can be written in the format that NVIDIA DALI and the PyTorch package
`tfrecord` read.
"""

import hashlib
import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise

import numpy as np

from recordmill import storage
from recordmill.reading.dataset import Dataset, StoredShard
from recordmill.schemas.dataset.file_names import MARKER
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.record_index import (
    PLACE_BYTES,
    Places,
    list_shards,
    pack_head,
    parse_places,
)
from recordmill.schemas.digests import order_of
from recordmill.schemas.errors import LoadError
from recordmill.storage.tfrecord_file import (
    Damage,
    RecordFile,
    data_bytes,
    describe_frames,
    frame_bytes,
)

_RESTORE = "restore it, or convert the dataset again"


@dataclass(frozen=True, slots=True, eq=False)
class SplitIndex:
    """Where the records of some shards begin.

    Attributes:
        shards: the files.
        starts: the number of each shard's first record, and finally the total number of records.
        entries: a row for each record, in the order of the shards. For files without metadata, the
            third number is 1 for a damaged part, otherwise 0.
        seed: the seed of the hashes of keys; None if the keys are unknown.
    """

    shards: tuple[StoredShard, ...]
    starts: tuple[int, ...]
    entries: Places
    seed: int | None

    def find_key(self, key: str) -> int | None:
        """Returns the number of the record made from a source; None if there is none.

        Within a split, records are sorted by the hash of their key. The sidecar distinguishes those
        with the same hash.
        """
        if self.seed is None:
            raise LoadError(
                f"{self.shards[0].path} has no index of image keys: open the dataset's folder, or "
                "read records by number"
            )
        hashed, found = np.uint64(order_of(self.seed, key)), list[int]()
        for split in dict.fromkeys(shard.split for shard in self.shards):
            own = [place for place, shard in enumerate(self.shards) if shard.split == split]
            begin, end = self.starts[own[0]], self.starts[own[-1] + 1]
            hashes = self.entries[begin:end, 2]
            found += range(
                begin + int(hashes.searchsorted(hashed)),
                begin + int(hashes.searchsorted(hashed, "right")),
            )
        if len(found) < 2 and found:
            return found[0]
        return next((n for n in found if self._row_key(n) == key), None)

    def _row_key(self, number: int) -> str:
        shard = self.shards[np.searchsorted(self.starts, number, "right") - 1]
        return next(row.key for row in shard.rows() if row.offset == self.entries[number, 0])


def read_index(dataset: Dataset, shards: Sequence[StoredShard]) -> SplitIndex:
    """Finds where the records of some of a dataset's shards begin.

    Raises:
        LoadError: a shard is compressed, or the index or a sidecar does not match its shard.
        OSError: a file cannot be read.
    """
    marker = dataset.marker_or_none
    if marker and marker.plan.for_readers.compression != "none":
        raise _compressed(dataset.folder)
    seed = marker.plan.for_readers.seed if marker else None
    path = ""
    if marker:
        path = storage.join(dataset.folder, marker.index)
    if marker and path and storage.size_of(path) is not None:
        parts = _read_companion(path, marker, shards)
    else:
        parts, seed = [*map(_read_frames, shards)], None
    for shard, part in zip(shards, parts, strict=True):
        ends = np.cumsum(frame_bytes(part[:, 1]))
        fits = np.array_equal(ends[:-1], part[1:, 0]) and not part[:1, 0].any()
        whole = int(ends[-1]) if len(part) else 0
        if seed is not None and not (fits and whole == shard.bytes and len(part) == shard.records):
            raise LoadError(f"the index of {shard.path} does not fit it: {_RESTORE}")
    starts = (0, *accumulate(map(len, parts)))
    return SplitIndex(
        tuple(shards), starts, np.concatenate([np.empty((0, 3), np.uint64), *parts]), seed
    )


def _compressed(path: str) -> LoadError:
    return LoadError(
        f"{path} is compressed, and a record cannot be found in it: convert with compression: none"
    )


def _read_companion(path: str, marker: Marker, shards: Sequence[StoredShard]) -> list[Places]:
    own = list_shards(marker)
    starts = (0, *accumulate(shard.records for shard in own))
    try:
        head = pack_head(own)
    except (ValueError, struct.error) as error:
        problem = f"a digest or a number of records of a shard is none ({error})"
        marker_path = f"{path.removesuffix(marker.index)}{MARKER}"
        raise LoadError(f"{marker_path} cannot be understood: {problem}: {_RESTORE}") from None
    places = {shard.name: pair for shard, pair in zip(own, pairwise(starts), strict=True)}
    chosen = [places[shard.name] for shard in shards]
    first, end = (
        min((pair[0] for pair in chosen), default=0),
        max((pair[1] for pair in chosen), default=0),
    )
    data = storage.read_range(path, len(head) + first * PLACE_BYTES, (end - first) * PLACE_BYTES)
    if storage.read_range(path, 0, len(head)) != head or len(data) != (end - first) * PLACE_BYTES:
        raise LoadError(f"{path} does not fit the dataset's shards: {_RESTORE}")
    entries = parse_places(data)
    return [entries[begin - first : stop - first] for begin, stop in chosen]


def _read_frames(shard: StoredShard) -> Places:
    """Returns the index of any uncompressed TFRecord file, from the cache or by one pass.

    Each damaged part has a row.
    """
    path = shard.path
    if storage.is_local(path):
        place, version = os.path.abspath(path), str(os.stat(path).st_mtime_ns)
    else:
        place, version = path, str(getattr(storage.describe(path), "last_updated_in_seconds", None))
    identity = f"{place}\0{storage.size_of(path)}\0{version}"
    cached = os.path.join(_cache_folder(), f"{hashlib.sha256(identity.encode()).hexdigest()}.index")
    with suppress(OSError, ValueError):
        return parse_places(storage.read_range(cached))
    with shard.open() as stored:
        file = RecordFile(stored)
        if file.compression != "none":
            raise _compressed(path)
        parts = chain.from_iterable((offset, isinstance(data, Damage)) for offset, data in file)
        offsets, damaged = np.fromiter(parts, np.int64).reshape(-1, 2).T
        lengths = np.maximum(data_bytes(np.diff(offsets, append=stored.size)), 0)
    entries = np.stack([offsets, lengths, damaged], axis=1).astype("<u8")
    with suppress(OSError):  # without a cache, the next reader makes another pass
        storage.write_file(cached, entries.tobytes())
    return entries


def _cache_folder() -> str:
    return os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "recordmill"
    )


def write_indexes(dataset: Dataset, folder: str) -> list[str]:
    """Writes an index per shard, and returns the paths.

    The lines are `<offset> <length of the frame>`. The files are as `index_files: true` makes them,
    but outside the dataset, which is unchanged.

    Args:
        dataset: of any kind, not compressed.
        folder: where `<shard>.idx` is written for each shard.

    Raises:
        LoadError: a file is compressed or damaged, or another file has an index's name.
        OSError: an index cannot be written.
    """
    contents = {}
    for shard in dataset.shards:
        index = read_index(dataset, (shard,))
        if index.seed is None and index.entries[:, 2].any():
            raise LoadError(
                f"{shard.path} is damaged, and has no index: recordmill verify lists the damage"
            )
        lines = describe_frames(index.entries[:, :2].tolist())
        path = storage.join(folder, f"{shard.name}.idx")
        if storage.size_of(path) is not None and storage.read_range(path) != lines:
            raise LoadError(f"{path} already exists and is not an index of this split: rename it")
        contents[path] = lines
    for path, lines in contents.items():
        storage.write_file(path, lines)
    return [*contents]
