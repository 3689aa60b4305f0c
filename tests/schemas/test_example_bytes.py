"""Large images get into records without protobuf, in the bytes that protobuf writes."""

import random

import pytest

from recordmill.schemas.example_bytes import insert_images
from recordmill.schemas.features import MESSAGE_BYTES, Example, ExampleEncoder, Feature

FEATURES = (
    Feature("image/encoded", "bytes", "encoded", "a value"),
    Feature("image/base64", "bytes", "pixels_base64", "a value"),
    Feature("image/height", "int64", "height", "a value"),
    Feature("image/class/text", "bytes", "label_text", "a value"),
    Feature("zoë", "float", "score", "a value", many=True),
)


@pytest.mark.parametrize("size", [0, 1, 119, 127, 128, 16_000, 16_384, 2_097_152, 3_000_000])
def test_the_bytes_are_those_of_protobuf(size):
    image = random.Random(size).randbytes(size)
    message = Example()
    for key, value in (("a", b"x"), ("image/encoded", image), ("z" * 200, b"y" * 300)):
        message.features.feature[key].bytes_list.value.append(value)
    whole = message.SerializeToString(deterministic=True)
    message.features.feature["image/encoded"].bytes_list.value[0] = b""
    rest = message.SerializeToString(deterministic=True)
    assert insert_images(rest, {"image/encoded": image}) == whole
    assert insert_images(rest, {}) == rest


@pytest.mark.parametrize("size", [MESSAGE_BYTES, MESSAGE_BYTES + 1, 2 * MESSAGE_BYTES])
@pytest.mark.parametrize("label", [None, b"cat"])
def test_an_encoder_writes_large_images_like_small_ones(size, label):
    image = random.Random(size).randbytes(size)
    record = {"encoded": image, "pixels_base64": image[::-1], "height": 3, "label_text": label}
    record["score"] = [0.5, 2.0]
    encoder = ExampleEncoder(FEATURES)
    whole, rest = encoder.encode_with_rest(record)
    assert whole == ExampleEncoder(FEATURES).encode(record)
    assert rest == ExampleEncoder(FEATURES).encode({**record, "encoded": b"", "pixels_base64": b""})
