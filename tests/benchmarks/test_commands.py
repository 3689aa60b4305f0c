import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import (
    convert,
    cores,
    feature_vectors,
    fixed_cost,
    flink,
    measure,
    memory,
    photographs,
    prism,
)
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


def test_other_programs_run_in_their_own_environment(
    fake: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    result, _ = outcome(convert, capsys, "--case", "default", "--pairs", "1", "--others")
    assert list(result["cases"]["default"]["ours_to"]) == ["two_processes", *convert.OTHERS]
    assert [command[0] for command in fake[1:7]] == [
        sys.executable,
        *[str(convert.OTHERS_PYTHON)] * 5,
    ]
    assert all((measure.ROOT / f"benchmarks/rivals/{name}.py").exists() for name in convert.OTHERS)


def test_removing_metadata_is_compared_with_keeping_them(
    fake: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    result, code = outcome(convert, capsys, "--case", "strip_exif", "--pairs", "1", "--check")
    assert result["cases"]["strip_exif"]["ours_to"]["header"]["cpu_apart"]["median"] == 1
    assert fake[0] == [
        "ours",
        "--fast",
        "--set",
        "images.check=header",
        "--set",
        "images.metadata=strip",
    ]
    assert fake[1] == ["ours", "--fast", "--set", "images.check=header"]
    assert code == 0


def test_missed_target_fails_the_check_only(
    fake: list[list[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = (convert.Target("tensorflow_writer", "cpu_whole", 1.9),)
    monkeypatch.setitem(convert.CASES, "header", convert.Case(4_000, (), "copy", targets))
    assert outcome(convert, capsys, "--case", "header", "--pairs", "1")[1] == 0
    assert outcome(convert, capsys, "--case", "header", "--pairs", "1", "--check")[1] == 1


def test_a_run_that_is_all_start_up_is_not_measured() -> None:
    pair = convert.Pair(Run(2, 1, 1, 0, {}, 200, 1), Run(2, 1, 1, 0, {}, 100, 1))
    with pytest.raises(measure.BenchmarkError, match="--count"):
        pair.throughput("cpu_apart")
    assert math.isnan(pair.throughput("apart"))
    assert measure.spread([2, pair.throughput("apart"), 1]) == {"min": 1, "median": 1.5, "max": 2}


def test_memory(fake: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    result, code = outcome(memory, capsys, "--check")
    assert result["peak_rss_mb"] == {"2000": 304.0, "20000": 340.0}
    assert result["bytes_per_photograph"] == {"2000-20000": 2000}
    assert code == 1  # 302.6 and 326 MB are allowed


def test_seed_2_the_original_is_run_and_timed_next_to_ours(
    fake: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    result, code = outcome(feature_vectors, capsys, "--pairs", "1", "--check")
    assert code == 0
    assert result["ours_to"]["feature_vectors"]["apart"]["median"] == 2
    assert fake[0][:4] == ["ours", "--fast", "--config", "configs/feature_vectors.yaml"]
    assert "benchmarks.rivals.feature_vectors" in fake[1]


def test_cores(
    fake: list[list[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: Sequence[str], folder: Path, count: int, work: Path) -> Run:
        fake.append(list(command))
        processes = int(command[-1].removeprefix("--processes="))
        return Run(
            1 + count / (500 * processes),
            2 + count * processes / 1000,
            300_000_000,
            0,
            {},
            count,
            9,
        )

    monkeypatch.setattr(measure, "convert", run)
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: {2, 5, 7})
    result, code = outcome(cores, capsys, "--pairs", "2")
    assert code == 0
    assert {name: each["speed_up"]["median"] for name, each in result["processes"].items()} == {
        "1": 1,
        "2": 2,
        "3": 3,
    }
    assert result["processes"]["3"]["cpu_ratio"]["median"] == 3
    assert fake[0] == ["taskset", "--cpu-list", "2", "ours", "--fast", "--processes=1"]
    assert fake[4][:3] == ["taskset", "--cpu-list", "2,5,7"]


def test_fixed_cost(fake: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    result, code = outcome(fixed_cost, capsys, "--check")
    assert result["difference"] == {"min": 0.6, "median": 0.6, "max": 0.6}
    assert code == 0


def finished_job(seconds: float) -> dict[str, Any]:
    def vertex(name: str, sent: int, end: float) -> dict[str, Any]:
        return {"id": name, "name": name, "end-time": 1000 * end, "metrics": {"write-bytes": sent}}

    group = {
        "id": "group",
        "operator": "GroupReduce",
        "description": "GroupByShard",
        "inputs": [{"id": "assign"}],
    }
    vertices = [
        vertex("assign", 440_000, 9),
        vertex("group", 400_000, 10),
        vertex("ConvertShards", 0, 9 + seconds),
    ]
    vertices[0]["name"] = "AssignShards"
    return {"vertices": vertices, "plan": {"nodes": [group]}}


@pytest.mark.parametrize(("two", "threads", "code"), [(1.6, 1.6, 0), (1.25, 1.25, 1), (2, 1.6, 1)])
def test_flink(fake, capsys, monkeypatch, two, threads, code):
    def newest_job() -> dict[str, Any]:
        speed = (
            threads if "--threads=2" in fake[-1] else two if "--parallelism=2" in fake[-1] else 1
        )
        return finished_job(40 / speed)

    monkeypatch.setattr("scripts.flink_job.newest_job", newest_job)
    monkeypatch.setattr(photographs, "warm", lambda folder: 0)
    result, ended = outcome(flink, capsys, "--pairs", "2", "--check")
    assert result["contenders"]["one slot"]["photographs_per_second_apart"]["median"] == 100
    assert result["two_slots_to_one"]["median"] == two
    assert result["two_threads_to_two_slots"]["median"] == threads / two
    assert result["contenders"]["two slots"]["shuffled_bytes_each"]["max"] == 110
    assert result["contenders"]["two slots"]["sent_bytes_each"]["max"] == 210
    assert ended == code
    assert len(fake) == 6
    assert "--runner=PortableRunner" in fake[0]
    assert "images.reencode=always" in fake[0]


def test_prism(fake, capsys, monkeypatch):
    built = subprocess.CompletedProcess([], 0, "/cache/prism\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: built)
    result, code = outcome(prism, capsys, "--pairs", "2")
    assert (code, result["difference"]["median"], result["ratio"]["median"]) == (0, 0, 1)
    assert fake[0] == ["ours", "--fast", "--runner=PrismRunner", "--prism_location=/cache/prism"]
    assert fake[1] == ["ours", "--fast", "--runner=DirectRunner"]
