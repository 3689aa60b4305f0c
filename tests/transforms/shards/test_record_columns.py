import os

import numpy as np
import pytest
from sidecar_lines import written
from write_shard import columns_of

from recordmill.schemas.dataset.side_files import row_from_json
from recordmill.schemas.dataset.totals import RowTotals, ShardReport
from recordmill.schemas.digests import order_of
from recordmill.transforms.shards.shard_files import as_numbers, read_column

ROWS = [
    {**written("a"), "offset": 0, "length": 9, "sha256": f"{5:016x}{1:048x}"},
    {**written("b"), "offset": 25, "length": 7, "sha256": f"{2**64 - 2:016x}{1:048x}"},
]


def report_of(records):
    return ShardReport("train", 3, records, RowTotals(), {}, records=records)


def write(folder, rows, seed=7):
    columns = columns_of(map(row_from_json, rows), seed)
    (folder / "train-00003.columns").write_bytes(b"".join(columns.values()))
    return columns


@pytest.mark.parametrize(
    ("hashes", "expected"), [(["ff", "f" * 16], [255, 2**64 - 1]), ([None, None], [])]
)
def test_each_column_comes_back(tmp_path, hashes, expected):
    rows = [{**row, "difference_hash": each} for row, each in zip(ROWS, hashes, strict=True)]
    columns = write(tmp_path, rows)
    found = {
        column: as_numbers(read_column(str(tmp_path), report_of(2), column)).tolist()
        for column in ("places", "contents", "hashes")
    }
    orders = [order_of(7, key) for key in "ab"]
    assert found == {
        "places": [0, 9, orders[0], 25, 7, orders[1]],
        "contents": [5, 2**64 - 2],
        "hashes": expected,
    }
    assert as_numbers(columns["contents"]).tolist() == [5, 2**64 - 2]


def test_a_shard_without_records_has_no_numbers(tmp_path):
    write(tmp_path, [])
    assert os.path.getsize(tmp_path / "train-00003.columns") == 0
    assert as_numbers(read_column(str(tmp_path), report_of(0), "contents")).dtype == np.uint64


def test_an_absent_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_column(str(tmp_path), report_of(2), "places")
