"""Files inside a Parquet file, in any order.

A row group cannot be entered in its middle, and images are read in the order of their hashes. So each row group's cells
are unpacked once in each process that reads from it, one after the other to a temporary file without a name, which goes
with the process. Memory holds 16 bytes a cell, and while a row group is unpacked what pyarrow decodes of it.
"""

import os
import tempfile
import threading
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

import pyarrow as pa
import pyarrow.parquet as pq

from recordmill import storage
from recordmill.storage.unpacking import MAX_RATIO, most_unpacked
from recordmill.transforms.inputs.tables.parquet_rows import open_parquet
from recordmill.transforms.inputs.tables.row import UnreadableTableError

_BATCH_ROWS = 16


@dataclass(slots=True)
class _RowGroup:
    """Where the cells of one row group are in the temporary file; a length of -1 means no value."""

    starts: array = field(default_factory=lambda: array("q"))
    lengths: array = field(default_factory=lambda: array("q"))
    fault: str = ""


class ParquetCells:
    """The cells of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file = -1
        self._end = 0
        self._first_rows: dict[tuple[str, str], list[int]] = {}
        self._groups: dict[tuple[str, str, str, int], _RowGroup] = {}

    def read(self, uri: str, version: str, column: str, row: int, max_bytes: int) -> bytes | None:
        """The bytes in one cell; None where there are none.

        Args:
            uri: the Parquet file.
            version: the file's, so that a rewritten file is unpacked again.
            column: of binary values, or of structs with `bytes`.
            row: from 0.
            max_bytes: at most this many are read, and one more.

        Raises:
            UnreadableTableError: the file is damaged.
            IndexError: there is no such row.
            OSError: the file cannot be read, or there is no room to unpack it.
        """
        with self._lock:
            group, at = self._find(uri, version, column, row)
        if group.fault:
            raise UnreadableTableError(group.fault)
        start, length = group.starts[at], group.lengths[at]
        return None if length < 0 else os.pread(self._file, min(length, max_bytes + 1), start)

    def _find(self, uri: str, version: str, column: str, row: int) -> tuple[_RowGroup, int]:
        key = (uri, version)
        if key not in self._first_rows:
            with storage.open_to_read(uri) as stream, open_parquet(stream) as parquet:
                counts = [parquet.metadata.row_group(index).num_rows for index in range(parquet.num_row_groups)]
            self._first_rows[key] = [0, *accumulate(counts)]
        firsts = self._first_rows[key]
        if not 0 <= row < firsts[-1]:
            raise IndexError(f"there is no row {row + 1}, only {firsts[-1]}")
        index = bisect_right(firsts, row) - 1
        if (*key, column, index) not in self._groups:
            self._groups[*key, column, index] = self._unpack(uri, column, index)
        return self._groups[*key, column, index], row - firsts[index]

    def _unpack(self, uri: str, column: str, index: int) -> _RowGroup:
        if self._file < 0:
            with tempfile.TemporaryFile(prefix="recordmill-cells-") as file:
                self._file = os.dup(file.fileno())
        group = _RowGroup()
        try:
            with storage.open_to_read(uri) as stream, open_parquet(stream) as parquet:
                self._append(parquet, column, index, group)
        except UnreadableTableError as error:  # reported once per group, not tried again for every row of it
            group.fault = str(error)
        return group

    def _append(self, parquet: pq.ParquetFile, column: str, index: int, group: _RowGroup) -> None:
        most = self._end + most_unpacked(parquet.metadata.row_group(index).total_byte_size)
        for batch in parquet.iter_batches(_BATCH_ROWS, row_groups=[index], columns=[column], use_threads=False):
            cells = batch.column(0)
            if pa.types.is_struct(cells.type):
                # flatten() gives the structs' own nulls to their fields; field() would not.
                cells = cells.flatten()[[each.name for each in cells.type].index("bytes")]
            for cell in cells:
                content = cell.as_buffer()
                group.starts.append(self._end)
                group.lengths.append(-1 if content is None else content.size)
                written = 0
                while content is not None and written < content.size:
                    written += os.pwrite(self._file, memoryview(content)[written:], self._end + written)
                self._end += written
            if self._end > most:  # as many rows may share one large value
                raise UnreadableTableError(f"column {column!r} becomes more than {MAX_RATIO} times its size")


PARQUET_CELLS = ParquetCells()
"""This process's."""
