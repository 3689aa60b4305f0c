import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from recordmill.reading.example_walk import DamagedExampleError, ExampleWalk, feature_values
from recordmill.schemas.example_proto import Example

VALUES = st.one_of(
    st.tuples(st.just("bytes"), st.lists(st.binary(max_size=300), max_size=4)),
    st.tuples(st.just("int64"), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12)),
    st.tuples(st.just("float"), st.lists(st.floats(width=32, allow_nan=False), max_size=20)),
    st.just(("empty", [])),
)
FEATURES = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=150), VALUES, max_size=6)


def encode(features):
    message = Example()
    for key, (kind, values) in features.items():
        entry = message.features.feature[key]
        if kind != "empty":
            getattr(entry, f"{kind}_list").SetInParent()
            getattr(entry, f"{kind}_list").value.extend(values)
    return memoryview(message.SerializeToString(deterministic=True))


def profile_of(features):
    return sorted((key, None if kind == "empty" else kind, len(values)) for key, (kind, values) in features.items())


@given(st.lists(FEATURES, min_size=1, max_size=3))
def test_the_walk_sees_what_was_written(records):
    walk = ExampleWalk()
    for features in [*records, *records]:  # the second time with all heads known
        data = encode(features)
        content = walk(data)
        assert sorted(content.profile, key=lambda item: item[0]) == profile_of(features)
        for key, (_, values) in features.items():
            assert list(feature_values(data, content, key)) == values
        assert list(feature_values(data, content, "no such key")) == []


def protobufs_verdict(data):
    try:
        return {(key, feature.WhichOneof("kind")) for key, feature in Example.FromString(data).features.feature.items()}
    except DecodeError:
        return None


@given(FEATURES, st.data())
def test_the_verdict_on_damaged_records_is_protobufs(features, draw):
    data = bytearray(encode(features))
    walk = ExampleWalk()
    walk(memoryview(bytes(data)))
    for _ in range(draw.draw(st.integers(1, 3))):
        if data:
            data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    del data[draw.draw(st.integers(0, len(data))) :]
    expected = protobufs_verdict(bytes(data))
    try:
        content = walk(memoryview(bytes(data)))
    except DamagedExampleError:
        assert expected is None
    else:
        assert {(key, kind and f"{kind}_list") for key, kind, _ in content.profile} == expected


@given(st.binary(max_size=60))
def test_anything_is_read_or_refused_as_protobuf_does(data):
    try:
        ExampleWalk()(memoryview(data))
    except DamagedExampleError:
        assert protobufs_verdict(data) is None
    else:
        assert protobufs_verdict(data) is not None


def test_of_a_key_that_stands_twice_the_last_counts():
    features = Example().features
    first, second = (type(features)() for _ in range(2))
    first.feature["a"].int64_list.value.append(1)
    second.feature["a"].bytes_list.value.append(b"x")
    body = first.SerializeToString() + second.SerializeToString()
    data = memoryview(b"\x0a" + bytes([len(body)]) + body)
    content = ExampleWalk()(data)
    assert content.profile == (("a", "bytes", 1),)
    assert list(feature_values(data, content, "a")) == [b"x"]


def test_unknown_fields_are_no_damage(example):
    data = memoryview(example(a=1) + b"\x78\x01")
    assert ExampleWalk()(data).profile == (("a", "int64", 1),)


def test_a_record_that_is_none_says_so():
    with pytest.raises(DamagedExampleError, match=r"the data are no tf\.train\.Example: they cannot be parsed"):
        ExampleWalk()(memoryview(b"\xff\xff\xff"))
