import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks import cifar, frames, measure
from recordmill.schemas.features import Example

needs_tensorflow = pytest.mark.skipif(
    find_spec("tensorflow") is None, reason="TensorFlow is not installed"
)


def test_records_are_those_of_cifar_10(tmp_path: Path) -> None:
    folder = cifar.make(130, tmp_path)
    sizes = {path.name: path.stat().st_size for path in folder.glob("*.bin")}
    assert sum(sizes.values()) == 130 * 3073
    assert sizes["test_batch.bin"] == 21 * 3073
    labels = np.frombuffer((folder / "data_batch_1.bin").read_bytes(), np.uint8).reshape(-1, 3073)[
        :, 0
    ]
    assert set(labels) <= set(range(10))
    assert (folder / "batches.meta.txt").read_text().split() == list(cifar.NAMES)
    assert cifar.make(130, tmp_path) == folder


@pytest.mark.slow
@needs_tensorflow
@pytest.mark.parametrize("mode", ["uint8", "float32"])
def test_the_rival_writes_every_record(tmp_path: Path, mode: str) -> None:
    folder = cifar.make(130, tmp_path)
    command = [sys.executable, "-m", "benchmarks.rivals.cifar_loop", "--mode", mode]
    words = [*command, "--input", str(folder), "--output", str(tmp_path / "out")]
    done = subprocess.run(words, cwd=measure.ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["records"] == 130
    expected = []
    for name in sorted(path.name for path in folder.glob("*.bin")):
        for record in np.frombuffer((folder / name).read_bytes(), np.uint8).reshape(-1, 3073):
            image = record[1:].reshape(3, 32, 32).transpose(1, 2, 0)
            expected.append((int(record[0]), image.astype(mode).tobytes()))
    found = []
    for record in frames.records(tmp_path / "out" / "cifar.tfrecord"):
        values = Example.FromString(record).features.feature
        found.append((values["label"].int64_list.value[0], values["image"].bytes_list.value[0]))
    assert found == expected
