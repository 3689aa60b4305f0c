"""Cells become the values that their columns are for, or are refused with their column, value and type."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from recordmill.schemas.coercion import COERCE, FeatureValueError
from recordmill.schemas.features import Kind
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.tables.row import bad_row

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
_TRUTH = {"true": 1, "false": 0}


def refuse(column: str, value: Any, wanted: str) -> Rejected:
    """The error that says why a value is refused."""
    if value is None or value == "":
        return bad_row(f"column {column!r} is empty")
    return bad_row(f"column {column!r}: {value!r:.60} ({type(value).__name__}) is {wanted}")


def text_of(value: Any, column: str, names: Sequence[str] = ()) -> str:
    """A text; integers in decimal, or by the names of the classes that they number; empty where there is no value."""
    if value is None:
        return ""
    if names and isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if isinstance(value, bool):
        raise refuse(column, value, "not text")
    if isinstance(value, int):
        if names and not 0 <= value < len(names):
            raise refuse(column, value, f"not one of the {len(names)} classes")
        return names[value] if names else str(value)
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            raise refuse(column, value, "not UTF-8") from None
    if not isinstance(value, str):
        raise refuse(column, value, "not text")
    if any(letter < " " and letter not in "\t\n\r" for letter in value):
        raise refuse(column, value, "not text: it contains control characters")
    return value


def list_of(value: Any, column: str, separator: str) -> list[Any]:
    """A list; a text is one in JSON if it begins with `[`, or is cut at the separator; no value is an empty list."""
    if isinstance(value, str):
        if value.lstrip().startswith("["):
            return parse_list(value, column)
        return [word.strip() for word in value.split(separator) if word.strip()]
    if value is None:
        return []
    if not isinstance(value, list):
        raise refuse(column, value, "not a list")
    return value


def texts_of(value: Any, column: str, separator: str, names: Sequence[str] = ()) -> list[str]:
    """A list of texts, none of them empty."""
    texts = [text_of(each, column, names) for each in list_of(value, column, separator)]
    empty = [place for place, text in enumerate(texts, start=1) if not text.strip()]
    if empty:
        raise bad_row(f"column {column!r}: text {empty[0]} of the list is empty")
    return texts


def feature_value(value: Any, kind: Kind, column: str) -> Any:
    """A value as features of references carry it: a text, an integer or a finite float.

    A text becomes a number only as a whole (`12`, `-1.5e3`; `true` and `false` are 1 and 0); an integer becomes a float
    where that is declared; nothing is rounded.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise refuse(column, value, "not finite")
    if kind == "bytes":
        return text_of(value, column)
    convert: Callable[[Any], Any] = _integer if kind == "int64" else _float
    wanted = "not a 64-bit integer" if kind == "int64" else "not a 32-bit float"
    try:
        return COERCE[kind](convert(value))
    except (FeatureValueError, OverflowError):
        raise refuse(column, value, wanted) from None


def number_of(value: Any, column: str) -> float:
    """A finite number; a text is one in decimal.

    Raises:
        Rejected: it is something else, or there is none.
    """
    number = _float(value)
    if not isinstance(number, float) or not math.isfinite(number):
        raise refuse(column, value, "not a number")
    return number


def _integer(value: Any) -> Any:
    if isinstance(value, str):
        text = value.strip()
        return int(text) if _INTEGER.fullmatch(text) else _TRUTH.get(text.lower(), value)
    return value


def _float(value: Any) -> Any:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
        return value if math.isfinite(value) else str(value)
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def parse_json(text: str, column: str, wanted: str = "JSON") -> Any:
    """What is written in JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise refuse(column, text, f"not {wanted}") from None


def parse_list(text: str, column: str) -> list[Any]:
    """A list that is written in JSON."""
    values = parse_json(text, column, "a JSON list")
    if not isinstance(values, list):
        raise refuse(column, text, "not a JSON list")
    return values
