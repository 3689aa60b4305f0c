"""Cells become the values that their columns are for, or are refused with their column, value and type."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from recordmill.schemas.coercion import COERCE, FeatureValueError
from recordmill.schemas.features import Kind
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.tables.row import bad_row

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
_TRUTH = {"true": 1, "false": 0}
_TOO_LARGE = 2**127  # sums are finite below it, as JSON needs them


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


def boxes_from(value: Any, column: str) -> list[list[float]]:
    """Lists of four numbers each: xmin, ymin, xmax, ymax.

    Raises:
        Rejected: it is something else.
    """
    boxes = parse_list(value, column) if isinstance(value, str) and value else list_of(value, column, ",")
    for box in boxes:
        if not isinstance(box, list) or len(box) != 4 or not all(map(_is_number, box)):
            raise refuse(column, box, "not a list of four numbers")
    return [[float(side) for side in box] for box in boxes]


def _is_number(side: Any) -> bool:
    return isinstance(side, int | float) and not isinstance(side, bool) and abs(side) < _TOO_LARGE  # so NaN is none


def box_from_sides(cells: Sequence[tuple[str, Any]], label: tuple[str, str]) -> list[list[float]]:
    """The one box of a row, as a list of xmin, ymin, xmax and ymax; an empty list where all cells are empty.

    Args:
        cells: of the sides, each with its column.
        label: the box's class, with its column.

    Raises:
        Rejected: a side is not a number, or a side or the class is missing.
    """
    if not label[1] and all(value is None or (isinstance(value, str) and not value.strip()) for _, value in cells):
        return []
    if not label[1]:
        raise refuse(label[0], label[1], "")
    return [[number_of(value, column) for column, value in cells]]


def size_from(width: tuple[str, Any], height: tuple[str, Any]) -> tuple[int, int] | None:
    """The image's width and height as annotators saw it; None where a cell is empty, or 0.

    Raises:
        Rejected: one is not a whole number.
    """
    sides = []
    for column, value in (width, height):
        number = 0.0 if value is None or value == "" else number_of(value, column)
        if not number.is_integer() or not 0 <= number < 2**31:
            raise refuse(column, value, "not a whole number of pixels")
        sides.append(int(number))
    return (sides[0], sides[1]) if all(sides) else None


def check_labels(column: str, boxes: Sequence[Any], labels: Sequence[str]) -> None:
    """Raises Rejected unless each box has a label."""
    if len(labels) != len(boxes) or not all(labels):
        raise bad_row(f"column {column!r}: there are {len(boxes)} boxes and {len(list(filter(None, labels)))} labels")


def objects_from(value: Any, column: str, names: Sequence[str] = ()) -> tuple[list[list[float]], list[str]]:
    """Boxes (xmin, ymin, xmax, ymax) and their classes, of what Hugging Face calls objects.

    That is an object of lists, `bbox` and `categories` (or `category`), or a list of objects with one of each. A box is
    COCO's: x, y, width, height.

    Args:
        value: of the cell; a text is JSON; a missing value means no boxes.
        column: for messages.
        names: of the classes that integers number from 0.

    Raises:
        Rejected: it is something else, a category is missing, or a number is that of no class.
    """
    if isinstance(value, str) and value.strip():
        value = parse_json(value, column)
    if isinstance(value, list):
        value = _columns_of(value, column)
    elif not isinstance(value := value or {}, Mapping):
        raise refuse(column, value, "not an object with bbox and categories")
    boxes = boxes_from(value.get("bbox"), f"{column}.bbox")
    given = list_of(value.get("categories", value.get("category")), f"{column}.categories", ",")
    labels = [text_of(each, f"{column}.categories", names) for each in given]
    check_labels(column, boxes, labels)
    return [[x, y, x + width, y + height] for x, y, width, height in boxes], labels


def _columns_of(objects: list[Any], column: str) -> dict[str, list[Any]]:
    for each in objects:
        if not isinstance(each, Mapping):
            raise refuse(column, each, "not an object with bbox and category")
    return {
        "bbox": [each.get("bbox") for each in objects],
        "categories": [each.get("category", each.get("categories")) for each in objects],
    }
