import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recordmill.transforms.inputs.tables.cells import UnreadableTableError
from recordmill.transforms.inputs.tables.read_table import TableFormat, read_table

WANTED = {"b": "source.columns.uri", "a": "source.columns.label"}


ADVICE = "correct the name; CSV may need source.delimiter, or source.names if it has no header"


def read(path, wanted=WANTED, ragged=False, **how):
    with read_table(str(path), TableFormat(**how), wanted, ragged=ragged) as table:
        return [row.cells for row in table.rows]


def write(path, content):
    path.write_bytes(content)
    return path


def test_each_kind_gives_the_columns_asked_for(tmp_path):
    pq.write_table(pa.table({"a": ["1"], "b": ["2"], "c": ["3"]}), tmp_path / "t.parquet")
    for path in (
        write(tmp_path / "t.csv", b"c,a,b\n3,1,2\n"),
        write(tmp_path / "t.TSV", b"c\ta\tb\n3\t1\t2\n"),
        tmp_path / "t.parquet",
    ):
        assert read(path) == [{"a": "1", "b": "2"}]
    assert read(write(tmp_path / "t.ndjson", b'{"a": "1", "x": 2}\n{"b": "3"}\n')) == [
        {"a": "1", "x": 2},
        {"b": "3"},
    ]
    assert read(
        write(tmp_path / "t.txt", b"1;2\n"), format="csv", names=("a", "b"), delimiter=";"
    ) == [{"a": "1", "b": "2"}]
    assert read(write(tmp_path / "r.csv", b"1\n2,3\n"), {}, ragged=True) == [["1"], ["2", "3"]]


def test_a_list_has_the_delimiter_of_its_first_line(tmp_path):
    for content in (
        b"a b\n1 2\n",
        b"a,b\n1, 2\n",
        b"a\tb\n1\t2\n",
        b"a;b\n1;2\n",
        b"\n  a   b \n\n 1\t 2\n",
    ):
        assert read(write(tmp_path / "t.txt", content)) == [{"a": "1", "b": "2"}]
    named = {"wanted": {"a": "x", "b": "y"}, "names": ("a", "b")}
    assert read(write(tmp_path / "t.txt", b"one two.jpg 2\n3 4"), **named) == [
        {"a": "one two.jpg", "b": "2"},
        {"a": "3", "b": "4"},
    ]
    with read_table(
        str(write(tmp_path / "t.txt", b"1, 2, 3\n")), TableFormat(names=("a", "b")), WANTED
    ) as table:
        assert [row.fault for row in table.rows] == [
            "it has 3 cells, and source.names has 2 columns"
        ]
    assert read(write(tmp_path / "t.txt.gz", gzip.compress(b"1, 2\n")), **named) == [
        {"a": "1", "b": "2"}
    ]
    assert read(write(tmp_path / "t.txt", b"a b.jpg\nc,d.jpg\n"), {"a": "x"}, names=("a",)) == [
        {"a": "a b.jpg"},
        {"a": "c,d.jpg"},
    ]


@pytest.mark.parametrize(
    ("content", "how", "cells"),
    [
        (b"a, b\n1, 2\n", {"blanks": "auto"}, {"a": "1", "b": "2"}),
        (b"a,b\n1, 2\n", {"blanks": "auto"}, {"a": "1", "b": " 2"}),
        (b"a,b\n1, 2\n", {"blanks": "keep"}, {"a": "1", "b": " 2"}),
        (b'a,b\n1, "2, 3"\n', {"blanks": "skip"}, {"a": "1", "b": "2, 3"}),
        (b'a, b\n1, "2, 3"\n', {"blanks": "auto"}, {"a": "1", "b": "2, 3"}),
    ],
)
def test_blanks_after_a_delimiter(tmp_path, content, how, cells):
    assert read(write(tmp_path / "t.csv", content), **how) == [cells]


def test_text_may_be_gzipped_whatever_its_name_says(tmp_path):
    lines = b"c,a,b\n3,1,2\n"
    named = [("t.csv.gz", lines), ("t.CSV", lines), ("t.tsv.gz", lines.replace(b",", b"\t"))]
    named.append(("t.jsonl.gz", b'{"a": "1", "b": "2"}\n'))
    for name, content in named:
        path = write(tmp_path / name, gzip.compress(content))
        assert read(path) == [{"a": "1", "b": "2"}]
    plain = write(tmp_path / "plain.csv.gz", lines)
    assert read(plain) == [{"a": "1", "b": "2"}]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda packed: packed[:-20], "the gzip file is damaged: "),
        (lambda packed: packed[:-8] + b"\0\0\0\0" + packed[-4:], "the gzip file is damaged: "),
    ],
    ids=["cut", "checksum"],
)
def test_a_damaged_gzip_file_ends_the_table(damage, sentence, tmp_path):
    packed = gzip.compress(b"a,b\n" + b"".join(b"%d,x%d\n" % (n, n * n) for n in range(30_000)))
    path = write(tmp_path / "t.csv.gz", damage(packed))
    with pytest.raises(UnreadableTableError, match=sentence):
        read(path)


@pytest.mark.parametrize("row", [b"\n", b"1,2\n", b"1\n"])
def test_of_a_gzip_file_that_becomes_too_much_not_one_row_is_made(row, tmp_path):
    """A billion empty lines are 2 MB; made into rows first and refused then they took minutes."""
    path = write(tmp_path / "t.csv.gz", gzip.compress(b"a,b\n" + row * (30 * 2**20 // len(row))))
    with (
        pytest.raises(UnreadableTableError) as raised,
        read_table(str(path), TableFormat(), WANTED) as table,
    ):
        next(table.rows)
    assert (
        str(raised.value)
        == "the gzip file unpacks to more than 100 times its size: unpack it, if that is right"
    )


def test_a_small_table_may_become_a_hundred_times_its_size_and_more(tmp_path):
    path = write(tmp_path / "t.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 200_000))
    assert path.stat().st_size < 4000
    assert len(read(path)) == 200_000


def test_what_is_not_asked_for_is_not_read(tmp_path):
    pq.write_table(pa.table({"a": ["1"], "b": [b"image"]}), tmp_path / "t.parquet")
    with read_table(str(tmp_path / "t.parquet"), TableFormat(), WANTED, ["b"]) as table:
        assert [row.cells for row in table.rows] == [{"a": "1"}]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("t.csv", b"a;b\n", "it has no column 'b' (source.columns.uri), only 'a;b': " + ADVICE),
        ("t.csv", b"a,c\n", "it has no column 'b' (source.columns.uri), only 'a', 'c': " + ADVICE),
        ("t.csv", b"a,b,b\n", "it has 2 columns 'b' (source.columns.uri): rename all but one"),
        ("t.csv", b"", "it is empty: it needs a row with the columns' names, or source.names"),
        (
            "t.csv",
            b'"a"b\n',
            "row 1, which names the columns: it is not a row of a table: ',' expected after '\"'",
        ),
        (
            "t.dat",
            b"a,b\n",
            "its name does not say what it is: set source.format: csv, tsv, jsonl or parquet",
        ),
        (
            "t.csv",
            b"a,b\n1,2\n\xff,2\n",
            "row 3: it is not in utf-8: set source.encoding, such as windows-1252, or correct it",
        ),
        ("gone.csv", None, "it cannot be read: no such file or directory"),
    ],
)
def test_a_table_that_cannot_be_read(name, content, sentence, tmp_path):
    path = tmp_path / name if content is None else write(tmp_path / name, content)
    with pytest.raises(UnreadableTableError) as raised:
        read(path)
    assert str(raised.value) == sentence


def test_rows_of_another_width_are_bad_rows(tmp_path):
    path = write(tmp_path / "t.csv", b"a,b\n1\n1,2,3\n1,2\n")
    with read_table(str(path), TableFormat(), WANTED) as table:
        assert [(row.number, row.cells, row.fault) for row in table.rows] == [
            (2, None, "it has 1 cell, and the table has 2 columns"),
            (3, None, "it has 3 cells, and the table has 2 columns"),
            (4, {"a": "1", "b": "2"}, None),
        ]


def test_all_columns_are_read_where_none_are_named(tmp_path):
    pq.write_table(pa.table({"a": ["1"], "b": ["2"]}), tmp_path / "t.parquet")
    for path in (write(tmp_path / "t.csv", b"a,b\n1,2\n"), tmp_path / "t.parquet"):
        assert read(path, None) == [{"a": "1", "b": "2"}]
    with pytest.raises(
        UnreadableTableError, match=r"^it has 2 columns 'a' \(its header\): rename all but one$"
    ):
        read(write(tmp_path / "u.csv", b"a,a\n1,2\n"), None)
