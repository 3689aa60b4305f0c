import io
import json
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recordmill.transforms.inputs.tables.parquet_rows import (
    bytes_type_fault,
    check_sizes,
    class_names,
    open_parquet,
    read_parquet_rows,
)
from recordmill.transforms.inputs.tables.row import UnreadableTableError


def written(table, **more):
    stream = io.BytesIO()
    pq.write_table(table, stream, **more)
    return stream.getvalue()


def read(content, *columns):
    with open_parquet(io.BytesIO(content)) as parquet:
        return list(read_parquet_rows(parquet, columns))


def test_rows_have_the_columns_asked_for():
    content = written(pa.table({"a": range(3000), "b": [[str(n)] for n in range(3000)], "c": [0.5] * 3000}))
    rows = read(content, "b", "a")
    assert [row.cells for row in rows] == [{"a": n, "b": [str(n)]} for n in range(3000)]
    assert [(row.number, row.offset, row.length) for row in rows[:2]] == [(1, 0, -1), (2, 1, -1)]
    assert [row.cells for row in read(content)] == [{}] * 3000


def test_a_text_that_is_not_utf_8_is_one_bad_row():
    texts = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0"), pa.py_buffer(b"a\xffb")]
    )
    rows = read(written(pa.table({"a": texts})), "a")
    assert [(row.cells, row.fault) for row in rows] == [
        ({"a": "a"}, ""),
        (None, "a text in it is not UTF-8"),
        ({"a": "b"}, ""),
    ]


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"no parquet at all, but long enough to look"])
def test_a_file_that_is_not_parquet_is_reported_in_one_sentence(damage):
    with pytest.raises(UnreadableTableError, match=r"^it is not Parquet, or it is damaged: [^\n]+$"):
        read(damage, "a")


def test_damaged_names_of_columns_are_reported_in_one_sentence():
    content = written(pa.table({"aaaa": [1]})).replace(b"aaaa", b"aa\xffa")
    with pytest.raises(UnreadableTableError, match=r"^it is not Parquet, or it is damaged: [^\n]+$"):
        read(content, "aaaa")


def test_columns_of_a_small_row_group_are_not_looked_at_since_pyarrow_aborts_at_odd_ones():
    groups = SimpleNamespace(row_group=lambda number: SimpleNamespace(total_byte_size=2**26))
    check_sizes(SimpleNamespace(num_row_groups=1, metadata=groups), ["a"])


def test_a_damaged_page_is_reported_in_one_sentence():
    content = bytearray(written(pa.table({"a": [str(n) for n in range(9000)]}), compression="zstd"))
    content[40:4000] = bytes(3960)
    with pytest.raises(UnreadableTableError, match=r"^it is not Parquet, or it is damaged: [^\n]+$"):
        read(bytes(content), "a")


def test_names_of_classes():
    features = {
        "a": {"names": ["x", "y"], "_type": "ClassLabel"},
        "b": {"feature": {"names": ["z"]}},
        "c": {"dtype": "int64"},
        "d": {"bbox": {"_type": "List"}, "categories": {"feature": {"names": ["p", "q"]}, "_type": "List"}},
        "e": [{"bbox": {"_type": "List"}, "category": {"names": ["r"], "_type": "ClassLabel"}}],
    }
    schema = pa.schema([("a", pa.int64())], {"huggingface": json.dumps({"info": {"features": features}})})
    assert [class_names(schema, name) for name in "abcdef"] == [["x", "y"], ["z"], [], ["p", "q"], ["r"], []]
    assert class_names(pa.schema([("a", pa.int64())]), "a") == []
    assert class_names(pa.schema([("a", pa.int64())], {"huggingface": "{"}), "a") == []


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (pa.binary(), ""),
        (pa.large_binary(), ""),
        (pa.struct([("path", pa.string()), ("bytes", pa.binary())]), ""),
        (pa.string(), "its type is string, not binary or a struct with binary `bytes`"),
        (pa.struct([("bytes", pa.string())]), "its type is string, not binary or a struct with binary `bytes`"),
        (pa.struct([("x", pa.int8())]), "its type is struct<x: int8>, not binary or a struct with binary `bytes`"),
    ],
)
def test_columns_that_can_hold_files(kind, fault):
    assert bytes_type_fault(pa.schema([("a", kind)]), "a") == fault


def test_a_bomb_is_refused_by_what_its_footer_states():
    """Eight values of 100 MB are a file of 100 KB, and took 3 GB of memory."""
    bomb = written(pa.table({"a": [1], "b": [bytes(80_000_000)]}), compression="zstd", use_dictionary=False)
    assert len(bomb) < 100_000
    with open_parquet(io.BytesIO(bomb)) as parquet:
        check_sizes(parquet, ["a"])
        with pytest.raises(UnreadableTableError) as raised:
            check_sizes(parquet, ["a", "b"])
    assert str(raised.value) == "column 'b' becomes more than 100 times its size in row group 1"


def test_columns_in_structs_count_too():
    images = pa.table({"image": [{"bytes": bytes(80_000_000), "path": "a"}]})
    content = io.BytesIO(written(images, compression="zstd", use_dictionary=False))
    with open_parquet(content) as parquet, pytest.raises(UnreadableTableError, match=r"^column 'image' becomes"):
        check_sizes(parquet, {"image"})
