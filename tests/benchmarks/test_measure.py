import sys
from pathlib import Path

import pytest

from benchmarks import measure
from benchmarks.measure import BenchmarkError

WRITE = """
import sys
from pathlib import Path
output = Path(sys.argv[-1])
output.mkdir()
(output / "shard_0").write_bytes
"""


@pytest.mark.slow
def test_run_measures_the_whole_tree() -> None:
    child = "import time; held = bytearray(200_000_000); time.sleep(0.3)"
    parent = f"""
import subprocess, sys, time
subprocess.run([sys.executable, "-c", {child!r}])
end = time.process_time() + 0.3
while time.process_time() < end: pass
print("not this line"); print('{{"seconds_working": 0.5}}')
"""
    run = measure.run([sys.executable, "-c", parent])
    assert run.seconds > 0.6
    assert run.cpu_seconds > 0.3
    assert 200e6 < run.peak_rss < 300e6
    assert run.working == 0.5


def test_run_names_the_command_that_failed() -> None:
    with pytest.raises(BenchmarkError, match=r"(?s)exit code 3: .*no space left"):
        measure.run(
            [
                sys.executable,
                "-c",
                "import sys; print('no space left', file=sys.stderr); sys.exit(3)",
            ]
        )


@pytest.mark.parametrize(
    ("content", "complaint"), [(b"", "0 records for 1 photographs"), (b"cut", "broken header")]
)
def test_convert_refuses_an_incomplete_output(
    content: bytes, complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(BenchmarkError, match=complaint):
        measure.convert(
            [sys.executable, "-c", f"{WRITE.strip()}({content!r})"], tmp_path, 1, tmp_path
        )
    assert not (tmp_path / "output").exists()


def test_alternate_reverses_every_other_round() -> None:
    called: list[str] = []
    contenders = {name: (lambda name=name: called.append(name) or len(called)) for name in "abc"}
    assert measure.alternate(contenders, 3) == {"a": [1, 6, 7], "b": [2, 5, 8], "c": [3, 4, 9]}
    assert called == list("abccbaabc")
