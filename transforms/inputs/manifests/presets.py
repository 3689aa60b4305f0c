"""Manifests of Google's services: Vertex AI's JSON lines and AutoML's CSV."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from recordmill.transforms.inputs.manifests.columns import Entry, list_of, refuse, text_of
from recordmill.transforms.inputs.tables.cells import bad_row

ML_USE = "aiplatform.googleapis.com/ml_use"

_SETS = frozenset({"TRAIN", "VALIDATION", "TEST", "UNASSIGNED", "TRAINING"})
_NUMBER = re.compile(r"-?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?")
_CORNERS = 8


def read_vertex(cells: Mapping[str, Any]) -> Entry:
    """Makes the entry of a line of Vertex AI's import files for images.

    `imageGcsUri` is the image, `classificationAnnotation` its class, `classificationAnnotations` several classes,
    `boundingBoxAnnotations` its boxes as fractions of the image; `ml_use` in `dataItemResourceLabels` is the split.

    Raises:
        Rejected: a value is missing or of another type.
    """
    entry = Entry(uri=_text_in(cells, "imageGcsUri", "imageGcsUri"), fractions=True)
    use = _object(cells.get("dataItemResourceLabels") or {}, "dataItemResourceLabels")
    entry.split = text_of(use.get(ML_USE), ML_USE)
    if "classificationAnnotation" in cells:
        entry.label = _name(cells["classificationAnnotation"], "classificationAnnotation")
    if "classificationAnnotations" in cells:
        column = "classificationAnnotations"
        entry.labels = [_name(each, column) for each in list_of(cells[column], column, ",")]
    if "boundingBoxAnnotations" in cells:
        column = "boundingBoxAnnotations"
        given = list_of(cells[column], column, ",")
        entry.box_labels = [_name(each, column) for each in given]
        entry.boxes = [[_number(each, side, column) for side in ("xMin", "yMin", "xMax", "yMax")] for each in given]
    return entry


def _object(value: Any, column: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refuse(column, value, "not a JSON object")
    return value


def _name(annotation: Any, column: str) -> str:
    return _text_in(_object(annotation, column), "displayName", f"{column}.displayName")


def _text_in(values: Mapping[str, Any], key: str, column: str) -> str:
    if text := text_of(values.get(key), column):
        return text
    raise refuse(column, "", "")


def _number(annotation: Any, side: str, column: str) -> float:
    value = _object(annotation, column).get(side)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise refuse(f"{column}.{side}", value, "not a number")
    return float(value)


def read_automl(cells: Sequence[str]) -> Entry:
    """Makes the entry of a row `[set,]path[,label...]` of AutoML's CSV, or of its form for boxes.

    In that form, the corners of one box follow the label in eight cells, as fractions of the image. Only two opposite
    corners are needed; all nine cells are empty for an image without boxes. Each further box has its own row: see
    `Entry.join`.

    Raises:
        Rejected: there is no path, or a box has no two opposite corners.
    """
    cells = [text_of(cell.strip(), f"{number}") for number, cell in enumerate(cells, start=1)]
    known_set = cells[0].upper() in _SETS or (len(cells) > 1 and not cells[0])
    split = cells[0].upper() if known_set else ""
    path, *rest = cells[1 if known_set else 0 :] or [""]
    if not path:
        raise bad_row("there is no path in it")
    entry = Entry(uri=path, split=split, fractions=True)
    corners = rest[1:]
    numbers = len(corners) == _CORNERS and all(not cell or _NUMBER.fullmatch(cell) for cell in corners)
    if numbers and (any(corners) or not rest[0]):
        entry.boxes, entry.box_labels = _box(rest[0], corners)
        return entry
    entry.labels = list(dict.fromkeys(label for label in rest if label))
    if len(entry.labels) == 1:
        entry.label = entry.labels[0]
    if not entry.labels:
        raise bad_row("there is no label in it")
    return entry


def _box(label: str, corners: Sequence[str]) -> tuple[list[list[float]], list[str]]:
    if not any(corners):
        return [], []
    xs = [float(cell) for cell in corners[0::2] if cell]
    ys = [float(cell) for cell in corners[1::2] if cell]
    if not label or len(xs) < 2 or len(ys) < 2:
        raise bad_row("its box needs a label and two opposite corners")
    return [[min(xs), min(ys), max(xs), max(ys)]], [label]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A known kind of table.

    Attributes:
        format: as `TableFormat.format`.
        read: makes an entry from a row's cells.
        uri_column: the column of the images, if columns have names.
        splits: the split words, and their splits.
    """

    format: Literal["jsonl", "csv"]
    read: Callable[[Any], Entry]
    uri_column: str = ""
    splits: Mapping[str, str]


PRESETS = {
    "vertex": Preset(
        format="jsonl",
        read=read_vertex,
        uri_column="imageGcsUri",
        splits={"training": "train", "validation": "validation", "test": "test"},
    ),
    "automl": Preset(
        format="csv",
        read=read_automl,
        splits={"TRAIN": "train", "VALIDATION": "validation", "TEST": "test", "UNASSIGNED": "train"},
    ),
}
"""By name."""
