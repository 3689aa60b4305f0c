"""The fourth system that Recordmill replaces: a script that takes labels from file names."""

import io
import json

import pytest
from PIL import Image

from recordmill.reading.dataset import open_dataset

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

ONE_FILE = (
    "--set",
    "splits={fractions: {train: 1}}",
    "--set",
    'shards={count: 1, name: "{split}.record"}',
)


@pytest.fixture
def images(tmp_path, picture):
    """The author's names, formats behind wrong endings, and names that match nothing."""
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(12):
        (folder / f"img_{number:05}_{number % 3}.jpg").write_bytes(picture(number))
    stream = io.BytesIO()
    Image.new("RGB", (20, 10), (200, 10, 10)).save(stream, "PNG")
    (folder / "img_00012_1.jpg").write_bytes(stream.getvalue())
    for name in ("readme_.jpg", "noLabel.jpg", "img_x.jpg"):
        (folder / name).write_bytes(picture(name))
    return folder


def test_seed_4_integers_in_names_and_one_record_file(images, convert):
    marker, found = convert("filename_labels.yaml", images, *ONE_FILE)
    assert [shard["name"] for shard in marker["splits"]["train"]["shards"]] == ["train.record"]
    assert {
        (each["image/filename"][0], each["image/class/label"][0]) for each in found["train"]
    } == {
        (f"img_{number:05}_{label}.jpg".encode(), label)
        for number, label in enumerate([0, 1, 2] * 4 + [1])
    }


def test_seed_4_a_name_that_does_not_match_is_rejected_not_fatal(images, convert, tmp_path):
    marker, _ = convert("filename_labels.yaml", images, *ONE_FILE)
    assert marker["ledger"]["rejected"] == {"name_mismatch": 3}
    lines = (
        (tmp_path / "dataset-of-filename_labels.yaml" / "rejected.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    assert {json.loads(line)["key"] for line in lines} == {
        "readme_.jpg",
        "noLabel.jpg",
        "img_x.jpg",
    }


def test_seed_4_the_format_is_sniffed(images, convert):
    _, found = convert("filename_labels.yaml", images, *ONE_FILE, "--set", "images.reencode=never")
    formats = {each["image/filename"][0]: each["image/format"][0] for each in found["train"]}
    assert formats.pop(b"img_00012_1.jpg") == b"png"
    assert set(formats.values()) == {b"jpg"}


def test_seed_4_named_groups_become_text_labels_group_and_features(tmp_path, picture, convert):
    folder = tmp_path / "images"
    folder.mkdir()
    names = [
        f"n{synset:03}_{label}_p{person}.JPEG"
        for synset, label in enumerate(("hen", "tench"))
        for person in "abcdef"
    ]
    for name in names:
        (folder / name).write_bytes(picture(name))
    source = (
        r"source={kind: filename_labels, pattern: "
        r"'(?P<synset>n[0-9]+)_(?P<label>.+)_p(?P<group>.)\.JPEG', "
        "features_from: {image/class/synset: synset}}"
    )
    more = (
        "--set",
        source,
        "--set",
        "labels.ids=names",
        "--set",
        "splits={fractions: {train: 0.5, test: 0.5}}",
    )
    marker, found = convert("filename_labels.yaml", folder, *more)
    assert marker["labels"] == {"hen": 0, "tench": 1}
    examples = [(split, each) for split, part in found.items() for each in part]
    assert {
        (each["image/filename"][0], each["image/class/text"][0], each["image/class/synset"][0])
        for _, each in examples
    } == {(name.encode(), name.split("_")[1].encode(), name[:4].encode()) for name in names}
    splits_of = {
        person: {
            split
            for split, each in examples
            if f"_p{person}.".encode() in each["image/filename"][0]
        }
        for person in "abcdef"
    }
    assert {len(splits) for splits in splits_of.values()} == {1}
    assert set().union(*splits_of.values()) == {"train", "test"}


def test_seed_4_the_reader_knows_samples_classes_and_names(images, convert, tmp_path):
    convert("filename_labels.yaml", images, *ONE_FILE)
    dataset = open_dataset(str(tmp_path / "dataset-of-filename_labels.yaml"))
    assert [(shard.split, shard.records) for shard in dataset.shards] == [("train", 13)]
    assert dataset.labels == {"0": 0, "1": 1, "2": 2}


def test_seed_4_the_authors_reader_with_its_defaults(images, convert, tmp_path):
    tf = pytest.importorskip("tensorflow")
    marker, found = convert("filename_labels.yaml", images, *ONE_FILE)
    description = {
        "image/encoded": tf.io.FixedLenFeature((), tf.string, default_value=""),
        "image/format": tf.io.FixedLenFeature((), tf.string, default_value="jpeg"),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64, default_value=0),
        "image/height": tf.io.FixedLenFeature((), tf.int64, default_value=0),
        "image/width": tf.io.FixedLenFeature((), tf.int64, default_value=0),
    }
    read = []
    for record in tf.data.TFRecordDataset(
        str(tmp_path / "dataset-of-filename_labels.yaml" / "train.record")
    ):
        example = tf.io.parse_single_example(record, description)
        assert tf.io.decode_image(example["image/encoded"]).shape == (10, 20, 3)
        read.append({key: [value.numpy()] for key, value in example.items()})
    assert read == [{key: each[key] for key in description} for each in found["train"]]
    assert all(marker["features"][key]["meaning"] for key in description)
