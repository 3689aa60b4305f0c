import errno
import json
import os
import re
import socket
import subprocess
import sys

import pytest
from make_marker import make_marker, marker_json

from recordmill import storage
from recordmill.pipeline.attempt import discard_staging
from recordmill.schemas.errors import RecordmillError
from recordmill.storage.dataset_files import read_marker


def test_discard_staging_deletes_staging_alone(tmp_path):
    for name in (".staging-1", ".staging-2/deep", "sidecars", ".other"):
        (tmp_path / name).mkdir(parents=True)
    notes = [f"deleted the unfinished work .staging-{number}" for number in (1, 2)]
    assert discard_staging(str(tmp_path)) == notes
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other", "sidecars"]
    assert discard_staging(str(tmp_path / "missing")) == []


def test_discard_staging_finishes_a_publishing_that_was_cut(tmp_path):
    staging = tmp_path / ".staging-p"
    staging.mkdir()
    (staging / "labels.txt").write_text("0:cat\n")
    switch = {"moves": [["labels.txt", "labels.txt"]], "removes": ["old.tfrecord"]}
    marker = marker_json(files=["labels.txt"], switch=switch)
    (staging / "recordmill.json").write_text(json.dumps(marker))
    (tmp_path / "old.tfrecord").write_bytes(b"")
    assert discard_staging(str(tmp_path)) == [
        ".staging-p held a complete dataset, whose publication was interrupted: it is now in place"
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "labels.txt",
        "recordmill.json",
        "sidecars",
    ]
    assert read_marker(str(tmp_path)) == make_marker(files=["labels.txt"])


def test_the_work_of_a_run_that_goes_on_is_not_deleted(tmp_path):
    staging = tmp_path / ".staging-p"
    staging.mkdir()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as neighbor:
        claim = {
            "host": socket.gethostname(),
            "process": neighbor.pid,
            "since": "2026-03-04T02:15:00+00:00",
        }
        (staging / "claim.json").write_text(json.dumps(claim))
        with pytest.raises(
            RecordmillError,
            match=rf"is in use by another run \(\.staging-p, process {neighbor.pid} ",
        ):
            discard_staging(str(tmp_path))
        neighbor.stdin.close()
    assert discard_staging(str(tmp_path)) == ["deleted the unfinished work .staging-p"]


def half_published(output, target):
    """A publication that was cut behind its first file, with one more to come; an old file has its
    name."""
    (output / ".staging-p").mkdir(parents=True)
    (output / ".staging-p" / "train-00000.tfrecord").write_bytes(b"new")
    (output / "labels.txt").write_text("0:cat\n")
    (output / "old.tfrecord").write_bytes(b"old")
    moves = [["labels.txt", "labels.txt"], ["train-00000.tfrecord", target]]
    shards = [{"name": target, "sidecar": f"sidecars/{target}.jsonl"}]
    marker = marker_json(
        splits={"train": {"shards": shards}},
        files=["labels.txt"],
        switch={"moves": moves, "removes": ["old.tfrecord"]},
    )
    (output / ".staging-p" / "recordmill.json").write_text(json.dumps(marker))


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("mine", r"Is a directory: .*/mine\'$"),
    ],
)
def test_discard_staging_gets_past_a_publication_that_cannot_be_finished(tmp_path, target, why):
    half_published(tmp_path, target)
    (tmp_path / "mine").mkdir()
    (note,) = discard_staging(str(tmp_path))
    before, _, after = note.partition(": ")
    assert before == "deleted .staging-p, whose dataset was complete and cannot be published"
    assert re.search(why, after)
    assert os.listdir(tmp_path) == ["mine"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"plan": {"id": "p"}}'])
def test_discard_staging_deletes_a_marker_that_cannot_be_read(tmp_path, content):
    half_published(tmp_path, "a.tfrecord")
    (tmp_path / ".staging-p" / "recordmill.json").write_text(content)
    (note,) = discard_staging(str(tmp_path))
    assert note.startswith(
        "deleted .staging-p, whose dataset was complete and cannot be published: "
    )
    assert sorted(os.listdir(tmp_path)) == ["labels.txt", "old.tfrecord"]


def test_discard_staging_leaves_a_dataset_alone_whose_replacement_cannot_be_published(tmp_path):
    half_published(tmp_path, "a.tfrecord")
    (tmp_path / "a.tfrecord").mkdir()
    (tmp_path / "recordmill.json").write_text('{"plan": {"id": "old"}}')
    (tmp_path / "sidecars").mkdir()
    discard_staging(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == [
        "a.tfrecord",
        "labels.txt",
        "old.tfrecord",
        "recordmill.json",
        "sidecars",
    ]


def test_discard_staging_gets_past_any_error_of_a_store(tmp_path, monkeypatch):
    half_published(tmp_path, "a.tfrecord")
    original = storage.move_file

    def move(source, target):
        if target.endswith("a.tfrecord"):
            raise OSError("Rename operation failed\nwith exceptions")  # as Beam's, without a number
        original(source, target)

    monkeypatch.setattr(storage, "move_file", move)
    (note,) = discard_staging(str(tmp_path))
    assert note.endswith(
        "was complete and cannot be published: Rename operation failed with exceptions"
    )
    assert os.listdir(tmp_path) == []


def test_a_file_that_cannot_be_deleted_is_an_error_of_one_sentence(tmp_path, monkeypatch):
    (tmp_path / ".staging-p").mkdir()

    def refuse(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(storage, "remove_folder", refuse)
    with pytest.raises(
        RecordmillError, match=r"^the output .* cannot be written: permission denied$"
    ):
        discard_staging(str(tmp_path))
