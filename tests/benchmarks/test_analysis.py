import json
import subprocess
import sys

import pytest

from benchmarks import analysis
from recordmill.reading.analyze_dataset import read_moments
from recordmill.reading.dataset import open_dataset


def test_the_rows_are_those_of_photographs(tmp_path):
    analysis.write_dataset(tmp_path, 100)
    numbers = read_moments(open_dataset(str(tmp_path)), "train")
    assert numbers.shape == (100, 8)
    pixels = numbers[:, 0] * numbers[:, 1]
    for color in range(3):
        mean = numbers[:, 2 + color] / pixels
        variance = numbers[:, 5 + color] / pixels - mean**2
        assert ((mean > 39) & (mean < 200)).all()
        assert variance == pytest.approx(3000, abs=1)


@pytest.mark.parametrize(("seconds", "code"), [(19.9, 0), (20.1, 1)])
def test_only_time_outside_the_imports_counts(monkeypatch, capsys, seconds, code):
    def run(command, **_):
        line = {
            "images": 7,
            "seconds": {"imports": 99.0, "analysis": seconds, "total": 99 + seconds},
        }
        return subprocess.CompletedProcess(command, 0, json.dumps(line).encode())

    monkeypatch.setattr(analysis.subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", ["analysis", "--count", "7", "--check"])
    with pytest.raises(SystemExit) as end:
        analysis.main()
    assert end.value.code == code
    assert json.loads(capsys.readouterr().out)["seconds"]["analysis"]["median"] == seconds
