import pytest

from recordmill.schemas.conventions import load_convention

CONVENTION = load_convention("feature_vector")


def test_the_authors_reader_gets_every_value(read_as_peer):
    tf = pytest.importorskip("tensorflow")
    description = {
        "sha256": tf.io.FixedLenFeature([], tf.string),
        "feature": tf.io.FixedLenFeature([3], tf.float32),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }
    computed = {"file_sha256": b"ab" * 32, "feature": [0.5, -1.0, 2.0]}
    assert read_as_peer("feature_vector", description, 3, **computed) == {
        "sha256": b"ab" * 32,
        "feature": [0.5, -1.0, 2.0],
        "label": 3,
    }


def test_files_are_named_as_in_the_script_after_the_split():
    assert (
        CONVENTION.shard_name.format(name="x", split="train", index=7, number=8, count=9)
        == "train_shard_7"
    )
