import json
import socket
import subprocess
import sys

import pytest

from pipeline.discard import discard_staging
from pipeline.preflight import PlaceError


def test_discard_staging_deletes_staging_alone(tmp_path):
    for name in (".staging-1", ".staging-2/deep", "sidecars", ".other"):
        (tmp_path / name).mkdir(parents=True)
    told = [f"deleted the unfinished work .staging-{number}" for number in (1, 2)]
    assert discard_staging(str(tmp_path)) == told
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other", "sidecars"]
    assert discard_staging(str(tmp_path / "missing")) == []


def test_discard_staging_finishes_a_publishing_that_was_cut(tmp_path):
    staging = tmp_path / ".staging-p"
    staging.mkdir()
    (staging / "labels.txt").write_text("0:cat\n")
    marker = {"plan": {"id": "p"}, "switch": {"moves": [["labels.txt", "labels.txt"]], "removes": ["old.tfrecord"]}}
    (staging / "recordmill.json").write_text(json.dumps(marker))
    (tmp_path / "old.tfrecord").write_bytes(b"")
    assert discard_staging(str(tmp_path)) == [
        ".staging-p held a complete dataset, whose publishing had been cut: it is now in place"
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.txt", "recordmill.json", "sidecars"]
    assert json.loads((tmp_path / "recordmill.json").read_text()) == {"plan": {"id": "p"}}


def test_the_work_of_a_run_that_goes_on_is_not_deleted(tmp_path):
    staging = tmp_path / ".staging-p"
    staging.mkdir()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as neighbour:
        claim = {"host": socket.gethostname(), "process": neighbour.pid, "since": "2026-03-04T02:15:00+00:00"}
        (staging / "claim.json").write_text(json.dumps(claim))
        with pytest.raises(
            PlaceError, match=rf"is being written by another run \(\.staging-p, process {neighbour.pid} "
        ):
            discard_staging(str(tmp_path))
        neighbour.stdin.close()
    assert discard_staging(str(tmp_path)) == ["deleted the unfinished work .staging-p"]
