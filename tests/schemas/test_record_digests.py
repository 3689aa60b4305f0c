import hashlib

import pytest
from google.protobuf.message import DecodeError

from recordmill.schemas.conventions import load_convention
from recordmill.schemas.digests import digest_parts, digest_record, find_images, take_image
from recordmill.schemas.features import Example, ExampleEncoder, Feature

FIELDS = {
    "encoded": b"image",
    "pixels_base64": b"aW1hZ2U=",
    "height": 2,
    "width": 3,
    "key": b"image",
    "label": 4,
}
FEATURES = [
    Feature("a/key", "bytes", "key", ""),
    Feature("b/image", "bytes", "encoded", ""),
    Feature("c/pixels", "bytes", "pixels_base64", ""),
    Feature("d/height", "int64", "height", ""),
]
IMAGES = {"b/image": "encoded", "c/pixels": "pixels_base64"}


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def test_the_features_of_the_image_are_found():
    assert find_images((each.key, each.field) for each in reversed(FEATURES)) == IMAGES
    of = {
        name: load_convention(name).example_features
        for name in ("default", "tfrecorder", "feature_vector_by_name")
    }
    found = {
        name: find_images((each.key, each.field) for each in features)
        for name, features in of.items()
    }
    assert found == {
        "default": {"image/encoded": "encoded"},
        "tfrecorder": {"image": "pixels_base64"},
        "feature_vector_by_name": {},
    }


def test_the_encoder_gives_what_a_reader_takes_apart():
    encoder = ExampleEncoder(FEATURES)
    record, rest = encoder.encode_with_rest(FIELDS)
    assert record == encoder.encode(FIELDS)
    assert take_image(record, IMAGES) == (b"image", rest)
    bare = encoder.encode(FIELDS | {"encoded": b"", "pixels_base64": b""})
    assert rest == bare
    assert digest_record(record, IMAGES) == digest_parts(rest, sha256(b"image"))[0]
    assert digest_record(record, IMAGES) == sha256((sha256(bare) + sha256(b"image")).encode())
    assert encoder.encode_with_rest(FIELDS | {"height": None})[0] == encoder.encode(
        FIELDS | {"height": None}
    )


def test_a_record_without_an_image_is_digested_as_it_is():
    assert digest_record(b"anything", {}) == sha256(b"anything")


@pytest.mark.parametrize("change", [{"encoded": b"imagf"}, {"height": 3}, {"key": b"imagf"}])
def test_any_difference_gives_another_digest(change):
    encoder = ExampleEncoder(FEATURES)
    images = {"b/image": "encoded"}
    assert digest_record(encoder.encode(FIELDS | change), images) != digest_record(
        encoder.encode(FIELDS), images
    )


def test_a_record_that_is_not_as_described_has_no_digest():
    with pytest.raises(DecodeError):
        digest_record(b"\xff", IMAGES)
    with pytest.raises(ValueError, match="the feature b/image is empty"):
        digest_record(Example().SerializeToString(), IMAGES)
