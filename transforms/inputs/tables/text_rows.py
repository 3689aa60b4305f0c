"""Rows of text: CSV and TSV, words between blanks, and JSON lines."""

import csv
import io
from collections.abc import Callable, Iterator
from typing import Any, Literal

import orjson

from recordmill.transforms.inputs.tables.row import MAX_ROW_BYTES, Row, UnreadableTableError
from recordmill.transforms.inputs.tables.text_lines import TextLines


def read_csv_rows(lines: TextLines, delimiter: str, quote: str, skip_blanks: bool = False) -> Iterator[Row]:
    """Yields rows whose cells are lists of texts; empty lines are none.

    A row that is malformed has a fault, and the next one begins with the line behind.

    Args:
        lines: of the file.
        delimiter: one character between cells.
        quote: one character around cells that have delimiters or line breaks in them, doubled for itself; empty: none.
        skip_blanks: whether blanks after a delimiter are part of it.

    Raises:
        UnreadableTableError: a quote is never closed.
    """
    return _rows(lines, _reader(lines, delimiter, quote, skip_blanks).__next__)


def read_word_rows(lines: TextLines, count: int) -> Iterator[Row]:
    """Yields rows whose cells are words between blanks; empty lines are none.

    Args:
        lines: of the file.
        count: how many cells a row has at most: the first of them may have blanks in it, as paths may. 0: any number.
    """
    return _rows(lines, lambda: next(lines).strip().rsplit(maxsplit=count - 1))


def read_jsonl_rows(lines: TextLines) -> Iterator[Row]:
    """Yields a row for each line that is not empty; cells are a JSON object's values by name."""

    def read() -> dict[str, Any] | list[Any]:
        line = next(lines)
        if not line.strip():
            return []
        cells = orjson.loads(line)
        if not isinstance(cells, dict):
            raise ValueError(f"it is no JSON object: {line.strip()!r:.60}")
        return cells

    return _rows(lines, read)


def _rows(lines: TextLines, read: Callable[[], Any]) -> Iterator[Row]:
    """The rows that `read` gives the cells of, until it raises StopIteration; those without cells are none."""
    while True:
        offset, first = lines.begin_row()
        cells, fault = None, ""
        try:
            cells = read()
        except StopIteration:
            return
        except UnicodeDecodeError:
            fault = f"it is not in {lines.codec}"
        except orjson.JSONDecodeError as error:
            fault = f"it is no JSON: {error}"
        except ValueError as error:  # after those of JSON and Unicode
            fault = str(error)
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                raise UnreadableTableError(f"row {first}: a quote is opened and never closed: close it") from None
            fault = f"it is no row of a table: {error}"
        if cells != []:
            yield Row(first, cells, offset, lines.end - offset, fault, lines.number)


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


def _reader(lines: Iterator[str], delimiter: str, quote: str, skip_blanks: bool) -> Iterator[list[str]]:
    csv.field_size_limit(MAX_ROW_BYTES)  # the process's, and 128 KiB: an image in base64 is longer
    quoting: Literal[0, 3] = 0 if quote else 3  # csv.QUOTE_MINIMAL, csv.QUOTE_NONE
    return csv.reader(
        lines, delimiter=delimiter, quotechar=quote or None, quoting=quoting, skipinitialspace=skip_blanks, strict=True
    )
