"""Images stored in the rows of a manifest themselves.

A reference's `packing` says how: `csv CODEC COLUMN_NUMBER` (or `tsv`) and `jsonl CODEC` for base64 in the bytes of a
row, followed by `gzip` where the table is gzipped; `parquet` for a cell, whose row is the reference's `offset`.
"""

import base64
import binascii
import posixpath
from contextlib import suppress
from typing import Any

import orjson

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.storage.read_image import read_image
from recordmill.transforms.inputs.tables.parquet_cells import PARQUET_CELLS
from recordmill.transforms.inputs.tables.row import MAX_ROW_BYTES, UnreadableTableError
from recordmill.transforms.inputs.tables.text_rows import read_csv_record


def read_row_bytes(
    ref: ImageRef, column: str, delimiter: str, quote: str, max_bytes: int, skip_blanks: bool = False
) -> bytes:
    """The bytes of the image in a reference's row.

    Args:
        ref: with a `packing` of this module.
        column: the column's name.
        delimiter: of CSV.
        quote: of CSV.
        max_bytes: a longer image is rejected.
        skip_blanks: of CSV.

    Raises:
        Rejected: stage `read`: there are no bytes, they are not base64, or too many, or the manifest has changed.
    """
    if ref.packing == "parquet":
        data = _read_cell(ref, column, max_bytes)
    else:
        packing = "gzip" if ref.packing.endswith(" gzip") else ""
        row = read_image(ref.replace(packing=packing), MAX_ROW_BYTES)
        text = _find_text(row, ref.packing.split(), column, delimiter, quote, skip_blanks)
        try:
            data = base64.b64decode("".join(text.split()), validate=True)
        except (ValueError, binascii.Error) as error:
            place = f"{posixpath.basename(ref.uri)}, the row at byte {ref.offset:,}"
            raise Rejected("read", "bad_row", f"{place}, column {column!r}: it is not valid base64 ({error})") from None
    if len(data) > max_bytes:
        raise Rejected("read", "too_many_bytes", f"more than the {max_bytes} bytes that images.max_bytes allows")
    return data


def _read_cell(ref: ImageRef, column: str, max_bytes: int) -> bytes:
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


def _find_text(row: bytes, packing: list[str], column: str, delimiter: str, quote: str, skip_blanks: bool) -> str:
    """The cell's text; what was well-formed when it was listed is so still, or has changed since."""
    kind, codec, *position = packing
    text: Any = None
    with suppress(ValueError, LookupError, TypeError):
        if kind == "jsonl":
            text = orjson.loads(row.decode(codec))[column]
        else:
            text = read_csv_record(row.decode(codec), delimiter, quote, skip_blanks)[int(position[0])]
    if not isinstance(text, str):
        raise Rejected("read", "changed", "the manifest has changed since it was listed")
    return text
