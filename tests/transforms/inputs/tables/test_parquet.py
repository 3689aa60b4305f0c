import io
import json
import random
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.tables.cells import UnreadableTableError
from recordmill.transforms.inputs.tables.parquet import (
    bytes_type_fault,
    check_sizes,
    class_names,
    open_parquet,
    read_parquet_cell,
    read_parquet_rows,
)


def written(table, **more):
    stream = io.BytesIO()
    pq.write_table(table, stream, **more)
    return stream.getvalue()


def read(content, *columns):
    with open_parquet(io.BytesIO(content)) as parquet:
        return list(read_parquet_rows(parquet, columns))


def test_rows_have_the_columns_asked_for():
    content = written(
        pa.table({"a": range(3000), "b": [[str(n)] for n in range(3000)], "c": [0.5] * 3000})
    )
    rows = read(content, "b", "a")
    assert [row.cells for row in rows] == [{"a": n, "b": [str(n)]} for n in range(3000)]
    assert [row.number for row in rows[:2]] == [1, 2]
    assert [row.cells for row in read(content)] == [{}] * 3000


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"no parquet at all, but long enough to look"])
def test_a_file_that_is_not_parquet_is_reported_in_one_sentence(damage):
    with pytest.raises(
        UnreadableTableError, match=r"^it is not Parquet, or it is damaged: [^\n]+$"
    ):
        read(damage, "a")


def test_text_that_is_not_utf_8_ends_the_table():
    texts = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
    )
    with pytest.raises(UnreadableTableError, match=r"^text in it is not UTF-8: b'.*': correct it$"):
        read(written(pa.table({"a": texts})), "a")


def test_damaged_names_of_columns_are_reported_in_one_sentence():
    content = written(pa.table({"aaaa": [1]})).replace(b"aaaa", b"aa\xffa")
    with pytest.raises(
        UnreadableTableError, match=r"^text in it is not UTF-8: b'aa\\xffa': correct it$"
    ):
        read(content, "aaaa")


def test_columns_of_a_small_row_group_are_not_looked_at_since_pyarrow_aborts_at_odd_ones():
    groups = SimpleNamespace(row_group=lambda number: SimpleNamespace(total_byte_size=2**26))
    check_sizes(SimpleNamespace(num_row_groups=1, metadata=groups), ["a"])


def test_a_damaged_page_is_reported_in_one_sentence():
    content = bytearray(written(pa.table({"a": [str(n) for n in range(9000)]}), compression="zstd"))
    content[40:4000] = bytes(3960)
    with pytest.raises(
        UnreadableTableError, match=r"^it is not Parquet, or it is damaged: [^\n]+$"
    ):
        read(bytes(content), "a")


def test_names_of_classes():
    features = {
        "a": {"names": ["x", "y"], "_type": "ClassLabel"},
        "b": {"feature": {"names": ["z"]}},
        "c": {"dtype": "int64"},
        "d": {
            "bbox": {"_type": "List"},
            "categories": {"feature": {"names": ["p", "q"]}, "_type": "List"},
        },
        "e": [{"bbox": {"_type": "List"}, "category": {"names": ["r"], "_type": "ClassLabel"}}],
    }
    schema = pa.schema(
        [("a", pa.int64())], {"huggingface": json.dumps({"info": {"features": features}})}
    )
    assert [class_names(schema, name) for name in "abcdef"] == [
        ["x", "y"],
        ["z"],
        [],
        ["p", "q"],
        ["r"],
        [],
    ]
    assert class_names(pa.schema([("a", pa.int64())]), "a") == []
    assert class_names(pa.schema([("a", pa.int64())], {"huggingface": "{"}), "a") == []


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (pa.binary(), None),
        (pa.large_binary(), None),
        (pa.struct([("path", pa.string()), ("bytes", pa.binary())]), None),
        (pa.string(), "its type is string, not binary or a struct with binary `bytes`"),
        (
            pa.struct([("bytes", pa.string())]),
            "its type is string, not binary or a struct with binary `bytes`",
        ),
        (
            pa.struct([("x", pa.int8())]),
            "its type is struct<x: int8>, not binary or a struct with binary `bytes`",
        ),
    ],
)
def test_columns_that_can_hold_files(kind, fault):
    assert bytes_type_fault(pa.schema([("a", kind)]), "a") == fault


def test_a_bomb_is_refused_by_what_its_footer_states():
    """Eight values of 100 MB are a file of 100 KB, and took 3 GB of memory."""
    bomb = written(
        pa.table({"a": [1], "b": [bytes(80_000_000)]}), compression="zstd", use_dictionary=False
    )
    assert len(bomb) < 100_000
    with open_parquet(io.BytesIO(bomb)) as parquet:
        check_sizes(parquet, ["a"])
        with pytest.raises(UnreadableTableError) as raised:
            check_sizes(parquet, ["a", "b"])
    assert str(raised.value) == "column 'b' becomes more than 100 times its size in row group 1"


def test_columns_in_structs_count_too():
    images = pa.table({"image": [{"bytes": bytes(80_000_000), "path": "a"}]})
    content = io.BytesIO(written(images, compression="zstd", use_dictionary=False))
    with (
        open_parquet(content) as parquet,
        pytest.raises(UnreadableTableError, match=r"^column 'image' becomes"),
    ):
        check_sizes(parquet, {"image"})


def read_cell(path, row, max_bytes=10**6, version="1"):
    return read_parquet_cell(
        ImageRef("k", str(path), -1, version, offset=row, packing="parquet"), "x", max_bytes
    )


VALUES = [b"" if n % 10 == 7 else random.Random(n).randbytes(n * 13 % 500) for n in range(100)]
KINDS = {
    "binary": pa.binary(),
    "large": pa.large_binary(),
    "struct": pa.struct([("path", pa.string()), ("bytes", pa.binary())]),
}


@pytest.fixture(params=KINDS)
def table(request, tmp_path):
    is_struct = request.param == "struct"
    values = [{"path": "a", "bytes": value} for value in VALUES] if is_struct else VALUES
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": pa.array(values, KINDS[request.param])}), path, row_group_size=30)
    return str(path)


def test_any_cell_in_any_order_from_threads(table):
    order = random.Random(1).sample(range(100), 100) * 2
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda row: read_cell(table, row), order))
    assert found == [VALUES[row] for row in order]


def test_a_rewritten_file_is_unpacked_again(tmp_path):
    path = tmp_path / "a.parquet"
    for version, value in (("1", b"old"), ("2", b"new")):
        pq.write_table(pa.table({"x": [value]}), path)
        assert read_cell(path, 0, version=version) == value


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.large_binary(), pa.struct([("path", pa.string()), ("bytes", pa.binary())])],
)
def test_cells_that_cannot_be_read(kind, tmp_path):
    data = {"bytes": b"x" * 256} if pa.types.is_struct(kind) else b"x" * 256
    values = [data, None, *([{"bytes": None}] if pa.types.is_struct(kind) else [])]
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": pa.array(values, kind)}), path)
    assert read_cell(path, 0, 256) == b"x" * 256
    empty = "t.parquet, row {}, column 'x': there are no bytes: embed the image"
    for row, bound, detail in (
        (0, 255, "too_many_bytes: more than the 255 bytes that images.max_bytes allows"),
        *((row, 999, f"bad_row: {empty.format(row + 1)}") for row in range(1, len(values))),
        (len(values), 999, f"changed: there is no row {len(values) + 1}, only {len(values)}"),
    ):
        with pytest.raises(Rejected) as raised:
            read_cell(path, row, bound)
        assert (raised.value.stage, str(raised.value)) == ("read", detail)
    with pytest.raises(Rejected, match="vanished"):
        read_cell(tmp_path / "gone", 0)
    (tmp_path / "bad").write_bytes(b"no parquet here, none at all")
    with pytest.raises(Rejected, match="bad_packing: it is not Parquet, or it is damaged"):
        read_cell(tmp_path / "bad", 0)


def test_a_damaged_row_group_leaves_the_others(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"x": [bytes([n]) * 3000 for n in range(4)]}),
        path,
        row_group_size=2,
        compression="none",
        use_dictionary=False,
    )
    data = bytearray(path.read_bytes())
    data[4:40] = b"\xff" * 36
    path.write_bytes(bytes(data))
    for _ in range(2):
        with pytest.raises(Rejected, match=r"bad_packing: .*damaged"):
            read_cell(path, 1)
    assert read_cell(path, 2) == b"\2" * 3000


def test_a_large_value_that_many_rows_share_is_not_written_out_for_each(tmp_path, monkeypatch):
    monkeypatch.setattr("recordmill.storage.packed_files.FREE_BYTES", 0)
    value = random.Random(0).randbytes(10_000)
    pq.write_table(pa.table({"x": [value] * 50}), tmp_path / "few.parquet")
    pq.write_table(pa.table({"x": [value] * 5000}), tmp_path / "many.parquet")
    assert read_cell(tmp_path / "few.parquet", 49) == value
    with pytest.raises(
        Rejected, match=r"^bad_packing: column 'x' becomes more than 100 times its size$"
    ):
        read_cell(tmp_path / "many.parquet", 0)
