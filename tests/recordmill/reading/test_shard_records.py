import gzip
import os
import shutil
from dataclasses import replace

import pytest

from recordmill.reading.dataset import describe_split
from recordmill.reading.load import ReadingOrder, _fault_after, read_shards
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import Feature
from recordmill.schemas.features import parse_example as parse

NUMBER = Feature("n", "int64", "n", "its place")
IN_ORDER = ReadingOrder(shuffle=False, buffer=1, seed=None, repeat=1, deterministic=True)


@pytest.fixture
def numbered(publish, tf):
    """Makes a split of numbered records: `numbered(10, shards=3)`."""

    def put(count, shards, compression="none"):
        folder = publish(
            [NUMBER], [{"n": n} for n in range(count)], shards=shards, compression=compression
        )
        return describe_split(str(folder))

    return put


def numbers(dataset):
    return [parse([NUMBER], record.numpy())["n"] for record in dataset]


def shares(info, order, replicas):
    parts = [read_shards(info, order, replicas, index) for index in range(replicas)]
    found = [numbers(records) for records, _ in parts]
    assert [len(part) for part in found] == [count for _, count in parts]
    return found


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_all_records_are_read_shards_in_turn(numbered, compression):
    records, count = read_shards(numbered(10, 3, compression), IN_ORDER, 1, 0)
    assert count == 10
    assert numbers(records) == list(range(10))


def test_shuffling_reaches_every_record_and_differs_by_epoch(numbered):
    order = replace(IN_ORDER, shuffle=True, buffer=50, seed=3)
    records, _ = read_shards(numbered(50, 3), order, 1, 0)
    first, second = numbers(records), numbers(records)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second != list(range(50))


def test_a_seed_gives_the_same_epochs_again(numbered):
    info = numbered(50, 3)
    order = replace(IN_ORDER, shuffle=True, buffer=20, seed=3, repeat=2)
    first, again = (numbers(read_shards(info, order, 1, 0)[0]) for _ in range(2))
    assert first == again
    assert sorted(first) == sorted(2 * list(range(50)))
    assert first[:50] != first[50:]


def test_replicas_divide_the_shards(numbered):
    assert shares(numbered(10, 5), IN_ORDER, 2) == [[0, 2, 4, 5, 7, 9], [1, 3, 6, 8]]


@pytest.mark.parametrize("shuffle", [False, True])
def test_more_replicas_than_shards_divide_the_records(numbered, shuffle):
    order = replace(IN_ORDER, shuffle=shuffle, buffer=50, deterministic=not shuffle)
    found = shares(numbered(11, 2), order, 3)
    assert [len(part) for part in found] == [4, 4, 3]
    assert sorted(number for part in found for number in part) == list(range(11))


def test_a_missing_shard_is_named_before_anything_is_read(numbered):
    info = numbered(6, 3)
    os.unlink(info.shards[1].path)
    with pytest.raises(LoadError, match=rf"^the shard {info.shards[1].path} is missing: "):
        read_shards(info, IN_ORDER, 1, 0)


def test_a_shard_of_another_size_is_named_before_anything_is_read(numbered):
    info = numbered(6, 3)
    with open(info.shards[2].path, "ab") as file:
        file.write(b"\0")
    size = info.shards[2].bytes
    with pytest.raises(
        LoadError, match=rf"^the shard {info.shards[2].path} has {size + 1} bytes where {size} were"
    ):
        read_shards(info, IN_ORDER, 1, 0)


def test_a_folder_in_a_shards_place_is_named(numbered):
    info = numbered(6, 3)
    os.unlink(info.shards[0].path)
    os.mkdir(info.shards[0].path)
    with pytest.raises(LoadError, match=info.shards[0].path):
        read_shards(info, IN_ORDER, 1, 0)


def read_until_error(tf, info, **order):
    records, _ = read_shards(info, replace(IN_ORDER, **order), 1, 0)
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        numbers(records)
    return str(error.value)


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("where", [3, 9, 14, -1])
def test_a_flipped_bit_is_an_error_that_names_shard_and_record(numbered, tf, where, deterministic):
    info = numbered(12, 3)
    path = info.shards[1].path
    with open(path, "r+b") as file:
        content = bytearray(file.read())
        content[where] ^= 1
        file.seek(0)
        file.write(content)
    message = read_until_error(tf, info, deterministic=deterministic)
    record = 3 if where < 0 else 0
    assert f"the shard {path} is damaged, record {record} at byte " in message


def test_a_cut_between_records_is_named_though_the_size_was_right_at_first(numbered, tf):
    # What is written anew while a training runs: nothing in the file itself is wrong.
    info = numbered(12, 3)
    path, size = info.shards[1].path, info.shards[1].bytes
    with open(path, "r+b") as file:
        file.truncate(size // 4 * 3)
    short = replace(info.shards[1], bytes=size // 4 * 3)
    message = read_until_error(tf, replace(info, shards=(info.shards[0], short, info.shards[2])))
    assert (
        f"the shard {path} ended early; now it holds 3 of 4 records: restore it, or retry"
        in message
    )


def test_a_shard_that_goes_away_later_is_named(numbered, tf):
    info = numbered(12, 3)
    records, _ = read_shards(info, IN_ORDER, 1, 0)
    os.unlink(info.shards[2].path)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=f"the shard {info.shards[2].path} is missing"
    ):
        numbers(records)


def test_a_file_that_is_intact_when_read_again_is_not_damaged(numbered, tf):
    info = numbered(12, 3)
    assert _fault_after(info.shards[0].path.encode(), b"", b"", 4).decode() == (
        f"the shard {info.shards[0].path} ended early; now it holds 4 of 4 records: restore it, or "
        "retry"
    )


def test_damaged_gzip_is_named(numbered, tf):
    info = numbered(12, 2, "gzip")
    path = info.shards[0].path
    with open(path, "r+b") as file:
        file.seek(20)
        file.write(b"\xff\xff\xff")
    assert f"the shard {path} is damaged, " in read_until_error(tf, info)


def test_a_plain_file_where_gzip_was_written_is_named(numbered, tf):
    info = numbered(12, 2, "gzip")
    path = info.shards[0].path
    with gzip.open(path) as packed, open(f"{path}.plain", "wb") as plain:
        shutil.copyfileobj(packed, plain)
    os.replace(f"{path}.plain", path)
    shard = replace(info.shards[0], bytes=os.path.getsize(path))
    message = read_until_error(tf, replace(info, shards=(shard, info.shards[1])))
    assert f"the shard {path} is damaged, the compression is none and should be gzip" in message
