import struct

import pytest

from recordmill.schemas.dataset.marker import ShardEntry
from recordmill.schemas.dataset.record_index import (
    PLACE_BYTES,
    edges_of,
    pack_head,
    pack_place,
    parse_index,
    parse_places,
)


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


def test_an_index_is_its_head_and_its_places():
    shards = [ShardEntry(name, 1, 9, "ab" * 32, "s", "cd" * 32) for name in "ab"]
    places = pack_place(0, 5, 7) + pack_place(0, 6, 8)
    assert parse_index(pack_head(shards) + places).tolist() == [[0, 5, 7], [0, 6, 8]]
    assert edges_of(places) == (7, 8)
    with pytest.raises(ValueError, match="less than the head"):
        parse_index(b"RMINDEX2")
