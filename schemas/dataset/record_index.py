"""The layouts of `records.index` and `records.versions`.

`records.index` has the places of all records, and `records.versions` what they were made from.
docs/format.md describes both.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from recordmill.schemas.dataset.marker import Marker, ShardEntry

Places = NDArray[np.uint64]
"""Of shape (records, 3): offset of the frame, length of the record, and the hash of its key."""

_HEAD, _SHARD, _PLACE, _SECTION = map(Struct, ("<8sQQ", "<Q32s", "<3Q", "<2Q32s"))

PLACE_BYTES = _PLACE.size

SECTION_BYTES = _SECTION.size


def list_shards(marker: Marker) -> list[ShardEntry]:
    """Returns a dataset's shards in the order of its index."""
    splits = (marker.splits[name] for name in sorted(marker.splits))
    return [*chain.from_iterable(split.shards for split in splits)]


def pack_head(shards: Sequence[ShardEntry]) -> bytes:
    """Returns the bytes before the places of the records of these shards."""
    head = _HEAD.pack(b"RMINDEX2", len(shards), sum(shard.records for shard in shards))
    return head + b"".join(
        _SHARD.pack(shard.records, bytes.fromhex(shard.sha256)) for shard in shards
    )


def pack_place(offset: int, length: int, order: int) -> bytes:
    """Returns the place of one record; `order` is the hash of its key."""
    return _PLACE.pack(offset, length, order)


def parse_places(content: bytes) -> Places:
    """Returns the places that an index holds.

    Raises:
        ValueError: the bytes end inside a place.
    """
    return np.frombuffer(content, "<u8").reshape(-1, 3)


def edges_of(content: bytes) -> tuple[int, int]:
    """Returns the first and the last hash of a key in a shard's places."""
    return int.from_bytes(content[16:24], "little"), int.from_bytes(content[-8:], "little")


def parse_index(content: bytes) -> Places:
    """Returns the places in a whole `records.index`, whatever its shards are.

    Raises:
        ValueError: the bytes end inside the head or inside a place.
    """
    if len(content) < _HEAD.size:
        raise ValueError(f"{len(content)} bytes are less than the head of an index")
    _, shards, _ = _HEAD.unpack_from(content)
    return parse_places(content[_HEAD.size + shards * _SHARD.size :])


class RowOrigin(NamedTuple):
    """What a row of a sidecar was made from.

    Attributes:
        source: see `source_digest_of`; 0 if the source must be read to know whether it has changed.
        reference: see `ReferenceDigests.digest`; 0 if the source says more than the reference.
        counts: see `ConvertedImage.counts`; empty for nothing.
    """

    source: int = 0
    reference: int = 0
    counts: Mapping[str, Any] | None = None

    def as_line(self) -> bytes:
        """Returns the line of a section."""
        values: tuple[Any, ...] = (self.source, self.reference)
        if self.counts:
            values = (*values, self.counts)
        # Named tuples become lists.
        return orjson.dumps(values, default=tuple, option=orjson.OPT_APPEND_NEWLINE)


UNKNOWN = RowOrigin()


def parse_origins(lines: Iterable[bytes]) -> Iterator[RowOrigin]:
    """Returns the origins that the lines of a section hold, one for each row of the sidecar."""
    return (RowOrigin(*orjson.loads(line)) for line in lines)


class IndexSection(NamedTuple):
    """The part of the file about one shard: its first byte, its length, and its SHA-256."""

    offset: int
    length: int
    sha256: bytes


def pack_table(sections: Iterable[bytes], count: int) -> bytes:
    """Returns the start of the file: where each of its sections is."""
    packed, offset = [], count * SECTION_BYTES
    for section in sections:
        packed.append(_SECTION.pack(offset, len(section), hashlib.sha256(section).digest()))
        offset += len(section)
    return b"".join(packed)


def parse_table(content: bytes) -> list[IndexSection]:
    """Returns the sections that the start of a file names.

    Raises:
        struct.error: the start is incomplete.
    """
    return [IndexSection(*each) for each in _SECTION.iter_unpack(content)]
