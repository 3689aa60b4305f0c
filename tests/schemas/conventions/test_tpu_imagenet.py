import pytest

from recordmill.schemas.conventions import load_convention

CONVENTION = load_convention("tpu_imagenet")


def test_the_tpu_models_reader_gets_every_value(read_as_peer, jpeg):
    """tpu/tools/datasets/imagenet_to_gcs.py: `_convert_to_example`."""
    tf = pytest.importorskip("tensorflow")
    description = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
        "image/class/synset": tf.io.FixedLenFeature([], tf.string),
        "image/height": tf.io.FixedLenFeature([], tf.int64),
        "image/width": tf.io.FixedLenFeature([], tf.int64),
        "image/colorspace": tf.io.FixedLenFeature([], tf.string),
        "image/channels": tf.io.FixedLenFeature([], tf.int64),
        "image/format": tf.io.FixedLenFeature([], tf.string),
        "image/filename": tf.io.FixedLenFeature([], tf.string),
    }
    assert read_as_peer("tpu_imagenet", description, 1) == {
        "image/encoded": jpeg,
        "image/class/label": 1,
        "image/class/synset": "tülip".encode(),
        "image/height": 30,
        "image/width": 40,
        "image/colorspace": b"RGB",
        "image/channels": 3,
        "image/format": b"JPEG",
        "image/filename": "tülip 1.jpg".encode(),
    }


def test_files_and_labels_are_named_and_numbered_as_there():
    assert (
        CONVENTION.shard_name.format(name="flowers", split="train", index=0, count=5)
        == "train-00000-of-00005"
    )
    assert (CONVENTION.label_offset, CONVENTION.label_lines, CONVENTION.label_map_file) == (
        1,
        "name",
        "",
    )
