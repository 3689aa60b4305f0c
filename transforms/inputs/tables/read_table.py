"""A table's rows, whatever it is written in."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from recordmill import storage
from recordmill.schemas.added_setting import added_setting
from recordmill.schemas.formatting import format_count, show_names
from recordmill.transforms.inputs.tables.parquet import check_sizes, open_parquet, read_parquet_rows
from recordmill.transforms.inputs.tables.row import Row, UnreadableTableError
from recordmill.transforms.inputs.tables.text_lines import TextLines, check_encoding, open_lines
from recordmill.transforms.inputs.tables.text_rows import CsvDialect, read_csv_rows, read_jsonl_rows, read_word_rows

TableKind = Literal["csv", "tsv", "txt", "jsonl", "parquet"]

_PLAIN: dict[str, TableKind] = {".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_LISTS: dict[str, TableKind] = {".txt": "txt", ".txt.gz": "txt"}
_GZIPPED = {f"{ending}.gz": kind for ending, kind in _PLAIN.items()}
_TABLES: dict[str, TableKind] = {**_PLAIN, ".parquet": "parquet", **_GZIPPED}
_KINDS = _TABLES | _LISTS

TABLE_FILES = tuple(f"*{ending}" for ending in _TABLES)
"""Patterns of the files that are tables by their names."""

LIST_FILES = tuple(f"*{ending}" for ending in _LISTS)
"""Patterns of files that may be lists, with a delimiter that their first line tells, or anything else."""

Blanks = Literal["auto", "keep", "skip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFormat:
    """How tables are written: the YAML keys that all sources of tables have.

    Attributes:
        format: `csv`, `tsv`, `jsonl` or `parquet`; `auto` goes by the file's name.
        names: the columns' names, for CSV and TSV without a header row.
        delimiter: between cells; by default a comma, or in TSV a tab.
        quote: around cells that hold delimiters or line breaks; empty: quotes are letters like others.
        encoding: of text; a byte order mark is not part of it.
        blanks: what blanks after a delimiter are: `skip` takes them for a part of it, `keep` for a part of the cell;
            `auto` skips them in `.txt` files, and where the columns are only found without them.
    """

    format: Literal["auto", "csv", "tsv", "jsonl", "parquet"] = "auto"
    names: tuple[str, ...] = ()
    delimiter: str = ""
    quote: str = '"'
    encoding: str = "utf-8"
    blanks: Blanks = added_setting("auto")

    def check_format(self) -> None:
        """Raises ValueError where tables cannot be written so."""
        check_encoding(self.encoding, "source.encoding")
        for key in ("delimiter", "quote"):
            if len(text := getattr(self, key)) > 1 or text in ("\n", "\r"):
                raise ValueError(f"source.{key} is {text!r}: give one character")

    def kind_of(self, path: str) -> TableKind:
        """What a file is.

        Raises:
            UnreadableTableError: it is not known.
        """
        if self.format != "auto":
            return self.format
        name = path.lower()
        for ending, kind in _KINDS.items():
            if name.endswith(ending):
                return kind
        raise UnreadableTableError("its name does not say what it is: set source.format: csv, tsv, jsonl or parquet")

    def idle_keys(self) -> dict[str, str]:
        """The settings of text that cannot act, with the reason; see `Source.idle_settings`."""
        of_csv = ("names", "delimiter", "quote", "blanks")
        idle = {"jsonl": of_csv, "parquet": (*of_csv, "encoding")}
        return dict.fromkeys(idle.get(self.format, ()), f"source.format is {self.format}")

    def csv_dialect(self, kind: str) -> CsvDialect:
        """How rows are written in a file of some kind; a list's delimiter is empty where it is not set."""
        delimiter = self.delimiter or {"csv": ",", "tsv": "\t"}.get(kind, "")
        return CsvDialect(delimiter, self.quote, self.blanks == "skip" or (self.blanks == "auto" and kind == "txt"))


@dataclass(slots=True)
class Table:
    """A table under way.

    Attributes:
        kind: what it is written in.
        rows: its rows; cells by column name, unless the table is ragged.
        codec: the encoding of its text, without doubt in it.
        positions: where each column is, in CSV and TSV.
        schema: of Parquet.
        is_gzip: whether its text is gzipped; rows' places are then those in what unpacking gives.
        skips_blanks: whether blanks after a delimiter are left out of cells.
    """

    kind: TableKind
    rows: Iterator[Row]
    codec: str = ""
    positions: Mapping[str, int] = field(default_factory=dict)
    schema: pa.Schema | None = None
    is_gzip: bool = False
    skips_blanks: bool = False

    @property
    def as_text(self) -> bool:
        """Whether all cells are texts."""
        return self.kind in ("csv", "tsv", "txt")


@contextmanager
def read_table(
    uri: str,
    table_format: TableFormat,
    wanted: Mapping[str, str] | None = None,
    unread: Sequence[str] = (),
    ragged: bool = False,
) -> Iterator[Table]:
    """Opens a table, whose rows are to be taken while it is open.

    Args:
        uri: the file.
        table_format: how it is written.
        wanted: the columns that it must have, each with the YAML key that says so, in place of all that it has. JSON
            lines may leave out any.
        unread: those of them whose values are not to be read from Parquet.
        ragged: whether CSV has no columns: cells are lists.

    Raises:
        UnreadableTableError: it cannot be read, or lacks a column; also after the rows, if they show it.
    """
    kind = table_format.kind_of(uri)
    try:
        if kind == "parquet":
            with storage.open_to_read(uri) as stream, open_parquet(stream) as parquet:
                schema = parquet.schema_arrow
                wanted = _check_columns(schema.names, wanted)
                check_sizes(parquet, wanted.keys())
                read = [name for name in wanted if name not in unread]
                yield Table(kind, read_parquet_rows(parquet, read), schema=schema)
            return
        with open_lines(uri, table_format.encoding) as lines:
            if kind == "jsonl":
                yield Table(kind, read_jsonl_rows(lines), lines.codec, is_gzip=lines.is_gzip)
            elif ragged:
                yield Table(kind, read_csv_rows(lines, table_format.csv_dialect(kind)))
            else:
                yield _read_columns(kind, lines, table_format, wanted)
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise UnreadableTableError(f"it cannot be read: {(error.strerror or type(error).__name__).lower()}") from None


def _read_columns(
    kind: TableKind, lines: TextLines, table_format: TableFormat, wanted: Mapping[str, str] | None
) -> Table:
    """A table of CSV, TSV or a list."""
    dialect = table_format.csv_dialect(kind)
    if not dialect.delimiter:
        dialect = dialect._replace(delimiter=_find_delimiter(lines.peek(), len(table_format.names)))
    if dialect.delimiter == " " and kind == "txt":
        rows = read_word_rows(lines, len(table_format.names))
    else:
        rows = read_csv_rows(lines, dialect)
    names: Sequence[str] = table_format.names or _read_header(rows)
    bare = [name.lstrip(" ") for name in names]
    if table_format.blanks == "auto" and wanted and not wanted.keys() <= {*names} and wanted.keys() <= {*bare}:
        names, dialect = bare, dialect._replace(skip_blanks=True)
        rows = read_csv_rows(lines, dialect)
    advice = "correct the name"
    if len(names) == 1 and (cuts := [each for each in ",;\t|" if each in names[0]]):
        advice = f"set source.delimiter to {cuts[0]!r} if that separates the cells"
    advice += "" if table_format.names else ", or where the first row names no columns, set source.names"
    wanted = _check_columns(names, wanted, advice)
    positions = {name: place for place, name in enumerate(names) if name in wanted}
    rows = _name_cells(rows, positions, len(names), "source.names" if table_format.names else "the table")
    return Table(kind, rows, lines.codec, positions, is_gzip=lines.is_gzip, skips_blanks=dialect.skip_blanks)


def _find_delimiter(line: str, count: int) -> str:
    """What stands between the cells of a list, by its first line: a tab, a comma, a semicolon, or else blanks."""
    found = [each for each in "\t,;" if line.count(each) >= max(count - 1, 1)]
    exact = [each for each in found if line.count(each) == count - 1]
    return next(iter(exact or found), " ") if count != 1 else " "


def _read_header(rows: Iterator[Row]) -> list[str]:
    header = next(rows, None)
    if header is None:
        raise UnreadableTableError("it is empty: it needs a row with the columns' names, or source.names")
    if header.cells is None:
        raise UnreadableTableError(f"row {header.number}, which names the columns: {header.fault}")
    names: list[str] = header.cells
    return names


def _check_columns(
    names: Sequence[str], wanted: Mapping[str, str] | None, advice: str = "correct the name"
) -> Mapping[str, str]:
    wanted = dict.fromkeys(names, "its header") if wanted is None else wanted
    counts = Counter(names)
    for column, key in wanted.items():
        if counts[column] > 1:
            raise UnreadableTableError(f"it has {counts[column]} columns {column!r} ({key}): rename all but one")
        if column not in counts:
            shown = show_names(map(repr, names), 20)
            fault = f"it has no column {column!r} ({key}), only {shown}: {advice}"
            raise UnreadableTableError(fault, key)
    return wanted


def _name_cells(rows: Iterator[Row], positions: Mapping[str, int], width: int, header: str) -> Iterator[Row]:
    for row in rows:
        if row.cells is not None and len(row.cells) != width:
            columns = format_count(width, "column")
            row.fault = f"it has {format_count(len(row.cells), 'cell')}, and {header} has {columns}"
            row.cells = None
        elif row.cells is not None:
            row.cells = {name: row.cells[at] for name, at in positions.items()}
        yield row
