"""Shards of images that a test has made itself."""

from collections import deque
from collections.abc import Iterable, Iterator

from recordmill.schemas.dataset.side_files import SidecarRow
from recordmill.schemas.dataset.totals import ShardReport
from recordmill.schemas.digests import order_of
from recordmill.transforms.records.convert_image import ConvertedImage
from recordmill.transforms.shards.shard_files import (
    InputDigests,
    NumbersColumn,
    WrittenShard,
    add_to_columns,
)


def write_shard(
    staging: str,
    split: str,
    index: int,
    images: Iterable[ConvertedImage],
    mark: InputDigests,
    compression: str,
) -> ShardReport:
    """Writes and finishes a shard in an existing folder."""
    orders = deque[int]()

    def note_order() -> Iterator[ConvertedImage]:
        for image in images:
            orders.append(order_of(0, image.row.key))
            yield image

    shard = WrittenShard(staging, split, index, mark, compression, iter(orders.popleft, None))
    shard.write(note_order())
    return shard.finish({})


def columns_of(rows: Iterable[SidecarRow], seed: int = 0) -> dict[NumbersColumn, bytearray]:
    """The columns of a shard with these records."""
    columns: dict[NumbersColumn, bytearray] = {
        "places": bytearray(),
        "contents": bytearray(),
        "hashes": bytearray(),
    }
    for row in rows:
        add_to_columns(columns, row, order_of(seed, row.key))
    return columns
