"""Against TensorFlow's tutorial "TFRecord and tf.train.Example"."""

import pytest

from recordmill.schemas.conventions import load_convention

CONVENTION = load_convention("tutorial")


def test_the_tutorials_reader_gets_every_value(read_as_peer, jpeg):
    """`image_feature_description`."""
    tf = pytest.importorskip("tensorflow")
    description = {
        "height": tf.io.FixedLenFeature([], tf.int64),
        "width": tf.io.FixedLenFeature([], tf.int64),
        "depth": tf.io.FixedLenFeature([], tf.int64),
        "label": tf.io.FixedLenFeature([], tf.int64),
        "image_raw": tf.io.FixedLenFeature([], tf.string),
    }
    expected = {"height": 30, "width": 40, "depth": 3, "label": 3, "image_raw": jpeg}
    assert read_as_peer("tutorial", description, 3) == expected


def test_keys_and_kinds_are_the_tutorials():
    assert [
        (feature.key, feature.kind, feature.many) for feature in CONVENTION.example_features
    ] == [
        ("height", "int64", False),
        ("width", "int64", False),
        ("depth", "int64", False),
        ("label", "int64", False),
        ("image_raw", "bytes", False),
    ]


def test_the_raw_image_is_the_encoded_file_and_depth_its_channels():
    fields = {feature.key: feature.field for feature in CONVENTION.example_features}
    assert (fields["image_raw"], fields["depth"]) == ("encoded", "channels")
