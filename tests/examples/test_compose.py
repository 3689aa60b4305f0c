"""Runs `examples/compose.py` as its docstring says."""

import io
import json
import random
import struct
from pathlib import Path

import pytest
from PIL import Image

from recordmill.imaging import ImageSettings, prepare_image
from recordmill.schemas.features import Example

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

WHY = "unknown format: the file begins with 6e 6f 20 70 69 63 74 75 ('no picture')"
SETTINGS = ImageSettings(quality=90)
EXAMPLE = Path(__file__).parents[2] / "examples/compose.py"


@pytest.fixture(scope="module")
def composed(tmp_path_factory, run_command):
    root = tmp_path_factory.mktemp("compose")
    for label in ("cat", "dog"):
        (root / "photos" / label).mkdir(parents=True)
        for number in range(20):
            noise = random.Random(f"{label}{number}").randbytes(72)
            image = Image.frombytes("RGB", (6, 4), noise).resize((20, 10))
            image.save(root / "photos" / label / f"{number}.png")
    (root / "photos/dog/text.jpg").write_text("no picture")
    (root / "photos/.DS_Store").touch()
    done = run_command(f"python {EXAMPLE} --input photos --output dataset", root)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return root


def shards(composed):
    return sorted((composed / "dataset").glob("*.tfrecord"))


def examples(path):
    content, offset = path.read_bytes(), 0
    while offset < len(content):
        (length,) = struct.unpack_from("<Q", content, offset)
        yield Example.FromString(content[offset + 12 : offset + 12 + length]).features.feature
        offset += length + 16


def test_its_files(composed):
    assert [path.name for path in shards(composed)] == [
        f"{split}-0000{index}-of-00002.tfrecord" for split in ("test", "train") for index in (0, 1)
    ]
    (line,) = (composed / "dataset/rejected.jsonl").read_text().splitlines()
    rejected = {"key": "dog/text.jpg", "reason": "unknown_format", "detail": WHY}
    assert json.loads(line) == rejected


def test_every_image_is_written_once_as_the_conversion_would(composed):
    written = sorted(
        (
            values["image/class/label"].int64_list.value[0],
            values["image/class/text"].bytes_list.value[0],
            values["image/filename"].bytes_list.value[0],
            values["image/encoded"].bytes_list.value[0],
        )
        for path in shards(composed)
        for values in examples(path)
    )
    expected = []
    for label_id, label in enumerate(["cat", "dog"]):
        for path in (composed / "photos" / label).glob("*.png"):
            encoded = prepare_image(path.read_bytes(), SETTINGS).encoded
            assert Image.open(io.BytesIO(encoded)).format == "JPEG"
            expected.append((label_id, label.encode(), path.name.encode(), encoded))
    assert written == sorted(expected)


def test_both_splits_have_images(composed):
    sizes = {
        split: sum(path.stat().st_size for path in (composed / "dataset").glob(f"{split}-*"))
        for split in ("train", "test")
    }
    assert 0 < sizes["test"] < sizes["train"]
