"""The first rows of tables, as far as recognition sees them."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from recordmill.transforms.inputs.folder_sketch import FolderSketch
from recordmill.transforms.inputs.image_suffixes import IMAGE_ENDINGS
from recordmill.transforms.inputs.tables.read_table import delimiter_line, name_columns

HELD = "<bytes>"
"""Stands for the bytes of an image in a sampled row."""

OTHER_BYTES = "<other bytes>"
"""Stands for bytes in a sampled row that do not begin as an image does."""

SEVERAL = "<several>"
"""Stands for a list of classes in a sampled row."""

NUMBERS = "<numbers>"
"""Stands for a list of numbers that no class names are known for, such as a vector."""

STRUCT = "<struct>"
"""Stands for a struct in a sampled row; the names of its fields follow, as after `HELD`."""

HELD_LIST = "<list of bytes>"
"""Stands for a list of images in a sampled row."""

OBJECTS = "<objects>"
"""Stands for boxes with their classes, as Hugging Face stores them."""

_DELIMITERS = {".csv": ",;\t", ".tsv": "\t", ".txt": ",\t "}
"""What may be between the cells of a file with this extension; what is usual comes first."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_PANDAS_INDEX = re.compile(r"Unnamed: [0-9]+|__index_level_[0-9]+__")


def show_fields(what: str, fields: Sequence[str]) -> str:
    """Adds the names of fields that are not read to `HELD` or `STRUCT`."""
    return f"{what} {orjson.dumps(list(fields)).decode()}" if fields else what


def fields_in(cell: str) -> tuple[str, ...]:
    """Returns the names that `show_fields` has added to a cell."""
    for what in (HELD, STRUCT):
        if cell.startswith(f"{what} "):
            return tuple(orjson.loads(cell.removeprefix(what)))
    return ()


def is_held(cell: str) -> bool:
    """Returns whether a sampled cell stands for the bytes of an image."""
    return cell == HELD or cell.startswith(f"{HELD} [")


def is_struct(cell: str) -> bool:
    """Returns whether a sampled cell stands for a struct."""
    return cell == STRUCT or cell.startswith(f"{STRUCT} [")


@dataclass(frozen=True, slots=True)
class TableHead:
    """The beginning of a table, as text.

    Attributes:
        rows: the first rows, a header included.
        delimiter: the character between cells, if it is not the usual one.
        has_blanks: whether blanks are between a delimiter and a quote of the first row.
    """

    rows: tuple[tuple[str, ...], ...] = ()
    delimiter: str = ""
    has_blanks: bool = False

    @property
    def header(self) -> tuple[str, ...]:
        """The first row, as names of columns; those without a name are named after their place."""
        return tuple(name_columns(self.rows[0])) if self.rows else ()

    @property
    def unnamed(self) -> frozenset[str]:
        """The columns that have no name of their own."""
        return frozenset(self.header) - frozenset(self.rows[0]) if self.rows else frozenset()

    @property
    def is_header(self) -> bool:
        """Whether the first row may name columns: names differ, and are not those of images."""
        return len(set(self.header)) == len(self.header) and not any(
            name.lower().endswith(IMAGE_ENDINGS) for name in self.header
        )

    def first(self) -> dict[str, str]:
        """Returns the first row below the header, by column."""
        return dict(zip(self.header, self.rows[1], strict=False)) if len(self.rows) > 1 else {}

    def cells(self, name: str) -> list[str]:
        """Returns the sampled cells of a column, without blanks around them."""
        place = self.header.index(name)
        return [row[place].strip() for row in self.rows[1:] if place < len(row)]

    def is_index(self, name: str) -> bool:
        """Tells if a column only counts or numbers the rows, as the index that pandas writes."""
        cells = self.cells(name)
        counts = [str(number) for number in range(len(cells))]
        if name in self.unnamed:
            if name != self.header[0]:
                return False
            return all(cell.isdecimal() for cell in cells) and len(set(cells)) == len(cells)
        if _PANDAS_INDEX.fullmatch(name):
            return all(cell.isdecimal() or not cell for cell in cells)
        return name.lower() == "index" and cells == counts

    def holds_numbers(self, name: str) -> bool:
        """Returns whether all sampled cells are numbers, apart from empty ones."""
        cells = [cell for cell in self.cells(name) if cell]
        return bool(cells) and all(map(_NUMBER.fullmatch, cells))

    def holds_fractions(self, name: str) -> bool:
        """Returns whether all sampled cells are numbers, and some are not whole."""
        return self.holds_numbers(name) and any(
            not float(cell).is_integer() for cell in self.cells(name) if cell
        )

    def holds_flags(self, name: str) -> bool:
        """Returns whether all sampled cells, at least two, are 0 or 1."""
        cells = self.cells(name)
        return len(cells) > 1 and {*cells} <= {"0", "1"}


def head_of(path: str, sketch: FolderSketch) -> TableHead:
    """Returns the first rows of a table in a sketch.

    A CSV's delimiter is found in its first line.
    """
    text = sketch.heads.get(path, b"").decode("utf-8", "replace").removeprefix("\ufeff")
    name = path.lower().removesuffix(".gz")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return TableHead()
    if name.endswith((".jsonl", ".ndjson")):
        return _head_of_json(lines)
    if len(lines) > 2 and not text.endswith(("\n", "\r")):
        del lines[-1]  # perhaps only a part of it was read
    choices = next((each for ending, each in _DELIMITERS.items() if name.endswith(ending)), ",")
    if named := delimiter_line(lines[0]):
        return TableHead(_rows(lines[1:], named))  # the reader finds this line, too
    delimiter = next((each for each in choices if each in lines[0]), choices[0])
    is_usual = delimiter == choices[0] or name.endswith(".txt")
    has_blanks = name.endswith((".csv", ".tsv")) and f'{delimiter} "' in lines[0]
    return TableHead(_rows(lines, delimiter), "" if is_usual else delimiter, has_blanks)


def _rows(lines: Sequence[str], delimiter: str) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, csv.reader(lines, delimiter=delimiter, skipinitialspace=True)))


def _head_of_json(lines: Sequence[str]) -> TableHead:
    """Returns the first lines of JSON, as long as they have the keys of the first one."""
    rows: list[dict[str, Any]] = []
    for line in lines:
        try:
            row = orjson.loads(line)
        except ValueError:  # only part of the line was read
            row = {} if rows else dict(re.findall(r'"(\w+)"\s*:\s*"([^"]*)"', line))
        if not row or not isinstance(row, dict) or (rows and row.keys() != rows[0].keys()):
            break
        rows.append(row)
    if not rows:
        return TableHead()
    keys = tuple(rows[0])
    return TableHead((keys, *(tuple(_show_cell(row[key]) for key in keys) for row in rows)))


def _show_cell(value: Any) -> str:
    """Shows a cell of JSON as the text by which columns are recognized."""
    if isinstance(value, dict) and "bbox" in value:
        return OBJECTS
    if isinstance(value, dict):
        return show_fields(STRUCT, [*value])
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return SEVERAL
    return "" if value is None else str(value)
