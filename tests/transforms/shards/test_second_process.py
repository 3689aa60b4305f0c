import os
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.shards.progress import PROGRESS
from recordmill.transforms.shards.second_process import SecondProcess
from recordmill.transforms.shards.shard_files import failed_report

REPO = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are used on Linux alone")


def report(split, index, refs):
    """A report that says which process made it, in `problem`."""
    return failed_report(split, index, len(refs), str(os.getpid()))


@pytest.fixture
def process():
    """`process(write)`: a second process, ended with the test."""
    begun = []

    def begin(write):
        begun.append(SecondProcess(write))
        return begun[-1]

    yield begin
    for each in begun:
        each.close()


def test_shards_are_written_by_one_other_process_which_knows_what_was_there_when_it_began(process):
    words = ["before"]

    def write(split, index, refs):
        return report(f"{split}-{words[0]}", index, refs)

    second = process(write)
    refs = [ImageRef("a.jpg", "/a.jpg"), ImageRef("b.jpg", "/b.jpg", size=7)]
    reports = [second.submit("train", 0, refs).result(timeout=60)]
    words[0] = "after"
    reports.append(second.submit("test", 1, refs[:1]).result(timeout=60))
    assert [(each.split, each.index, each.references) for each in reports] == [
        ("train-before", 0, 2),
        ("test-before", 1, 1),
    ]
    assert len({each.problem for each in reports} | {str(os.getpid())}) == 2


def test_it_is_idle_when_its_shard_is_written(process, tmp_path):
    def write(*shard):
        while not (tmp_path / "go").exists():
            time.sleep(0.01)
        return report(*shard)

    second = process(write)
    assert second.is_idle()
    written = second.submit("train", 0, [])
    assert not second.is_idle()
    (tmp_path / "go").touch()
    written.result(timeout=60)
    assert second.is_idle()


def test_what_it_has_done_is_part_of_the_progress(process):
    def write(split, index, refs):
        for _ in refs:
            PROGRESS.add_done(1)
        return report(split, index, refs)

    PROGRESS.reset()
    second = process(write)
    PROGRESS.add_done(5)
    second.submit("train", 0, [ImageRef("a", "/a")] * 30).result(timeout=60)
    assert PROGRESS.done == 35
    PROGRESS.reset()
    assert PROGRESS.done == 0


def test_what_it_raises_is_raised_here(process):
    def write(*_):
        raise PermissionError(13, "Permission denied", "/a.jpg")

    with pytest.raises(PermissionError, match=r"Permission denied: '/a\.jpg'"):
        process(write).submit("train", 0, []).result(timeout=60)


def test_its_own_end_is_reported(process):
    def write(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(BrokenProcessPool):
        process(write).submit("train", 0, []).result(timeout=60)


def test_an_interrupt_is_its_parents_to_handle(process):
    def write(*shard):
        os.kill(os.getpid(), signal.SIGINT)
        return report(*shard)

    assert process(write).submit("train", 3, []).result(timeout=60).index == 3


@pytest.mark.parametrize("last", ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_it_ends_with_its_parent_in_the_middle_of_a_shard(last, tmp_path):
    script = (
        "import os, pathlib, signal, sys, time\n"
        "from recordmill.transforms.shards.second_process import SecondProcess\n"
        f"told = pathlib.Path({str(tmp_path / 'pid')!r})\n"
        "def write(*_):\n"
        "    told.with_suffix('.part').write_text(str(os.getpid()))\n"
        "    told.with_suffix('.part').rename(told)\n"
        "    time.sleep(300)\n"
        "SecondProcess(write).submit('train', 0, [])\n"
        "while not told.exists():\n"
        "    time.sleep(0.01)\n"
        f"{last}\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=REPO, timeout=120, check=False)
    left = Path("/proc") / (tmp_path / "pid").read_text()
    until = time.monotonic() + 60
    while left.exists() and "Z (zombie)" not in (left / "status").read_text():
        assert time.monotonic() < until
        time.sleep(0.05)
