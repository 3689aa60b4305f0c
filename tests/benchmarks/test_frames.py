import struct
from pathlib import Path

import pytest

from benchmarks import frames

DATA = [b"first", b"", b"the third record"]


def framed(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return (
        length
        + struct.pack("<I", frames.masked(length))
        + data
        + struct.pack("<I", frames.masked(data))
    )


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    path = tmp_path / "train-00000-of-00001.tfrecord"
    path.write_bytes(b"".join(map(framed, DATA)))
    return path


def test_masked_checksum() -> None:
    # crc32c("123456789") is e3069283 in every description of the checksum; rotated it is 2507c60d.
    assert frames.masked(b"123456789") == (0x2507C60D + 0xA282EAD8) & 0xFFFFFFFF


def test_records_are_yielded_in_order(shard: Path) -> None:
    assert list(frames.records(shard)) == DATA


def test_count_takes_every_record_file_below_the_folder_once(shard: Path) -> None:
    (shard.parent / "test").mkdir()
    (shard.parent / "test" / "shard_0").write_bytes(framed(b"x"))
    (shard.parent / "shard_1.tfrecord").write_bytes(framed(b"y"))
    (shard.parent / "manifest.json").write_text("{}")
    assert frames.count(shard.parent) == (5, shard.stat().st_size + 17 + 17)


def test_every_cut_is_found_or_counted(shard: Path) -> None:
    whole = shard.read_bytes()
    boundaries = {0: 0, 21: 1, 37: 2}
    for length in range(len(whole)):
        shard.write_bytes(whole[:length])
        if length in boundaries:
            assert frames.count(shard.parent)[0] == boundaries[length]
        else:
            with pytest.raises(frames.Damaged, match=shard.name):
                frames.count(shard.parent)


def test_every_flipped_byte_is_found(shard: Path) -> None:
    whole = shard.read_bytes()
    for offset in range(len(whole)):
        damaged = bytearray(whole)
        damaged[offset] ^= 0x10
        shard.write_bytes(damaged)
        with pytest.raises(frames.Damaged, match=shard.name):
            frames.count(shard.parent)


def test_forged_length_is_not_allocated(shard: Path) -> None:
    length = struct.pack("<Q", 2**62)
    shard.write_bytes(length + struct.pack("<I", frames.masked(length)) + b"little")
    with pytest.raises(frames.Damaged, match="is cut"):
        frames.count(shard.parent)
