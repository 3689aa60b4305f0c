"""CSV and TSV, row by row."""

import csv
import io
from collections.abc import Iterator
from typing import Literal

from recordmill.transforms.inputs.tables.row import MAX_ROW_BYTES, Row, UnreadableTableError
from recordmill.transforms.inputs.tables.text_lines import TextLines, read_rows


def read_csv_rows(lines: TextLines, delimiter: str, quote: str, skip_blanks: bool = False) -> Iterator[Row]:
    """The rows, whose cells are lists of texts; empty lines are none.

    Args:
        lines: of the file.
        delimiter: one character between cells.
        quote: one character around cells that have delimiters or line breaks in them, doubled for itself; empty: none.
        skip_blanks: whether blanks after a delimiter are part of it.

    Raises:
        UnreadableTableError: a quote is never closed.
    """
    reader = _reader(lines, delimiter, quote, skip_blanks)

    def read_cells() -> list[str]:
        try:
            return next(reader)
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                sentence = f"row {lines.row_number}: a quote is opened and never closed: close it"
                raise UnreadableTableError(sentence) from None
            raise ValueError(f"it is not a row of a table: {error}") from None

    return read_rows(lines, read_cells)


def read_csv_record(text: str, delimiter: str, quote: str, skip_blanks: bool = False) -> list[str]:
    """The cells of one row.

    Raises:
        ValueError: it is none.
    """
    try:
        rows = list(_reader(io.StringIO(text, newline=""), delimiter, quote, skip_blanks))
    except csv.Error as error:
        raise ValueError(str(error)) from None
    if len(rows) != 1:
        raise ValueError(f"there are {len(rows)} rows")
    return rows[0]


def read_word_rows(lines: TextLines, count: int) -> Iterator[Row]:
    """The rows, whose cells are words between blanks; empty lines are none.

    Args:
        lines: of the file.
        count: how many cells a row has at most: the first of them may have blanks in it, as paths may. 0: any number.
    """
    return read_rows(lines, lambda: next(lines).strip().rsplit(maxsplit=count - 1))


def _reader(lines: Iterator[str], delimiter: str, quote: str, skip_blanks: bool) -> Iterator[list[str]]:
    csv.field_size_limit(MAX_ROW_BYTES)  # the process's, and 128 KiB: an image in base64 is longer
    quoting: Literal[0, 3] = 0 if quote else 3  # csv.QUOTE_MINIMAL, csv.QUOTE_NONE
    return csv.reader(
        lines, delimiter=delimiter, quotechar=quote or None, quoting=quoting, skipinitialspace=skip_blanks, strict=True
    )
