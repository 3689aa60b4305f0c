import struct

import pytest

from recordmill.schemas.dataset.marker import ShardEntry
from recordmill.schemas.dataset.record_index import PLACE_BYTES, pack_head, parse_places


def test_the_head_has_the_number_of_shards_and_records_and_each_shard():
    shards = [
        ShardEntry(name, records, 9, "ab" * 32, "s", "cd" * 32)
        for name, records in (("a", 2), ("b", 1))
    ]
    assert pack_head(shards) == struct.pack(
        "<8sQQQ32sQ32s", b"RMINDEX2", 2, 3, 2, bytes([0xAB] * 32), 1, bytes([0xAB] * 32)
    )


def test_each_place_has_three_numbers():
    assert parse_places(struct.pack("<6Q", 0, 5, 7, 21, 6, 8)).tolist() == [[0, 5, 7], [21, 6, 8]]
    with pytest.raises(ValueError, match="reshape"):
        parse_places(bytes(PLACE_BYTES + 8))
