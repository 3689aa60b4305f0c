"""Where records begin: by the dataset's index, and by the frames of any file."""

import gzip
import os
from dataclasses import replace

import numpy as np
import pytest

from recordmill.reading import split_index
from recordmill.reading.dataset import open_dataset
from recordmill.reading.split_index import read_index
from recordmill.schemas.errors import LoadError

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def index_of(folder, *splits):
    dataset = open_dataset(str(folder))
    return read_index(dataset, dataset.shards_of(splits or tuple(dataset.splits)))


def test_offsets_and_lengths_are_those_of_the_sidecars(converted, known_by, dataset_rows):
    for split in ("train", "test"):
        expected = [[row["offset"], row["length"]] for row in dataset_rows(converted, split)]
        assert index_of(known_by, split).entries[:, :2].tolist() == expected
    both = index_of(known_by, "test", "train")
    rows = [row for split in ("test", "train") for row in dataset_rows(converted, split)]
    assert both.entries[:, :2].tolist() == [[row["offset"], row["length"]] for row in rows]
    assert both.starts[-1] == 24


def test_every_key_is_found(folder, dataset_rows, documented_index):
    assert (folder / "records.index").read_bytes() == documented_index(folder)
    by_index = index_of(folder, "train", "test")
    rows = [row for split in ("train", "test") for row in dataset_rows(folder, split)]
    for number, row in enumerate(rows):
        assert by_index.find_key(row["key"]) == number
    assert by_index.find_key("cat/none.jpg") is None
    (folder / "records.index").unlink()
    by_frames = index_of(folder, "train", "test")
    assert by_frames.entries[:, :2].tolist() == by_index.entries[:, :2].tolist()
    with pytest.raises(
        LoadError,
        match="has no index of image keys: open the dataset's folder, or read records by number",
    ):
        by_frames.find_key(rows[0]["key"])


def test_the_sidecar_tells_keys_of_the_same_hash_apart(folder, dataset_rows, monkeypatch):
    monkeypatch.setattr(split_index, "order_of", lambda seed, key: 7)
    index = index_of(folder)
    index = replace(
        index,
        entries=index.entries * np.array([1, 1, 0], np.uint64) + np.array([0, 0, 7], np.uint64),
    )
    rows = [
        row for split in open_dataset(str(folder)).splits for row in dataset_rows(folder, split)
    ]
    assert [index.find_key(row["key"]) for row in rows] == list(range(24))
    assert index.find_key("cat/none.jpg") is None


def test_an_index_of_other_shards_is_refused(folder):
    path = folder / "records.index"
    content = path.read_bytes()
    head = 24 + 40 * len(open_dataset(str(folder)).shards)
    for damaged in (
        content[:-1],
        content[:40] + bytes([content[40] ^ 1]) + content[41:],
        b"",
        content[:head],
    ):
        path.write_bytes(damaged)
        with pytest.raises(LoadError) as caught:
            index_of(folder, "train")
        assert str(caught.value) == (
            f"{path} does not fit the dataset's shards: restore it, or convert the dataset again"
        )


def test_an_index_whose_frames_do_not_follow_each_other_is_refused(folder):
    path = folder / "records.index"
    content = bytearray(path.read_bytes())
    content[24 + 40 * len(open_dataset(str(folder)).shards)] ^= 1
    path.write_bytes(content)
    with pytest.raises(
        LoadError,
        match=r"the index of .+ does not fit it: restore it, or convert the dataset again",
    ):
        index_of(folder)


def test_frames_are_read_once(tmp_path, frame, monkeypatch, cache):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"".join(frame(bytes(n)) for n in range(5)))
    first = index_of(path)
    assert first.entries.tolist() == [[16 * n + n * (n - 1) // 2, n, 0] for n in range(5)]
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(split_index, "RecordFile", None)
    assert index_of(path).entries.tolist() == first.entries.tolist()
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))
    path.write_bytes(frame(b"other"))
    assert index_of(path).entries.tolist() == [[0, 5, 0]]


def test_a_file_of_the_same_size_and_another_time_is_read_again(tmp_path, frame, cache):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame(b"a") + frame(b"bcd"))
    index_of(path)
    path.write_bytes(frame(b"abc") + frame(b"d"))
    os.utime(path, ns=(1, 1))
    assert index_of(path).entries[:, 1].tolist() == [3, 1]


def test_a_cache_that_cannot_be_used_is_left_alone(tmp_path, frame, monkeypatch, cache):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame(b"a"))
    index_of(path)
    (only,) = cache.iterdir()
    only.write_bytes(b"damaged")
    assert index_of(path).entries.tolist() == [[0, 1, 0]]
    monkeypatch.setenv("XDG_CACHE_HOME", str(path))  # a file
    assert index_of(path).entries.tolist() == [[0, 1, 0]]


def test_damaged_parts_of_files_without_metadata_are_known(tmp_path, frame):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame(b"one"))
    assert not index_of(path).entries[:, 2].any()
    path.write_bytes(frame(b"one") + b"?" * 30 + frame(b"two"))
    assert index_of(path).entries.tolist() == [[0, 3, 0], [19, 14, 1], [49, 3, 0]]


def test_what_cannot_be_read_at_random_is_one_sentence(tmp_path, convert, frame):
    (tmp_path / "b.tfrecord.gz").write_bytes(gzip.compress(frame(b"a")))
    packed = convert(tmp_path, "--set", "compression=gzip")
    for path in (packed, tmp_path / "b.tfrecord.gz"):
        with pytest.raises(LoadError) as caught:
            index_of(path)
        assert str(caught.value) == (
            f"{path} is compressed, and a record cannot be found in it: convert with compression: "
            "none"
        )
    (tmp_path / "a.tfrecord").write_bytes(frame(b"a"))
    with pytest.raises(LoadError, match=r"a\.tfrecord has no index of image keys: open "):
        index_of(tmp_path / "a.tfrecord").find_key("a")
