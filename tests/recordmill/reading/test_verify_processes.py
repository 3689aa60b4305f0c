import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from recordmill.reading import verify_dataset as module
from recordmill.reading.dataset import Dataset, StoredShard, open_dataset
from recordmill.reading.example import expect
from recordmill.reading.verify_dataset import verify_dataset
from recordmill.reading.verify_processes import ShardWorkers
from recordmill.reading.verify_shard import verify_shard

REPO = Path(__file__).parents[3]
STRANGER = expect(Dataset("/x", "files", ()))

pytestmark = [pytest.mark.usefixtures("eager_pipeline", "cheap_fsync"), pytest.mark.runner]


@pytest.fixture
def damaged(tmp_path, frame, example):
    """Three files, the second one damaged and the third one missing."""
    shards = []
    for number in range(3):
        content = b"".join(frame(example(a=n, b=b"x" * 50)) for n in range(600))
        path = tmp_path / f"{number}.tfrecord"
        shards.append(StoredShard("train", path.name, str(path)))
        path.write_bytes(content if number == 0 else content[:150] + b"?" + content[151:])
    path.unlink()
    return shards


@pytest.mark.parametrize("level", ["frames", "files"])
def test_a_process_says_what_the_same_code_says_here(damaged, level):
    counts = []
    with ShardWorkers(1) as workers:
        checks = [workers.verify(shard, STRANGER, level, False, counts.append) for shard in damaged]
    assert checks == [verify_shard(shard, STRANGER, level) for shard in damaged]
    assert [check.records for check in checks] == [600, 599, 0]
    assert [len(check.findings) for check in checks] == [0, 1, 1]
    assert sum(counts) == 1199


def test_a_process_that_dies_is_an_error_that_names_the_shard_and_is_replaced(tmp_path, damaged):
    with (tmp_path / "waits").open("wb") as file:
        os.truncate(file.fileno(), 2**42)  # zeros that take no room, and hours to read

    def kill():
        while (child := workers._children[0]._child) is None:
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)

    with ShardWorkers(1) as workers:
        killer = threading.Thread(target=kill)
        killer.start()
        check = workers.verify(
            StoredShard("a", "a-waits", str(tmp_path / "waits")), STRANGER, "frames", False, print
        )
        killer.join()
        expected = (
            "a-waits: reading it ended the verifier's process at its beginning (exit code -9)"
        )
        assert [str(finding) for finding in check.findings] == [expected]
        assert not check.findings[0].is_note
        assert (
            workers.verify(damaged[0], STRANGER, "frames", False, lambda records: None).records
            == 600
        )


def test_processes_end_with_the_block(damaged):
    with ShardWorkers(2) as workers:
        workers.verify(damaged[0], STRANGER, "frames", False, lambda records: None)
        child = next(worker._child for worker in workers._children if worker._child)
        assert child.poll() is None
    assert child.returncode == 0


def test_a_process_imports_neither_beam_nor_tensorflow_nor_the_launcher():
    unwanted = {"apache_beam", "tensorflow", "recordmill.pipeline", "PIL"}
    code = f"import sys, recordmill.reading.verify_processes; print({unwanted} & {{*sys.modules}})"
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, check=True
    )
    assert said.stdout == "set()\n"


@pytest.mark.parametrize("level", ["frames", "files"])
def test_large_files_are_read_in_processes_with_the_same_outcome(
    damaged, tmp_path, monkeypatch, level
):
    dataset = open_dataset(str(tmp_path))
    here = verify_dataset(dataset, level, threads=2)
    walked = []
    verify = ShardWorkers.verify
    monkeypatch.setattr(
        ShardWorkers,
        "verify",
        lambda self, shard, *rest: walked.append(shard) or verify(self, shard, *rest),
    )
    monkeypatch.setattr(
        module, "_WORTH_PROCESSES", sum(Path(shard.path).stat().st_size for shard in dataset.shards)
    )
    assert verify_dataset(dataset, level, threads=2) == here
    assert sorted(shard.name for shard in walked) == ["0.tfrecord", "1.tfrecord"]
    monkeypatch.setattr(module, "_WORTH_PROCESSES", module._WORTH_PROCESSES + 1)
    assert verify_dataset(dataset, level, threads=2) == here
    assert len(walked) == 2
    assert len(here.findings) == 1


def test_a_process_that_was_not_asked_is_not_started():
    with ShardWorkers(3) as workers:
        assert [child._child for child in workers._children] == [None] * 3
