"""The fifth system that Recordmill replaces: storage-efficient TFRecords from class folders."""

import io
import random
import re

import pytest
from PIL import Image

BYTES_A_RECORD = 400


@pytest.fixture
def images():
    """JPEGs that need no change, baseline and progressive, by path."""

    def photograph(path, progressive):
        image = Image.frombytes("RGB", (24, 18), random.Random(path).randbytes(24 * 18 * 3)).resize((400, 300))
        stream = io.BytesIO()
        image.save(stream, "JPEG", quality=92, progressive=progressive)
        return stream.getvalue()

    paths = [f"{label}/{number}.jpg" for label in ("cat", "dog") for number in range(10)]
    return {path: photograph(path, path.endswith(("1.jpg", "4.jpg"))) for path in paths}


@pytest.fixture
def folder(tmp_path, images):
    for path, content in images.items():
        (tmp_path / "images" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "images" / path).write_bytes(content)
    return tmp_path / "images"


def test_seed_5_a_fitting_jpeg_passes_bit_for_bit(folder, images, convert):
    _, found = convert("class_folders.yaml", folder)
    assert sorted(
        (each["image/class/text"][0].decode(), each["image/encoded"][0]) for part in found.values() for each in part
    ) == sorted((path.partition("/")[0], content) for path, content in images.items())
    assert sum(b"\xff\xc2" in content for content in images.values()) == 4  # progressive ones


def test_seed_5_output_is_at_most_the_input_and_400_bytes_a_record(folder, images, convert):
    marker, _ = convert("class_folders.yaml", folder)
    stored = sum(shard["bytes"] for split in marker["splits"].values() for shard in split["shards"])
    assert marker["input_bytes"] == sum(map(len, images.values()))
    assert marker["output_bytes"] == stored <= marker["input_bytes"] + BYTES_A_RECORD * len(images)


def test_seed_5_the_report_states_both_sizes_and_their_ratio(folder, convert, capsys, tmp_path):
    marker, _ = convert("class_folders.yaml", folder)
    ratio = f"{marker['output_bytes'] / marker['input_bytes']:.2f}"
    told = re.search(r"bytes +(\S+) KiB of images became (\S+) KiB of TFRecords, ([0-9.]+)x", capsys.readouterr().err)
    assert told.groups() == (f"{marker['input_bytes'] / 1024:.1f}", f"{marker['output_bytes'] / 1024:.1f}", ratio)
    page = (tmp_path / "dataset-of-class_folders.yaml" / "report.html").read_text(encoding="utf-8")
    assert f"{marker['input_bytes'] / 1024:.1f} KiB" in page
    assert f"{marker['output_bytes'] / 1024:.1f} KiB" in page
    assert f"of TFRecords, {ratio} times as much" in page


def test_seed_5_both_splits_have_the_same_keys_and_shards_count_from_0(folder, convert):
    """The author's shards count from 1, and test files hold `train/` keys, where the convention is his."""
    settings = ("--set", "splits={fractions: {train: 0.5, test: 0.5}}", "--set", "shards.count=2")
    marker, found = convert("class_folders.yaml", folder, *settings)
    assert len({frozenset(each) for part in found.values() for each in part}) == 1
    assert [shard["name"] for split in marker["splits"].values() for shard in split["shards"]] == [
        f"{split}-{index:05}-of-00002.tfrecord" for split in ("train", "test") for index in range(2)
    ]
