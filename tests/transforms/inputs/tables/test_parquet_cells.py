import random
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recordmill.transforms.inputs.tables.parquet_cells import ParquetCells
from recordmill.transforms.inputs.tables.row import UnreadableTableError

VALUES = [None if n % 10 == 7 else random.Random(n).randbytes(n * 13 % 500) for n in range(100)]
KINDS = {
    "binary": pa.binary(),
    "large": pa.large_binary(),
    "struct": pa.struct([("path", pa.string()), ("bytes", pa.binary())]),
}


@pytest.fixture(params=KINDS)
def table(request, tmp_path):
    values = VALUES
    if request.param == "struct":  # of the values that are none, every other struct is none itself
        values = [None if v is None and n % 20 == 7 else {"path": str(n), "bytes": v} for n, v in enumerate(VALUES)]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": pa.array(values, KINDS[request.param])}), path, row_group_size=30)
    return str(path)


def test_any_cell_in_any_order_from_threads(table):
    cells = ParquetCells()
    order = random.Random(1).sample(range(100), 100) * 2
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda row: cells.read(table, "1", "x", row, 1000), order))
    assert found == [VALUES[row] for row in order]


def test_no_more_is_read_than_asked_for(table):
    assert ParquetCells().read(table, "1", "x", 98, 5) == VALUES[98][:6]


def test_a_rewritten_file_is_unpacked_again(tmp_path):
    cells, path = ParquetCells(), tmp_path / "a.parquet"
    for version, value in (("1", b"old"), ("2", b"new")):
        pq.write_table(pa.table({"x": [value]}), path)
        assert cells.read(str(path), version, "x", 0, 9) == value


def test_rows_that_are_not_there(table):
    with pytest.raises(IndexError, match="there is no row 101, only 100"):
        ParquetCells().read(table, "1", "x", 100, 9)


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
    cells = ParquetCells()
    for _ in range(2):
        with pytest.raises(UnreadableTableError, match="damaged"):
            cells.read(str(path), "1", "x", 1, 9000)
    assert cells.read(str(path), "1", "x", 2, 9000) == b"\2" * 3000


def test_a_large_value_that_many_rows_share_is_not_written_out_for_each(tmp_path, monkeypatch):
    monkeypatch.setattr("recordmill.storage.unpacking.FREE_BYTES", 0)
    value = random.Random(0).randbytes(10_000)
    pq.write_table(pa.table({"x": [value] * 50}), tmp_path / "few.parquet")
    pq.write_table(pa.table({"x": [value] * 5000}), tmp_path / "many.parquet")
    assert ParquetCells().read(str(tmp_path / "few.parquet"), "1", "x", 49, 10**6) == value
    with pytest.raises(UnreadableTableError, match=r"^column 'x' becomes more than 100 times its size$"):
        ParquetCells().read(str(tmp_path / "many.parquet"), "1", "x", 0, 10**6)
