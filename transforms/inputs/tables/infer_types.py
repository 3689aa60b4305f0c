"""Infers the types of a table's columns from all of its rows."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from recordmill.transforms.inputs.tables.cells import TYPES, ColumnSettings, infer_type
from recordmill.transforms.inputs.tables.read_table import Table

_ZEROS: dict[str, int | float | str] = {"int64": 0, "float": 0.0, "bytes": ""}


@dataclass
class _Column:
    """What is known about a column.

    Attributes:
        first: where each type was first seen, for messages.
        missing: whether any row lacks a value.
        as_text: whether all values are texts.
        blank: a number that is text only because of a space before it.
    """

    first: dict[str, str] = field(default_factory=dict)
    missing: bool = False
    as_text: bool = True
    blank: str = ""


class ColumnTypes:
    """Collects the types of columns, table by table; the result does not depend on the order."""

    def __init__(self, without: Collection[str]) -> None:
        """The columns in `without` are ignored."""
        self._without = without
        self._columns: dict[str, _Column] = {}
        self._rows = 0

    def add(self, table: Table, path: str) -> None:
        """Adds all rows of a table; malformed ones are skipped.

        Raises:
            UnreadableTableError: it cannot be read to its end.
        """
        as_text = table.as_text
        schema = table.schema
        declared = {name: parquet_type(schema.field(name).type) for name in schema.names} if schema is not None else {}
        for row in table.rows:
            if row.cells is not None:
                self._add_row(row.cells, declared, as_text, f"{path}, {row.place}")

    def _add_row(self, cells: Mapping[str, Any], declared: Mapping[str, str], as_text: bool, place: str) -> None:
        for name, cell in cells.items():
            if name in self._without:
                continue
            if name not in self._columns:
                self._columns[name] = _Column(missing=self._rows > 0)
            column = self._columns[name]
            column.as_text &= as_text
            seen = _type_of(cell, as_text)
            if not seen:
                column.missing = True
                continue
            if seen == "string" and as_text and cell[0] == " " and infer_type(cell.strip(" ")) in ("int", "float"):
                column.blank = column.blank or f"{cell!r:.40} ({place})"
            seen = declared.get(name) or seen
            if seen not in column.first:
                column.first[seen] = f"{place}: {cell!r:.40}"
        for name in self._columns.keys() - cells.keys():
            self._columns[name].missing = True
        self._rows += 1

    @property
    def empty(self) -> list[str]:
        """The columns without a single value, sorted."""
        return sorted(name for name, column in self._columns.items() if not column.first)

    @property
    def blanks(self) -> dict[str, str]:
        """The columns with numbers that are text only because of spaces before them, each with an example."""
        return {name: column.blank for name, column in sorted(self._columns.items()) if column.blank}

    def settled(self) -> dict[str, ColumnSettings]:
        """The columns' settings by name; columns without a single value are left out.

        If a row lacks a column's value, the column's default is its type's zero, as in TensorFlow's tutorial.

        Raises:
            ValueError: a column has several types, or one that no feature can have; the message names it and the rows.
        """
        found = {}
        for name, column in sorted(self._columns.items()):
            seen = column.first
            if not seen:
                continue
            settings = ColumnSettings(type=_merge(name, seen, column.as_text))
            zero = _ZEROS[settings.kind] if column.missing and not settings.many else None
            found[name] = replace(settings, default=zero)
        return found


def _type_of(cell: Any, as_text: bool) -> str:
    """The type of a cell; empty if it has no value."""
    if cell is None or (as_text and cell == ""):
        return ""
    if as_text:
        return infer_type(cell)
    if isinstance(cell, list):
        types = {_type_of(each, False) for each in cell}
        if not types:
            return "[]"
        return f"{types.pop()}[]" if len(types) == 1 else "list of several types"
    return _WORDS.get(type(cell), f"JSON {type(cell).__name__}")


_WORDS = {bool: "bool", int: "int", float: "float", str: "string", bytes: "bytes"}


def _merge(name: str, seen: dict[str, str], as_text: bool) -> str:
    types = set(seen)
    if as_text and len(types) > 1:
        return "float" if types == {"int", "float"} else "string"
    if len(types) > 1 and "[]" in types:
        types.discard("[]")
    if types == {"int", "uint"}:
        return "int"
    if len(types) == 1 and (word := types.pop()).removesuffix("[]") in TYPES:
        return word
    if len(seen) == 1:
        (word, place), *_ = seen.items()
        hint = "it holds only empty lists" if word == "[]" else f"it holds a {word}, which no feature can be"
        raise ValueError(f"source: column {name!r}: {hint} ({place}): name the columns that you want in source.columns")
    (one, where), (other, place), *_ = seen.items()
    word = "number" if set(seen) == {"int", "float"} else "string"
    raise ValueError(
        f"source: column {name!r} holds a value of type {one} ({where}) and one of type {other} ({place}): "
        f"declare source.columns.{name}, such as {word}"
    )


def parquet_type(kind: pa.DataType) -> str:
    """The type of a Parquet column as a `ColumnSettings.type`; pyarrow's name for any other type, such as dates."""
    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return f"{parquet_type(kind.value_type)}[]"
    if types.is_dictionary(kind):
        return parquet_type(kind.value_type)
    return next((word for word, is_one in _PARQUET if is_one(kind)), str(kind))


_PARQUET = (
    ("bool", pa.types.is_boolean),
    ("uint", pa.types.is_unsigned_integer),
    ("int", pa.types.is_signed_integer),
    ("float", pa.types.is_floating),
    ("string", pa.types.is_string),
    ("string", pa.types.is_large_string),
    ("bytes", pa.types.is_binary),
    ("bytes", pa.types.is_large_binary),
    ("bytes", pa.types.is_fixed_size_binary),
)
