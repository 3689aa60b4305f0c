import math

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.features import COERCE, Feature
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.tables.cells import (
    TYPES,
    ColumnSettings,
    decode_cell,
    encode_cell,
    infer_type,
    is_rounded,
    read_cell,
)


def column(word, **more):
    enum = {"low": 0, "high": 7} if word.startswith("enum") else {}
    return ColumnSettings(type=word, enum=enum, **more)


@pytest.mark.parametrize(
    ("word", "cell", "value"),
    [
        ("bool", "true", 1),
        ("bool", "FALSE", 0),
        ("bool", "1", 1),
        ("int", "-12", -12),
        ("int", "+0012", 12),
        ("int", "17031832200.0", 17031832200),
        ("uint", "3.", 3),
        ("int", str(2**63 - 1), 2**63 - 1),
        ("uint", "0", 0),
        ("float", "1", 1.0),
        ("float", "-.5e3", -500.0),
        ("double", "inf", math.inf),
        ("number", "2", 2.0),
        ("string", "é", "é".encode()),
        ("string", "", b""),
        ("bytes", "AP8=", b"\x00\xff"),
        ("enum", "high", 7),
        ("float[]", "[1.5, 2.0]", [1.5, 2.0]),
        ("string[]", '["a", ""]', [b"a", b""]),
        ("int[]", "[]", []),
        ("int", "", None),
        ("float[]", "", None),
    ],
)
def test_texts_are_read_as_their_type_says(word, cell, value):
    assert read_cell(cell, "n", column(word), as_text=True) == value


@pytest.mark.parametrize(
    ("word", "cell"),
    [
        ("bool", "yes"),
        ("bool", "2"),
        ("int", "1.5"),
        ("int", "1.0e3"),
        ("int", ".0"),
        ("int", " 1"),
        ("int", "\u0661"),
        ("int", "1_000"),
        ("uint", "-1"),
        ("float", "true"),
        ("float", "1,5"),
        ("float", "0x10"),
        ("bytes", "a"),
        ("enum", "7"),
        ("float[]", "[1.5, 2]"),
        ("float[]", "1.5"),
        ("int[]", '{"a": 1}'),
    ],
)
def test_a_text_of_another_type_is_refused_with_value_and_type(word, cell):
    with pytest.raises(Rejected) as refused:
        read_cell(cell, "n", column(word), as_text=True)
    assert word.removesuffix("[]") in refused.value.detail


@pytest.mark.parametrize(
    ("word", "cell", "value"),
    [
        ("bool", True, 1),
        ("int", 5, 5),
        ("uint", 2**63 - 1, 2**63 - 1),
        ("float", 1.5, 1.5),
        ("number", 3, 3.0),
        ("string", "", b""),
        ("bytes", b"\xff", b"\xff"),
        ("bytes", "/w==", b"\xff"),
        ("enum", "low", 0),
        ("bool[]", [True, False], [1, 0]),
        ("int", None, None),
    ],
)
def test_values_that_have_a_type_must_have_the_columns(word, cell, value):
    assert read_cell(cell, "n", column(word), as_text=False) == value


@pytest.mark.parametrize(
    ("word", "cell", "message"),
    [
        ("float", 1, "1 is not of type float"),
        ("float", True, "True is not of type float"),
        ("number", True, "True is not of type number"),
        ("int", 1.0, "1.0 is not of type int"),
        ("int", True, "True is not of type int"),
        ("int", "1", "'1' is not of type int"),
        ("uint", -1, "-1 is not of type uint"),
        ("uint", 2**63, f"{2**63} is out of the range of int64"),
        ("int", -(2**63) - 1, f"{-(2**63) - 1} is out of the range of int64"),
        ("float", 1e39, "1e+39 is out of the range of float"),
        ("string", 1, "1 is not of type string"),
        ("string", "\ud800", "'\\ud800' is not of type string"),
        ("bool", 1, "1 is not of type bool"),
        ("enum", "middle", "'middle' is not of type enum (low, high)"),
        ("enum", ["low"], "['low'] is not of type enum (low, high)"),
        ("int[]", 1, "1 is not of type int[]"),
        ("int[]", [1, None], "None is not of type int"),
        ("string", "x" * 999, None),
    ],
)
def test_a_value_of_another_type_is_refused_as_the_tutorial_does(word, cell, message):
    if message is None:
        assert read_cell(cell, "n", column(word), as_text=False) == b"x" * 999
        return
    with pytest.raises(Rejected) as refused:
        read_cell(cell, "n", column(word), as_text=False)
    assert refused.value.detail == f"column 'n': {message}"


def test_a_long_value_is_shown_cut():
    with pytest.raises(Rejected) as refused:
        read_cell("x" * 999, "n", column("int"), as_text=True)
    assert refused.value.detail == f"column 'n': '{'x' * 59} is not of type int"


ANY_CELL = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.lists(st.integers() | st.text()),
)


@given(ANY_CELL, st.sampled_from(sorted(TYPES)), st.booleans(), st.booleans())
def test_what_is_read_fits_its_list_and_survives_json(cell, word, many, as_text):
    """Whatever the cell: a value that Example takes, or Rejected; through JSON and back it is the
    same."""
    if as_text:
        cell = str(cell)
    settings = column(f"{word}[]" if many else word)
    try:
        value = read_cell(cell, "n", settings, as_text)
    except Rejected:
        return
    if value is None:
        return
    for each in value if many else [value]:
        assert COERCE[settings.kind](each) is not None
    back = decode_cell(orjson.loads(orjson.dumps(encode_cell(value))), settings.kind)
    assert repr(back) == repr(value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_integer_is_read_exactly(number):
    assert read_cell(str(number), "n", column("int"), as_text=True) == number
    assert infer_type(str(number)) == "int"


@given(st.floats(width=32))
def test_every_float_is_read_exactly(number):
    assert repr(read_cell(repr(number), "n", column("float"), as_text=True)) == repr(number)
    assert infer_type(repr(number)) == "float"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("True", "bool"),
        ("0", "int"),
        ("-7", "int"),
        ("007", "string"),
        ("0.5", "float"),
        ("1e5", "float"),
        ("NaN", "float"),
        ("12 ", "string"),
        ("2026-11-21", "string"),
    ],
)
def test_the_type_of_a_text_is_inferred(text, word):
    assert infer_type(text) == word


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (17031832200.0, True),
        (-16777217.0, True),
        (16777218.0, False),  # even, so that 24 bits suffice
        (16777215.0, False),
        (16777217.5, False),
        (math.inf, False),
        (math.nan, False),
        (17031832200, False),
        (b"17031832200", False),
    ],
)
def test_whole_numbers_that_floats_cannot_hold(value, rounded):
    assert is_rounded(value) is rounded


def test_each_type_goes_to_the_list_of_the_tutorial():
    assert {
        **dict.fromkeys(("bool", "enum", "int", "uint"), "int64"),
        **dict.fromkeys(("float", "double", "number"), "float"),
        **dict.fromkeys(("string", "bytes"), "bytes"),
    } == {name: each.kind for name, each in TYPES.items()}


def test_a_column_becomes_a_feature_of_its_name_or_of_another():
    assert ColumnSettings(type="uint").as_feature("n") == Feature(
        "n", "int64", "n", "the column `n`, uint"
    )
    settings = ColumnSettings(type="float[]", feature="x/vector", meaning="what was measured")
    assert settings.as_feature("v") == Feature(
        "x/vector", "float", "x/vector", "what was measured", many=True
    )


@pytest.mark.parametrize(
    ("settings", "default"),
    [
        ({"type": "bool", "default": True}, 1),
        ({"type": "float", "default": 2}, 2.0),
        ({"type": "string", "default": "é"}, "é".encode()),
        ({"type": "enum", "enum": {"low": 3}, "default": "low"}, 3),
    ],
)
def test_a_default_is_coerced_as_values_are(settings, default):
    found = ColumnSettings(**settings).as_feature("x").default
    assert (type(found), found) == (type(default), default)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"type": "date"}, r"type is 'date': write one of bool, enum, .*"),
        ({"type": "int[][]"}, "type is "),
        ({"type": "[]"}, "type is "),
        ({"type": "enum"}, "enum: belongs to type: enum"),
        ({"type": "int", "enum": {"a": 1}}, "enum: belongs to type: enum"),
        ({"type": "int[]", "default": 0}, "default: a list has no default"),
        ({"type": "int", "default": 1.0}, "default: float 1.0 is not an integer"),
        ({"type": "float", "default": True}, "default: bool True is not a float"),
    ],
)
def test_a_column_that_cannot_be_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        ColumnSettings(**settings)
