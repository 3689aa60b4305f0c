"""The layout of the index, `records.index`; docs/format.md describes it."""

from collections.abc import Sequence
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from recordmill.schemas.dataset.marker import Marker, ShardEntry

Places = NDArray[np.uint64]
"""Of shape (records, 3): offset of the frame, length of the record, and the hash of its key."""

PLACE_BYTES = 24

_HEAD, _SHARD = Struct("<8sQQ"), Struct("<Q32s")


def list_shards(marker: Marker) -> list[ShardEntry]:
    """A dataset's shards in the order of its index."""
    return [shard for _, split in sorted(marker.splits.items()) for shard in split.shards]


def pack_head(shards: Sequence[ShardEntry]) -> bytes:
    """The bytes before the places of the records of these shards."""
    head = _HEAD.pack(b"RMINDEX2", len(shards), sum(shard.records for shard in shards))
    return head + b"".join(_SHARD.pack(shard.records, bytes.fromhex(shard.sha256)) for shard in shards)


def parse_places(content: bytes) -> Places:
    """The places that an index holds.

    Raises:
        ValueError: the bytes end inside a place.
    """
    return np.frombuffer(content, "<u8").reshape(-1, 3)
