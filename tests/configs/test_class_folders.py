"""The fifth system that Recordmill replaces: storage-efficient TFRecords from class folders."""

import io
import json
import random
import re

import pytest
from PIL import Image

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

BYTES_A_RECORD = 400


@pytest.fixture
def images():
    """JPEGs that need no change, baseline and progressive, by path."""

    def photograph(path, progressive):
        image = Image.frombytes("RGB", (24, 18), random.Random(path).randbytes(24 * 18 * 3)).resize(
            (400, 300)
        )
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


def test_seed_5_a_fitting_jpeg_is_stored_unchanged(folder, images, convert):
    _, found = convert("class_folders.yaml", folder)
    assert sorted(
        (each["image/class/text"][0].decode(), each["image/encoded"][0])
        for part in found.values()
        for each in part
    ) == sorted((path.partition("/")[0], content) for path, content in images.items())
    assert sum(b"\xff\xc2" in content for content in images.values()) == 4  # progressive ones


def test_seed_5_output_is_at_most_the_input_and_400_bytes_a_record(folder, images, convert):
    marker, _ = convert("class_folders.yaml", folder)
    stored = sum(shard["bytes"] for split in marker["splits"].values() for shard in split["shards"])
    assert marker["input_bytes"] == sum(map(len, images.values()))
    assert marker["output_bytes"] == stored <= marker["input_bytes"] + BYTES_A_RECORD * len(images)


def test_seed_5_the_report_states_both_sizes_and_their_ratio(folder, convert, capsys, tmp_path):
    marker, _ = convert("class_folders.yaml", folder)
    share = marker["output_bytes"] / marker["input_bytes"]
    match = re.search(
        r"bytes +(\S+) KiB of TFRecords from (\S+) KiB of images \((\d+)%\)",
        capsys.readouterr().err,
    )
    sizes = [f"{marker[key] / 1024:.1f}" for key in ("output_bytes", "input_bytes")]
    assert match.groups() == (*sizes, f"{100 * share:.0f}")
    page = (tmp_path / "dataset-of-class_folders.yaml" / "report.html").read_text(encoding="utf-8")
    assert f"{marker['input_bytes'] / 1024:.1f} KiB" in page
    assert f"{marker['output_bytes'] / 1024:.1f} KiB" in page
    assert f"of TFRecords: {share:.2f} times the size." in page


def test_seed_5_both_splits_have_the_same_keys_and_shards_count_from_0(folder, convert):
    """The author's shards count from 1, and test files hold `train/` keys, where the convention is
    his."""
    settings = ("--set", "splits={fractions: {train: 0.5, test: 0.5}}", "--set", "shards.count=2")
    marker, found = convert("class_folders.yaml", folder, *settings)
    assert len({frozenset(each) for part in found.values() for each in part}) == 1
    assert [shard["name"] for split in marker["splits"].values() for shard in split["shards"]] == [
        f"{split}-{index:05}-of-00002.tfrecord" for split in ("train", "test") for index in range(2)
    ]


def test_seed_5_real_photographs_take_a_hundredth_more_than_their_files(
    tmp_path, shared_data, convert
):
    for path in sorted((shared_data / "imagenet-flat").glob("*.JPEG"))[:60]:
        label = path.stem.partition("_")[2]
        (tmp_path / "photographs" / label).mkdir(parents=True)
        (tmp_path / "photographs" / label / path.name).symlink_to(path)
    marker, _ = convert(
        "class_folders.yaml", tmp_path / "photographs", "--set", "images.reencode=never"
    )
    assert marker["ledger"]["written"] == 60
    assert 1 < marker["output_bytes"] / marker["input_bytes"] < 1.01


def test_seed_5_the_authors_reader_decodes_fixed_length_features(tmp_path, folder, images, convert):
    tf = pytest.importorskip("tensorflow")
    marker, _ = convert("class_folders.yaml", folder, "--set", "convention=image_tfrecord_builder")
    description = {
        "train/image": tf.io.FixedLenFeature([], tf.string),
        "train/label": tf.io.FixedLenFeature([], tf.string),
    }
    names = [shard["name"] for split in marker["splits"].values() for shard in split["shards"]]
    prefix = "dataset-of-class_folders.yaml"
    assert names == [f"{prefix}_training_01of01.tfrecord", f"{prefix}_test_01of01.tfrecord"]
    found = set()
    for record in tf.data.TFRecordDataset([str(tmp_path / prefix / name) for name in names]):
        example = tf.io.parse_single_example(record, description)
        assert tf.io.decode_jpeg(example["train/image"]).shape == (300, 400, 3)
        found.add((example["train/label"].numpy().decode(), example["train/image"].numpy()))
    assert found == {(path.partition("/")[0], content) for path, content in images.items()}


@pytest.mark.parametrize("seed", [0, 1])
def test_seed_5_a_seeded_shuffle_a_test_share_and_n_shards_for_each_split(folder, convert, seed):
    settings = (
        "--set",
        "splits={fractions: {train: 0.7, test: 0.3}, stratify: true}",
        "--set",
        "shards.count=3",
    )
    marker, found = convert("class_folders.yaml", folder, *settings, "--set", f"seed={seed}")
    assert {split: len(part) for split, part in found.items()} == {"train": 14, "test": 6}
    assert {split: len(said["shards"]) for split, said in marker["splits"].items()} == {
        "train": 3,
        "test": 3,
    }
    order = [(each["image/class/text"][0], each["image/filename"][0]) for each in found["train"]]
    assert order != sorted(order), "classes are mixed"


def test_seed_5_red_and_blue_stay_where_they_are(tmp_path, convert):
    for label, color in (("blue", (10, 20, 240)), ("red", (240, 20, 10))):
        (tmp_path / "colors" / label).mkdir(parents=True)
        for kind in ("png", "jpg", "bmp"):
            Image.new("RGB", (16, 16), color).save(tmp_path / "colors" / label / f"1.{kind}")
    _, found = convert(
        "class_folders.yaml", tmp_path / "colors", "--set", "splits.fractions={train: 1}"
    )
    assert len(found["train"]) == 6
    for each in found["train"]:
        red, _, blue = Image.open(io.BytesIO(each["image/encoded"][0])).getpixel((8, 8))
        assert (red > blue) == (each["image/class/text"] == [b"red"])


def test_seed_5_an_image_that_cannot_be_read_is_counted_and_named(tmp_path, folder, convert):
    (folder / "cat" / "cut.jpg").write_bytes((folder / "cat" / "0.jpg").read_bytes()[:500])
    marker, found = convert("class_folders.yaml", folder)
    assert (sum(map(len, found.values())), marker["ledger"]["rejected"]) == (20, {"truncated": 1})
    (line,) = (
        (tmp_path / "dataset-of-class_folders.yaml" / "rejected.jsonl").read_text().splitlines()
    )
    assert (json.loads(line)["key"], json.loads(line)["reason"]) == ("cat/cut.jpg", "truncated")
