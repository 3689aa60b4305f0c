import pytest

from recordmill.schemas.conventions import load_convention

CONVENTION = load_convention("slim")


def test_slims_reader_gets_every_value(read_as_peer, jpeg):
    """models/research/slim/datasets/flowers.py: what its TFExampleDecoder is given."""
    tf = pytest.importorskip("tensorflow")
    description = {
        "image/encoded": tf.io.FixedLenFeature((), tf.string, default_value=""),
        "image/format": tf.io.FixedLenFeature((), tf.string, default_value="png"),
        "image/class/label": tf.io.FixedLenFeature(
            [], tf.int64, default_value=tf.zeros([], dtype=tf.int64)
        ),
        "image/height": tf.io.FixedLenFeature((), tf.int64),
        "image/width": tf.io.FixedLenFeature((), tf.int64),
    }
    assert read_as_peer("slim", description, 3) == {
        "image/encoded": jpeg,
        "image/format": b"jpg",
        "image/class/label": 3,
        "image/height": 30,
        "image/width": 40,
    }


def test_files_and_labels_are_named_and_numbered_as_there():
    assert (
        CONVENTION.shard_name.format(name="flowers", split="train", index=0, count=5)
        == "flowers_train_00000-of-00005.tfrecord"
    )
    assert (CONVENTION.label_offset, CONVENTION.label_lines, CONVENTION.label_map_file) == (
        0,
        "id:name",
        "",
    )
