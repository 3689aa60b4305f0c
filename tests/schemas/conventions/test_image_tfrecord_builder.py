"""Against what image-tfrecord-builder writes: two texts, under the same keys in training and test
files."""

import pytest

from recordmill.schemas.conventions import load_convention

CONVENTION = load_convention("image_tfrecord_builder")


def test_the_builders_reader_gets_every_value(read_as_peer, jpeg):
    tf = pytest.importorskip("tensorflow")
    description = {
        "train/image": tf.io.FixedLenFeature([], tf.string),
        "train/label": tf.io.FixedLenFeature([], tf.string),
    }
    assert read_as_peer("image_tfrecord_builder", description, 3) == {
        "train/image": jpeg,
        "train/label": "tülip".encode(),
    }


def test_keys_and_kinds_are_the_builders():
    assert {
        feature.key: (feature.kind, feature.field, feature.many)
        for feature in CONVENTION.example_features
    } == {
        "train/label": ("bytes", "label_text", False),
        "train/image": ("bytes", "encoded", False),
    }


def test_shards_are_counted_from_one_and_train_is_called_training():
    names = [
        CONVENTION.shard_name.format(
            name="flowers",
            split=CONVENTION.split_words.get(split, split),
            index=0,
            number=1,
            count=2,
        )
        for split in ("train", "test")
    ]
    assert names == ["flowers_training_01of02.tfrecord", "flowers_test_01of02.tfrecord"]
