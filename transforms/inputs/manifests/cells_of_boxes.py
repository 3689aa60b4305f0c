"""Cells that hold boxes, in the forms that are in use."""

from collections.abc import Mapping, Sequence
from typing import Any

from recordmill.transforms.inputs.manifests.cell_values import (
    list_of,
    number_of,
    parse_json,
    parse_list,
    refuse,
    text_of,
)
from recordmill.transforms.inputs.tables.row import bad_row

_TOO_LARGE = 2**127  # sums are finite below it, as JSON needs them


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
