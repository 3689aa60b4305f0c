import pytest

from recordmill.schemas.features import Feature
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.archives.members import Member
from recordmill.transforms.inputs.archives.samples import (
    PartFeature,
    class_of,
    extensions_of,
    group_samples,
    value_of,
)

IMAGES = ("jpg", "png")


def samples(*names):
    return [(each.name, sorted(each.parts), each.image) for each in group_samples(map(Member, names), IMAGES)]


def test_members_of_one_name_are_a_sample():
    assert samples("a/1.JPG", "a/1.cls", "a/1.seg.png", "a/2.png", "b/2.png", "b/v1.2/3.jpg", "x") == [
        ("a/1", ["cls", "jpg", "seg.png"], "jpg"),
        ("a/2", ["png"], "png"),
        ("b/2", ["png"], "png"),
        ("b/v1.2/3", ["jpg"], "jpg"),
        ("x", [""], ""),
    ]


def test_members_that_are_apart_are_not_a_sample():
    assert [name for name, _, _ in samples("1.jpg", "2.jpg", "1.cls")] == ["1", "2", "1"]


def test_of_several_images_the_first_of_the_list_is_taken():
    assert samples("1.png", "1.jpg") == [("1", ["jpg", "png"], "jpg")]


def test_parts_are_texts_or_values_of_the_json():
    texts = {"cls": b" 7\n", "txt": "ü b\r\n".encode(), "json": b'{"a.b": [1, 2], "n": null}'}
    assert [value_of(part, texts) for part in ("cls", "txt", "json.a.b", "json.n", "json.c", "other")] == [
        "7",
        "ü b",
        [1, 2],
        None,
        None,
        None,
    ]
    assert extensions_of(["json.a", "json.b", "cls", "", "seg.txt"]) == {"json", "cls", "seg.txt"}


@pytest.mark.parametrize(
    ("part", "data", "message"),
    [
        ("txt", b"\xff", "txt is not UTF-8"),
        ("json.a", b"{", "json cannot be read"),
        ("json.a", b"[1]", "json is not an object"),
    ],
)
def test_a_part_that_cannot_be_read_is_reported(part, data, message):
    with pytest.raises(Rejected, match=message):
        value_of(part, {part.partition(".")[0]: data})


@pytest.mark.parametrize(
    ("settings", "value", "expected"),
    [
        ({}, "text\f\0", "text\f\0"),
        ({}, 7, "7"),
        ({"type": "int64"}, "-7", -7),
        ({"type": "int64"}, 7, 7),
        ({"type": "int64"}, True, 1),
        ({"type": "float"}, "1.5", 1.5),
        ({"type": "float"}, 2, 2.0),
        ({"many": True}, ["a", "b"], ["a", "b"]),
        ({"many": True, "type": "float"}, None, []),
        ({"default": "none"}, None, "none"),
        ({"default": 1, "type": "float"}, None, 1.0),
    ],
)
def test_a_feature_takes_what_is_of_its_type(settings, value, expected):
    found = PartFeature(part="json.x", **settings).value_of(value)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("settings", "value", "message"),
    [
        ({}, 7.5, "json.x: 7.5 is not text"),
        ({}, None, "json.x is missing"),
        ({"type": "int64"}, "1.0", "json.x: '1.0' is not of type int64"),
        ({"type": "int64"}, "1_0", "json.x: '1_0' is not of type int64"),
        ({"type": "int64"}, 1.0, "json.x: 1.0 is not of type int64"),
        ({"type": "int64"}, 2**63, "is not of type int64"),
        ({"type": "int64"}, [1], r"json.x: \[1\] is not of type int64"),
        ({"type": "float"}, "x", "json.x: 'x' is not of type float"),
        ({"type": "float"}, True, "json.x: True is not of type float"),
        ({"type": "float"}, "1e300", "is not of type float"),
        ({"type": "float"}, "nan", "json.x: 'nan' is not of type float"),
        ({"type": "float"}, "-inf", "is not of type float"),
        ({"many": True}, "a", "json.x is not a list"),
        ({"many": True}, ["a", True], "json.x: True is not text"),
    ],
)
def test_a_feature_refuses_what_is_not(settings, value, message):
    with pytest.raises(Rejected, match=message):
        PartFeature(part="json.x", **settings).value_of(value)


def test_a_feature_says_what_it_is():
    feature = PartFeature(part="txt", default="none").as_feature("image/caption")
    assert feature == Feature("image/caption", "bytes", "image/caption", "`txt` beside the image", default=b"none")


def test_a_feature_without_a_part_names_its_key():
    with pytest.raises(ValueError, match=r"^source\.features_from\.x\.part is empty: give an extension "):
        PartFeature(part="").check("x")


@pytest.mark.parametrize(
    ("label", "names", "expected"), [("7", (), "7"), (7, (), "7"), ("cat", (), "cat"), ("1", ("a", "b"), "b")]
)
def test_a_label_is_a_name_or_a_number(label, names, expected):
    assert class_of(label, "cls", names) == expected


@pytest.mark.parametrize(
    ("label", "names", "message"),
    [
        (None, (), "cls is missing or empty"),
        ("", ("a",), "cls is missing or empty"),
        ("2", ("a", "b"), r"cls is 2, where source\.class_names has 2 classes, from 0"),
        ("-1", ("a", "b"), "cls is -1"),
        ("cat", ("a", "b"), "cls: 'cat' is not of type int64"),
        (1.5, (), r"cls: 1\.5 is not of type int64"),
        ("x" * 5000, (), "cls has 5,000 characters, but a name has at most 4,096"),
    ],
)
def test_a_label_that_is_neither_is_refused(label, names, message):
    with pytest.raises(Rejected, match=message):
        class_of(label, "cls", names)
