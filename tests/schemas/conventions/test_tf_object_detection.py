import pytest

from recordmill.schemas.conventions import load_convention

CONVENTION = load_convention("tf_object_detection")
BOXES = {
    "xmin": [0.25],
    "xmax": [0.75],
    "ymin": [0.5],
    "ymax": [1.0],
    "box_labels": [2],
    "box_label_texts": ["tülip".encode()],
    "is_crowd": [0],
    "area": [300.0],
}


def test_the_apis_decoder_gets_every_value(read_as_peer, jpeg, sha256):
    """models/research/object_detection/data_decoders/tf_example_decoder.py: the keys that it shares
    with us."""
    tf = pytest.importorskip("tensorflow")
    description = {
        "image/encoded": tf.io.FixedLenFeature((), tf.string, default_value=""),
        "image/format": tf.io.FixedLenFeature((), tf.string, default_value="jpeg"),
        "image/filename": tf.io.FixedLenFeature((), tf.string, default_value=""),
        "image/key/sha256": tf.io.FixedLenFeature((), tf.string, default_value=""),
        "image/source_id": tf.io.FixedLenFeature((), tf.string, default_value=""),
        "image/height": tf.io.FixedLenFeature((), tf.int64, default_value=1),
        "image/width": tf.io.FixedLenFeature((), tf.int64, default_value=1),
        "image/object/bbox/xmin": tf.io.VarLenFeature(tf.float32),
        "image/object/bbox/xmax": tf.io.VarLenFeature(tf.float32),
        "image/object/bbox/ymin": tf.io.VarLenFeature(tf.float32),
        "image/object/bbox/ymax": tf.io.VarLenFeature(tf.float32),
        "image/object/class/label": tf.io.VarLenFeature(tf.int64),
        "image/object/class/text": tf.io.VarLenFeature(tf.string),
        "image/object/area": tf.io.VarLenFeature(tf.float32),
        "image/object/is_crowd": tf.io.VarLenFeature(tf.int64),
    }
    assert read_as_peer("tf_object_detection", description, 3, **BOXES) == {
        "image/encoded": jpeg,
        "image/format": b"jpeg",
        "image/filename": "tülip 1.jpg".encode(),
        "image/key/sha256": sha256,
        "image/source_id": "tülip 1.jpg".encode(),
        "image/height": 30,
        "image/width": 40,
        "image/object/bbox/xmin": [0.25],
        "image/object/bbox/xmax": [0.75],
        "image/object/bbox/ymin": [0.5],
        "image/object/bbox/ymax": [1.0],
        "image/object/class/label": [2],
        "image/object/class/text": ["tülip".encode()],
        "image/object/area": [300.0],
        "image/object/is_crowd": [0],
    }


def test_class_ids_count_from_one_and_come_with_a_label_map():
    assert (CONVENTION.label_offset, CONVENTION.label_map_file) == (1, "label_map.pbtxt")
