"""Against tfrecorder/beam_image.py and types.py of google/tensorflow-recorder."""

import base64

import pytest

from recordmill.schemas.conventions import load_convention

CONVENTION = load_convention("tfrecorder")


def test_the_peers_reader_gets_every_value(read_as_peer, pixels):
    tf = pytest.importorskip("tensorflow")
    text, number = tf.io.FixedLenFeature([], tf.string), tf.io.FixedLenFeature([], tf.int64)
    description = {
        "image": text,
        "image_name": text,
        "image_height": number,
        "image_width": number,
        "image_channels": number,
        "split": text,
        "label": number,
    }
    values = read_as_peer("tfrecorder", description, 3)
    assert base64.b64decode(values.pop("image"), altchars=b"-_") == pixels
    assert values == {
        "image_name": "tülip 1.jpg".encode(),
        "image_height": 30,
        "image_width": 40,
        "image_channels": 3,
        "split": b"TRAIN",
        "label": 3,
    }


def test_files_are_named_as_there():
    assert (
        CONVENTION.shard_name.format(split="train", index=0, count=1)
        == "train-00000-of-00001.tfrecord"
    )
    assert (CONVENTION.stores, CONVENTION.compression) == ("raw", "gzip")
