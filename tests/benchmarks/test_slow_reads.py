import io
import json
import random
import threading

import pytest
from PIL import Image

from benchmarks import slow_reads
from benchmarks.slow_reads import SlowFileSystem
from recordmill.transforms.planning.progress import Progress
from recordmill.transforms.shards import read_ahead
from recordmill.transforms.shards.read_ahead import REMOTE_READERS

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

NO_ESTIMATE = "--set=shards.count=1"  # for which planning reads 32 images at once, and no more


@pytest.fixture
def noise(tmp_path):
    """240 pictures of noise, about 50 KB each."""
    chance = random.Random(0)
    for number in range(240):
        stream = io.BytesIO()
        Image.frombytes("RGB", (150, 100), chance.randbytes(150 * 100 * 3)).save(
            stream, "JPEG", quality=95
        )
        file = tmp_path / "photos" / f"class{number % 3}" / f"{number}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(stream.getvalue())
    return tmp_path / "photos"


@pytest.fixture
def hold_reads(monkeypatch):
    """Lets no read end before so many are under way at once: no test depends on how long anything
    takes."""

    def hold(least: int) -> None:
        reached, entered, enter = threading.Event(), [], Progress.enter

        def note(progress: Progress, stage: str) -> None:
            entered.append(stage)
            enter(progress, stage)

        def wait(_: float) -> None:
            if entered[-1:] != ["converting"]:  # planning reads a sample, of fewer images
                return
            if SlowFileSystem.most_under_way >= least:
                reached.set()
            reached.wait(60)  # where they never come, the test fails by their number

        monkeypatch.setattr(Progress, "enter", note)
        monkeypatch.setattr(SlowFileSystem, "most_under_way", 0)
        monkeypatch.setattr(slow_reads.time, "sleep", wait)

    return hold


@pytest.mark.parametrize("case", slow_reads.CASES)
def test_as_many_reads_wait_at_once_as_there_are_readers(noise, tmp_path, hold_reads, capsys, case):
    hold_reads(REMOTE_READERS // 2)
    slow_reads.convert(noise, tmp_path / "out", 0.05, [*slow_reads.CASES[case][0], NO_ESTIMATE])
    assert json.loads(capsys.readouterr().out)["ledger"]["written"] == 240
    assert REMOTE_READERS / 2 <= SlowFileSystem.most_under_way <= REMOTE_READERS


def test_slow_reads_are_bounded_by_bytes(noise, tmp_path, monkeypatch, hold_reads, capsys):
    largest = max(file.stat().st_size for file in noise.rglob("*.jpg"))
    hold_reads(2)
    monkeypatch.setattr(read_ahead, "WINDOW_BYTES", 5 * largest)
    slow_reads.convert(noise, tmp_path / "out", 0.01, ["--set=images.check=header", NO_ESTIMATE])
    assert json.loads(capsys.readouterr().out)["ledger"]["written"] == 240
    assert (
        2
        <= SlowFileSystem.most_under_way
        <= 5 * largest // min(f.stat().st_size for f in noise.rglob("*.jpg"))
    )
