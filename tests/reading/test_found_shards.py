import gzip

import pytest

from reading.found_shards import find_shards, read_label_lines, split_of


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
    others = {"notes": b"text", "labels.txt": frame(b""), ".hidden.tfrecord": b"", ".staging-1/a.tfrecord": b""}
    others["model/variables.data-00000-of-00001"] = b"numbers"
    for name, content in {**files, **others}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    found = find_shards(str(tmp_path))
    assert {shard.name for shard in found} == set(files)
    assert all(shard.path == str(tmp_path / shard.name) for shard in found)


def test_label_lines(tmp_path):
    (tmp_path / "labels.txt").write_text("0:daisy\n1:rose: red\n-1:none\n")
    assert read_label_lines(str(tmp_path / "labels.txt")) == {"daisy": 0, "rose: red": 1, "none": -1}
    (tmp_path / "labels.txt").write_text("daisy\nrose\n")
    assert read_label_lines(str(tmp_path / "labels.txt")) == {}
