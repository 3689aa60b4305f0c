import csv
import io

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.transforms.inputs.tables import read_table
from recordmill.transforms.inputs.tables.cells import UnreadableTableError
from recordmill.transforms.inputs.tables.read_table import (
    TableFormat,
    TextLines,
    read_csv_rows,
    read_jsonl_rows,
)

NOT_ENCODED = "it is not in utf-8: set source.encoding, such as windows-1252, or correct it"


def lines_of(content, encoding="utf-8"):
    return TextLines(io.BufferedReader(io.BytesIO(content)), encoding)


def read(content, delimiter=",", quote='"', encoding="utf-8"):
    data = content if isinstance(content, bytes) else content.encode(encoding)
    dialect = TableFormat(delimiter=delimiter, quote=quote).csv_dialect("csv", "")
    return list(read_csv_rows(lines_of(data, encoding), dialect))


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(
    st.lists(st.lists(cells, min_size=2, max_size=3)),
    st.sampled_from([",", "\t", ";"]),
    st.sampled_from(["utf-8", "utf-16"]),
)
def test_every_cell_comes_back(rows, delimiter, encoding):
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows(rows)
    data = stream.getvalue().encode(encoding)
    assert [row.cells for row in read(data, delimiter, encoding=encoding)] == rows


def test_rows_are_counted_by_lines():
    rows = read('a,b\r\n\r\n"1\r\n2",3\n4,5')
    assert [(row.number, row.cells) for row in rows] == [
        (1, ["a", "b"]),
        (3, ["1\r\n2", "3"]),
        (5, ["4", "5"]),
    ]


def test_a_malformed_row_is_one_row_and_the_next_is_read():
    rows = read(b'a,b\n"x"y,1\n\xff,2\nc,d\n')
    assert [(row.number, row.cells, row.fault) for row in rows] == [
        (1, ["a", "b"], None),
        (2, None, "it is not a row of a table: ',' expected after '\"'"),
        (3, None, NOT_ENCODED),
        (4, ["c", "d"], None),
    ]


@pytest.mark.parametrize("text", ["a,b\rc,d\r", 'a,"b"\rc,d\n'])
def test_lines_that_end_with_cr_alone_are_malformed(text):
    why = "it is not a row of a table: a line ends with CR alone: end each line with LF or CRLF"
    assert [(row.cells, row.fault) for row in read(text)] == [(None, why)]


def test_a_quote_that_is_never_closed_ends_the_table(monkeypatch):
    with pytest.raises(UnreadableTableError, match="row 2: a quote is opened and never closed"):
        read('a,b\n"1,2\n3,4\n')
    monkeypatch.setattr(read_table, "MAX_LETTERS", 1_000_000)
    with pytest.raises(UnreadableTableError, match="row 3: a quote is opened and never closed"):
        read('a,b\n1,2\n"1,2\n' + "3,4\n" * 2**19)


@pytest.mark.parametrize("read_rows", [read, lambda content: read_json(content.encode())])
def test_empty_lines_are_skipped_and_a_million_of_them_end_the_table(read_rows):
    assert [row.number for row in read_rows("\n" * 1000 + "{}\n")] == [1001]
    with pytest.raises(
        UnreadableTableError, match=r"^it has over 1,048,576 empty lines: remove them$"
    ):
        read_rows("\n" * 1_100_000)


def test_without_quoting_quotes_are_letters():
    assert [row.cells for row in read('a"\t"b\n', "\t", "")] == [['a"', '"b']]


def test_a_cell_may_be_as_long_as_an_image():
    assert read("a," + "x" * 500_000)[0].cells == ["a", "x" * 500_000]


def read_json(content):
    return list(read_jsonl_rows(lines_of(content)))


texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    st.lists(
        st.dictionaries(
            texts,
            st.none() | texts | st.booleans() | st.floats(allow_nan=False, allow_infinity=False),
        )
    )
)
def test_every_object_comes_back(objects):
    content = b"".join(orjson.dumps(each) + b"\n" for each in objects)
    assert [row.cells for row in read_json(content)] == objects


def test_lines_that_are_not_objects_are_rows_with_faults():
    rows = read_json(b'\xef\xbb\xbf{"a": 1}\n\n{"a": \n[1]\n"\xff"\n{"a": NaN}\r\n{"a": 2}')
    assert [(row.number, row.cells) for row in rows] == [
        (1, {"a": 1}),
        (3, None),
        (4, None),
        (5, None),
        (6, None),
        (7, {"a": 2}),
    ]
    faults = [row.fault for row in rows]
    assert faults[1].startswith("it is not valid JSON: ")
    assert faults[2:4] == ["it is not a JSON object: '[1]'", NOT_ENCODED]
    assert (faults[0], faults[5]) == (None, None)


def test_brackets_without_end_are_one_bad_row():
    rows = read_json(b"[" * 100_000 + b'\n{"a": 1}\n')
    assert [row.cells for row in rows] == [None, {"a": 1}]
