import json
import shutil

import pytest

from recordmill.reading.dataset import open_dataset
from recordmill.schemas.conventions import load_convention
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.errors import LoadError


def test_one_of_ours_is_what_its_marker_says(published):
    folder = published["none"]
    marker = json.loads((folder / "recordmill.json").read_bytes())
    dataset = open_dataset(f"{folder}/")
    assert (dataset.folder, dataset.kind, to_json(dataset.marker)) == (
        str(folder),
        "recordmill",
        marker,
    )
    assert dataset.labels == {"cat": 0, "dog": 1, "owl": 2}
    assert dataset.features == tuple(
        sorted(load_convention("default").example_features, key=lambda feature: feature.key)
    )
    assert {name: len(shards) for name, shards in dataset.splits.items()} == {"train": 2, "test": 2}
    assert dataset.count("train") + dataset.count("test") == 24
    shard = dataset.splits["test"][1]
    assert shard.name == "test-00001-of-00002.tfrecord"
    assert shard.path == f"{folder}/test-00001-of-00002.tfrecord"
    assert shard.sidecar == f"{folder}/sidecars/test-00001-of-00002.tfrecord.jsonl"
    stated = marker["splits"]["test"]["shards"][1]
    assert [shard.records, shard.bytes, shard.sha256] == [
        stated[key] for key in ("records", "bytes", "sha256")
    ]
    assert sorted(row.key for _, row in dataset.rows()) == sorted(
        f"{('cat', 'dog', 'owl')[number % 3]}/{number:02}.jpg" for number in range(24)
    )


@pytest.mark.parametrize("split", [["test", "train"], "test+train"])
def test_several_splits_are_named_at_once(published, split):
    dataset = open_dataset(str(published["none"]))
    assert dataset.split_names(split) == ("test", "train")
    assert dataset.shards_of(split) == (*dataset.splits["test"], *dataset.splits["train"])
    assert dataset.count(split) == 24


def test_a_name_with_a_plus_in_it_is_that_of_one_split(tmp_path, frame):
    (tmp_path / "a+b.tfrecord").write_bytes(frame(b""))
    (tmp_path / "c.tfrecord").write_bytes(frame(b""))
    dataset = open_dataset(str(tmp_path))
    assert dataset.split_names("a+b") == ("a+b",)
    assert dataset.split_names(["a+b", "c"]) == ("a+b", "c")


def test_one_file_of_a_dataset_has_its_metadata(published):
    path = published["none"] / "train-00000-of-00002.tfrecord"
    dataset = open_dataset(str(path))
    assert (dataset.kind, dataset.whole, [shard.path for shard in dataset.shards]) == (
        "recordmill",
        False,
        [str(path)],
    )
    assert list(dataset.splits) == ["train"]
    assert dataset.count("train") == dataset.shards[0].records > 0


def test_a_file_alone(tmp_path, frame, monkeypatch):
    (tmp_path / "numbers").write_bytes(frame(b""))
    monkeypatch.chdir(tmp_path)
    dataset = open_dataset("numbers")
    assert [(shard.split, shard.name, shard.path) for shard in dataset.shards] == [
        ("numbers", "numbers", "numbers")
    ]
    assert (dataset.kind, dataset.count("numbers")) == ("files", None)


def test_files_of_other_programs_have_no_marker(tmp_path, frame):
    (tmp_path / "numbers.tfrecord").write_bytes(frame(b""))
    dataset = open_dataset(str(tmp_path))
    assert dataset.marker_or_none is None
    with pytest.raises(LoadError) as caught:
        dataset.marker  # noqa: B018
    assert str(caught.value) == (
        f"{tmp_path} holds no recordmill.json: name the folder of a finished dataset"
    )


def test_a_pattern_in_a_dataset_has_its_files_metadata(published):
    dataset = open_dataset(f"{published['none']}/train-*")
    assert (dataset.kind, dataset.whole, list(dataset.splits)) == ("recordmill", False, ["train"])
    assert [shard.name for shard in dataset.shards] == [
        f"train-0000{number}-of-00002.tfrecord" for number in (0, 1)
    ]
    assert dataset.count("train") == sum(shard.records for shard in dataset.shards) > 0
    with pytest.raises(LoadError, match=r"split is 'test', and .* has train: name one of them"):
        dataset.count("test")


def test_a_pattern_of_anybodys_files_takes_all_of_them(tmp_path, published):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "train-0.tfrecord").write_bytes(b"")
    dataset = open_dataset(f"{tmp_path}/*/train-*")
    assert (dataset.kind, dataset.whole, dataset.folder) == ("files", False, str(tmp_path))
    assert [shard.name for shard in dataset.splits["train"]] == [
        "a/train-0.tfrecord",
        "b/train-0.tfrecord",
    ]
    # Among them are some that the marker does not list.
    assert open_dataset(f"{published['none']}/*").kind == "files"


def test_a_folder_with_brackets_in_its_name_is_not_a_pattern(tmp_path):
    odd = tmp_path / "a[b]*"
    odd.mkdir()
    (odd / "x[1].tfrecord").write_bytes(b"")
    for path in (odd, odd / "x[1].tfrecord"):
        assert [shard.path for shard in open_dataset(str(path)).shards] == [
            str(odd / "x[1].tfrecord")
        ]


def test_a_folder_of_files_with_slims_labels(tmp_path, frame):
    (tmp_path / "flowers_train_00000-of-00001.tfrecord").write_bytes(frame(b""))
    (tmp_path / "labels.txt").write_text("0:daisy\n1:rose\n")
    dataset = open_dataset(str(tmp_path))
    assert (dataset.kind, dataset.labels) == ("files", {"daisy": 0, "rose": 1})
    assert list(dataset.splits) == ["train"]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            None,
            b"",
            "does not exist or is empty: name a dataset's folder, a TFRecord file, or a pattern "
            "that",
        ),
        (
            "notes.txt",
            b"x",
            "holds no TFRecord file and no recordmill.json: name a dataset's folder, a TFRecord",
        ),
        ("recordmill.json", b"{", "recordmill.json cannot be understood: it is not JSON: "),
        (
            "recordmill.json",
            b"[]",
            "recordmill.json cannot be understood: it is not of type dict: restore it, or convert "
            "the dataset again",
        ),
        (
            "recordmill.json",
            b'{"plan": {}, "recordmill": 2}',
            "recordmill.json cannot be understood: name is missing: ",
        ),
        (
            "recordmill.json",
            b'{"recordmill": 9}',
            "understood: it has format 9, which another version of Recordmill reads: ",
        ),
        ("dataset_info.json", b"{", "dataset_info.json cannot be understood"),
    ],
)
def test_a_dataset_that_cannot_be_opened_is_an_error_of_one_sentence(
    tmp_path, name, content, sentence
):
    if name:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(LoadError) as caught:
        open_dataset(str(tmp_path))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def lost(published, tmp_path):
    """A dataset without its marker."""
    folder = shutil.copytree(published["none"], tmp_path / "lost")
    (folder / "recordmill.json").unlink()
    return folder


def sentence(folder):
    with pytest.raises(LoadError) as raised:
        open_dataset(str(folder))
    return str(raised.value)


@pytest.mark.parametrize("with_shards", [True, False])
def test_a_cut_run(lost, tmp_path, with_shards):
    folder = lost if with_shards else tmp_path / "begun"
    (folder / ".staging-1a2b").mkdir(parents=True)
    (folder / ".staging-1a2b/train-00000.tfrecord").write_bytes(b"")
    assert sentence(folder) == (
        f"{folder} is not finished: it holds .staging-1a2b, of a run that is still working on it, "
        "or was interrupted, or failed: run the same command again, corrected if it failed"
    )


def test_a_lost_marker(lost):
    assert sentence(lost) == (
        f"{lost} holds no recordmill.json but sidecars/ and rejected.jsonl: its publication was "
        "interrupted, or the file was lost: run the command that made the dataset again, or name "
        "the files alone by a "
        "pattern in quotes"
    )


def test_files_that_are_named_are_opened_all_the_same(lost):
    (lost / ".staging-1a2b").mkdir()
    assert len(open_dataset(f"{lost}/train-*").shards) == 2
    assert len(open_dataset(f"{lost}/train-00000-of-00002.tfrecord").shards) == 1


def test_a_finished_dataset_next_to_the_work_of_another_run(published, tmp_path):
    folder = shutil.copytree(published["none"], tmp_path / "dataset")
    (folder / ".staging-1a2b").mkdir()
    assert open_dataset(str(folder)).kind == "recordmill"


def test_folders_of_strangers_are_none(tmp_path, frame, example):
    (tmp_path / "train.tfrecord").write_bytes(frame(example(a=1)))
    for name in ("labels.txt", "README.md", "rejected.jsonl", "croissant.json", "report.html"):
        (tmp_path / name).write_text("0:a\n")
    assert open_dataset(str(tmp_path)).kind == "files"
    (tmp_path / "rejected.jsonl").unlink()
    (tmp_path / "sidecars").mkdir()
    assert open_dataset(str(tmp_path)).kind == "files"
