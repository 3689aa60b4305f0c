import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import measure, photographs, verify
from benchmarks.measure import Run

SECONDS = {"frames": 1.0, "files": 4.0, "tensorflow": 3.0}


def test_ratios_are_those_of_the_fastest_passes(monkeypatch, capsys, tmp_path):
    def run(command):
        name = (
            command[command.index("benchmarks.passes") + 1]
            if "benchmarks.passes" in command
            else ""
        )
        return Run(9, 9, 1, 0, {"records": 1000, "seconds": [9.0, SECONDS.get(name, 1)]})

    monkeypatch.setattr(measure, "run", run)
    monkeypatch.setattr(photographs, "make", lambda *arguments: tmp_path)
    monkeypatch.setattr(sys, "argv", ["verify", "--pairs", "2", "--check", "--work", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        verify.main()
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert result["ours_to_tensorflow"]["frames"]["median"] == 3
    assert result["ours_to_tensorflow"]["files"]["median"] == 0.75
    assert (ended.value.code, "missed: files: 0.75 of TensorFlow's" in captured.err) == (1, True)


@pytest.mark.slow
def test_passes_read_everything(tmp_path):
    from recordmill.storage.tfrecord_file import RecordSink

    sink = RecordSink(str(tmp_path / "a.tfrecord"), "none")
    for _ in range(5):
        sink.write(b"")
    sink.close()
    command = [sys.executable, "-m", "benchmarks.passes", "frames", str(tmp_path), "--passes", "2"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, check=True)
    result = json.loads(done.stdout)
    assert (result["records"], len(result["seconds"])) == (5, 2)
