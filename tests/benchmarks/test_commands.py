import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import convert, feature_vectors, measure, photographs
from benchmarks.measure import Run


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """Replaces the measured runs: 1 s to start, then 1,000 photographs a second for us and 500 for
    the rivals."""
    commands: list[list[str]] = []

    def run(command: Sequence[str], folder: Path, count: int, work: Path) -> Run:
        commands.append(list(command))
        seconds = 1 + count / (1_000 if command[0] == "ours" else 500)
        return Run(seconds, 2 * seconds, 300_000_000 + 2_000 * count, 0, {}, count, 9)

    monkeypatch.setattr(measure, "convert", run)
    monkeypatch.setattr(measure, "run", lambda command: Run(0.5, 1, 1, 0, {}))
    monkeypatch.setattr(photographs, "make", lambda count, *rest, **named: tmp_path)
    return commands


def outcome(module: Any, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[Any, int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["benchmark", "--pipeline", "ours --fast", *words])
        with pytest.raises(SystemExit) as ended:
            module.main()
    return json.loads(capsys.readouterr().out), int(ended.value.code or 0)


def test_ratios_are_those_of_the_pairs(
    fake: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    result, code = outcome(
        convert, capsys, "--case", "reencode", "--count", "4000", "--pairs", "3", "--check"
    )
    case = result["cases"]["reencode"]
    assert code == 0
    assert case["contenders"]["ours"]["seconds"]["median"] == 5
    assert case["contenders"]["ours"]["photographs_per_second_whole"]["median"] == 800
    assert case["contenders"]["ours"]["photographs_per_second_apart"]["median"] == 1000
    assert case["ours_to"]["two_processes"]["whole"] == {"min": 1.8, "median": 1.8, "max": 1.8}
    assert case["ours_to"]["two_processes"]["apart"] == {"min": 2, "median": 2, "max": 2}
    assert case["ours_to"]["two_processes"]["cpu_apart"]["median"] == 2
    assert case["contenders"]["ours"]["cpu_milliseconds_each"]["median"] == 2
    assert list(case["ours_to"]) == ["two_processes", "tensorflow_writer"]
    assert len(fake) == 3 + 3 * 3 * 2
    assert fake[0] == ["ours", "--fast", "--set", "images.reencode=always"]
    assert fake[1][-3:] == ["benchmarks.rivals.two_processes", "--mode", "reencode"]


def test_seed_2_the_original_is_run_and_timed_next_to_ours(
    fake: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    result, code = outcome(feature_vectors, capsys, "--pairs", "1", "--check")
    assert code == 0
    assert result["ours_to"]["feature_vectors"]["apart"]["median"] == 2
    assert fake[0][:4] == ["ours", "--fast", "--config", "configs/feature_vectors.yaml"]
    assert "benchmarks.rivals.feature_vectors" in fake[1]
