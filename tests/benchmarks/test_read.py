from pathlib import Path

import pytest

from benchmarks import read


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_random_reads_are_measured_on_real_records(tmp_path) -> None:
    path = read.make_records(tmp_path, 100)
    found = read.read_at_random(path, 20, rounds=2)
    assert found["records"] == 100
    assert found["to_pread"]["min"] > 0
