import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from recordmill.reading.example import DamagedExampleError, ParsedExample
from recordmill.schemas.features import Example

VALUES = st.one_of(
    st.tuples(st.just("bytes"), st.lists(st.binary(max_size=300), max_size=4)),
    st.tuples(st.just("int64"), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12)),
    st.tuples(st.just("float"), st.lists(st.floats(width=32, allow_nan=False), max_size=20)),
    st.just(("empty", [])),
)
FEATURES = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=150), VALUES, max_size=6
)


def encode(features):
    message = Example()
    for key, (kind, values) in features.items():
        entry = message.features.feature[key]
        if kind != "empty":
            getattr(entry, f"{kind}_list").SetInParent()
            getattr(entry, f"{kind}_list").value.extend(values)
    return memoryview(message.SerializeToString(deterministic=True))


def profile_of(features):
    return sorted(
        (key, None if kind == "empty" else kind, len(values))
        for key, (kind, values) in features.items()
    )


@given(FEATURES)
def test_an_example_holds_what_was_written(features):
    parsed = ParsedExample(encode(features))
    assert list(parsed.profile) == profile_of(features)
    for key, (_, values) in features.items():
        assert list(parsed.values(key)) == values
    assert parsed.values("no such key") is None


@given(st.binary(max_size=60))
def test_anything_is_read_or_refused(data):
    try:
        Example.FromString(data)
    except DecodeError:
        with pytest.raises(DamagedExampleError):
            ParsedExample(data)
    else:
        assert ParsedExample(data).profile == ParsedExample(memoryview(data)).profile


def test_of_a_key_that_stands_twice_the_last_counts():
    features = Example().features
    first, second = (type(features)() for _ in range(2))
    first.feature["a"].int64_list.value.append(1)
    second.feature["a"].bytes_list.value.append(b"x")
    body = first.SerializeToString() + second.SerializeToString()
    data = memoryview(b"\x0a" + bytes([len(body)]) + body)
    assert ParsedExample(data).profile == (("a", "bytes", 1),)
    assert list(ParsedExample(data).values("a")) == [b"x"]


def test_unknown_fields_are_not_damage(example):
    data = memoryview(example(a=1) + b"\x78\x01")
    assert ParsedExample(data).profile == (("a", "int64", 1),)


def test_a_record_that_is_none_says_so():
    with pytest.raises(
        DamagedExampleError, match=r"the data cannot be parsed as a tf\.train\.Example"
    ):
        ParsedExample(b"\xff\xff\xff")
