"""Shards of images that a test has made itself."""

from collections.abc import Iterable

from recordmill.schemas.dataset.side_files import SidecarRow
from recordmill.schemas.dataset.totals import ShardReport
from recordmill.transforms.records.convert_image import ConvertedImage
from recordmill.transforms.shards.shard_files import (
    Column,
    Fingerprint,
    WrittenShard,
    add_to_columns,
)


def write_shard(
    staging: str,
    split: str,
    index: int,
    images: Iterable[ConvertedImage],
    mark: Fingerprint,
    compression: str,
) -> ShardReport:
    """Writes and finishes a shard in an existing folder."""
    shard = WrittenShard(staging, split, index, mark, compression, 0)
    shard.write(images)
    return shard.finish({})


def columns_of(rows: Iterable[SidecarRow], seed: int = 0) -> dict[Column, bytearray]:
    """The columns of a shard with these records."""
    columns: dict[Column, bytearray] = {
        "places": bytearray(),
        "contents": bytearray(),
        "hashes": bytearray(),
    }
    for row in rows:
        add_to_columns(columns, row, seed)
    return columns
