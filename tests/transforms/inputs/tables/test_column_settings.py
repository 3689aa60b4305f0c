import pytest

from recordmill.schemas.features import Feature
from recordmill.transforms.inputs.tables.column_settings import KINDS, ColumnSettings


def test_each_type_goes_to_the_list_of_the_tutorial():
    assert {
        **dict.fromkeys(("bool", "enum", "int", "uint"), "int64"),
        **dict.fromkeys(("float", "double", "number"), "float"),
        **dict.fromkeys(("string", "bytes"), "bytes"),
    } == KINDS


def test_a_column_becomes_a_feature_of_its_name_or_of_another():
    assert ColumnSettings(type="uint").as_feature("n") == Feature("n", "int64", "n", "the column `n`, uint")
    settings = ColumnSettings(type="float[]", feature="x/vector", meaning="what was measured")
    assert settings.as_feature("v") == Feature("x/vector", "float", "x/vector", "what was measured", many=True)


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
        ({"type": "enum"}, "enum: goes with type: enum"),
        ({"type": "int", "enum": {"a": 1}}, "enum: goes with type: enum"),
        ({"type": "int[]", "default": 0}, "default: a list has no default"),
        ({"type": "int", "default": 1.0}, "default: float 1.0 is not an integer"),
        ({"type": "float", "default": True}, "default: bool True is not a float"),
    ],
)
def test_a_column_that_cannot_be_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        ColumnSettings(**settings)
