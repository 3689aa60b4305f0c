import json
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recordmill.transforms.inputs.sources.table import ColumnTypes
from recordmill.transforms.inputs.tables.cells import ColumnSettings
from recordmill.transforms.inputs.tables.read_table import TableFormat, read_table


@pytest.fixture
def infer(tmp_path):
    def run(*tables, without=()):
        types = ColumnTypes(without)
        for number, (suffix, content) in enumerate(tables):
            path = tmp_path / f"{number}.{suffix}"
            if suffix == "parquet":
                pq.write_table(content, path)
            elif suffix == "jsonl":
                path.write_text("\n".join(json.dumps(row) for row in content), encoding="utf-8")
            else:
                path.write_text(content, encoding="utf-8")
            with read_table(str(path), TableFormat()) as table:
                types.add(table, path.name)
        return types.settled()

    return run


def types_of(settings):
    return {name: column.type for name, column in settings.items()}


def test_texts_have_the_narrowest_type_that_all_rows_have(infer):
    header = "truth,whole,fraction,code,text,mixed,empty\n"
    found = infer(("csv", header + "true,1,1,007,x,true,\nFALSE,-2,2.5,12,1,1,\n"))
    assert found == {
        "truth": ColumnSettings(type="bool"),
        "whole": ColumnSettings(type="int"),
        "fraction": ColumnSettings(type="float"),
        "code": ColumnSettings(type="string"),
        "text": ColumnSettings(type="string"),
        "mixed": ColumnSettings(type="string"),
    }


def test_one_row_at_the_end_of_the_last_table_decides(infer):
    many = "n\n" + "1\n" * 3000
    assert types_of(infer(("csv", many), ("csv", many))) == {"n": "int"}
    assert types_of(infer(("csv", many), ("csv", many + "x\n"))) == {"n": "string"}


def test_the_order_of_rows_has_no_say(infer):
    rows = [
        {"a": 1, "b": "x"},
        {"a": 2, "c": [1.5]},
        {"b": None, "c": []},
        {"a": 3, "b": "y", "c": [2.5, 3.5]},
    ]
    expected = {
        "a": ColumnSettings(type="int", default=0),
        "b": ColumnSettings(type="string", default=""),
        "c": ColumnSettings(type="float[]"),
    }
    for seed in range(5):
        assert infer(("jsonl", Random(seed).sample(rows, len(rows)))) == expected


def test_a_column_without_a_value_in_some_row_has_zero_for_default(infer):
    found = infer(("csv", "a,b,c,d\n1,,x,1.5\n2,true,,\n"))
    assert {name: column.default for name, column in found.items()} == {
        "a": None,
        "b": 0,
        "c": "",
        "d": 0.0,
    }


def test_columns_that_are_for_something_else_are_left_alone(infer):
    assert types_of(infer(("csv", "id,species,n\n1,x,2\n"), without={"id", "species"})) == {
        "n": "int"
    }


def test_malformed_rows_have_no_say(infer):
    assert types_of(infer(("csv", "a,b\n1,2\nx\n3,4\n"))) == {"a": "int", "b": "int"}


def test_parquet_states_its_types(infer):
    table = pa.table(
        {
            "bool": pa.array([True]),
            "small": pa.array([1], pa.int8()),
            "big": pa.array([1], pa.uint64()),
            "half": pa.array([1.5], pa.float32()),
            "text": pa.array(["a"]),
            "binary": pa.array([b"a"]),
            "words": pa.array(["a"]).dictionary_encode(),
            "list": pa.array([[1.5]]),
            "nothing": pa.nulls(1),
            "gaps": pa.array([None], pa.int64()),
        }
    )
    found = types_of(infer(("parquet", table)))
    assert found == {
        "bool": "bool",
        "small": "int",
        "big": "int",
        "half": "float",
        "text": "string",
        "binary": "bytes",
        "words": "string",
        "list": "float[]",
    }


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([{"a": 1}, {"a": 2.5}], "int (0.jsonl, row 1: 1) and float (0.jsonl, row 2: 2.5)"),
        ([{"a": "x"}, {"a": True}], "string (0.jsonl, row 1: 'x') and bool (0.jsonl, row 2: True)"),
        ([{"a": {"b": 1}}], "dict (0.jsonl, row 1: {'b': 1})"),
        ([{"a": []}], "[] (0.jsonl, row 1: [])"),
        ([{"a": [1, "x"]}], "list of several types (0.jsonl, row 1: [1, 'x'])"),
    ],
)
def test_a_column_without_one_type_is_named_with_its_rows(infer, rows, found):
    with pytest.raises(ValueError, match=r"^source: column ") as error:
        infer(("jsonl", rows))
    advice = "declare its type, or only others, in source.columns"
    assert str(error.value) == f"source: column 'a' holds {found}: {advice}"


def test_dates_are_not_a_type(infer):
    with pytest.raises(
        ValueError, match=r"^source: column 'a' holds datetime \(0\.parquet, row 1: "
    ):
        infer(("parquet", pa.table({"a": pa.array([1], pa.timestamp("s"))})))
