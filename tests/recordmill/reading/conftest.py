"""Datasets of ours, files as anybody might have written them, and code that runs in another
process."""

import hashlib
import io
import json
import os
import random
import shutil
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
    """`convert_images(input, output, {"images.quality": 90})`: converts a folder, and gives the
    output."""

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

    Whatever runs TensorFlow Transform does so in a process of its own, since such a process crashes
    at its end.
    """

    def run(code, *arguments, timeout=300):
        environment = {
            **os.environ,
            "PYTHONPATH": str(REPO),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "CUDA_VISIBLE_DEVICES": "-1",
        }
        command = [sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.run(
            command,
            env=environment,
            cwd=REPO,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
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
    """`example(key=value)`: a serialized Example; lists of bytes, ints or floats, or one of
    them."""

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
    arguments = [
        "--input",
        str(folder / "photos"),
        "--output",
        str(output),
        "--set",
        "shards.count=2",
    ]
    assert launch([*arguments, *more], build) == 0
    return output


def convert_boxed_pictures(folder: Path, *more: str) -> Path:
    """Converts 24 pictures with one box each, of three classes, in the format of COCO."""
    names = ("cat", "dog", "owl")
    (folder / "photos").mkdir(parents=True)
    for number in range(24):
        (folder / "photos" / f"{number:02}.jpg").write_bytes(draw_picture(number))
    coco = {
        "images": [
            {"id": number, "file_name": f"{number:02}.jpg", "width": 24, "height": 16}
            for number in range(24)
        ],
        "annotations": [
            {"id": number, "image_id": number, "category_id": number % 3 + 1, "bbox": [2, 3, 9, 8]}
            for number in range(24)
        ],
        "categories": [{"id": number, "name": name} for number, name in enumerate(names, 1)],
    }
    (folder / "photos" / "annotations.json").write_text(json.dumps(coco))
    return convert_pictures(folder, *more)


@pytest.fixture(scope="session")
def convert_boxed():
    """`convert_boxed(folder, flags)`: the dataset made of pictures with boxes."""
    return convert_boxed_pictures


@pytest.fixture(scope="session")
def convert():
    """`convert(folder, flags)`: the dataset made of `folder/photos`, drawn where there are none."""
    return convert_pictures


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """`published[compression]`: a dataset of ours, 24 images in 2 shards of train and of test; not
    to be changed."""
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
    """Puts a dataset together from records: what a marker states, for sources that are none of
    class folders."""

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
            stated = {
                "name": name,
                "records": len(own),
                "bytes": found.bytes,
                "sha256": found.sha256,
            }
            files.append(
                {**stated, "sidecar": sidecar, "sidecar_sha256": hashlib.sha256(lines).hexdigest()}
            )
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


ANIMALS = {"cat": 13, "dog": 7, "eel": 4}


def draw_animal(seed: object, size: tuple[int, int], mode: str = "RGB") -> bytes:
    noise = random.Random(f"{seed}").randbytes(6 * 4 * 3)
    image = (
        Image.frombytes("RGB", (6, 4), noise).resize(size, Image.Resampling.BICUBIC).convert(mode)
    )
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=90)
    return stream.getvalue()


@pytest.fixture(scope="session")
def tf() -> Any:
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="session")
def convert_with(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Converts a folder with settings, in this process; gives the dataset's folder."""

    def run(source: Path, **settings: Any) -> Path:
        output = tmp_path_factory.mktemp("dataset") / "out"
        flags = [
            f"--set={key.replace('__', '.')}={json.dumps(value)}" for key, value in settings.items()
        ]
        assert launch([f"--input={source}", f"--output={output}", *flags], build) == 0
        return output

    return run


@pytest.fixture(scope="session")
def animals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes of 24 pictures in all, each 24 pixels wide and 16 high; one of them is
    grayscale."""
    folder = tmp_path_factory.mktemp("animals")
    for name, count in ANIMALS.items():
        (folder / name).mkdir()
        for number in range(count):
            mode = "L" if (name, number) == ("eel", 0) else "RGB"
            (folder / name / f"{number:02}.jpg").write_bytes(
                draw_animal((name, number), (24, 16), mode)
            )
    return folder


@pytest.fixture(scope="session")
def animal_dataset(animals: Path, convert_with: Callable[..., Path]) -> Path:
    """All 24 in the split train, in three shards."""
    return convert_with(animals, splits__fractions={"train": 1.0}, shards__count=3)


@pytest.fixture(scope="session")
def uneven_dataset(
    tmp_path_factory: pytest.TempPathFactory, convert_with: Callable[..., Path]
) -> Path:
    """Six pictures of six sizes, from 20x10 to 25x15 (width by height)."""
    folder = tmp_path_factory.mktemp("uneven")
    (folder / "thing").mkdir()
    for number in range(6):
        (folder / "thing" / f"{number}.jpg").write_bytes(
            draw_animal(number, (20 + number, 10 + number))
        )
    return convert_with(folder, splits__fractions={"train": 1.0})


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The user's cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "recordmill"


@pytest.fixture(scope="session")
def converted(tmp_path_factory, convert):
    """24 pictures in train and test, as converted."""
    return convert(tmp_path_factory.mktemp("converted"), "--set", "shards.count=3")


@pytest.fixture
def folder(converted, tmp_path):
    """A copy, to be damaged."""
    return shutil.copytree(converted, tmp_path / "dataset")


def rows_of(folder, split):
    """The rows of a split's records, each with its shard's name."""
    marker = json.loads((folder / "recordmill.json").read_bytes())
    for shard in marker["splits"][split]["shards"]:
        for line in (folder / shard["sidecar"]).read_text(encoding="utf-8").splitlines():
            if "rejected" not in (row := json.loads(line)):
                yield {**row, "shard": shard["name"]}


def record_of(folder, row):
    """A record, read as the sidecar says."""
    begin = row["offset"] + 12
    return (folder / row["shard"]).read_bytes()[begin : begin + row["length"]]


def index_as_documented(folder):
    """The index that docs/format.md describes."""
    marker = json.loads((folder / "recordmill.json").read_bytes())
    seed = marker["plan"]["settings"]["seed"]
    shards, entries = b"", b""
    count = 0
    for split in sorted(marker["splits"]):
        for shard in marker["splits"][split]["shards"]:
            count += 1
            shards += struct.pack("<Q", shard["records"]) + bytes.fromhex(shard["sha256"])
        for row in rows_of(folder, split):
            hashed = hashlib.sha256(f"{seed}\0key\0{row['key']}".encode()).digest()[16:24]
            entries += struct.pack("<QQ", row["offset"], row["length"]) + hashed[::-1]
    head = struct.pack("<8sQQ", b"RMINDEX2", count, len(entries) // 24)
    return head + shards + entries


@pytest.fixture
def dataset_rows():
    return rows_of


@pytest.fixture
def stored_record():
    return record_of


@pytest.fixture
def documented_index():
    return index_as_documented


@pytest.fixture(params=["index", "frames"])
def known_by(request, folder):
    """The dataset's folder, where records are known by its index, or the frames alone."""
    if request.param != "index":
        (folder / "records.index").unlink()
    shutil.move(folder / "sidecars", folder.parent / "sidecars")
    return folder
