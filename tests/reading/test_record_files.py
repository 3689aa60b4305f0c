import json
from pathlib import Path

import pytest

from reading.loading.split_info import LoadError
from reading.record_files import find_record_files

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
    for name in [*NAMES, "labels.txt", ".hidden.tfrecord", "train-00000-of-00001.tfrecord.idx", "photo.jpg"]:
        (tmp_path / name).write_bytes(b"")
    return tmp_path


def names(paths):
    return [Path(path).name for path in paths]


def test_a_folder_of_anybodys_gives_what_is_named_like_records(folder):
    assert names(find_record_files(str(folder))) == sorted(NAMES)
    assert find_record_files(f"{folder}/") == find_record_files(str(folder))


def test_a_file_is_itself_whatever_its_name(folder):
    assert find_record_files(str(folder / "photo.jpg")) == [str(folder / "photo.jpg")]


def test_a_pattern_finds_files_sorted(folder):
    assert names(find_record_files(str(folder / "*train[_.-]*tfrecord*"))) == [
        "cars-train.tfrecord-00000-of-00001",
        "flowers_train_00000-of-00005.tfrecord",
        "train-00000-of-00001.tfrecord.gz",
        "train-00000-of-00001.tfrecord.idx",
    ]
    assert names(find_record_files(str(folder / "*of0[2]*"))) == ["zoo_training_01of02.tfrecord"]


def test_a_folder_with_brackets_in_its_name_is_no_pattern(folder):
    odd = folder / "a[b]*"
    odd.mkdir()
    (odd / "x[1].tfrecord").write_bytes(b"")
    assert names(find_record_files(str(odd))) == ["x[1].tfrecord"]
    assert names(find_record_files(str(odd / "x[1].tfrecord"))) == ["x[1].tfrecord"]


def test_a_dataset_of_ours_gives_what_its_marker_lists(folder):
    shards = {"train": ["b", "a"], "test": ["c"]}
    splits = {split: {"shards": [{"name": name} for name in files]} for split, files in shards.items()}
    (folder / "recordmill.json").write_text(json.dumps({"plan": {}, "splits": splits}))
    assert names(find_record_files(str(folder))) == ["b", "a", "c"]
    assert names(find_record_files(str(folder), "test")) == ["c"]
    with pytest.raises(LoadError, match=r"has no split 'val': choose one of train, test$"):
        find_record_files(str(folder), "val")


@pytest.mark.parametrize("name", ["nothing", "nothing/*.tfrecord", "empty"])
def test_nothing_found_is_one_sentence(folder, name):
    (folder / "empty").mkdir()
    with pytest.raises(LoadError, match="is no TFRecord file, nor a folder or a pattern that finds one"):
        find_record_files(str(folder / name))


def test_a_split_of_somebody_elses_folder_is_one_sentence(folder):
    with pytest.raises(LoadError, match=r"holds no recordmill\.json that knows splits: name the files of train by"):
        find_record_files(str(folder), "train")
