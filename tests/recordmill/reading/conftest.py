"""Datasets of ours, files as anybody might have written them, and code that runs in another process."""

import hashlib
import io
import json
import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
from make_marker import marker_json
from PIL import Image

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.features import Example, Feature, encode_example, feature_schema
from recordmill.storage.tfrecord_file import RecordSink, read_back

REPO = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def convert_images():
    """`convert_images(input, output, {"images.quality": 90})`: converts a folder, and gives the output."""

    def convert(source, output, settings):
        flags = [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]
        assert launch([f"--input={source}", f"--output={output}", *flags], build) == 0
        return output

    return convert


@pytest.fixture(scope="session")
def with_tensorflow():
    """Skips what needs TensorFlow Transform where it is not installed."""
    if not find_spec("tensorflow_transform"):
        pytest.skip("tensorflow-transform is not installed")


@pytest.fixture(scope="session")
def run_python():
    """`run_python(code, *arguments)`: its output, and its exit code.

    Whatever runs TensorFlow Transform does so in a process of its own, since such a process crashes at its end.
    """

    def run(code, *arguments, timeout=300):
        environment = {**os.environ, "PYTHONPATH": str(REPO), "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        command = [sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.run(
            command, env=environment, cwd=REPO, capture_output=True, text=True, timeout=timeout, check=False
        )

    return run


def masked(data: bytes) -> int:
    crc = google_crc32c.value(bytes(data))
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frame_record(data: bytes, length: int | None = None) -> bytes:
    header = struct.pack("<Q", len(data) if length is None else length)
    return header + struct.pack("<I", masked(header)) + data + struct.pack("<I", masked(data))


@pytest.fixture(scope="session")
def frame():
    """`frame(data, length)`: one record as it stands in a file; its length may be forged."""
    return frame_record


def draw_picture(seed: object, size: tuple[int, int] = (24, 16), kind: str = "JPEG") -> bytes:
    noise = random.Random(f"{seed}").randbytes(6 * 4 * 3)
    stream = io.BytesIO()
    Image.frombytes("RGB", (6, 4), noise).resize(size, Image.Resampling.BICUBIC).save(stream, kind)
    return stream.getvalue()


@pytest.fixture(scope="session")
def draw():
    """`draw(seed, size, kind)`: the bytes of a small picture, another one for each seed."""
    return draw_picture


@pytest.fixture(scope="session")
def example():
    """`example(key=value)`: a serialised Example; lists of bytes, ints or floats, or one of them."""

    def encode(features=None, **more) -> bytes:
        message = Example()
        for key, value in {**(features or {}), **more}.items():
            values = value if isinstance(value, list) else [value]
            kind = {bytes: "bytes_list", int: "int64_list", float: "float_list"}[type(values[0])]
            getattr(message.features.feature[key], kind).value.extend(values)
        return message.SerializeToString(deterministic=True)

    return encode


def convert_pictures(folder: Path, *more: str) -> Path:
    """Converts `folder/photos`, with 24 pictures of three classes where there are none."""
    if not (folder / "photos").exists():
        for number in range(24):
            path = folder / "photos" / ("cat", "dog", "owl")[number % 3] / f"{number:02}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(draw_picture(number))
    output = folder / "dataset"
    arguments = ["--input", str(folder / "photos"), "--output", str(output), "--set", "shards.count=2"]
    assert launch([*arguments, *more], build) == 0
    return output


@pytest.fixture(scope="session")
def convert():
    """`convert(folder, flags)`: the dataset made of `folder/photos`, drawn where there are none."""
    return convert_pictures


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """`published[compression]`: a dataset of ours, 24 images in 2 shards of train and of test; not to be changed."""
    return {
        kind: convert_pictures(
            tmp_path_factory.mktemp(kind),
            "--set",
            f"compression={kind}",
            "--set",
            "splits.fractions={train: 0.7, test: 0.3}",
        )
        for kind in ("none", "gzip")
    }


@pytest.fixture
def publish(tmp_path: Path) -> Callable[..., Path]:
    """Puts a dataset together from records: what a marker states, for sources that are none of class folders."""

    def put(
        features: Sequence[Feature],
        records: Sequence[Mapping[str, Any]],
        *,
        shards: int = 2,
        labels: Mapping[str, int] | None = None,
        classes: Mapping[str, int] | None = None,
        instances: Mapping[str, int] | None = None,
        compression: str = "none",
        rows: Sequence[Mapping[str, Any]] = (),
        images: Mapping[str, Any] | None = None,
    ) -> Path:
        folder = tmp_path / "put"
        (folder / "sidecars").mkdir(parents=True)
        files = []
        for index in range(shards):
            name, own = f"train-{index}.tfrecord", records[index::shards]
            sink = RecordSink(str(folder / name), compression)
            for record in own:
                sink.write(encode_example(features, record))
            sink.close()
            sidecar = f"sidecars/{name}.jsonl"
            lines = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
            (folder / sidecar).write_bytes(lines)
            found = read_back(str(folder / name), compression)
            stated = {"name": name, "records": len(own), "bytes": found.bytes, "sha256": found.sha256}
            files.append({**stated, "sidecar": sidecar, "sidecar_sha256": hashlib.sha256(lines).hexdigest()})
        several = {"instances": instances} if instances else {}
        split = {"records": len(records), "classes": classes or {}, "shards": files, **several}
        marker = marker_json(
            {"compression": compression, "images": images or {}},
            features=to_json(feature_schema(features)),
            labels=labels or {},
            splits={"train": split},
        )
        (folder / "recordmill.json").write_text(json.dumps(marker))
        return folder

    return put
