import numpy as np
import pytest

from recordmill.imaging.masks.mask_file import encode_values
from recordmill.schemas.conventions import load_convention

CONVENTION = load_convention("deeplab")
MASK = encode_values(np.full((30, 40), 7, np.uint8))


def test_the_reader_of_deeplab_gets_every_value(read_as_peer, jpeg):
    """`data_generator.py` has this description, and DeepLab2 also needs the channels."""
    tf = pytest.importorskip("tensorflow")
    description = {
        "image/encoded": tf.io.FixedLenFeature((), tf.string, default_value=""),
        "image/filename": tf.io.FixedLenFeature((), tf.string, default_value=""),
        "image/format": tf.io.FixedLenFeature((), tf.string, default_value="jpeg"),
        "image/height": tf.io.FixedLenFeature((), tf.int64, default_value=0),
        "image/width": tf.io.FixedLenFeature((), tf.int64, default_value=0),
        "image/channels": tf.io.FixedLenFeature((), tf.int64),
        "image/segmentation/class/encoded": tf.io.FixedLenFeature((), tf.string, default_value=""),
        "image/segmentation/class/format": tf.io.FixedLenFeature(
            (), tf.string, default_value="png"
        ),
    }
    more = {"segmentation": MASK, "segmentation_format": b"png"}
    assert read_as_peer("deeplab", description, None, **more) == {
        "image/encoded": jpeg,
        "image/filename": "tülip 1.jpg".encode(),
        "image/format": b"jpeg",
        "image/height": 30,
        "image/width": 40,
        "image/channels": 3,
        "image/segmentation/class/encoded": MASK,
        "image/segmentation/class/format": b"png",
    }
    decoded = tf.io.decode_image(MASK, channels=1).numpy()
    assert decoded.tolist() == np.full((30, 40, 1), 7).tolist()


def test_files_are_named_as_there():
    name = CONVENTION.shard_name.format(name="voc", split="train", index=0, count=5)
    assert name == "train-00000-of-00005.tfrecord"
