"""Reads Parquet: its rows, class names from its schema, and files inside cells, in any order.

Images are read in the order of their hashes, but a row group can only be read from its start. So
each process unpacks the cells of each row group that it needs once, to an anonymous temporary file
that disappears with the process. Memory holds 16 bytes per cell and, while a row group is unpacked,
the part that pyarrow decodes.
"""

import atexit
import os
import posixpath
import tempfile
import threading
from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, chain
from typing import Any, BinaryIO, cast

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from recordmill import storage
from recordmill.schemas.image_ref import PARQUET_CELL, UNKNOWN_SIZE, ImageRef, SourceFile
from recordmill.schemas.rejection import Rejected
from recordmill.storage.packed_files import MAX_RATIO, most_unpacked
from recordmill.transforms.inputs.tables.cells import TableRow, UnreadableTableError

_ROWS = 1024
"""Rows that are decoded at once."""

_ROWS_OF_IMAGES = 16
"""The same for cells that contain files."""


@contextmanager
def open_parquet(stream: BinaryIO) -> Iterator[pq.ParquetFile]:
    """Opens a Parquet file; pyarrow's errors, here or in the `with` block, become one sentence.

    Raises:
        UnreadableTableError: it is not Parquet, or it is damaged.
    """
    try:
        # Without pre_buffer, a column is read in pieces of buffer_size; with it, a whole row group
        # at once.
        yield pq.ParquetFile(stream, buffer_size=2**20, pre_buffer=False)
    except UnicodeDecodeError as error:
        raise UnreadableTableError(
            f"text in it is not UTF-8: {error.object!r:.100}: correct it"
        ) from None
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # from the file system
            raise
        raise UnreadableTableError(
            f"it is not Parquet, or it is damaged: {' '.join(str(error).split())}"
        ) from None


def check_sizes(parquet: pq.ParquetFile, columns: Collection[str]) -> None:
    """Refuses decompression bombs among the columns.

    Raises:
        UnreadableTableError: in a row group, a column unpacks to more than `unpacking.FREE_BYTES`
            plus `unpacking.MAX_RATIO` times its size.
    """
    for number in range(parquet.num_row_groups):
        group = parquet.metadata.row_group(number)
        if group.total_byte_size <= most_unpacked(0):
            # No column can be too large, and odd statistics of a column make pyarrow abort the
            # process.
            continue
        for chunk in map(group.column, range(group.num_columns)):
            name = chunk.path_in_schema.partition(".")[0]
            if name in columns and chunk.total_uncompressed_size > most_unpacked(
                chunk.total_compressed_size
            ):
                what = f"column {name!r} becomes more than {MAX_RATIO} times its size"
                raise UnreadableTableError(f"{what} in row group {number + 1}")


def read_parquet_rows(parquet: pq.ParquetFile, columns: Sequence[str]) -> Iterator[TableRow]:
    """Yields rows with the values of these columns by name."""
    batches = parquet.iter_batches(_ROWS, columns=list(columns), use_threads=False)
    values = chain.from_iterable(batch.to_pylist() for batch in batches)
    for number, cells in enumerate(values, start=1):
        yield TableRow(number, cells)


def class_names(schema: pa.Schema, column: str) -> list[str]:
    """Returns the names of a column's classes, from Hugging Face's `ClassLabel`.

    The classes are numbered 0, 1, and so on. The list is empty if there are none. A `ClassLabel` in
    a list or struct counts too.
    """
    try:
        metadata: Any = orjson.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        feature = metadata["info"]["features"][column]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return []
    return [str(name) for name in _names_in(feature)]


def _names_in(feature: Any) -> list[Any]:
    if isinstance(feature, dict) and isinstance(names := feature.get("names"), list):
        return names
    inner: Iterable[Any] = ()
    if isinstance(feature, dict):
        inner = feature.values()
    elif isinstance(feature, list):
        inner = feature
    return next((names for each in inner if (names := _names_in(each))), [])


def fields_next_to_bytes(schema: pa.Schema, column: str) -> list[str]:
    """Returns the fields of a column's structs that are not read: neither `bytes` nor `path`."""
    kind = schema.field(column).type
    if not pa.types.is_struct(kind):
        return []
    names = [kind.field(index).name for index in range(kind.num_fields)]
    return [name for name in names if name not in ("bytes", "path")]


def bytes_type_fault(schema: pa.Schema | None, column: str) -> str | None:
    """Returns why a column cannot contain files, or None if it can.

    It can if it is binary, or a struct with binary `bytes`.

    Args:
        schema: of the table; None if it is not Parquet.
        column: a column in it.
    """
    if schema is None:
        return (
            "images in cells are read from Parquet only: store them as files, and name their "
            "paths in uri"
        )
    kind = schema.field(column).type
    if pa.types.is_struct(kind):
        inner = [
            kind.field(index)
            for index in range(kind.num_fields)
            if kind.field(index).name == "bytes"
        ]
        kind = inner[0].type if inner else kind
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return None
    return f"its type is {kind}, not binary or a struct with binary `bytes`"


@dataclass(slots=True)
class _RowGroup:
    """The places of one row group's cells in the temporary file; a length of -1 means no value."""

    starts: array = field(default_factory=lambda: array("q"))
    lengths: array = field(default_factory=lambda: array("q"))
    fault: str | None = None


_LOCK = threading.Lock()


def check_cells(schema: pa.Schema | None, columns: Mapping[str, str]) -> None:
    """Checks that columns can contain files.

    Args:
        schema: as for `bytes_type_fault`.
        columns: the columns, each with the YAML key that names it.

    Raises:
        UnreadableTableError: one cannot.
    """
    for column, key in columns.items():
        if fault := bytes_type_fault(schema, column):
            raise UnreadableTableError(f"column {column!r} ({key}): {fault}")


def name_cell(key: str, table: ImageRef, row: int, column: str) -> SourceFile:
    """Returns the file in a cell besides that of the image.

    Args:
        key: its name in the dataset.
        table: a reference to the table.
        row: the number of its row, from 1.
        column: its column.
    """
    packing = f"{PARQUET_CELL}:{column}"
    return SourceFile(key, table.uri, UNKNOWN_SIZE, table.version, offset=row - 1, packing=packing)


def read_parquet_cell(ref: ImageRef, column: str, max_bytes: int) -> bytes:
    """Reads the bytes in one cell.

    Args:
        ref: a reference to the row; `version` is the file's, so that a rewritten file is unpacked
            again.
        column: a column of binary values, or of structs with `bytes`.
        max_bytes: the most bytes that a cell may have.

    Raises:
        Rejected: stage `read`: the bytes are missing, damaged or too many, or the file has changed.
        OSError: the file cannot be read, or there is no room to unpack it.
    """
    try:
        with _LOCK:
            firsts = _first_rows(ref.uri, ref.version)
            index = bisect_right(firsts, ref.offset) - 1
            if index == len(firsts) - 1:
                raise Rejected(
                    "read", "changed", f"there is no row {ref.offset + 1}, only {firsts[-1]}"
                )
            group = _unpack(ref.uri, ref.version, column, index)
    except FileNotFoundError:
        raise Rejected(
            "read", "vanished", "the table was listed, and was gone when it was read"
        ) from None
    except UnreadableTableError as error:
        raise Rejected("read", "bad_packing", str(error)) from None
    if group.fault:
        raise Rejected("read", "bad_packing", group.fault)
    start, length = (
        group.starts[ref.offset - firsts[index]],
        group.lengths[ref.offset - firsts[index]],
    )
    if length < 0:
        place = f"{posixpath.basename(ref.uri)}, row {ref.offset + 1}"
        raise Rejected(
            "read", "bad_row", f"{place}, column {column!r}: there are no bytes: embed the image"
        )
    if length > max_bytes:
        raise Rejected(
            "read",
            "too_many_bytes",
            f"more than the {max_bytes} bytes that images.max_bytes allows",
        )
    return os.pread(_cells_file().fileno(), length, start)


@cache
def _first_rows(uri: str, version: str) -> list[int]:
    """Returns the number of each row group's first row, and the number of all rows."""
    with storage.open_to_read(uri) as stream, open_parquet(stream) as parquet:
        counts = [
            parquet.metadata.row_group(index).num_rows for index in range(parquet.num_row_groups)
        ]
    return [0, *accumulate(counts)]


@cache
def _cells_file() -> BinaryIO:
    """This process's file of unpacked cells."""
    file = cast(BinaryIO, tempfile.TemporaryFile(prefix="recordmill-cells-"))  # noqa: SIM115  # it stays open
    atexit.register(file.close)
    return file


@cache
def _unpack(uri: str, version: str, column: str, index: int) -> _RowGroup:
    """Appends the cells of a row group to the temporary file."""
    group, file = _RowGroup(), _cells_file()
    try:
        with storage.open_to_read(uri) as stream, open_parquet(stream) as parquet:
            most = file.tell() + most_unpacked(parquet.metadata.row_group(index).total_byte_size)
            for batch in parquet.iter_batches(
                _ROWS_OF_IMAGES, [index], [column], use_threads=False
            ):
                cells = batch.column(0)
                if pa.types.is_struct(cells.type):
                    # flatten() applies the structs' own nulls to their fields; field() does not.
                    cells = cells.flatten()[[each.name for each in cells.type].index("bytes")]
                for cell in cells:
                    content = cell.as_buffer()
                    group.starts.append(file.tell())
                    group.lengths.append(-1 if content is None else file.write(content))
                if file.tell() > most:  # many rows may share one large value
                    raise UnreadableTableError(
                        f"column {column!r} becomes more than {MAX_RATIO} times its size"
                    )
        file.flush()
    except UnreadableTableError as error:
        # Cached with the group, so that it is not unpacked again for each row.
        group.fault = str(error)
    return group
