import json
import sys
from pathlib import Path

import pytest

from benchmarks import measure, photographs, read
from benchmarks.measure import Run

SECONDS = {"ours": 4.0, "load": 4.0, "webdataset": 8.0, "tfrecord": 5.0}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """Replaces the measured runs: each reader takes its seconds."""
    ran: list[list[str]] = []

    def run(command: list[str]) -> Run:
        ran.append(command)
        return Run(9, 9, 1, 0, {"records": 500, "cpu_seconds_working": SECONDS[command[3]]})

    monkeypatch.setattr(measure, "run", run)
    monkeypatch.setattr(photographs, "make", lambda *_: tmp_path / "photographs-500")
    monkeypatch.setattr(read, "make_dataset", lambda *_: tmp_path / "dataset")
    monkeypatch.setattr(read, "make_tars", lambda *_: None)
    return ran


def outcome(capsys: pytest.CaptureFixture[str], tmp_path: Path, *words: str) -> tuple[dict, int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sys, "argv", ["read", f"--work={tmp_path}", "--pairs=3", "--count=500", *words]
        )
        with pytest.raises(SystemExit) as ended:
            read.main()
    return json.loads(capsys.readouterr().out), int(ended.value.code or 0)


def test_ratios_are_those_of_the_rounds(commands, capsys, tmp_path) -> None:
    result, code = outcome(capsys, tmp_path, "--case=epoch", "--check")
    assert code == 0
    by_cpu = result["cases"]["epoch"]["by_cpu"]
    assert {name: ratio["lower_quartile"] for name, ratio in by_cpu.items()} == {
        "load": 1.0,
        "webdataset": 0.5,
        "tfrecord": 0.8,
    }
    assert len(commands) == 3 * 4


def test_a_missed_target_fails_the_check(commands, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(SECONDS, "load", 3.0)
    assert outcome(capsys, tmp_path, "--case=epoch")[1] == 0
    assert outcome(capsys, tmp_path, "--case=epoch", "--check")[1] == 1


def test_a_reader_that_loses_images_is_disqualified(commands, tmp_path) -> None:
    with pytest.raises(measure.BenchmarkError, match="ours delivered 500 images of 501"):
        read.feed("python", "ours", [tmp_path] * 3, 501)


def test_random_reads_are_measured_on_real_records(tmp_path) -> None:
    path = read.make_records(tmp_path, 100)
    found = read.read_at_random(path, 20, rounds=2)
    assert found["records"] == 100
    assert found["to_pread"]["min"] > 0
