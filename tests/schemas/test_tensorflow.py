"""All comparisons with TensorFlow itself: importing it takes seconds, so it stands in one
module."""

import numpy as np
import pytest

from recordmill.schemas.conventions import load_convention
from recordmill.schemas.features import Example, Feature, encode_example, tensorflow_features

RECORD = {
    "encoded": b"\xff\xd8\xff",
    "sha256": b"ab" * 32,
    "format": b"jpg",
    "height": 4,
    "width": 6,
    "channels": 3,
    "label": 2,
    "label_text": "Öl".encode(),
    "filename": b"a.jpg",
}


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def random_features(rng):
    """Keys with values of one of the three kinds, some empty, some of no kind."""
    for index in rng.permutation(rng.integers(0, 9)):
        count = int(rng.integers(0, 4))
        values = {
            "bytes": [rng.bytes(int(rng.integers(0, 200))) for _ in range(count)],
            "float": [float(value) for value in rng.normal(0, 1e9, count).astype(np.float32)],
            "int64": [int(value) for value in rng.integers(-(2**63), 2**63 - 1, count)],
        }
        kind = rng.choice(["bytes", "float", "int64", "none"])
        yield f"key/{'ä' * int(rng.integers(0, 3))}{index}", kind, values.get(kind)


def fill(example, features):
    for key, kind, values in features:
        entry = example.features.feature[key]
        if kind != "none":
            getattr(entry, f"{kind}_list").SetInParent()
            getattr(entry, f"{kind}_list").value.extend(values)
    return example


def test_bytes_equal_tensorflows_for_2000_random_examples(tf):
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(2000):
        features = list(random_features(rng))
        ours = fill(Example(), features).SerializeToString(deterministic=True)
        assert ours == fill(tf.train.Example(), features).SerializeToString(deterministic=True)
        seen.add(ours)
    assert len(seen) > 1700


def test_both_message_sets_live_in_one_process_and_read_each_other(tf):
    assert Example is not tf.train.Example
    theirs = fill(tf.train.Example(), [("a", "bytes", [b"x"])])
    ours = Example.FromString(theirs.SerializeToString())
    assert list(ours.features.feature["a"].bytes_list.value) == [b"x"]
    assert tf.train.Example.FromString(ours.SerializeToString()) == theirs


@pytest.mark.parametrize("name", ["default", "image_tfrecord_builder", "tutorial"])
def test_tensorflow_parses_a_conventions_examples_alone_and_in_batches(tf, name):
    features = load_convention(name).example_features
    description = tensorflow_features(features)
    record = encode_example(features, RECORD)
    single = tf.io.parse_single_example(record, description)
    assert {key: value.numpy() for key, value in single.items()} == {
        f.key: RECORD[f.field] for f in features
    }
    batch = tf.io.parse_example(tf.constant([record] * 3), description)
    for feature in features:
        assert batch[feature.key].shape == (3,)
        assert batch[feature.key].numpy().tolist() == [RECORD[feature.field]] * 3


def test_tensorflow_takes_the_same_defaults(tf):
    features = load_convention("default").example_features
    parsed = tf.io.parse_single_example(
        encode_example(features, {"encoded": b"x"}), tensorflow_features(features)
    )
    assert {key: value.numpy() for key, value in parsed.items()} == {
        "image/encoded": b"x",
        "image/format": b"jpg",
        "image/height": 0,
        "image/width": 0,
        "image/class/label": -1,
        "image/class/text": b"",
        "image/filename": b"",
        "image/key/sha256": b"",
    }


def test_many_values_are_parsed_as_a_sparse_tensor(tf):
    features = [Feature("boxes", "float", "boxes", "", many=True)]
    record = encode_example(features, {"boxes": [0.5, 0.25]})
    parsed = tf.io.parse_single_example(record, tensorflow_features(features))
    assert tf.sparse.to_dense(parsed["boxes"]).numpy().tolist() == [0.5, 0.25]


def test_required_features_are_required_by_tensorflow_too(tf):
    features = load_convention("tutorial").example_features
    with pytest.raises(tf.errors.InvalidArgumentError, match="required"):
        tf.io.parse_single_example(
            encode_example(features, {"height": 1}), tensorflow_features(features)
        )


@pytest.mark.slow
def test_tensorflows_tensor_of_a_string_is_bytes(tf):
    features = [
        Feature("text", "bytes", "text", ""),
        Feature("texts", "bytes", "texts", "", many=True),
    ]
    tensor = tf.constant("Öl")
    assert type(tensor).__name__ == "EagerTensor"
    record = encode_example(features, {"text": tensor, "texts": [tensor, tf.constant(b"\xff\0")]})
    parsed = tf.io.parse_single_example(record, tensorflow_features(features))
    assert parsed["text"].numpy() == "Öl".encode()
    assert tf.sparse.to_dense(parsed["texts"]).numpy().tolist() == ["Öl".encode(), b"\xff\0"]
