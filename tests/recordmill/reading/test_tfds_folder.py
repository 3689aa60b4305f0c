import json

import pytest

from recordmill.reading.dataset import open_dataset, read_tfds_folder
from recordmill.reading.verify_dataset import verify_dataset
from recordmill.schemas.errors import LoadError


def describe(folder, **more):
    info = {
        "name": "mnist",
        "fileFormat": "tfrecord",
        "splits": [
            {
                "name": "train",
                "shardLengths": ["2", "1"],
                "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
            },
            {"name": "test", "shardLengths": ["1"], "filepathTemplate": "{SPLIT}.{FILEFORMAT}"},
        ],
        **more,
    }
    (folder / "dataset_info.json").write_text(json.dumps(info))
    (folder / "label.labels.txt").write_text("zero\none\n")


def test_a_tfds_description_is_read(tmp_path):
    describe(tmp_path)
    shards, labels = read_tfds_folder(str(tmp_path))
    assert [(shard.split, shard.name, shard.records) for shard in shards] == [
        ("train", "mnist-train.tfrecord-00000-of-00002", 2),
        ("train", "mnist-train.tfrecord-00001-of-00002", 1),
        ("test", "test.tfrecord", 1),
    ]
    assert labels == {"zero": 0, "one": 1}


def test_another_file_format_is_refused(tmp_path):
    describe(tmp_path, fileFormat="array_record")
    with pytest.raises(
        LoadError, match="describes array_record files: only TFRecord files can be opened"
    ):
        read_tfds_folder(str(tmp_path))


def test_counts_and_labels_are_held_against_the_records(tmp_path, frame, example):
    describe(tmp_path)
    records = [frame(example(image=b"x", label=label)) for label in (0, 1, 2)]
    (tmp_path / "mnist-train.tfrecord-00000-of-00002").write_bytes(records[0] + records[1])
    (tmp_path / "mnist-train.tfrecord-00001-of-00002").write_bytes(records[2])
    (tmp_path / "test.tfrecord").write_bytes(records[0] * 2)
    verification = verify_dataset(open_dataset(str(tmp_path)))
    assert [str(finding) for finding in verification.findings] == [
        "mnist-train.tfrecord-00001-of-00002, record 0 at byte 0: "
        "the label is 2, not one of the 2 ids from 0 to 1 (label)",
        "test.tfrecord: expected 1 records, found 2",
    ]
