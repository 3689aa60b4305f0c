"""CSV, JSON lines and lists of words, row by row."""

import csv
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from recordmill.transforms.inputs.tables.row import MAX_ROW_BYTES, Row, UnreadableTableError
from recordmill.transforms.inputs.tables.text_lines import TextLines


class CsvDialect(NamedTuple):
    """How rows of CSV are written.

    Attributes:
        delimiter: one character between cells.
        quote: one character around cells that have delimiters or line breaks in them, doubled for itself; empty: none.
        skip_blanks: whether blanks after a delimiter are part of it.
    """

    delimiter: str = ","
    quote: str = '"'
    skip_blanks: bool = False

    def read(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """The cells of each row; raises `csv.Error`."""
        csv.field_size_limit(MAX_ROW_BYTES)  # the process's, and 128 KiB: an image in base64 is longer
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote or None,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            skipinitialspace=self.skip_blanks,
            strict=True,
        )


def read_csv_rows(lines: TextLines, dialect: CsvDialect) -> Iterator[Row]:
    """The rows, whose cells are lists of texts; empty lines are none.

    Raises:
        UnreadableTableError: a quote is never closed.
    """
    reader = dialect.read(lines)

    def read_cells() -> list[str]:
        try:
            return next(reader)
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                sentence = f"row {lines.row_number}: a quote is opened and never closed: close it"
                raise UnreadableTableError(sentence) from None
            ends_with_cr = "new-line character seen in unquoted field" in str(error)
            why = "a line ends with CR alone, and must end with LF or CRLF" if ends_with_cr else error
            raise ValueError(f"it is not a row of a table: {why}") from None

    return _read_rows(lines, read_cells)


def read_word_rows(lines: TextLines, count: int) -> Iterator[Row]:
    """The rows, whose cells are words between blanks; empty lines are none.

    Args:
        lines: of the file.
        count: how many cells a row has at most: the first of them may have blanks in it, as paths may. 0: any number.
    """
    return _read_rows(lines, lambda: next(lines).strip().rsplit(maxsplit=count - 1))


def read_jsonl_rows(lines: TextLines) -> Iterator[Row]:
    """A row for each line that is not empty; cells are a JSON object's values by name."""

    def read_cells() -> Any:
        if not (line := next(lines)).strip():
            return []
        try:
            cells = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise ValueError(f"it is not valid JSON: {error}") from None
        if not isinstance(cells, dict):
            raise ValueError(f"it is not a JSON object: {line.strip()!r:.60}")
        return cells

    return _read_rows(lines, read_cells)


def _read_rows(lines: TextLines, read_cells: Callable[[], Any]) -> Iterator[Row]:
    """Yields the rows of a text; empty ones are left out.

    A row that is malformed has a fault, and the next row begins with the line after it.

    Args:
        lines: of the file.
        read_cells: takes the lines of one row and returns its cells, `[]` where it is empty; raises ValueError where
            it is malformed.
    """
    while True:
        offset, first = lines.begin_row()
        cells, fault = None, ""
        try:
            cells = read_cells()
        except StopIteration:
            return
        except UnicodeDecodeError:
            fault = f"it is not in {lines.codec}"
        except ValueError as error:
            fault = str(error)
        if cells != []:
            yield Row(first, cells, offset, lines.end - offset, fault, lines.number)
