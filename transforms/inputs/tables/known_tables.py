"""Known tables: those of Google's services, and any whose columns are recognized.

Columns are recognized by their names and the first row.
"""

import csv
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import orjson

from recordmill.transforms.inputs.folder_sketch import (
    IMAGE_ENDINGS,
    USUAL_WORDS,
    FolderSketch,
    Recognized,
    begins_with_split,
    given_splits,
    split_pattern,
)
from recordmill.transforms.inputs.tables.cells import bad_row
from recordmill.transforms.inputs.tables.manifest_columns import (
    Entry,
    list_of,
    name_of,
    number_of,
    refuse,
    text_of,
)
from recordmill.transforms.inputs.tables.read_table import TABLE_ENDINGS

ML_USE = "aiplatform.googleapis.com/ml_use"

_SETS = frozenset({"TRAIN", "VALIDATION", "TEST", "UNASSIGNED", "TRAINING"})
_NUMBER = re.compile(r"-?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?")
_CORNERS = 8


def read_vertex(cells: Mapping[str, Any]) -> Entry:
    """Makes the entry of a line of Vertex AI's import files for images.

    `imageGcsUri` is the image, `classificationAnnotation` its class, `classificationAnnotations`
    several classes, `boundingBoxAnnotations` its boxes as fractions of the image; `ml_use` in
    `dataItemResourceLabels` is the split.

    Raises:
        Rejected: a value is missing or of another type.
    """
    entry = Entry(uri=name_of(cells.get("imageGcsUri"), "imageGcsUri", is_required=True))
    use = _object(cells.get("dataItemResourceLabels") or {}, "dataItemResourceLabels")
    entry.split = text_of(use.get(ML_USE), ML_USE)
    if (column := "classificationAnnotation") in cells:
        entry.label = _name(cells[column], column)
    if (column := "classificationAnnotations") in cells:
        entry.labels = [_name(each, column) for each in list_of(cells[column], column, ",")]
    if (column := "boundingBoxAnnotations") in cells:
        given = list_of(cells[column], column, ",")
        entry.box_labels = [_name(each, column) for each in given]
        sides = ("xMin", "yMin", "xMax", "yMax")
        entry.boxes = [
            [number_of(each.get(side), f"{column}.{side}") for side in sides] for each in given
        ]
    return entry


def _object(value: Any, column: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refuse(column, value, "not a JSON object")
    return value


def _name(annotation: Any, column: str) -> str:
    return name_of(
        _object(annotation, column).get("displayName"), f"{column}.displayName", is_required=True
    )


def read_automl(cells: Sequence[str]) -> Entry:
    """Makes the entry of a row `[set,]path[,label...]` of AutoML's CSV, or of its form for boxes.

    In that form, the corners of one box follow the label in eight cells, as fractions of the image.
    Only two opposite corners are needed; all nine cells are empty for an image without boxes. Each
    further box has its own row: see `Entry.join`.

    Raises:
        Rejected: there is no path, or a box has no two opposite corners.
    """
    cells = [text_of(cell.strip(), f"{number}") for number, cell in enumerate(cells, start=1)]
    known_set = cells[0].upper() in _SETS or (len(cells) > 1 and not cells[0])
    split = cells[0].upper() if known_set else ""
    path, *rest = cells[1 if known_set else 0 :] or [""]
    if not path:
        raise bad_row("it does not contain a path")
    entry = Entry(uri=path, split=split)
    corners = rest[1:]
    numbers = len(corners) == _CORNERS and all(
        not cell or _NUMBER.fullmatch(cell) for cell in corners
    )
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


PRESETS: Mapping[str, tuple[Literal["jsonl", "csv"], Callable[[Any], Entry]]] = {
    "vertex": ("jsonl", read_vertex),
    "automl": ("csv", read_automl),
}
"""By name: the format, and what makes an entry from a row's cells."""


_IMAGE = (
    *(
        "file_name",
        "filename",
        "image_path",
        "image_file",
        "image_name",
        "image_uri",
        "image",
        "img_path",
        "img",
    ),
    *(
        "filepath",
        "file_path",
        "file",
        "path",
        "uri",
        "images",
        "name",
        "image_id",
        "img_id",
        "id_code",
        "id",
    ),
)
_LABEL = (
    "label",
    "class",
    "class_name",
    "category",
    "species",
    "breed",
    "target",
    "diagnosis",
    "labels",
    "tag",
)
_NO_CLASS = re.compile(r"\s*(\[?\{|-?[0-9.]+( -?[0-9.]+)+\s*$)")
"""How a cell begins that holds shapes as JSON (Label Studio), or runs of pixels (Kaggle)."""
_SPLIT = ("split", "set", "subset", "partition")
_SIDES = ("xmin", "ymin", "xmax", "ymax")
HELD = "<bytes>"
"""Stands for the bytes of an image in a sampled row."""

SEVERAL = "<several>"
"""Stands for a list of classes in a sampled row."""

NUMBERS = "<numbers>"
"""Stands for a list of numbers that no class names are known for, such as a vector."""

OBJECTS = "<objects>"
"""Stands for boxes with their classes, as Hugging Face stores them."""


@dataclass(frozen=True, slots=True)
class FoundColumns:
    """The columns of a table of images.

    Attributes:
        columns: the setting `columns`.
        names: the names of all columns, if the table has no header.
        root: the folder of the images, if no cell names it.
        delimiter: the character between cells, if it is not the usual one.
        splits: split words as the table spells them, and their splits; empty if it has no such
            column.
        others: the remaining columns.
    """

    columns: Mapping[str, str]
    names: tuple[str, ...] = ()
    root: str = ""
    delimiter: str = ""
    splits: Mapping[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()

    @property
    def source(self) -> dict[str, Any]:
        """The settings of the source that reads them."""
        optional = {"names": list(self.names), "root": self.root, "delimiter": self.delimiter}
        return {"kind": "manifest", "columns": self.columns} | {
            key: value for key, value in optional.items() if value
        }

    @property
    def has_boxes(self) -> bool:
        """Whether rows have boxes."""
        return not {"xmin", "objects"}.isdisjoint(self.columns)

    @property
    def has_classes(self) -> bool:
        """Whether the class of an image, or of its boxes, has a known column."""
        return self.has_boxes or not {"label", "labels"}.isdisjoint(self.columns)


def recognize_tables(sketch: FolderSketch) -> Iterator[Recognized]:
    """Recognizes tables with a column that names images or contains them."""
    tables = [path for path in sketch.heads if path.lower().endswith((*TABLE_ENDINGS, ".txt"))]
    tables = [
        path
        for path in tables
        if not re.match(r"metadata\.|.*submission", posixpath.basename(path))
    ]
    found = {path: columns for path in tables if (columns := find_columns(path, sketch))}
    found = {path: columns for path, columns in found.items() if columns.has_classes} or found
    if found:
        yield _as_recognized(found, sketch)


_WITH_LABELS = (
    "{features: {image/encoded: {field: encoded, type: bytes}, image/class/label: {field: labels, "
    "type: int64, shape: [null]}, image/class/text: {field: label_texts, type: bytes, "
    "shape: [null]}}}"
)
"""A convention with several labels, as YAML."""


def _as_recognized(found: Mapping[str, FoundColumns], sketch: FolderSketch) -> Recognized:
    """The settings for tables whose columns were found."""
    path, first = next(iter(found.items()))
    source = first.source
    settings: dict[str, Any] = {"source": source}
    folders = {posixpath.dirname(each) for each in found}
    unread = _find_unread_tables(found, sketch)
    pattern, words = split_pattern(posixpath.basename(each) for each in (*found, *unread))
    if first.splits:
        settings["splits"] = {"from_source": dict(first.splits)}
    elif folders <= set(sketch.split_folders):
        settings |= given_splits("from_folders", sketch.split_folders)
    elif pattern and (len(found) + len(unread) > 1 or path.endswith(".txt")):
        source["split"] = pattern
        settings |= given_splits("from_source", words)
    if (
        not source.get("split")
        and not unread
        and set(sketch.all_ending(*TABLE_ENDINGS)) - found.keys()
    ):
        settings["include"] = [f"/{each}" for each in found]
    if first.has_boxes:
        settings["convention"] = "tf_object_detection"
    shown = ", ".join(first.others)
    key, needs = _find_need(found, sketch)
    if not needs and path.endswith(".txt") and not pattern:
        needs = "a list is read where its name has the word for a split: call it train.txt"
    why = f"a table of images, {path}" + (
        f" (left out: {shown})" if shown and first.has_classes else ""
    )
    return Recognized(settings, why, needs=needs, needed_keys=(key,) if key else ())


def _find_need(found: Mapping[str, FoundColumns], sketch: FolderSketch) -> tuple[str, str]:
    """Returns the setting that the user must give, and why; both empty if there is none.

    The setting is empty if something else must be done.
    """
    path, first = next(iter(found.items()))
    shown = ", ".join(first.others)
    if shown and not first.has_classes:
        key = "source.columns.label"
        return key, (
            f"it is not clear which column is the class: add --set {key}=COLUMN ({shown}; or '' "
            "for none)"
        )
    if column := first.columns.get("labels"):
        return "convention", (
            f"its column {column} holds several classes of an image, and the usual convention "
            f"stores one: add --set 'convention={_WITH_LABELS}'"
        )
    if any(each != first for each in found.values()):
        return "", f"{' and '.join(found)} have different columns: let --input name one of them"
    if len(endings := _endings_of(path, first.columns.get("uri", ""), sketch)) > 1:
        key = "source.columns.uri"
        return key, (
            f"its images have the extensions {', '.join(endings)}, which it does not name: write "
            f"them into the table, or add --set '{key}={first.columns['uri']}' to read only these"
        )
    return "", ""


def _endings_of(path: str, uri: str, sketch: FolderSketch) -> list[str]:
    """Returns the extensions of the images that a template in a table may mean.

    The list is empty if `uri` is a column.
    """
    folder = posixpath.normpath(
        posixpath.join(posixpath.dirname(path), posixpath.dirname(uri))
    ).removeprefix(".")
    return (
        sorted({posixpath.splitext(each)[1] for each in sketch.at(folder).images})
        if "{" in uri
        else []
    )


def _find_unread_tables(found: Iterable[str], sketch: FolderSketch) -> list[str]:
    """Returns the tables that were not looked into, next to those that were found.

    Lists (`.txt`) count only if they are named after a split.
    """
    places = {(posixpath.dirname(path), posixpath.splitext(path)[1].lower()) for path in found}
    tables = (
        path for path in sketch.all_ending(*TABLE_ENDINGS, ".txt") if path not in sketch.heads
    )
    alike = (
        path
        for path in tables
        if (posixpath.dirname(path), posixpath.splitext(path)[1].lower()) in places
    )
    return [
        path
        for path in alike
        if not path.endswith(".txt") or begins_with_split(posixpath.basename(path))
    ]


def find_columns(path: str, sketch: FolderSketch) -> FoundColumns | None:
    """Recognizes a table's columns.

    Returns None if no column names images that were seen, or contains images.

    Args:
        path: the table's path below the input.
        sketch: the input, with the table's first bytes.
    """
    rows, delimiter = _first_rows(path, sketch)
    found = None
    if rows and _place_of(rows[0][0].strip(), path, sketch) == ("", ""):
        found = _without_header(rows[0])
    elif len(rows) == 2 and _is_header(rows[0]) and not path.endswith(".txt"):
        row = dict(zip(*rows, strict=False))
        if image := _find_image(row, path, sketch):
            found = _find_meanings(row, *image)
    return found and replace(found, delimiter=delimiter)


def _is_header(row: Sequence[str]) -> bool:
    """Whether a row may name columns: names differ, and do not look like those of images."""
    return len(set(row)) == len(row) and not any(
        name.lower().endswith(IMAGE_ENDINGS) for name in row
    )


def _without_header(row: Sequence[str]) -> FoundColumns | None:
    """RetinaNet's columns, or a path, a class and any others; None if there is only a path."""
    if len(row) == 6 and all(re.fullmatch(r"\s*-?[0-9]+(\.[0-9]+)?\s*", cell) for cell in row[1:5]):
        columns = {"uri": "path", **{name: name for name in (*_SIDES, "box_label")}}
        return FoundColumns(columns, tuple(columns.values()))
    if len(row) < 2:
        return None
    others = tuple(f"column_{number}" for number in range(3, len(row) + 1))
    return FoundColumns(
        {"uri": "path", "label": "label"}, ("path", "label", *others), others=others
    )


def column_names(path: str, sketch: FolderSketch) -> tuple[str, ...]:
    """The names in the first row of a table that has a header."""
    rows, _ = _first_rows(path, sketch)
    return tuple(next(iter(rows), ()))


def why_no_columns(path: str, sketch: FolderSketch) -> str:
    """Why `find_columns` finds nothing in a table."""
    rows, _ = _first_rows(path, sketch)
    if len(rows) < 2 or not _is_header(rows[0]) or b"\0" in sketch.heads[path]:
        return "it does not begin with a header of different names and a row, in UTF-8"
    return f"its first row names no image that is there: {', '.join(rows[1]):.100}"


def _first_rows(path: str, sketch: FolderSketch) -> tuple[list[list[str]], str]:
    """The first two rows of a table, and its delimiter if that is not the usual one.

    For JSON, the first row is the keys. A CSV's delimiter is found in its first line.
    """
    text = sketch.heads.get(path, b"").decode("utf-8", "replace").removeprefix("\ufeff")
    name = path.lower().removesuffix(".gz")
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return [], ""
    if name.endswith((".jsonl", ".ndjson")):
        try:
            row = orjson.loads(lines[0])
        except ValueError:  # only part of the line was read
            row = dict(re.findall(r'"(\w+)"\s*:\s*"([^"]*)"', lines[0]))
        if not row or not isinstance(row, dict):
            return [], ""
        return [
            [*row],
            [_show_cell(each) for each in row.values()],
        ], ""
    choices = next((each for ending, each in _DELIMITERS.items() if name.endswith(ending)), ",")
    delimiter = next((each for each in choices if each in lines[0]), choices[0])
    rows = list(csv.reader(lines[:2], delimiter=delimiter, skipinitialspace=True))
    return rows, "" if delimiter == choices[0] or name.endswith(".txt") else delimiter


def _show_cell(value: Any) -> str:
    """A cell of JSON as the text by which columns are recognized."""
    if isinstance(value, dict) and "bbox" in value:
        return OBJECTS
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return SEVERAL
    return str(value)


_DELIMITERS = {".csv": ",;\t", ".tsv": "\t", ".txt": ",\t "}
"""What may be between the cells of a file with this extension; what is usual comes first."""


def _find_image(
    row: Mapping[str, str], path: str, sketch: FolderSketch
) -> tuple[str, dict[str, str], str] | None:
    """Finds the column that names the image or contains it.

    Returns the column, the setting `columns` for it, and the folder of the images.
    """
    by_name = {name.strip().lower(): name for name in row}
    usual = [by_name[name] for name in _IMAGE if name in by_name]
    named = [name for name, value in row.items() if value.strip().lower().endswith(IMAGE_ENDINGS)]
    for name in dict.fromkeys((*usual, *named)):
        if place := _place_of(row[name].strip(), path, sketch):
            root, ending = place
            if ending:
                return name, {"uri": posixpath.join(root, f"{{{name}}}{ending}")}, ""
            return name, {"uri": name}, root
    held = [name for name, value in row.items() if value == HELD]
    return (held[0], {"bytes": held[0]}, "") if len(held) == 1 else None


def _find_meanings(
    row: Mapping[str, str], image: str, columns: dict[str, str], root: str
) -> FoundColumns:
    """Finds the columns of class, split and boxes among those that are not the image's."""
    left = {name.strip().lower(): name for name in row if name != image}
    splits = {}
    if split := next((left[name] for name in _SPLIT if name in left), None):
        word = row[split].strip()
        if word.lower() in USUAL_WORDS:
            columns["split"] = left.pop(split.strip().lower())
            splits = {_match_case(value, word): name for value, name in USUAL_WORDS.items()}
    if objects := next((key for key, name in left.items() if row.get(name) == OBJECTS), ""):
        columns["objects"] = left.pop(objects)
    classes = [
        key
        for key, name in left.items()
        if not _NO_CLASS.match(value := row.get(name, "")) and value != NUMBERS
    ]
    label = next((name for name in _LABEL if name in classes), "")
    if label and "uri" in columns and all(side in left for side in _SIDES):
        columns |= {side: left.pop(side) for side in _SIDES} | {"box_label": left.pop(label)}
        if "width" in left and "height" in left:
            columns |= {side: left.pop(side) for side in ("width", "height")}
    elif label and row.get(left[label]) == SEVERAL:
        columns["labels"] = left.pop(label)
    elif label:
        columns["label"] = left.pop(label)
    elif classes and len(left) == 1 and not objects:  # then it must be the class
        column = left.popitem()[1]
        columns["labels" if row.get(column) == SEVERAL else "label"] = column
    return FoundColumns(columns, root=root, splits=splits, others=tuple(left.values()))


def _place_of(value: str, path: str, sketch: FolderSketch) -> tuple[str, str] | None:
    """Finds the image that a cell names.

    Returns its root, relative to the table's folder, and the extension that the cell lacks. Returns
    None if the image was not seen.
    """
    value = value.replace("\\", "/")  # as written on Windows
    own, name = posixpath.dirname(path), posixpath.basename(value)
    roots: Sequence[str] = (own, *sketch.names)
    if sketch.root and value.startswith(f"{sketch.root}/"):
        value, roots = value.removeprefix(f"{sketch.root}/"), ("",)
    if not name or "{" in value or value.startswith("/") or "://" in value:
        return None
    for root in roots:
        for image in sketch.at(posixpath.dirname(posixpath.join(root, value))).images:
            if image.startswith(name) and name in (image, posixpath.splitext(image)[0]):
                return _below(root, own), image[len(name) :]
    is_whole = name.lower().endswith(IMAGE_ENDINGS)
    deeper = posixpath.join(roots[0], value.split("/")[0])  # its contents were not listed
    return (
        (_below(roots[0], own), "")
        if is_whole and "/" in value and sketch.has_folder(deeper)
        else None
    )


def _below(root: str, own: str) -> str:
    """The path of a folder relative to another; empty if they are the same."""
    path = posixpath.relpath(root or ".", own or ".")
    return "" if path == "." else path


def _match_case(word: str, like: str) -> str:
    """A word in the upper or lower case of another."""
    return word.upper() if like.isupper() else word.capitalize() if like[:1].isupper() else word
