"""The layouts of `records.index` and `records.versions`.

`records.index` has the places of all records, and `records.versions` what they were made from.
docs/format.md describes both.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from recordmill.schemas.dataset.marker import Marker, ShardEntry

Places = NDArray[np.uint64]
"""Of shape (records, 3): offset of the frame, length of the record, and the hash of its key."""

PLACE_BYTES = 24

_HEAD, _SHARD, _SECTION = Struct("<8sQQ"), Struct("<Q32s"), Struct("<2Q32s")

SECTION_BYTES = _SECTION.size


def list_shards(marker: Marker) -> list[ShardEntry]:
    """A dataset's shards in the order of its index."""
    return [shard for _, split in sorted(marker.splits.items()) for shard in split.shards]


def pack_head(shards: Sequence[ShardEntry]) -> bytes:
    """The bytes before the places of the records of these shards."""
    head = _HEAD.pack(b"RMINDEX2", len(shards), sum(shard.records for shard in shards))
    return head + b"".join(
        _SHARD.pack(shard.records, bytes.fromhex(shard.sha256)) for shard in shards
    )


def parse_places(content: bytes) -> Places:
    """The places that an index holds.

    Raises:
        ValueError: the bytes end inside a place.
    """
    return np.frombuffer(content, "<u8").reshape(-1, 3)


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
        """The line of a section."""
        values = (
            (self.source, self.reference, self.counts)
            if self.counts
            else (self.source, self.reference)
        )
        # Named tuples become lists.
        return orjson.dumps(values, default=tuple, option=orjson.OPT_APPEND_NEWLINE)


UNKNOWN = RowOrigin()


def parse_origins(lines: Iterable[bytes]) -> Iterator[RowOrigin]:
    """The origins that the lines of a section hold, one for each row of the sidecar."""
    return (RowOrigin(*orjson.loads(line)) for line in lines)


class Section(NamedTuple):
    """The part of the file about one shard: its first byte, its length, and its SHA-256."""

    offset: int
    length: int
    sha256: bytes


def pack_table(sections: Iterable[bytes], count: int) -> bytes:
    """The start of the file: where each of its sections is."""
    packed, offset = [], count * SECTION_BYTES
    for section in sections:
        packed.append(_SECTION.pack(offset, len(section), hashlib.sha256(section).digest()))
        offset += len(section)
    return b"".join(packed)


def parse_table(content: bytes) -> list[Section]:
    """The sections that the start of a file names.

    Raises:
        struct.error: the start is incomplete.
    """
    return [Section(*each) for each in _SECTION.iter_unpack(content)]
