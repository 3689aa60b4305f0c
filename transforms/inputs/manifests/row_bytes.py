"""Images stored in the rows of a manifest themselves."""

import base64
import csv
import io
import posixpath
from contextlib import suppress
from typing import Any

import orjson

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.packing import Gzip, TextCell, parse_packing
from recordmill.schemas.rejection import Rejected
from recordmill.storage.read_image import read_image
from recordmill.transforms.inputs.tables.parquet import PARQUET_CELLS
from recordmill.transforms.inputs.tables.read_table import TableFormat
from recordmill.transforms.inputs.tables.row import MAX_ROW_BYTES, UnreadableTableError


def read_row_bytes(ref: ImageRef, column: str, table_format: TableFormat, max_bytes: int) -> bytes:
    """The bytes of the image in a reference's row.

    Args:
        ref: with the packing of a `TextCell` or a `ParquetCell`.
        column: the column's name.
        table_format: how the manifest is written.
        max_bytes: a longer image is rejected.

    Raises:
        Rejected: stage `read`: there are no bytes, they are not base64, or too many, or the manifest has changed.
    """
    packing = parse_packing(ref.packing)
    if isinstance(packing, TextCell):
        text = _read_text_cell(ref, packing, column, table_format)
        try:
            data = base64.b64decode("".join(text.split()), validate=True)
        except ValueError as error:
            place = f"{posixpath.basename(ref.uri)}, the row at byte {ref.offset:,}"
            raise Rejected("read", "bad_row", f"{place}, column {column!r}: it is not valid base64 ({error})") from None
    else:
        data = _read_parquet_cell(ref, column, max_bytes)
    if len(data) > max_bytes:
        raise Rejected("read", "too_many_bytes", f"more than the {max_bytes} bytes that images.max_bytes allows")
    return data


def _read_text_cell(ref: ImageRef, packing: TextCell, column: str, table_format: TableFormat) -> str:
    """The cell's text; what was well-formed when it was listed is so still, or has changed since."""
    row = read_image(ref.replace(packing=str(Gzip()) if packing.is_gzip else ""), MAX_ROW_BYTES)
    text: Any = None
    with suppress(ValueError, LookupError, TypeError, csv.Error):
        line = row.decode(packing.codec)
        if packing.kind == "jsonl":
            text = orjson.loads(line)[column]
        else:
            (cells,) = table_format.csv_dialect(packing.kind).read(io.StringIO(line, newline=""))
            text = cells[packing.column]
    if not isinstance(text, str):
        raise Rejected("read", "changed", "the manifest has changed since it was listed")
    return text


def _read_parquet_cell(ref: ImageRef, column: str, max_bytes: int) -> bytes:
    try:
        data = PARQUET_CELLS.read(ref.uri, ref.version, column, ref.offset, max_bytes)
    except UnreadableTableError as error:
        raise Rejected("read", "bad_packing", str(error)) from None
    except FileNotFoundError:
        raise Rejected("read", "vanished", "the manifest was listed, and was gone when it was read") from None
    except IndexError as error:
        raise Rejected("read", "changed", str(error)) from None
    if data is None:
        place = f"{posixpath.basename(ref.uri)}, row {ref.offset + 1}"
        raise Rejected("read", "bad_row", f"{place}, column {column!r}: there are no bytes")
    return data
