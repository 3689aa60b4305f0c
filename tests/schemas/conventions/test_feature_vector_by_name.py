import pytest

from recordmill.schemas.conventions import load_convention

CONVENTION = load_convention("feature_vector_by_name")


def test_the_authors_reader_finds_examples_by_name(read_as_peer):
    tf = pytest.importorskip("tensorflow")
    description = {
        "sha256": tf.io.FixedLenFeature([], tf.string),
        "feature": tf.io.FixedLenFeature([1], tf.float32),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }
    found = read_as_peer("feature_vector_by_name", description, 3, feature=[0.5])
    assert found == {"sha256": "tülip 1.jpg".encode(), "feature": [0.5], "label": 3}


def test_files_are_named_as_in_the_script_after_the_split():
    assert CONVENTION.shard_name == "{split}_shard_{index}"
