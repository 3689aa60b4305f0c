import hashlib
import io
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks import frames, measure, photographs
from benchmarks.rivals.job import MODES
from recordmill.schemas.features import Example
from recordmill.transforms.records.image_functions import mean_std

COUNT = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return photographs.make(COUNT, tmp_path_factory.mktemp("work"), size=(64, 48))


def expected(path: Path, mode: str) -> dict[str, bytes | int]:
    encoded = path.read_bytes()
    if mode in ("reencode", "shrink"):
        output = io.BytesIO()
        with Image.open(path) as image:
            image.save(output, "JPEG", quality=95)
        encoded = output.getvalue()
    return {
        "image/class/label": int(path.parent.name.removeprefix("class_")),
        "image/class/text": path.parent.name.encode(),
        "image/encoded": encoded,
        "image/filename": path.name.encode(),
        "image/format": b"jpg",
        "image/height": 48,
        "image/key/sha256": hashlib.sha256(encoded).hexdigest().encode(),
        "image/width": 64,
    }


def parsed(record: bytes) -> dict[str, Any]:
    features = Example.FromString(record).features.feature
    (values,) = zip(
        *(getattr(feature, feature.WhichOneof("kind")).value for feature in features.values()),
        strict=True,
    )
    return dict(zip(features, values, strict=True))


def check(rival: str, mode: str, folder: Path, output: Path) -> None:
    command = [sys.executable, "-m", f"benchmarks.rivals.{rival}", "--mode", mode]
    printed = subprocess.run(
        [*command, "--input", str(folder), "--output", str(output)],
        cwd=measure.ROOT,
        check=True,
        capture_output=True,
    ).stdout
    summary = json.loads(printed.splitlines()[-1])
    records = [
        parsed(record) for path in sorted(output.iterdir()) for record in frames.records(path)
    ]
    records.sort(key=lambda record: record["image/filename"])
    paths = sorted(folder.rglob("*.jpg"), key=lambda path: path.name)
    assert records == [expected(path, mode) for path in paths]
    assert (summary["records"], summary["bytes"]) == frames.count(output)
    assert summary["seconds_working"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_two_processes_writes_the_exact_examples(mode: str, folder: Path, tmp_path: Path) -> None:
    check("two_processes", mode, folder, tmp_path)
    assert len(list(tmp_path.glob("train-*-of-00018.tfrecord"))) == 18
    tested = sum(
        1 for path in tmp_path.glob("test-*-of-00002.tfrecord") for _ in frames.records(path)
    )
    assert 1 <= tested <= 15


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("tensorflow"), reason="TensorFlow is not installed")
@pytest.mark.parametrize("mode", MODES)
def test_tensorflow_writer_writes_the_exact_examples(
    mode: str, folder: Path, tmp_path: Path
) -> None:
    check("tensorflow_writer", mode, folder, tmp_path)
    assert (tmp_path / "shard_0").stat().st_size > 0


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("tensorflow"), reason="TensorFlow is not installed")
def test_feature_vectors_writes_every_vector_once(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.rivals.feature_vectors", "--input", str(folder)]
    subprocess.run(
        [*command, "--output", str(tmp_path)], cwd=measure.ROOT, check=True, capture_output=True
    )
    found = {}
    for path in sorted(tmp_path.iterdir()):
        for record in frames.records(path):
            features = Example.FromString(record).features.feature
            name = features["sha256"].bytes_list.value[0].decode()
            found[name] = (
                list(features["feature"].float_list.value),
                features["label"].int64_list.value[0],
            )
    assert {path.name for path in folder.rglob("*.jpg")} == set(found)
    for path in folder.rglob("*.jpg"):
        with Image.open(path) as image:
            vector = mean_std(np.asarray(image))
        assert found[path.name] == (
            pytest.approx(vector, abs=1e-4),
            int(path.parent.name.removeprefix("class_")),
        )
