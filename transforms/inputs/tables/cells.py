"""Rows and typed columns of tables: converts cells to values, and values to JSON and back.

Values are of their column's type. Nothing is rounded or guessed: a cell either has its column's
type or raises. Cells of CSV are text, which is parsed as the column's type; cells of JSON lines and
Parquet have their own types, which must be the column's.
"""

import base64
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import orjson

from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import (
    COERCE,
    Feature,
    FeatureKind,
    FeatureValueError,
    Value,
    coerce_setting,
)
from recordmill.schemas.rejection import Rejected

bad_row = partial(Rejected, "list", "bad_row")
"""The row cannot become a record."""


class UnreadableTableError(Exception):
    """A table, or the rest of it, cannot be read; the message says where and why."""


@dataclass(slots=True)  # if frozen, creating one would take five times as long
class TableRow:
    """One row.

    Attributes:
        number: the line in which it begins, from 1, header included; in Parquet, which has no
            lines, the row, from 1.
        cells: its cells by column; a list if columns have no names; None if the row is malformed.
        fault: what is wrong with a malformed row; None for other rows.
        is_encoded: whether its bytes are text in the table's encoding.
    """

    number: int
    cells: Any
    fault: str | None = None
    is_encoded: bool = True

    @property
    def place(self) -> str:
        """Which row it is, for messages."""
        return f"row {self.number}"


_INTEGER = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
_DECIMAL = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,6})?|[+-]?(nan|inf|infinity)", re.I | re.A
)
_TRUTH = {"true": True, "false": False, "1": True, "0": False}


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type of single values.

    Attributes:
        kind: the list of an Example that stores the values, coerced as in TensorFlow's tutorial on
            TFRecord.
        convert: converts a cell; returns None if it is not of the type.
        parse: parses a string into a cell; None if strings stand for themselves.
    """

    kind: FeatureKind
    convert: Callable[[Any], Any]
    parse: Callable[[str], Any] | None = None


def _parse_integer(text: str) -> int | None:
    whole, dot, zeros = text.partition(".")  # pandas writes 1.0 if a column of integers has gaps
    if not _INTEGER.fullmatch(whole) or (dot and zeros.strip("0") != ""):
        return None
    return int(whole)


def _parse_decimal(text: str) -> float | None:
    if not _DECIMAL.fullmatch(text):
        return None
    return float(text)


def _only(kind: type) -> Callable[[Any], Any]:
    """Converts cells of exactly this type: a truth value is not an integer."""
    return lambda cell: cell if type(cell) is kind else None


def _natural(cell: Any) -> int | None:
    if type(cell) is not int or cell < 0:
        return None
    return cell


def _number(cell: Any) -> float | None:
    if type(cell) not in (int, float):
        return None
    return float(cell)


def _string(cell: Any) -> bytes | None:
    if not isinstance(cell, str):
        return None
    try:
        return cell.encode()
    except UnicodeEncodeError:
        return None


def _bytes(cell: Any) -> bytes | None:
    if isinstance(cell, bytes):
        return cell
    try:
        return base64.b64decode(cell, validate=True)
    except (ValueError, TypeError):
        return None


TYPES = {
    "bool": ColumnType("int64", _only(bool), lambda text: _TRUTH.get(text.lower())),
    "enum": ColumnType("int64", _string),  # the column maps its names to numbers
    "int": ColumnType("int64", _only(int), _parse_integer),
    "uint": ColumnType("int64", _natural, _parse_integer),
    "float": ColumnType("float", _only(float), _parse_decimal),
    "double": ColumnType("float", _only(float), _parse_decimal),
    "number": ColumnType("float", _number, _parse_decimal),
    "string": ColumnType("bytes", _string),
    "bytes": ColumnType("bytes", _bytes),
}
"""Column types, by the names that users write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSettings:
    """One column: the YAML keys below its name.

    Attributes:
        type: `bool`, `enum`, `int`, `uint` (stored as int64), `float`, `double`, `number` (which
            takes integers too), `string` or `bytes` (base64 where a cell is text); followed by `[]`
            for a list.
        feature: the feature's name in the Example; empty: the column's.
        enum: for a column of type `enum`, the number of each name.
        default: what readers use if the column has no value. Without it, a row without a value is
            rejected.
        meaning: one line for people.
    """

    short_form: ClassVar[str] = "type"

    type: str
    feature: str = ""
    enum: Mapping[str, int] = field(default_factory=dict)
    default: bool | int | float | str | None = None
    meaning: str = ""

    def __post_init__(self) -> None:
        """Raises SettingError if the settings are invalid."""
        if self.base not in TYPES or not re.fullmatch(r"\w+(\[\])?", self.type):
            known = ", ".join(TYPES)
            raise SettingError(
                "type",
                f"is {self.type!r}: write one of {known}, or one of them and [] for a list",
            )
        if (self.base == "enum") != bool(self.enum):
            raise SettingError(
                "enum",
                ": belongs to type: enum, and gives each name its number, as in {low: 0, high: 1}",
            )
        if self.many and self.default is not None:
            raise SettingError("default", ": a list has no default: without values, it is empty")
        try:
            self._coerced_default()
        except FeatureValueError as error:
            raise SettingError("default", f": {error}") from None

    @property
    def base(self) -> str:
        """The type of one value."""
        return self.type.removesuffix("[]")

    @property
    def many(self) -> bool:
        """Whether a cell holds a list."""
        return self.type.endswith("[]")

    @property
    def kind(self) -> FeatureKind:
        """The list of an Example that stores its values."""
        return TYPES[self.base].kind

    def _coerced_default(self) -> Value | None:
        default = self.default
        if self.enum and isinstance(default, str):
            default = self.enum.get(default)
        return coerce_setting(default, self.kind)

    def as_feature(self, column: str) -> Feature:
        """Returns the feature that the column becomes."""
        name = self.feature or column
        meaning = self.meaning or f"the column `{column}`, {self.type}"
        return Feature(
            name, self.kind, name, meaning, many=self.many, default=self._coerced_default()
        )


def read_cell(cell: Any, name: str, column: ColumnSettings, as_text: bool) -> Any:
    """Converts a cell to a value for `schemas.features.COERCE`; None if it has none.

    Args:
        cell: the cell from the table.
        name: the column's name.
        column: the column's settings.
        as_text: whether all cells are strings. If so, lists are JSON, and an empty cell has no
            value, unless the type is `string`.

    Raises:
        Rejected: it does not fit its column's type; the detail says which value and which type.
    """
    if cell is None or (as_text and cell == "" and column.type != "string"):
        return None
    if not column.many:
        return _read_value(cell, name, column, TYPES[column.base].parse if as_text else None)
    values = cell
    if as_text:
        with suppress(orjson.JSONDecodeError):
            values = orjson.loads(cell)
    if not isinstance(values, list):
        written = ", written as in JSON" if as_text else ""
        raise bad_row(f"column {name!r}: {cell!r:.60} is not of type {column.type}{written}")
    return [_read_value(value, name, column) for value in values]


def _read_value(
    cell: Any, name: str, column: ColumnSettings, parse: Callable[[str], Any] | None = None
) -> Any:
    value = None
    if column.base == "enum" and isinstance(cell, str):
        value = column.enum.get(cell)
    elif column.base != "enum":
        value = TYPES[column.base].convert(parse(cell) if parse else cell)
    if value is None:
        choices = f" ({', '.join(column.enum)})" if column.enum else ""
        raise bad_row(f"column {name!r}: {cell!r:.60} is not of type {column.base}{choices}")
    try:
        return COERCE[column.kind](value)
    except FeatureValueError:
        raise bad_row(
            f"column {name!r}: {cell!r:.60} is out of the range of {column.kind}"
        ) from None


def infer_type(text: str) -> str:
    """Infers the type of a text: `bool`, `int`, `float` or `string`.

    Whole numbers with leading zeros are strings: they are article numbers or postal codes.
    """
    if text.lower() in ("true", "false"):
        return "bool"
    if _INTEGER.fullmatch(text):
        digits = text.lstrip("+-")
        return "int" if digits == "0" or not digits.startswith("0") else "string"
    if _DECIMAL.fullmatch(text):
        return "float"
    return "string"


def is_rounded(value: Any) -> bool:
    """Tells whether a value is a whole number that a 32-bit float cannot represent.

    Such a number is probably an identifier, not a measurement.
    """
    return isinstance(value, float) and value.is_integer() and float(np.float32(value)) != value


def encode_cell(value: Any) -> Any:
    """Converts a value to JSON, from which `decode_cell` restores it exactly."""
    if isinstance(value, list):
        return [encode_cell(each) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def decode_cell(value: Any, kind: str) -> Any:
    """Restores a value from `encode_cell`.

    Args:
        value: the result of `encode_cell`.
        kind: `bytes`, `float` or `int64`.
    """
    if isinstance(value, list):
        return [decode_cell(each, kind) for each in value]
    if kind == "bytes":
        return base64.b64decode(value)
    if kind == "float":
        return float(value)
    return value
