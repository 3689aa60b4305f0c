import pytest

from recordmill.schemas.conventions import Convention, convention_names, load_convention
from recordmill.schemas.features import Feature, encode_example
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.tfrecord_input.example_fields import (
    class_of,
    find_convention,
    kind_of,
    own_features,
    parse_entries,
    read_fields,
    read_kept,
    text_in,
    text_of,
    values_of,
)

VALUES = {"bytes": b"x", "int64": 7, "float": 0.5}
ENCODED = [
    name
    for name in convention_names()
    if load_convention(name).stores == "jpeg"
    and any(feature.field == "encoded" for feature in load_convention(name).features)
]


def record_of(name, without=()):
    features = [feature for feature in load_convention(name).features if feature.key not in without]
    record = {each.field: [VALUES[each.kind]] if each.many else VALUES[each.kind] for each in features if each.field}
    return encode_example(features, record)


@pytest.mark.parametrize("name", ENCODED)
def test_each_conventions_records_are_known_by_their_keys(name):
    entries = parse_entries(record_of(name))
    assert find_convention(entries) is load_convention(name)
    expected = {
        each.field: [VALUES[each.kind]] if each.many else VALUES[each.kind]
        for each in load_convention(name).features
        if each.field
    }
    assert read_fields(entries, load_convention(name)) == expected


def test_further_keys_and_missing_ones_with_defaults_do_not_matter(make_example):
    slim = parse_entries(record_of("slim", without=("image/format", "image/width")))
    assert find_convention(slim) is load_convention("slim")
    more = make_example({"image": b"x", "label": 1, "more": 0.5})
    assert find_convention(parse_entries(more)) is load_convention("keras")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"a": b"x", "b": 1}, r"its keys are those of no known convention \(a, b\): set source\.convention"),
        ({"image": 1, "label": 1}, "no known convention"),
        ({"image": b"x", "label": b"cat"}, "no known convention"),
    ],
)
def test_other_records_are_of_no_known_convention(make_example, values, message):
    with pytest.raises(Rejected, match=message):
        find_convention(parse_entries(make_example(values)))


@pytest.mark.parametrize("record", [b"", b"\xff\xff", b"\x0a\x00"])
def test_records_that_are_not_examples_are_reported(record):
    with pytest.raises(Rejected, match=r"the record is not a tf\.train\.Example"):
        parse_entries(record)


CONVENTION = Convention(
    title="a test's",
    features=(
        Feature("i", "bytes", "encoded", ""),
        Feature("n", "int64", "label", ""),
        Feature("f", "float", "xmin", "", many=True),
        Feature("c", "bytes", "", "", constant=b"RGB"),
    ),
)


def test_fields_are_read_by_their_keys(make_example):
    entries = parse_entries(make_example({"i": b"x", "f": [0.5, 1.0], "n": [], "other": b"y", "c": b"any"}))
    assert read_fields(entries, CONVENTION) == {"encoded": b"x", "xmin": [0.5, 1.0]}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n": 1}, "it has no image: there is no feature i"),
        ({"i": 1}, "feature i is a int64_list, not a bytes_list"),
        ({"i": [b"x", b"y"]}, "feature i holds 2 values where one is expected"),
    ],
)
def test_features_that_do_not_fit_the_convention_are_reported(make_example, values, message):
    with pytest.raises(Rejected, match=message):
        read_fields(parse_entries(make_example(values)), CONVENTION)


def test_features_are_passed_on_with_their_types(make_example):
    entries = parse_entries(make_example({"a": b"\xff", "b": [1, 2], "c": [1.0]}))
    assert read_kept(entries, {"a": "bytes", "b": "int64[]", "c": "float", "d": "bytes[]"}) == {
        "a": b"\xff",
        "b": [1, 2],
        "c": 1.0,
        "d": [],
    }
    assert [kind_of(stated) for stated in ("bytes", "float[]")] == ["bytes", "float"]
    assert (values_of(entries, "a", "bytes"), values_of(entries, "z", "bytes")) == ([b"\xff"], None)


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ({"z": "bytes"}, r"feature z holds 0 values where source\.keep expects one"),
        ({"b": "int64"}, "feature b holds 2 values"),
        ({"b": "bytes[]"}, "feature b is a int64_list, not a bytes_list"),
    ],
)
def test_features_that_are_not_as_declared_are_reported(make_example, keep, message):
    with pytest.raises(Rejected, match=message):
        read_kept(parse_entries(make_example({"b": [1, 2]})), keep)


def test_a_key_is_a_text_or_an_integer(make_example):
    entries = parse_entries(make_example({"a": "u\u0308".encode(), "b": 7, "c": b"\xff", "d": b"", "e": 1.0}))
    assert (text_in(entries, "a"), text_in(entries, "b")) == ("ü", "7")
    for key, message in (
        ("c", "feature c is not UTF-8"),
        ("d", "missing or empty"),
        ("z", "missing"),
        ("e", "is a float"),
    ):
        with pytest.raises(Rejected, match=message):
            text_in(entries, key)
    assert (text_of(None, "it"), text_of(b"a", "it")) == ("", "a")


def test_a_class_is_a_name_or_a_number():
    assert (class_of(3, {}, ""), class_of(-1, {}, "")) == ("3", "-1")
    assert class_of(2, {1: "a", 2: "b"}, "labels.txt") == "b"


@pytest.mark.parametrize("number", [0, 3])
def test_a_number_without_a_name_is_reported(number):
    with pytest.raises(Rejected, match=rf"^\w+: its label is {number}, where labels\.txt names those of 1 to 2$"):
        class_of(number, {1: "a", 2: "b"}, "labels.txt")


def test_examples_without_images(make_example):
    convention = load_convention("feature_vector")
    entries = parse_entries(make_example({"sha256": b"abc", "feature": [0.5, 2.0], "label": 3}))
    assert read_fields(entries, convention) == {"file_sha256": b"abc", "feature": [0.5, 2.0], "label": 3}
    assert [feature.field for feature in own_features(convention)] == ["feature"]
    assert own_features(load_convention("default")) == own_features(load_convention("plain")) == ()
    with pytest.raises(Rejected, match=r"^\w+: there is no feature feature$"):
        read_fields(parse_entries(make_example({"label": 3})), convention)
    with pytest.raises(Rejected, match=r"\(feature, label, sha256\): set source\.convention: feature_vector$"):
        find_convention(entries)
