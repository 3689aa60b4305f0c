import math
from dataclasses import replace

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recordmill.schemas.features import Feature
from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.inputs.sources.source import list_file
from recordmill.transforms.inputs.sources.table import Table
from recordmill.transforms.inputs.tables.cells import ColumnSettings

COLUMNS = {"truth": "bool", "n": "int", "text": "string", "x": "float"}


def table(columns=(), **settings):
    """A source whose columns may be types alone, as in YAML."""
    stated = {
        name: ColumnSettings(type=each) if isinstance(each, str) else each
        for name, each in dict(columns).items()
    }
    return Table(columns=stated, **settings)


@pytest.fixture
def refer(tmp_path):
    """The references of one table, and the source."""

    def run(name, content, **settings):
        path = tmp_path / name
        if isinstance(content, pa.Table):
            pq.write_table(content, path)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        source = table(**settings)
        return source, list(list_file(source, name, ImageRef(f"in/{name}", str(path), 9, "1")))

    return run


def values(source, refs):
    return [source.read(ref, 1).fields for ref in refs]


def test_the_rows_of_csv_carry_their_values(refer):
    source, refs = refer(
        "t.csv", "n,truth,x,text,more\n1,true,2,é,?\n-5,0,nan,,?\n", columns=COLUMNS
    )
    assert [(ref.key, ref.status, ref.size, ref.version) for ref in refs] == [
        ("in/t.csv:2", "", -1, ""),
        ("in/t.csv:3", "", -1, ""),
    ]
    assert refs[0].length == len(refs[0].features)
    first, second = values(source, refs)
    assert first == {"truth": 1, "n": 1, "text": "é".encode(), "x": 2.0}
    assert math.isnan(second.pop("x"))
    assert second == {"truth": 0, "n": -5, "text": b""}


def test_the_row_is_digested(refer):
    source, (ref,) = refer("t.csv", "n,other\n1,2\n", columns={"n": "int"})
    content = source.read(ref, 1)
    assert (content.data, content.image) == (b'{"n":1}', None)


def test_json_lines_and_parquet_give_the_same(refer):
    rows = [
        {"b": True, "n": 2**63 - 1, "s": "x", "v": [0.5, 1.5]},
        {"b": False, "n": 0, "s": "", "v": []},
    ]
    columns = {"b": "bool", "n": "uint", "s": "string", "v": "float[]"}
    by_json, refs = refer("t.jsonl", b"\n".join(map(orjson.dumps, rows)), columns=columns)
    by_parquet, more = refer("t.parquet", pa.Table.from_pylist(rows), columns=columns)
    assert values(by_json, refs) == values(by_parquet, more)
    assert values(by_json, refs)[0] == {"b": 1, "n": 2**63 - 1, "s": b"x", "v": [0.5, 1.5]}
    assert [ref.key for ref in more] == ["in/t.parquet:1", "in/t.parquet:2"]


def test_bytes_are_base64_in_text_and_themselves_in_parquet(refer):
    columns = {"d": "bytes", "many": "bytes[]"}
    by_json, refs = refer("t.jsonl", b'{"d": "AP8=", "many": ["/w=="]}', columns=columns)
    by_parquet, more = refer(
        "t.parquet", pa.table({"d": [b"\x00\xff"], "many": [[b"\xff"]]}), columns=columns
    )
    assert (
        values(by_json, refs) == values(by_parquet, more) == [{"d": b"\x00\xff", "many": [b"\xff"]}]
    )


def test_label_split_group_and_key_come_from_columns(refer):
    text = "id,species,fold,plant,n\nrow a, setosa ,train,p1,1\nrow b,7,test,p2,2\n"
    named = {"label": "species", "split": "fold", "group": "plant", "key": "id"}
    source, refs = refer("t.csv", text, columns={"n": "int"}, **named)
    assert [(ref.key, ref.label, ref.split, ref.group) for ref in refs if not ref.status] == [
        ("in/row a", "setosa", "train", "p1"),
        ("in/row b", "7", "test", "p2"),
    ]
    assert source.features() == (Feature("n", "int64", "n", "the column `n`, int"),)


def test_a_text_is_not_a_name(refer):
    _, (ref,) = refer("t.csv", "n,kind\n1," + "x" * 5000 + "\n", columns={"n": "int"}, label="kind")
    assert (ref.status, ref.reason) == ("rejected", "bad_row")
    assert (
        ref.detail
        == f"t.csv, row 2: column 'kind': '{'x' * 59} has 5,000 characters, but a name has at most "
        "4,096"
    )


def test_a_value_that_is_missing_is_left_out_where_readers_have_a_default(refer):
    columns = {"n": {"type": "int", "default": 0}, "v": {"type": "float[]"}, "x": {"type": "float"}}
    columns = {name: ColumnSettings(**each) for name, each in columns.items()}
    source, refs = refer("t.csv", "n,v,x\n,,1\n3,,\n", columns=columns)
    assert values(source, refs[:1]) == [{"x": 1.0}]
    assert (refs[1].status, refs[1].reason) == ("rejected", "bad_row")
    assert (
        refs[1].detail
        == "t.csv, row 3: column 'x': there is no value; source.columns.x.default allows it"
    )


@pytest.mark.parametrize(
    ("name", "content", "detail"),
    [
        (
            "t.csv",
            "truth,n,text,x\ntrue,1.5,a,1\n",
            "t.csv, row 2: column 'n': '1.5' is not of type int",
        ),
        (
            "t.csv",
            "truth,n,text,x\ntrue,1,a\n",
            "t.csv, row 2: it has 3 cells, and the table has 4 columns",
        ),
        ("t.csv", 'truth,n,text,x\ntrue,1,"a"b,1\n', "t.csv, row 2: it is not a row of a table: "),
        (
            "t.jsonl",
            '{"truth": true, "n": 1, "text": "a", "x": 1}',
            "t.jsonl, row 1: column 'x': 1 is not of type float",
        ),
        (
            "t.jsonl",
            '{"truth": true, "n": 9223372036854775808, "text": "a", "x": 1.5}',
            "t.jsonl, row 1: column 'n': 9223372036854775808 is out of the range of int64",
        ),
        ("t.jsonl", "[1]", "t.jsonl, row 1: it is not a JSON object: '[1]'"),
        ("t.jsonl", "{", "t.jsonl, row 1: it is not valid JSON: "),
    ],
)
def test_seed_3_a_row_whose_value_does_not_fit_is_rejected_with_row_column_value_and_type(
    refer, name, content, detail
):
    _, refs = refer(name, content, columns=COLUMNS)
    rejected = refs[0]
    assert (rejected.status, rejected.reason) == ("rejected", "bad_row")
    assert rejected.detail.startswith(detail)


def test_rows_after_a_bad_one_are_read(refer):
    source, refs = refer("t.csv", "n\n1\nx\n3\n", columns={"n": "int"})
    assert [ref.status for ref in refs] == ["", "rejected", ""]
    assert values(source, [refs[0], refs[2]]) == [{"n": 1}, {"n": 3}]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        (
            "t.csv",
            "a,b\n1,2\n",
            "it has no column 'n' (source.columns.n), only 'a', 'b': correct the name; CSV may",
        ),
        ("t.csv", "", "it is empty: it needs a row with the columns' names, or source.names"),
        ("t.csv", "n,n\n1,2\n", "it has 2 columns 'n' (source.columns.n): rename all but one"),
        ("t.csv", '"n"\n"1\n', "row 2: a quote is opened and never closed: close it"),
        (
            "t.jsonl",
            '{"a": 1}',
            "it has no column 'n' (source.columns.n), only 'a': correct the name; CSV may",
        ),
        ("t.parquet", b"PAR1 or not", "it is not Parquet, or it is damaged"),
        ("t.xls", "n\n1\n", "its name does not say what it is: set source.format"),
    ],
)
def test_a_table_that_cannot_be_used_is_fatal(refer, name, content, problem):
    _, refs = refer(name, content, columns={"n": "int"})
    assert (refs[-1].status, refs[-1].reason) == ("fatal", "bad_table")
    assert refs[-1].detail.startswith(f"the table in/{name} cannot be used: {problem}")


def test_a_table_without_rows_is_rejected(refer):
    _, (ref,) = refer("t.csv", "n\n", columns={"n": "int"})
    assert (ref.key, ref.status, ref.reason) == ("in/t.csv", "rejected", "no_rows")


def test_other_forms_are_read(refer):
    source, refs = refer(
        "t.txt",
        "n;t\r\n1;'a;b'\r\n".encode("utf-16"),
        columns={"n": "int", "t": "string"},
        format="csv",
        encoding="utf-16",
        delimiter=";",
        quote="'",
    )
    assert values(source, refs) == [{"n": 1, "t": b"a;b"}]
    source, refs = refer("t.tsv", "1\tx\n", columns={"b": "string"}, names=("a", "b"))
    assert values(source, refs) == [{"b": b"x"}]


def test_types_are_found_in_all_files(tmp_path):
    (tmp_path / "a.csv").write_text("id,n,x\na,1,2\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("id,n,x\nb,2,0.5\n", encoding="utf-8")
    files = [ImageRef(name, str(tmp_path / name)) for name in ("a.csv", "b.csv")]
    settled = Table(key="id").settle(iter(files), [].append)
    assert settled == table(key="id", columns={"n": "int", "x": "float"}, infer="no")
    declared = table(key="id", columns={"n": "uint"}, infer="yes").settle(iter(files), [].append)
    assert declared == table(key="id", columns={"n": "uint", "x": "float"}, infer="no")


def test_declared_columns_are_not_inferred():
    source = table(columns={"n": "int"})
    assert source.settle(iter(()), [].append) == replace(source, infer="no")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"a": 1}\n{"a": "x"}\n',
            r"^source: column 'a' holds int \(in/t.jsonl, row 1: 1\) and string",
        ),
        ("\ufeff".encode("utf-16"), "^source: in/t.jsonl cannot be read: it begins as UTF-16 does"),
    ],
)
def test_files_that_cannot_tell_say_so(tmp_path, content, message):
    path = tmp_path / "t.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=message):
        Table().settle(iter([ImageRef("in/t.jsonl", str(path))]), [].append)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"columns": {"a": "int", "b": ColumnSettings(type="int", feature="a")}},
            r"^source.columns: two columns become the feature 'a'",
        ),
        ({"encoding": "utf-99"}, r"^source.encoding 'utf-99' is not a known encoding"),
        ({"delimiter": "::"}, r"^source.delimiter is '::': give one character"),
        ({"quote": "\n"}, r"^source.quote is "),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        table(**settings)


def test_thirty_thousand_columns_take_no_longer_each_than_a_few(tmp_path):
    """Each was once looked for among all the others: minutes."""
    names = [f"c{number}" for number in range(30_000)]
    path = tmp_path / "wide.csv"
    path.write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n", encoding="utf-8")
    source = Table().settle(iter([ImageRef("wide.csv", str(path))]), [].append)
    (ref,) = list_file(source, "wide.csv", ImageRef("wide.csv", str(path)))
    assert source.read(ref, 1).fields == dict.fromkeys(names, 1)


def test_a_column_without_any_value_is_noted(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n1,,\n2,,x\n", encoding="utf-8")
    notes = []
    settled = Table().settle(iter([ImageRef("t.csv", str(tmp_path / "t.csv"))]), notes.append)
    assert list(settled.columns) == ["a", "c"]
    assert notes == [
        "column 'b' has no value in any row and is left out: declare source.columns.b to keep it"
    ]


def test_numbers_after_blanks_are_read_on_demand(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1, 2\n2, 3.5\n", encoding="utf-8")
    files = [ImageRef("t.csv", str(tmp_path / "t.csv"))]
    source = Table().settle(iter(files), [].append)
    assert source.columns["b"].type == "string"
    *_, note = list_file(source, "t.csv", files[0])
    assert note.detail.startswith(
        "cells begin with a blank, such as ' 2': set source.blanks=skip, or keep "
    )
    assert Table(blanks="skip").settle(iter(files), [].append).columns["b"].type == "float"


def test_a_column_name_that_begins_with_a_blank_is_noted(tmp_path):
    (tmp_path / "t.csv").write_text("a, b\n1,2\n", encoding="utf-8")
    file = ImageRef("t.csv", str(tmp_path / "t.csv"))
    *_, note = list_file(Table().settle(iter([file]), [].append), "t.csv", file)
    assert note.detail.startswith("cells begin with a blank, such as ' b': set source.blanks=skip")


def test_whole_numbers_that_lose_digits_are_noted_once(refer):
    columns = {"n": ColumnSettings(type="float", default=0.0), "x": "float"}
    _, refs = refer(
        "t.csv", "n,x\n1.5,2.5\n17031832200.0,1\n17031832201,2\n,33554433\n", columns=columns
    )
    what = "holds whole numbers that lose digits in 32 bits:"
    more = "as int, and write integers if the table is not CSV"
    assert [ref.detail for ref in refs if ref.status == "warning"] == [
        f"column 'n' {what} 17031832200 (row 3) becomes 17031832576: declare source.columns.n "
        f"{more}",
        f"column 'x' {what} 33554433 (row 5) becomes 33554432: declare source.columns.x {more}",
    ]
