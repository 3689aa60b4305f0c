"""Reads the rows of tables in any format.

Text is read line by line, plain or gzipped and in any encoding.
"""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
import pyarrow as pa

from recordmill import storage
from recordmill.schemas.errors import SettingError
from recordmill.schemas.formatting import format_count, show_first
from recordmill.schemas.image_ref import ImageRef, Notice
from recordmill.storage.packed_files import MAX_RATIO, BadPacking, TooLarge, gunzip
from recordmill.storage.tfrecord_file import StoredFile
from recordmill.transforms.inputs.tables.cells import TableRow, UnreadableTableError
from recordmill.transforms.inputs.tables.parquet import (
    check_sizes,
    fields_next_to_bytes,
    open_parquet,
    read_parquet_rows,
)

_BUFFER_BYTES = 2**16
_GZIP = b"\x1f\x8b"

# Less than for other files: two bytes can be a row, and each row takes microseconds.
_FREE_BYTES = 2**20

MAX_LETTERS = 64 * 2**20
"""The longest line, and the longest cell of CSV: anything longer lacks line ends, or a closing
quote."""

# Each takes as long as a row, so a small gzip file of them would take minutes.
_MOST_EMPTY_LINES = 2**20

# Stands for bytes that are not in the encoding: half of a surrogate pair is in no valid text.
_FAULT = "\udcff"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    *((mark, "utf-32") for mark in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)),
    *((mark, "utf-16") for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)),
)
_MARK_FAULTS = "recordmill.mark_faults"
_MOST_UNREAD = 8
_DELIMITER_LINE = re.compile(r'"?sep=([^\w\s"]|\t)"?\s*')
codecs.register_error(_MARK_FAULTS, lambda error: (_FAULT, error.end))  # type: ignore[attr-defined]


class NotEncodedError(ValueError):
    """A line is not in the encoding of its file."""


class TextLines:
    """An iterator over a file's lines, each with its line end.

    A byte order mark is not part of the first line. A line that is not in the encoding raises
    NotEncodedError; the next call returns the line after it.

    Attributes:
        number: the number of the last line, from 1.
        row_number: the number of the current row's first line, set by the reader of rows.
        head: the first line that is not empty, or its beginning, whatever has been read.
    """

    def __init__(self, stream: io.BufferedReader, encoding: str) -> None:
        """Reads the beginning of the stream.

        Raises:
            UnreadableTableError: its byte order mark contradicts the encoding.
        """
        start = stream.peek()
        marked = next((name for mark, name in _MARKS if start.startswith(mark)), "")
        if not codecs.lookup(encoding).name.startswith(marked):
            advice = f"set source.encoding: {marked}"
            raise UnreadableTableError(f"it begins as {marked.upper()} does: {advice}")
        self.head = start.decode(encoding, "replace").lstrip("\ufeff\r\n").partition("\n")[0]
        self.number, self.row_number = 0, 1
        self._text = io.TextIOWrapper(stream, encoding, _MARK_FAULTS, newline="\n")
        self._encoding = encoding

    def __iter__(self) -> "TextLines":
        return self

    def __next__(self) -> str:
        line = self._text.readline(MAX_LETTERS + 1)  # a longer line is never held as a whole
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) > MAX_LETTERS:
            raise UnreadableTableError(
                f"line {self.number} has over {MAX_LETTERS:,} characters: are line ends missing?"
            )
        if _FAULT in line:
            advice = "set source.encoding, such as windows-1252, or correct it"
            raise NotEncodedError(f"it is not in {self._encoding}: {advice}")
        return line.removeprefix("\ufeff") if self.number == 1 else line


class _Pieces(io.RawIOBase):
    """A stream of the pieces of a file."""

    def __init__(self, pieces: Iterator[bytes | memoryview]) -> None:
        self._pieces = pieces
        self._rest: bytes | memoryview = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._rest = self._rest or memoryview(next(self._pieces, b""))
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


@contextmanager
def open_lines(uri: str, encoding: str) -> Iterator[TextLines]:
    """Opens a text file; its first bytes decide whether it is gzipped.

    Lines raise UnreadableTableError if the file is damaged, or unpacks to over 1 MiB plus a hundred
    times its size.

    Raises:
        OSError: it does not exist, or cannot be opened.
        UnreadableTableError: its byte order mark contradicts the encoding.
    """
    with StoredFile(uri) as stored:
        plain = (stored.read_at(at, _BUFFER_BYTES) for at in range(0, stored.size, _BUFFER_BYTES))
        pieces = _read_gzip(stored) if stored.read_at(0, len(_GZIP)) == _GZIP else plain
        yield TextLines(io.BufferedReader(_Pieces(pieces), _BUFFER_BYTES), encoding)


def _read_gzip(stored: StoredFile) -> Iterator[memoryview]:
    try:
        yield from gunzip(stored, MAX_RATIO, _FREE_BYTES)
    except TooLarge as error:
        raise UnreadableTableError(f"{error.detail}: unpack it, if that is right") from None
    except BadPacking as damage:
        raise UnreadableTableError(damage.detail) from None


def read_csv_rows(lines: TextLines, dialect: Mapping[str, Any]) -> Iterator[TableRow]:
    """Yields rows whose cells are lists of strings; empty lines are skipped.

    Args:
        lines: the lines of the file.
        dialect: the arguments of `csv.reader`.

    Raises:
        UnreadableTableError: a quote is never closed.
    """
    csv.field_size_limit(MAX_LETTERS)  # process-wide; 128 KiB is too few for long lists
    reader = csv.reader(lines, strict=True, **dialect)

    def read_cells() -> list[str]:
        try:
            return next(reader)
        except csv.Error as error:
            if "unexpected end of data" in str(error) or "field larger than field limit" in str(
                error
            ):
                sentence = f"row {lines.row_number}: a quote is opened and never closed: close it"
                raise UnreadableTableError(sentence) from None
            why = str(error)
            if "new-line character seen in unquoted field" in why:
                why = "a line ends with CR alone: end each line with LF or CRLF"
            raise ValueError(f"it is not a row of a table: {why}") from None

    return _read_rows(lines, read_cells)


def read_jsonl_rows(lines: TextLines) -> Iterator[TableRow]:
    """Yields a row for each line that is not empty; cells are a JSON object's values by name."""

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


def _read_rows(lines: TextLines, read_cells: Callable[[], Any]) -> Iterator[TableRow]:
    """Yields the rows of a text, except empty ones.

    A malformed row has a fault, and the next row begins with the line after it.

    Args:
        lines: the lines of the file.
        read_cells: takes the lines of one row and returns its cells, `[]` if it is empty; raises
            ValueError if it is malformed.
    """
    empty = 0
    while True:
        lines.row_number = lines.number + 1
        cells, fault, is_encoded = None, None, True
        try:
            cells = read_cells()
        except StopIteration:
            return
        except ValueError as error:
            fault, is_encoded = str(error), not isinstance(error, NotEncodedError)
        if cells != []:
            yield TableRow(lines.row_number, cells, fault, is_encoded)
        elif (empty := empty + 1) > _MOST_EMPTY_LINES:
            raise UnreadableTableError(
                f"it has over {_MOST_EMPTY_LINES:,} empty lines: remove them"
            )


TableKind = Literal["csv", "tsv", "txt", "jsonl", "parquet"]

_PLAIN: dict[str, TableKind] = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_LISTS: dict[str, TableKind] = {".txt": "txt", ".txt.gz": "txt"}
_GZIPPED = {f"{ending}.gz": kind for ending, kind in _PLAIN.items()}
_TABLES: dict[str, TableKind] = {**_PLAIN, ".parquet": "parquet", **_GZIPPED}
_KINDS = _TABLES | _LISTS

TABLE_ENDINGS = tuple(_TABLES)
"""The extensions of tables."""

TABLE_FILES = tuple(f"*{ending}" for ending in _TABLES)
"""The same as patterns in gitignore's syntax."""

LIST_FILES = tuple(f"*{ending}" for ending in _LISTS)
"""Patterns of files that may be lists, with a delimiter found in their first line, or anything
else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFormat:
    """The format of tables: the YAML keys that all sources of tables have.

    Attributes:
        format: `csv`, `tsv`, `jsonl` or `parquet`; `auto` goes by the file's name.
        names: the columns' names, for CSV and TSV without a header row.
        delimiter: the character between cells; by default a comma, or in TSV a tab.
        quote: the character around cells that contain delimiters or line breaks; empty: quotes have
            no special meaning.
        encoding: the encoding of text; a byte order mark is not part of it.
        blanks: what to do with spaces after a delimiter: `skip` drops them, `keep` leaves them in
            the cell; `auto` skips them in `.txt` files, and if the columns are only found without
            them.
    """

    format: Literal["auto", "csv", "tsv", "jsonl", "parquet"] = "auto"
    names: tuple[str, ...] = ()
    delimiter: str = ""
    quote: str = '"'
    encoding: str = "utf-8"
    blanks: Literal["auto", "keep", "skip"] = "auto"

    def check_format(self) -> None:
        """Raises SettingError if the format is invalid."""
        try:
            end = "\n".encode(self.encoding)
            codecs.getincrementaldecoder(self.encoding)(_MARK_FAULTS).decode(end, True)
        except (LookupError, UnicodeError):
            advice = "write one such as utf-8 or latin-1"
            raise SettingError(
                "source.encoding", f"{self.encoding!r} is not a known encoding: {advice}"
            ) from None
        for key in ("delimiter", "quote"):
            if len(text := getattr(self, key)) > 1 or text in ("\n", "\r"):
                raise SettingError(f"source.{key}", f"is {text!r}: give one character")

    def kind_of(self, path: str) -> TableKind:
        """Returns the kind of a file.

        Raises:
            UnreadableTableError: it is unknown.
        """
        if self.format != "auto":
            return self.format
        if kind := next(
            (kind for ending, kind in _KINDS.items() if path.lower().endswith(ending)), None
        ):
            return kind
        raise UnreadableTableError(
            "its name does not say what it is: set source.format: csv, tsv, jsonl or parquet"
        )

    def idle_settings(self) -> dict[str, str]:
        """Returns the text settings without effect, with the reason; see `Source.idle_settings`."""
        of_csv = ("names", "delimiter", "quote", "blanks")
        idle = {"jsonl": of_csv, "parquet": (*of_csv, "encoding")}
        return dict.fromkeys(idle.get(self.format, ()), f"source.format is {self.format}")

    def csv_dialect(self, kind: str, head: str) -> dict[str, Any]:
        """Returns the arguments of `csv.reader` for a kind of file.

        The first line of a list shows its delimiter: a tab, a comma or a semicolon, otherwise
        blanks.
        """
        of_list = next((each for each in "\t,;" if each in head and len(self.names) != 1), " ")
        return {
            "delimiter": self.delimiter or {"csv": ",", "tsv": "\t"}.get(kind, of_list),
            "quotechar": self.quote or None,
            "quoting": csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            "skipinitialspace": self.blanks == "skip" or (self.blanks == "auto" and kind == "txt"),
        }


@dataclass(slots=True)
class TableFile:
    """An open table.

    Attributes:
        kind: the kind of file.
        rows: its rows, with cells by column name unless the table is ragged.
        schema: the schema, in Parquet.
        header: the names of all columns; empty if rows name them (JSON lines), or none has a name.
        unnamed: those of `header` that the table's own header leaves empty.
        blank: the first cell or column name that begins with a blank, of the rows read so far.
        count: the number of rows read so far.
        keys: of JSON lines, how many rows have each key, so far.
    """

    kind: TableKind
    rows: Iterator[TableRow]
    schema: pa.Schema | None = None
    header: tuple[str, ...] = ()
    unnamed: frozenset[str] = frozenset()
    blank: str = ""
    count: int = 0
    keys: Counter[str] = field(default_factory=Counter)

    @property
    def as_text(self) -> bool:
        """Whether all cells are strings."""
        return self.kind in ("csv", "tsv", "txt")

    def watch_blanks(self) -> "TableFile":
        """Returns the same table, which sets `blank` when its rows are read."""
        rows = self.rows

        def watched() -> Iterator[TableRow]:
            for row in rows:
                if row.cells and not self.blank:
                    self.blank = next(
                        (
                            text
                            for text in (*row.cells, *row.cells.values())
                            if text.startswith(" ")
                        ),
                        "",
                    )
                yield row

        self.rows = watched()
        return self

    def counted(self) -> "TableFile":
        """Returns the same table, which sets `count` and `keys` when its rows are read.

        A row that is not in the encoding raises UnreadableTableError: the others may be misread.
        """
        rows = self.rows

        def counted() -> Iterator[TableRow]:
            for row in rows:
                self.count += 1
                if not row.is_encoded:
                    raise UnreadableTableError(f"row {row.number}: {row.fault}")
                if self.kind == "jsonl" and row.cells:
                    self.keys.update(row.cells.keys())
                yield row

        self.rows = counted()
        return self

    def report_unread(
        self, file: ImageRef, read: Collection[str], image: str = ""
    ) -> Iterator[Notice]:
        """Yields how many values of each column were not read.

        Args:
            file: the table.
            read: the columns that were read.
            image: the column of images, whose structs may have further fields; empty without one.
        """
        inner = fields_next_to_bytes(self.schema, image) if image and self.schema else []
        for name in inner:
            yield file.notice("not_stored", f"{image}.{name}", count=self.count)
        counts = self.keys or Counter(dict.fromkeys(self.header, self.count))
        unread = [name for name in counts if name not in read and name.lstrip(" ") not in read]
        most = len(unread) if len(unread) <= _MOST_UNREAD else _MOST_UNREAD - 1
        for name in unread[:most]:
            yield file.notice("not_stored", name, count=counts[name])
        if others := unread[most:]:
            count = max(counts[name] for name in others)
            yield file.notice("not_stored", f"{len(others):,} more columns", count=count)

    def report(self, file: ImageRef) -> Iterator[Notice]:
        """Yields a note if cells begin with a blank."""
        if self.blank:
            advice = "set source.blanks=skip, or keep if it belongs to them"
            detail = f"cells begin with a blank, such as {self.blank!r:.60}: {advice}"
            yield file.notice("warning", "blanks", detail)


@contextmanager
def read_table(
    uri: str,
    table_format: TableFormat,
    wanted: Mapping[str, str] | None = None,
    unread: Sequence[str] = (),
    ragged: bool = False,
) -> Iterator[TableFile]:
    """Opens a table; its rows must be read inside the `with` block.

    Args:
        uri: the file.
        table_format: its format.
        wanted: the columns that it must have, each with the YAML key that names it; None: all that
            it has. Single JSON lines may lack any.
        unread: wanted columns whose values are not read from Parquet.
        ragged: whether CSV has no columns, so that cells are lists.

    Raises:
        UnreadableTableError: it cannot be read, or lacks a column; may also be raised by the rows.
    """
    kind = table_format.kind_of(uri)
    try:
        if kind == "parquet":
            with storage.open_to_read(uri) as stream, open_parquet(stream) as parquet:
                schema = parquet.schema_arrow
                wanted = _check_columns(schema.names, wanted)
                check_sizes(parquet, wanted.keys())
                read = [name for name in wanted if name not in unread]
                rows = read_parquet_rows(parquet, read)
                yield TableFile(kind, rows, schema=schema, header=tuple(schema.names)).counted()
            return
        with open_lines(uri, table_format.encoding) as lines:
            if kind == "jsonl":
                yield TableFile(kind, _check_keys(read_jsonl_rows(lines), wanted)).counted()
            elif ragged:
                rows = read_csv_rows(lines, _dialect(kind, lines, table_format))
                yield TableFile(kind, rows).counted()
            else:
                table = _read_columns(kind, lines, table_format, wanted).counted()
                yield table.watch_blanks() if table_format.blanks == "auto" else table
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise UnreadableTableError(
            f"it cannot be read: {(error.strerror or type(error).__name__).lower()}"
        ) from None


def _read_columns(
    kind: TableKind, lines: TextLines, table_format: TableFormat, wanted: Mapping[str, str] | None
) -> TableFile:
    """Opens CSV, TSV or a list, whose rows have cells by column name."""
    dialect = _dialect(kind, lines, table_format)
    if dialect["delimiter"] == " " and kind == "txt":
        # The first word may contain blanks, as paths may; -1: any number.
        most = len(table_format.names) - 1
        rows = _read_rows(lines, lambda: next(lines).strip().rsplit(maxsplit=most))
    else:
        rows = read_csv_rows(lines, dialect)
    own: Sequence[str] = table_format.names or _read_header(rows)
    names = name_columns(own, wanted or ())
    unnamed = frozenset(name for name, given in zip(names, own, strict=True) if name != given)
    bare = [name.lstrip(" ") for name in names]
    if (
        table_format.blanks == "auto"
        and wanted
        and not wanted.keys() <= {*names}
        and wanted.keys() <= {*bare}
    ):
        names, rows = bare, read_csv_rows(lines, {**dialect, "skipinitialspace": True})
    wanted = _check_columns(names, wanted)
    positions = {name: place for place, name in enumerate(names) if name in wanted}
    where = "source.names" if table_format.names else "the table"
    named = _name_cells(rows, positions, len(names), where)
    return TableFile(kind, named, header=tuple(names), unnamed=unnamed)


def _dialect(kind: TableKind, lines: TextLines, table_format: TableFormat) -> dict[str, Any]:
    """Returns the arguments of `csv.reader`.

    Skips Excel's line `sep=;`, which names the delimiter.
    """
    dialect = table_format.csv_dialect(kind, lines.head)
    delimiter = delimiter_line(lines.head)
    if delimiter and not table_format.delimiter:
        while not next(lines, "end").strip():
            pass
        dialect["delimiter"] = delimiter
    return dialect


def delimiter_line(line: str) -> str | None:
    """Returns the delimiter that a table's first line names in Excel's way, `sep=;`; or None."""
    found = _DELIMITER_LINE.fullmatch(line)
    return found and found[1]


def name_columns(header: Sequence[str], own: Collection[str] = ()) -> list[str]:
    """Names the columns whose name is empty after their place, from 1: `column_1`.

    pandas writes such a column for its index.

    Args:
        header: the names in the table.
        own: names that stay, even if they are empty.
    """
    return [
        name if name.strip() or name in own else f"column_{place}"
        for place, name in enumerate(header, start=1)
    ]


def _read_header(rows: Iterator[TableRow]) -> list[str]:
    header = next(rows, None)
    if header is None:
        raise UnreadableTableError(
            "it is empty: it needs a row with the columns' names, or source.names"
        )
    if header.cells is None:
        raise UnreadableTableError(f"row {header.number}, which names the columns: {header.fault}")
    names: list[str] = header.cells
    return names


def _check_columns(names: Sequence[str], wanted: Mapping[str, str] | None) -> Mapping[str, str]:
    wanted = dict.fromkeys(names, "its header") if wanted is None else wanted
    counts = Counter(names)
    for column, key in wanted.items():
        if counts[column] > 1:
            raise UnreadableTableError(
                f"it has {counts[column]} columns {column!r} ({key}): rename all but one"
            )
        if column not in counts:
            shown = show_first(map(repr, names))
            advice = (
                "correct the name; CSV may need source.delimiter, or source.names if it has no "
                "header"
            )
            raise UnreadableTableError(
                f"it has no column {column!r} ({key}), only {shown}: {advice}"
            )
    return wanted


def _check_keys(rows: Iterator[TableRow], wanted: Mapping[str, str] | None) -> Iterator[TableRow]:
    """Yields the rows of JSON lines; their columns are known only at the end, and checked there."""
    found: set[str] = set()
    for row in rows:
        found.update(row.cells or ())
        yield row
    if found:
        _check_columns(sorted(found), wanted)


def _name_cells(
    rows: Iterator[TableRow], positions: Mapping[str, int], width: int, header: str
) -> Iterator[TableRow]:
    for row in rows:
        if row.cells is not None and len(row.cells) != width:
            columns = format_count(width, "column")
            row.fault = f"it has {format_count(len(row.cells), 'cell')}, and {header} has {columns}"
            row.cells = None
        elif row.cells is not None:
            row.cells = {name: row.cells[at] for name, at in positions.items()}
        yield row
