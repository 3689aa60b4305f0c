import gzip
from pathlib import Path

import pytest

from recordmill.reading.dataset import (
    find_shards,
    gather_shards,
    match_files,
    read_label_lines,
    split_of,
)


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train-00000-of-00005.tfrecord", "train"),
        ("flowers_validation_00000-of-00005.tfrecord", "validation"),
        ("mnist-test.tfrecord-00000-of-00001", "test"),
        ("train-00000-of-01024", "train"),
        ("pets_training_01of02.tfrecord", "training"),
        ("val/00000.tfrecords", "val"),
        ("fashion_mnist.record", "fashion_mnist"),
        ("test.tfrecord.gz", "test"),
        ("shard_0", "shard_0"),
        ("cats-00000-of-00002.tfrecord.gz", "cats"),
    ],
)
def test_splits_by_name(name, split):
    assert split_of(name) == split


def test_files_are_found_by_name_or_by_their_first_bytes(tmp_path, frame):
    files = {
        "train-00000-of-00001": b"damaged",
        "empty.tfrecord": b"",
        "shard_3": b"",
        "numbers": frame(b"any"),
        "packed": gzip.compress(frame(b"any")),
        "deeper/test.tfrecord": b"",
    }
    others = {
        "notes": b"text",
        "labels.txt": frame(b""),
        ".hidden.tfrecord": b"",
        ".staging-1/a.tfrecord": b"",
    }
    others["model/variables.data-00000-of-00001"] = b"numbers"
    for name, content in {**files, **others}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    found = find_shards(str(tmp_path))
    assert {shard.name for shard in found} == set(files)
    assert all(shard.path == str(tmp_path / shard.name) for shard in found)


NAMES = [
    "flowers_train_00000-of-00005.tfrecord",
    "train-00000-of-01024",
    "cars-train.tfrecord-00000-of-00001",
    "zoo_training_01of02.tfrecord",
    "train-00000-of-00001.tfrecord.gz",
    "shard_0",
    "digits.record",
]


@pytest.fixture
def folder(tmp_path):
    for name in [
        *NAMES,
        "labels.txt",
        ".hidden.tfrecord",
        "train-00000-of-00001.tfrecord.idx",
        "photo.jpg",
    ]:
        (tmp_path / name).write_bytes(b"")
    return tmp_path


def test_a_folder_of_anybodys_gives_what_is_named_like_records(folder):
    assert {shard.name for shard in find_shards(str(folder))} == set(NAMES)
    assert find_shards(f"{folder}/") == find_shards(str(folder))


def test_a_pattern_finds_files_and_no_folders(folder):
    (folder / "train_tfrecord").mkdir()
    found = match_files(str(folder / "*train[_.-]*tfrecord*"))
    assert sorted(Path(path).name for path in found) == [
        "cars-train.tfrecord-00000-of-00001",
        "flowers_train_00000-of-00005.tfrecord",
        "train-00000-of-00001.tfrecord.gz",
        "train-00000-of-00001.tfrecord.idx",
    ]
    assert match_files(str(folder / "*of0[2]*")) == [str(folder / "zoo_training_01of02.tfrecord")]
    assert match_files(str(folder / "nothing*")) == []


def test_a_pattern_of_a_store_matches_nothing():
    assert match_files("gs://bucket/sets/train-*") == []


@pytest.mark.parametrize(
    ("paths", "folder", "names"),
    [
        (["/a/train-0", "/a/test-0"], "/a", ["test-0", "train-0"]),
        (["/a/b/train/0", "/a/b/test/0"], "/a/b", ["test/0", "train/0"]),
        (["/a/ab/train-0", "/a/ac/train-0"], "/a", ["ab/train-0", "ac/train-0"]),
        (["gs://bucket/train-0"], "gs://bucket", ["train-0"]),
        (["gs://bucket/a/x", "gs://bucket/b/y"], "gs://bucket", ["a/x", "b/y"]),
        (["/x"], "/", ["x"]),
        (["x"], ".", ["x"]),
        (["a/x", "b"], ".", ["b", "a/x"]),
    ],
)
def test_files_are_named_below_the_folder_that_holds_all(paths, folder, names):
    found, shards = gather_shards(paths)
    assert found == folder
    assert [shard.name for shard in shards] == names
    assert {shard.path for shard in shards} == set(paths)


def test_label_lines(tmp_path):
    (tmp_path / "labels.txt").write_text("0:daisy\n1:rose: red\n-1:none\n")
    assert read_label_lines(str(tmp_path / "labels.txt")) == {
        "daisy": 0,
        "rose: red": 1,
        "none": -1,
    }
    (tmp_path / "labels.txt").write_text("daisy\nrose\n")
    assert read_label_lines(str(tmp_path / "labels.txt")) == {}
