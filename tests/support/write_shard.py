"""Shards of images that a test has made itself."""

from collections.abc import Iterable

from recordmill.schemas.dataset.totals import ShardReport
from recordmill.transforms.records.convert_image import ConvertedImage
from recordmill.transforms.shards.shard_files import Fingerprint, WrittenShard


def write_shard(
    staging: str, split: str, index: int, images: Iterable[ConvertedImage], mark: Fingerprint, compression: str
) -> ShardReport:
    """Writes and finishes a shard in an existing folder."""
    shard = WrittenShard(staging, split, index, mark, compression, 0)
    shard.write(images)
    return shard.finish({})
