import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_passes_read_everything(tmp_path):
    from recordmill.schemas.features import Example
    from recordmill.storage.tfrecord_file import RecordSink

    sink = RecordSink(str(tmp_path / "a.tfrecord"), "none")
    example = Example()
    example.features.feature["label"].int64_list.value.append(1)
    for _ in range(5):
        sink.write(example.SerializeToString())
    sink.close()
    command = [sys.executable, "-m", "benchmarks.passes", "frames", str(tmp_path), "--passes", "2"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, check=True)
    result = json.loads(done.stdout)
    assert (result["records"], len(result["seconds"])) == (5, 2)
