"""Parquet, row by row, and what its schema says."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from recordmill.storage.unpacking import MAX_RATIO, most_unpacked
from recordmill.transforms.inputs.tables.row import Row, UnreadableTableError

_BATCH_ROWS = 1024


@contextmanager
def open_parquet(stream: BinaryIO) -> Iterator[pq.ParquetFile]:
    """Opens a Parquet file; pyarrow's errors, here or below, become one sentence.

    Raises:
        UnreadableTableError: it is not Parquet, or damaged.
    """
    try:
        # Without pre_buffer a column is read in pieces of buffer_size; with it, a whole row group at once.
        yield pq.ParquetFile(stream, buffer_size=2**20, pre_buffer=False)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # a file system's own
            raise
        raise UnreadableTableError(f"it is not Parquet, or it is damaged: {' '.join(str(error).split())}") from None


def check_sizes(parquet: pq.ParquetFile, columns: Collection[str]) -> None:
    """Sees to it that no column is a bomb.

    Raises:
        UnreadableTableError: what is stored of one in a row group becomes more than `unpacking.FREE_BYTES` and
            `unpacking.MAX_RATIO` times its size.
    """
    for number in range(parquet.num_row_groups):
        group = parquet.metadata.row_group(number)
        if group.total_byte_size <= most_unpacked(0):
            continue  # no column of it can be too large, and at odd statistics of one pyarrow ends the process
        for place in range(group.num_columns):
            chunk = group.column(place)
            name = chunk.path_in_schema.partition(".")[0]
            if name in columns and chunk.total_uncompressed_size > most_unpacked(chunk.total_compressed_size):
                raise UnreadableTableError(
                    f"column {name!r} becomes more than {MAX_RATIO} times its size in row group {number + 1}"
                )


def read_parquet_rows(parquet: pq.ParquetFile, columns: Sequence[str]) -> Iterator[Row]:
    """Yields rows with the values of some columns by name."""
    number = 0
    for batch in parquet.iter_batches(_BATCH_ROWS, columns=list(columns), use_threads=False):
        if not columns:
            found: list[Any] = [{}] * batch.num_rows
        else:
            found = _values(batch)
        for cells in found:
            number += 1
            fault = "" if cells is not None else "a text in it is not UTF-8"
            yield Row(number, cells, number - 1, -1, fault)


def _values(batch: pa.RecordBatch) -> list[Any]:
    try:
        values: list[Any] = batch.to_pylist()
    except UnicodeDecodeError:
        if batch.num_rows == 1:
            return [None]
        return [value for row in range(batch.num_rows) for value in _values(batch.slice(row, 1))]
    return values


def class_names(schema: pa.Schema, column: str) -> list[str]:
    """The names of a column's classes, where Hugging Face's `ClassLabel` states them; their numbers are 0, 1, ...

    Those of a list, or inside a struct, count too.
    """
    try:
        said: Any = orjson.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        feature = said["info"]["features"][column]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return []
    return [str(name) for name in _names_in(feature)]


def _names_in(feature: Any) -> list[Any]:
    if isinstance(feature, dict) and isinstance(names := feature.get("names"), list):
        return names
    inner = feature.values() if isinstance(feature, dict) else feature if isinstance(feature, list) else ()
    return next((names for each in inner if (names := _names_in(each))), [])


def bytes_type_fault(schema: pa.Schema, column: str) -> str:
    """Why a column cannot hold files' bytes; the empty string where it can: binary, or a struct with such `bytes`."""
    kind = schema.field(column).type
    if pa.types.is_struct(kind):
        inner = [kind.field(index) for index in range(kind.num_fields) if kind.field(index).name == "bytes"]
        kind = inner[0].type if inner else kind
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return ""
    return f"its type is {kind}, not binary or a struct with binary `bytes`"
