import json
import sys
from pathlib import Path

import pytest

from benchmarks import load, measure, photographs
from benchmarks.measure import Run

SECONDS = {"ours": 4.0, "ours_in_order": 5.0, "tf_data": 4.5}


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """Replaces the measured runs: each reader takes its seconds for all but the first 32 images."""
    ran: list[list[str]] = []

    def run(command: list[str]) -> Run:
        ran.append(command)
        if "benchmarks.feed" not in command:
            return Run(1, 1, 1, 0, {})
        seconds = SECONDS[command[3]]
        summary = {
            "records": 500,
            "fed": 468,
            "seconds_working": seconds,
            "cpu_seconds_working": 2 * seconds,
        }
        return Run(9, 9, 1, 0, summary)

    monkeypatch.setattr(measure, "run", run)
    monkeypatch.setattr(photographs, "make", lambda *_: tmp_path / "photographs-500")
    return ran


def outcome(capsys: pytest.CaptureFixture[str], tmp_path: Path, *words: str) -> tuple[dict, int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["load", f"--work={tmp_path}", "--pairs=3", *words])
        with pytest.raises(SystemExit) as ended:
            load.main()
    return json.loads(capsys.readouterr().out), int(ended.value.code or 0)


def test_ratios_are_those_of_the_rounds(commands, capsys, tmp_path) -> None:
    result, code = outcome(capsys, tmp_path, "--count=500", "--check")
    assert code == 0
    case = result["cases"]["resized"]
    assert case["to_tf_data"]["ours"] == {"min": 1.125, "median": 1.125, "max": 1.125}
    assert case["to_tf_data_by_cpu_seconds"]["ours_in_order"]["median"] == 0.9
    assert case["images_per_second"]["ours"]["median"] == 117
    assert len(commands) == 1 + 1 + 2 * 3 * 3
    assert commands[-1][-2:] == ["--size", "224"]


def test_a_missed_target_fails_the_check(commands, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(SECONDS, "ours", 5.0)
    assert outcome(capsys, tmp_path, "--count=500", "--case=decoded")[1] == 0
    assert outcome(capsys, tmp_path, "--count=500", "--case=decoded", "--check")[1] == 1


def test_a_reader_that_loses_images_is_disqualified(commands, tmp_path) -> None:
    with pytest.raises(measure.BenchmarkError, match="ours delivered 500 images of 501"):
        load.feed("ours", tmp_path, 501, ())


@pytest.mark.slow
def test_all_readers_deliver_the_same_pixels(tmp_path) -> None:
    tf = pytest.importorskip("tensorflow")
    from benchmarks import feed

    images = photographs.make(40, tmp_path, size=(40, 30))
    folder = str(load.make_dataset(measure.options("").parse_args([]).pipeline, images, tmp_path))
    for size in (None, (16, 16)):
        sums = {
            name: sorted(
                (int(label), float(tf.reduce_sum(tf.cast(image, tf.float64))))
                for image, label in batches
            )
            for name, batches in (
                (name, read(folder, 7, size).unbatch()) for name, read in feed.READERS.items()
            )
        }
        assert len(sums["ours"]) == 40
        assert sums["ours"] == sums["ours_in_order"] == sums["tf_data"]
        assert feed.feed(feed.ours(folder, 7, size)).items() >= {"records": 40, "fed": 33}.items()
