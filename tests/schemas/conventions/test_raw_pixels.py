import pytest

from recordmill.schemas.conventions import load_convention

CONVENTION = load_convention("raw_pixels")


def test_the_seeds_reader_gets_every_value(read_as_peer, pixels):
    tf = pytest.importorskip("tensorflow")
    description = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }
    values = read_as_peer("raw_pixels", description, 3)
    assert values == {"image": pixels, "label": 3}
    shown = tf.reshape(tf.io.decode_raw(values["image"], tf.uint8), [30, 40, 3])
    assert shown.numpy().tobytes() == pixels


def test_pixels_are_stored_and_files_are_named_as_usual():
    assert CONVENTION.stores == "raw"
    assert (
        CONVENTION.shard_name.format(split="train", index=0, count=5)
        == "train-00000-of-00005.tfrecord"
    )
    assert (CONVENTION.label_offset, CONVENTION.label_lines) == (0, "id:name")
