import json
import shutil

import pytest

from reading.dataset import OpenError, open_dataset
from schemas.conventions import load_convention


def test_one_of_ours_is_what_its_marker_says(published):
    folder = published["none"]
    marker = json.loads((folder / "recordmill.json").read_bytes())
    dataset = open_dataset(f"{folder}/")
    assert (dataset.folder, dataset.kind, dataset.marker) == (str(folder), "recordmill", marker)
    assert dataset.labels == {"cat": 0, "dog": 1, "owl": 2}
    assert set(dataset.features) == set(load_convention("default").features)
    assert {name: len(shards) for name, shards in dataset.splits.items()} == {"train": 2, "test": 2}
    assert dataset.count("train") + dataset.count("test") == 24
    shard = dataset.splits["test"][1]
    assert shard.name == "test-00001-of-00002.tfrecord"
    assert shard.path == f"{folder}/test-00001-of-00002.tfrecord"
    assert shard.sidecar == f"{folder}/sidecars/test-00001-of-00002.tfrecord.jsonl"
    stated = marker["splits"]["test"]["shards"][1]
    assert [shard.records, shard.bytes, shard.sha256] == [stated[key] for key in ("records", "bytes", "sha256")]
    assert sorted(row["key"] for _, row in dataset.rows()) == sorted(
        f"{('cat', 'dog', 'owl')[number % 3]}/{number:02}.jpg" for number in range(24)
    )


def test_one_file_of_ours_knows_what_is_stated_of_it(published):
    path = published["none"] / "train-00000-of-00002.tfrecord"
    dataset = open_dataset(str(path))
    assert (dataset.kind, dataset.whole, [shard.path for shard in dataset.shards]) == ("recordmill", False, [str(path)])
    assert list(dataset.splits) == ["train"]
    assert dataset.count("train") == dataset.shards[0].records > 0


def test_a_file_alone(tmp_path, frame, monkeypatch):
    (tmp_path / "numbers").write_bytes(frame(b""))
    monkeypatch.chdir(tmp_path)
    dataset = open_dataset("numbers")
    assert [(shard.split, shard.name, shard.path) for shard in dataset.shards] == [("numbers", "numbers", "numbers")]
    assert (dataset.kind, dataset.count("numbers")) == ("files", None)


def test_a_folder_of_files_with_slims_labels(tmp_path, frame):
    (tmp_path / "flowers_train_00000-of-00001.tfrecord").write_bytes(frame(b""))
    (tmp_path / "labels.txt").write_text("0:daisy\n1:rose\n")
    dataset = open_dataset(str(tmp_path))
    assert (dataset.kind, dataset.labels) == ("files", {"daisy": 0, "rose": 1})
    assert list(dataset.splits) == ["train"]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (None, b"", "is not there, or holds nothing: name a dataset's folder, or a TFRecord file"),
        ("notes.txt", b"x", "holds no TFRecord file and no recordmill.json: name a dataset's folder, or a TFRecord"),
        ("recordmill.json", b"{", "recordmill.json cannot be understood (JSONDecodeError"),
        ("recordmill.json", b"[]", "recordmill.json cannot be understood (DamagedMarkerError"),
        ("recordmill.json", b'{"plan": {}, "recordmill": 1}', "recordmill.json cannot be understood (KeyError"),
        ("recordmill.json", b'{"plan": {}, "recordmill": 9}', "recordmill.json is of another version of Recordmill"),
        ("dataset_info.json", b"{", "dataset_info.json cannot be understood"),
    ],
)
def test_what_cannot_be_opened_is_one_sentence(tmp_path, name, content, sentence):
    if name:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(OpenError) as caught:
        open_dataset(str(tmp_path))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_convention_that_is_not_known_here_keeps_the_stated_features(tmp_path, published):
    shutil.copytree(published["none"], tmp_path / "dataset")
    marker = json.loads((tmp_path / "dataset" / "recordmill.json").read_bytes())
    marker["convention"] = "of_tomorrow"
    (tmp_path / "dataset" / "recordmill.json").write_text(json.dumps(marker))
    features = open_dataset(str(tmp_path / "dataset")).features
    assert {feature.key: feature.kind for feature in features} == {
        feature.key: feature.kind for feature in load_convention("default").features
    }
