import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.tables.manifest_columns import (
    boxes_from,
    feature_value,
    list_of,
    objects_from,
    refuse,
    text_of,
    texts_of,
)


@pytest.mark.parametrize(("value", "text"), [(None, None), ("a b", "a b"), (12, "12"), (-1, "-1")])
def test_texts(value, text):
    assert text_of(value, "a") == text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.0, "column 'a': 1.0 (float) is not text"),
        (True, "column 'a': True (bool) is not text"),
        (
            [],
            "column 'a': [] (list) is not text: name a column of several classes in "
            "source.columns.labels",
        ),
        (b"\xff", "column 'a': b'\\xff' (bytes) is not text: store it as a string column"),
        ("a\0b", "column 'a': 'a\\x00b' (str) is not text: it contains control characters"),
    ],
)
def test_cells_that_are_not_text(value, message):
    with pytest.raises(Rejected) as raised:
        text_of(value, "a")
    assert raised.value.detail == message


def test_numbers_of_named_classes():
    assert text_of(1, "a", ("cat", "dog")) == "dog"
    assert [text_of(none, "a", ("cat", "dog")) for none in (-1, "-1")] == [None, None]
    assert (text_of(-1, "a"), text_of("-1", "a")) == ("-1", "-1")
    for number in (-2, 2):
        with pytest.raises(Rejected, match="is not one of the 2 classes"):
            text_of(number, "a", ("cat", "dog"))


def test_lists():
    assert list_of("a|b | c||", "x", "|") == ["a", "b", "c"]
    assert list_of(' ["a|b", 1]', "x", "|") == ["a|b", 1]
    assert list_of(None, "x", "|") == list_of("", "x", "|") == []
    assert texts_of([1, "b"], "x", "|") == ["1", "b"]
    for value, message in ((7, r"7 \(int\) is not a list"), ("[1", "is not JSON")):
        with pytest.raises(Rejected, match=message):
            list_of(value, "x", "|")
    with pytest.raises(Rejected, match="column 'x' is empty"):
        texts_of(["a", ""], "x", "|")


def test_numbers_of_classes():
    assert texts_of([1, "0", "x"], "c", "|", ["cat", "dog"]) == ["dog", "cat", "x"]
    assert texts_of([1, -1, "-1"], "c", "|", ["cat", "dog"]) == ["dog"]
    assert texts_of([1, -1], "c", "|") == ["1", "-1"]
    for number in (2, "2", -2):
        with pytest.raises(
            Rejected, match=rf"column 'c': {number} \(int\) is not one of the 2 classes"
        ):
            text_of(number, "c", ["cat", "dog"])


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers(number):
    assert (
        feature_value(number, "int64", "x") == feature_value(f" {number} ", "int64", "x") == number
    )


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats(number):
    assert (
        feature_value(number, "float", "x") == feature_value(repr(number), "float", "x") == number
    )


@pytest.mark.parametrize(
    ("value", "kind", "result"),
    [
        (True, "int64", 1),
        ("True", "int64", 1),
        ("false", "int64", 0),
        ("+7", "int64", 7),
        (3, "float", 3.0),
        (".5", "float", 0.5),
        ("1e3", "float", 1000.0),
        ("text", "bytes", "text"),
        (5, "bytes", "5"),
    ],
)
def test_values_of_features(value, kind, result):
    found = feature_value(value, kind, "x")
    assert (found, type(found)) == (result, type(result))


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (1.0, "int64", "column 'x': 1.0 (float) is not a 64-bit integer"),
        ("1.0", "int64", "column 'x': '1.0' (str) is not a 64-bit integer"),
        ("1_0", "int64", "column 'x': '1_0' (str) is not a 64-bit integer"),
        ("٣", "int64", "column 'x': '٣' (str) is not a 64-bit integer"),
        (2**63, "int64", "column 'x': 9223372036854775808 (int) is not a 64-bit integer"),
        ("9" * 40, "int64", f"column 'x': {'9' * 40} (int) is not a 64-bit integer"),
        (True, "float", "column 'x': True (bool) is not a finite number"),
        ("nan", "float", "column 'x': 'nan' (str) is not a finite number"),
        ("1e999", "float", "column 'x': '1e999' (str) is not a finite number"),
        ("1e39", "float", "column 'x': '1e39' (str) is not a 32-bit float"),
        (10**400, "float", None),
        (math.inf, "float", "column 'x': inf (float) is not a finite number"),
        (1.5, "bytes", "column 'x': 1.5 (float) is not text"),
        ("", "int64", "column 'x' is empty"),
    ],
)
def test_values_that_do_not_fit(value, kind, message):
    with pytest.raises(Rejected) as raised:
        feature_value(value, kind, "x")
    assert message is None or raised.value.detail == message


def test_long_values_are_cut_in_messages():
    assert len(refuse("x", "y" * 1000, "no number").detail) < 100


def test_boxes():
    assert boxes_from("[[1, 2, 3.5, 4]]", "x") == [[1.0, 2.0, 3.5, 4.0]]
    assert boxes_from([], "x") == boxes_from("", "x") == boxes_from(None, "x") == []


@pytest.mark.parametrize(
    "value",
    [
        *(
            [[box]]
            for box in (
                [1, 2, 3],
                [1, 2, 3, "4"],
                [1, 2, 3, True],
                [1, 2, 3, math.nan],
                [1, 2, 3, -math.inf],
            )
        ),
        *([1, 2, 3, 4], [[1, 2, 3, 10**400]], [["1, 2, 3, 4"]], "{}", "1,2,3,4", 5),
    ],
)
def test_cells_that_are_not_boxes(value):
    with pytest.raises(Rejected, match=r"^\w+: column 'x': "):
        boxes_from(value, "x")


OBJECTS = {"bbox": [[302.0, 109.0, 73.0, 52.0], [0, 0, 1, 2]], "categories": [1, 0]}
BOXES = [[302.0, 109.0, 375.0, 161.0], [0.0, 0.0, 1.0, 2.0]]


@pytest.mark.parametrize(
    "value",
    [
        OBJECTS,
        json.dumps(OBJECTS),
        {"bbox": OBJECTS["bbox"], "category": [1, 0], "area": [1, 2]},
        [
            {"bbox": box, "category": number}
            for box, number in zip(OBJECTS["bbox"], (1, 0), strict=True)
        ],
        [
            {"bbox": box, "categories": name}
            for box, name in zip(OBJECTS["bbox"], ("dog", "cat"), strict=True)
        ],
    ],
)
def test_objects(value):
    assert objects_from(value, "objects", ["cat", "dog"]) == (BOXES, ["dog", "cat"])


def test_without_names_numbers_are_names():
    assert objects_from(OBJECTS, "objects") == (BOXES, ["1", "0"])


@pytest.mark.parametrize(
    "value", [None, "", {}, [], {"bbox": [], "categories": []}, {"bbox": None}]
)
def test_no_objects(value):
    assert objects_from(value, "objects") == ([], [])


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("{", "column 'o': '{' (str) is not JSON"),
        ("7", "column 'o': 7 (int) is not an object with bbox and categories"),
        ([3], "column 'o': [3] (list) is not an object with bbox and categories"),
        (
            {"bbox": [[1, 2, 3]], "category": [0]},
            "column 'o.bbox': [1, 2, 3] (list) is not a list of four numbers",
        ),
        (
            {"bbox": [[1, 2, 3, 4]], "label": [0]},
            "column 'o' has no key categories for the classes, only bbox, label",
        ),
        (
            [{"bbox": [1, 2, 3, 4]}],
            "column 'o' has no key categories for the classes, only bbox",
        ),
        (
            {"bbox": [[1, 2, 3, 4]], "categories": []},
            "column 'o': there are 1 boxes and 0 labels",
        ),
        (
            {"bbox": [[1, 2, 3, 4]], "category": [2]},
            "column 'o.categories': 2 (int) is not one of the 2 classes",
        ),
        (
            {"bbox": [[1, 2, 3, 4]], "category": [0.5]},
            "column 'o.categories': 0.5 (float) is not text",
        ),
    ],
)
def test_cells_that_are_not_objects(value, sentence):
    with pytest.raises(Rejected) as raised:
        objects_from(value, "o", ["cat", "dog"])
    assert raised.value.detail == sentence
