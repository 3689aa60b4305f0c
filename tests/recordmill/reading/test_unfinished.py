import shutil

import pytest

from recordmill.reading.dataset import open_dataset
from recordmill.reading.unfinished import find_unfinished
from recordmill.schemas.errors import LoadError


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


def test_a_cut_publishing(lost):
    (lost / ".staging-1a2b").mkdir()
    (lost / ".staging-1a2b/recordmill.json").write_text("{}")
    assert sentence(lost) == (
        f"{lost} holds no recordmill.json but .staging-1a2b with a complete dataset, because a publishing was cut or "
        "is under way: run the same command again to finish it"
    )


@pytest.mark.parametrize("with_shards", [True, False])
def test_a_cut_run(lost, tmp_path, with_shards):
    folder = lost if with_shards else tmp_path / "begun"
    (folder / ".staging-1a2b").mkdir(parents=True)
    (folder / ".staging-1a2b/train-00000.tfrecord").write_bytes(b"")
    assert sentence(folder) == (
        f"{folder} holds no recordmill.json but .staging-1a2b with the work of a run that failed, was cut or is under "
        "way: run its command again, corrected if it failed"
    )


def test_a_lost_marker(lost):
    assert sentence(lost) == (
        f"{lost} holds no recordmill.json but sidecars/ and rejected.jsonl, because a publishing was cut or the file "
        "was lost: run the command that made the dataset again, or name the files alone by a pattern in quotes"
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
    assert find_unfinished(str(tmp_path), ["sidecars", "train.tfrecord"]) == ""
