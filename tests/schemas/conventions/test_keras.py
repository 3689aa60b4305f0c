import pytest

from recordmill.schemas.conventions import load_convention

CONVENTION = load_convention("keras")


def test_the_tutorials_reader_gets_every_value(read_as_peer, jpeg):
    tf = pytest.importorskip("tensorflow")
    description = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }
    assert read_as_peer("keras", description, 3) == {"image": jpeg, "label": 3}


def test_files_and_labels_are_named_and_numbered_as_there():
    assert (
        CONVENTION.shard_name.format(name="flowers", split="train", index=0, count=5)
        == "train-00000-of-00005.tfrecord"
    )
    assert (CONVENTION.label_offset, CONVENTION.label_lines, CONVENTION.label_map_file) == (
        0,
        "id:name",
        "",
    )
