import pytest

from recordmill.schemas.conventions import load_convention

CONVENTION = load_convention("tfds")
BOXES = {"bbox": [0.5, 0.25, 1.0, 0.75], "box_labels": [2]}


def test_a_reader_of_its_features_gets_every_value(read_as_peer, jpeg):
    """What tensorflow_datasets' example parser asks for: an Image, a ClassLabel, a Text and a
    Sequence of boxes."""
    tf = pytest.importorskip("tensorflow")
    description = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
        "image/filename": tf.io.FixedLenFeature([], tf.string),
        "objects/bbox": tf.io.FixedLenSequenceFeature([4], tf.float32, allow_missing=True),
        "objects/label": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
    }
    assert read_as_peer("tfds", description, 3, **BOXES) == {
        "image": jpeg,
        "label": 3,
        "image/filename": "tülip 1.jpg".encode(),
        "objects/bbox": [[0.5, 0.25, 1.0, 0.75]],
        "objects/label": [2],
    }


def test_files_are_named_as_there():
    name = CONVENTION.shard_name.format(name="flowers", split="train", index=0, count=5)
    assert name == "flowers-train.tfrecord-00000-of-00005"
    assert CONVENTION.label_offset == 0
