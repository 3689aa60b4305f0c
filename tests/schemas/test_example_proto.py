"""Against golden bytes; the comparison with TensorFlow itself is in `test_tensorflow.py`."""

from recordmill.schemas.example_proto import Example

SCALARS = Example()
SCALARS.features.feature["b"].bytes_list.value.append(b"x")
SCALARS.features.feature["f"].float_list.value.append(1.0)
SCALARS.features.feature["i"].int64_list.value.extend([1, -1])


def test_the_wire_format_is_tensorflows():
    expected = (
        b"\x0a\x31"
        b"\x0a\x0a\x0a\x01b\x12\x05\x0a\x03\x0a\x01x"
        b"\x0a\x0d\x0a\x01f\x12\x08\x12\x06\x0a\x04\x00\x00\x80\x3f"
        b"\x0a\x14\x0a\x01i\x12\x0f\x1a\x0d\x0a\x0b\x01" + b"\xff" * 9 + b"\x01"
    )
    assert SCALARS.SerializeToString(deterministic=True) == expected


def test_bytes_parse_back():
    assert Example.FromString(SCALARS.SerializeToString()) == SCALARS


def test_a_feature_is_of_one_kind():
    feature = Example().features.feature["a"]
    assert feature.WhichOneof("kind") is None
    feature.bytes_list.value.append(b"x")
    feature.int64_list.value.append(1)
    assert feature.WhichOneof("kind") == "int64_list"
    assert not feature.bytes_list.value


def test_the_messages_are_called_as_tensorflows():
    assert Example.DESCRIPTOR.full_name == "tensorflow.Example"
    assert Example.DESCRIPTOR.fields_by_name["features"].message_type.full_name == "tensorflow.Features"
