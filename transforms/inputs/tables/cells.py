"""From a cell of a table to a value that fits its column's type, and on to JSON and back.

Nothing is rounded or guessed: a cell either is of its column's type or raises. Cells of CSV are text, which is read as
the type says; those of JSON lines and Parquet have types of their own, which must be the column's.
"""

import base64
import math
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import orjson

from recordmill.schemas.coercion import COERCE, FeatureValueError
from recordmill.transforms.inputs.tables.column_settings import ColumnSettings

_EXACT = 2**24
"""Whole numbers up to this are exact in 32-bit floats."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,6})?|[+-]?(nan|inf|infinity)", re.I | re.A)
_TRUTH = {"true": True, "false": False, "1": True, "0": False}


class CellError(ValueError):
    """A cell does not fit its column's type; the message says which value and which type."""


def read_cell(cell: Any, column: ColumnSettings, as_text: bool) -> Any:
    """A cell's value, as `schemas.coercion` takes it; None where it has none.

    Args:
        cell: as the table has it.
        column: what it must be.
        as_text: whether the table holds only texts; lists are JSON then, and an empty cell means no value, except for
            a `string` it is the empty text.

    Raises:
        CellError: it does not fit.
    """
    if cell is None or (as_text and cell == "" and column.type != "string"):
        return None
    if not column.many:
        parse = _PARSE.get(column.base) if as_text else None
        return _read_value(cell, column, parse)
    values = cell
    if as_text:
        with suppress(orjson.JSONDecodeError):
            values = orjson.loads(cell)
    if not isinstance(values, list):
        raise CellError(f"{_shown(cell)} is no {column.type}" + (", written as in JSON" if as_text else ""))
    return [_read_value(value, column) for value in values]


def _read_value(cell: Any, column: ColumnSettings, parse: Callable[[str], Any] | None = None) -> Any:
    if column.base == "enum":
        value = column.enum.get(cell) if isinstance(cell, str) else None
    else:
        value = _CONVERT[column.base](parse(cell) if parse else cell)
    if value is None:
        names = f" ({', '.join(column.enum)})" if column.enum else ""
        raise CellError(f"{_shown(cell)} is no {column.base}{names}")
    try:
        return COERCE[column.kind](value)
    except FeatureValueError:
        raise CellError(f"{_shown(cell)} is out of the range of {column.kind}") from None


def _shown(cell: Any) -> str:
    return repr(cell) if len(repr(cell)) <= 60 else f"{cell!r:.57}..."


def _decode_base64(cell: Any) -> bytes | None:
    if isinstance(cell, bytes):
        return cell
    try:
        return base64.b64decode(cell, validate=True)
    except (ValueError, TypeError):
        return None


def _parse_integer(text: str) -> int | None:
    whole, dot, zeros = text.partition(".")  # as pandas writes integers of a column with gaps
    return int(whole) if _INTEGER.fullmatch(whole) and (not dot or zeros.strip("0") == "") else None


def _parse_decimal(text: str) -> float | None:
    return float(text) if _DECIMAL.fullmatch(text) else None


_PARSE: dict[str, Callable[[str], Any]] = {
    "bool": lambda text: _TRUTH.get(text.lower()),
    **dict.fromkeys(("int", "uint"), _parse_integer),
    **dict.fromkeys(("float", "double", "number"), _parse_decimal),
}
"""The value that a text stands for; None where it is none. Texts stand for themselves in other types."""


def _integer(cell: Any) -> int | None:
    return cell if isinstance(cell, int) and not isinstance(cell, bool) else None


def _unsigned(cell: Any) -> int | None:
    return cell if _integer(cell) is not None and cell >= 0 else None


def _number(cell: Any) -> float | None:
    if isinstance(cell, float):
        return cell
    whole = _integer(cell)
    return None if whole is None or abs(whole) > 2**1000 else float(whole)


def _float(cell: Any) -> float | None:
    return cell if isinstance(cell, float) else None


def _string(cell: Any) -> bytes | None:
    try:
        return cell.encode() if isinstance(cell, str) else None
    except UnicodeEncodeError:
        return None


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "bool": lambda cell: cell if isinstance(cell, bool) else None,
    "int": _integer,
    "uint": _unsigned,
    "float": _float,
    "double": _float,
    "number": _number,
    "string": _string,
    "bytes": _decode_base64,
}
"""One value of each type; None where the cell is none."""


def looks_like(text: str) -> str:
    """The type that a text reads as: `bool`, `int`, `float` or `string`.

    Whole numbers with zeros before them are texts: they are numbers of articles, or postal codes.
    """
    if text.lower() in ("true", "false"):
        return "bool"
    if _INTEGER.fullmatch(text):
        digits = text.lstrip("+-")
        return "int" if digits == "0" or not digits.startswith("0") else "string"
    return "float" if _DECIMAL.fullmatch(text) else "string"


def is_rounded(value: Any) -> bool:
    """Whether a value is a whole number that a 32-bit float cannot hold: most likely not a measurement, but a name."""
    if not isinstance(value, float) or not abs(value) > _EXACT or not value.is_integer():
        return False
    return float(np.float32(value)) != value


def to_json(value: Any) -> Any:
    """A value as JSON holds it; `from_json` gives it back exactly."""
    if isinstance(value, list):
        return [to_json(each) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def from_json(value: Any, kind: str) -> Any:
    """What `to_json` was given.

    Args:
        value: what it gave.
        kind: `bytes`, `float` or `int64`.
    """
    if isinstance(value, list):
        return [from_json(each, kind) for each in value]
    if kind == "bytes":
        return base64.b64decode(value)
    return float(value) if kind == "float" else value
