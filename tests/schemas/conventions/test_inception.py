import pytest

from recordmill.schemas.conventions import load_convention

CONVENTION = load_convention("inception")


def test_inceptions_reader_gets_every_value(read_as_peer, jpeg):
    """models/research/inception/inception/image_processing.py and what build_image_data.py writes
    beside that."""
    tf = pytest.importorskip("tensorflow")
    description = {
        "image/encoded": tf.io.FixedLenFeature([], dtype=tf.string, default_value=""),
        "image/class/label": tf.io.FixedLenFeature([1], dtype=tf.int64, default_value=-1),
        "image/class/text": tf.io.FixedLenFeature([], dtype=tf.string, default_value=""),
        "image/height": tf.io.FixedLenFeature([], tf.int64),
        "image/width": tf.io.FixedLenFeature([], tf.int64),
        "image/colorspace": tf.io.FixedLenFeature([], tf.string),
        "image/channels": tf.io.FixedLenFeature([], tf.int64),
        "image/format": tf.io.FixedLenFeature([], tf.string),
        "image/filename": tf.io.FixedLenFeature([], tf.string),
    }
    assert read_as_peer("inception", description, 1) == {
        "image/encoded": jpeg,
        "image/class/label": [1],
        "image/class/text": "tülip".encode(),
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
