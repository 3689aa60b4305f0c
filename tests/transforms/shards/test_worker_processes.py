import errno
import os
import signal
import socket
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from make_settings import make_settings

from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.reference_batch import ShardBatch
from recordmill.transforms.planning.plan import DatasetPlan
from recordmill.transforms.planning.run_plan import OutputDecision, RunPlan
from recordmill.transforms.planning.runs import RunSettings
from recordmill.transforms.shards import shard_writer
from recordmill.transforms.shards.shard_writer import ShardWriter
from recordmill.transforms.shards.worker_processes import WorkerProcesses, workers_allowed

REPO = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are used on Linux only")


@pytest.fixture
def writer(tmp_path):
    run = RunSettings(run_id="r", output=str(tmp_path / "out"), outcome_file="")
    dataset = DatasetPlan("id", label_map=LabelMap({"cat": 0, "dog": 1}))
    plan = RunPlan(dataset, OutputDecision(output=run.output, staged_as="id"))
    return ShardWriter(make_settings(), plan, run, 1, True)


def batch_of(refs):
    return ShardBatch.of(refs, 0)


@contextmanager
def begin(writer, count=1, references=1000, fork=True):
    """Workers for `writer`, forked with everything that the test has patched.

    Tests before this one may have left idle threads, with which a launcher would not fork.
    """
    with (
        patch.object(threading, "active_count", return_value=1),
        workers_allowed(count if fork else 0, writer.run.progress),
    ):
        workers = WorkerProcesses(writer, writer, count, references)
        try:
            yield workers
        finally:
            workers.close()


def note_process(monkeypatch, path):
    """Has each conversion write down its process."""
    real = shard_writer.convert_image

    def convert(*arguments):
        with path.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return real(*arguments)

    monkeypatch.setattr(shard_writer, "convert_image", convert)
    return lambda: set(map(int, path.read_text().split()))


@pytest.mark.parametrize("fork", [True, False])
def test_a_worker_writes_the_shard_that_this_process_would_write(
    writer, pictures, tree, tmp_path, fork
):
    batch = batch_of(pictures(9))
    with begin(writer, fork=fork) as workers:
        there = workers.submit("train", 3, batch).result(timeout=60)
    elsewhere = replace(writer.plan.decision, output=str(tmp_path / "here"))
    other = replace(writer, plan=replace(writer.plan, decision=elsewhere))
    here = other.finish(other.write("train", 3, batch))
    assert replace(there, milliseconds=0) == replace(here, milliseconds=0)
    assert tree(writer.run.output) == tree(elsewhere.output)


@pytest.mark.parametrize("fork", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_workers_wait_for_work_whatever_timeout_sockets_have_by_default(writer, pictures, fork):
    """Beam sets one of a minute when it looks for Google's credentials, which makes new sockets
    non-blocking."""
    socket.setdefaulttimeout(60)
    try:
        with begin(writer, fork=fork) as workers:
            done = [
                workers.submit("train", shard, batch_of(pictures(3))).result(timeout=60)
                for shard in (0, 1)
            ]
    finally:
        socket.setdefaulttimeout(None)
    assert [(report.problem, report.records) for report in done] == [(None, 3), (None, 3)]


def test_workers_get_no_more_shards_than_their_share(writer, pictures):
    batch = batch_of(pictures(10))
    with begin(writer, count=3, references=80) as workers:
        # 60 of the 80 are the share of three of the four processes; as none has ended, the others
        # are written here.
        workers._write = lambda task, references: None
        assert [workers.submit("train", index, batch) is not None for index in range(8)] == [
            True
        ] * 4 + [False] * 4


def test_a_single_shard_is_converted_by_all_processes_in_order(
    writer, pictures, monkeypatch, tmp_path
):
    processes = note_process(monkeypatch, tmp_path / "processes")
    batch = batch_of(pictures(300)).sort()
    with begin(writer, count=2, references=300) as workers:
        assert workers.submit("train", 0, batch) is None
        found = list(workers.convert(batch, "train"))
    assert [image.row.key for image in found] == [ref.key for ref in batch.refs]
    assert [image.record for image in found] == [
        image.record for image in writer.convert(batch, "train")
    ]
    assert len(processes()) == 3
    assert os.getpid() in processes()


def test_workers_help_from_the_time_when_one_is_without_a_shard(
    writer, pictures, monkeypatch, tmp_path
):
    gate, here = tmp_path / "gate", os.getpid()
    os.mkfifo(gate)
    processes = note_process(monkeypatch, tmp_path / "processes")
    noted = shard_writer.convert_image

    def convert(ref, *arguments):
        if ref.key.startswith("first"):
            gate.read_bytes()
        return noted(ref, *arguments)

    monkeypatch.setattr(shard_writer, "convert_image", convert)
    batch = batch_of(pictures(1000)).sort()
    with begin(writer, references=2002) as workers:
        held = workers.submit("train", 0, batch_of([replace(batch.refs[0], key="first")]))
        images = workers.convert(batch, "train")
        found = [next(images) for _ in range(300)]
        assert processes() == {here}
        gate.write_bytes(b"")
        assert held.result(timeout=60).records == 1
        (tmp_path / "processes").unlink()
        found += images
    assert [image.row.key for image in found] == [ref.key for ref in batch.refs]
    assert len(processes()) == 2


def test_what_workers_have_done_is_part_of_the_progress(writer, pictures):
    progress = writer.run.progress
    with begin(writer) as workers:
        workers.submit("train", 0, batch_of(pictures(70))).result(timeout=60)
        assert progress.cpu_of_workers > 0
    # The system counts workers that have ended.
    assert (progress.done, progress.cpu_of_workers) == (
        70,
        0,
    )


def test_what_a_worker_raises_is_raised_here(writer, pictures, monkeypatch):
    def fail(*_):
        raise OSError(errno.EIO, "out of order")

    monkeypatch.setattr(shard_writer, "convert_image", fail)
    with begin(writer) as workers:
        with pytest.raises(
            shard_writer.InputError, match=r"cannot be read: .*out of order"
        ) as raised:
            workers.submit("train", 0, batch_of(pictures(1))).result(timeout=60)
        assert "in a worker process:\nTraceback" in raised.value.__notes__[0]


class TwoArgumentsError(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def test_an_error_that_cannot_be_pickled_comes_as_its_text(writer, pictures, monkeypatch):
    def fail(*_):
        raise TwoArgumentsError(1, 2)

    monkeypatch.setattr(shard_writer, "convert_image", fail)
    with (
        begin(writer) as workers,
        pytest.raises(RuntimeError, match=r"^TwoArgumentsError: 1 and 2"),
    ):
        workers.submit("train", 0, batch_of(pictures(1))).result(timeout=60)


def test_a_worker_that_is_killed_fails_its_shard_with_a_sentence_and_is_replaced(
    writer, pictures, monkeypatch, tmp_path
):
    real, here = shard_writer.convert_image, os.getpid()

    def die(ref, *arguments):
        if os.getpid() != here and not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return real(ref, *arguments)

    monkeypatch.setattr(shard_writer, "convert_image", die)
    sentence = (
        "a worker process ended before it was done with images of train: it was killed, or there "
        "was not enough "
        "memory; run the same command again to continue from finished shards, with fewer "
        "--processes"
    )
    batch = batch_of(pictures(5))
    with begin(writer) as workers:
        died = workers.submit("train", 0, batch).result(timeout=60)
        assert (died.problem, died.references, died.records) == (sentence, 5, 0)
        assert workers.submit("train", 0, batch).result(timeout=60).records == 5
    # The same while a shard of this process is converted.
    (tmp_path / "killed").unlink()
    batch = batch_of(pictures(300))
    with begin(writer) as workers:
        report = writer.finish(writer.write("train", 1, batch, workers.convert))
    assert report.problem == sentence


def test_an_interrupt_is_the_launchers_to_handle(writer, pictures, monkeypatch):
    real, here = shard_writer.convert_image, os.getpid()

    def interrupt(*arguments):
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGINT)
        return real(*arguments)

    monkeypatch.setattr(shard_writer, "convert_image", interrupt)
    with begin(writer) as workers:
        assert workers.submit("train", 0, batch_of(pictures(2))).result(timeout=60).records == 2


SLEEPER = """
import os, pathlib, signal, sys, time
from recordmill.schemas.reference_batch import ShardBatch
from recordmill.transforms.planning.progress import Progress
from recordmill.transforms.shards import shard_writer, worker_processes

def sleep(*_):
    part = pathlib.Path(sys.argv[1] + ".part")
    part.write_text(f"{os.getppid()} {os.getpid()}")
    part.rename(sys.argv[1])
    time.sleep(300)

shard_writer.ShardWriter.write = sleep
writer = shard_writer.ShardWriter(None, None, None, 1, True)
with worker_processes.workers_allowed(1, Progress()):
    worker_processes.WorkerProcesses(writer, writer, 1, 1000).submit("train", 0, ShardBatch())
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    LAST
"""


@pytest.mark.parametrize("last", ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_workers_end_with_the_launcher_in_the_middle_of_a_shard(last, tmp_path, fork_server):
    script = SLEEPER.replace("LAST", last)
    fork_server.popen([sys.executable, "-c", script, str(tmp_path / "pids")], cwd=REPO).wait()
    left = [Path("/proc", pid) for pid in (tmp_path / "pids").read_text().split()]
    until = time.monotonic() + 60
    while any(each.exists() and "Z (zombie)" not in (each / "status").read_text() for each in left):
        assert time.monotonic() < until
        time.sleep(0.05)
