"""The columns of a manifest, and what a row says about its image.

The columns are the YAML keys below `source.columns` and `source.features_from`. Cells are converted
to their column's type, or refused with column, value and type.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Literal, Protocol

import orjson

from recordmill.annotations.attributes import read_attribute
from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import COERCE, Feature, FeatureKind, FeatureValueError
from recordmill.schemas.formatting import format_count
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.class_names import LONGEST_NAME, NO_CLASS_NUMBER
from recordmill.transforms.inputs.tables.cells import bad_row

Unlabeled = Literal["auto", "reject", "keep"]
"""What happens to images without a class; see `Manifest.unlabeled`."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+")
_TRUTH = {"true": 1, "false": 0}


def refuse(column: str, value: Any, wanted: str) -> Rejected:
    """Makes the error that refuses a value."""
    if value is None or value == "":
        return bad_row(f"column {column!r} is empty")
    return bad_row(f"column {column!r}: {value!r:.60} ({type(value).__name__}) is {wanted}")


def text_of(value: Any, column: str, names: Sequence[str] = ()) -> str | None:
    """Converts a value to text; None if there is no value.

    An integer is written in decimal, or as the class that it numbers in `names`. There, -1 stands
    for no class, as in Hugging Face's ClassLabel.
    """
    if value is None:
        return None
    if names and isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if names and _is_no_class(value):
        return None
    if isinstance(value, bool):
        raise refuse(column, value, "not text")
    if isinstance(value, int):
        if names and not 0 <= value < len(names):
            raise refuse(column, value, f"not one of the {len(names)} classes")
        return names[value] if names else str(value)
    if not isinstance(value, str):
        remedy = ": store it as a string column" if isinstance(value, bytes) else ""
        if isinstance(value, list):
            remedy = ": name a column of several classes in source.columns.labels"
        raise refuse(column, value, f"not text{remedy}")
    return check_text(value, column)


def check_text(text: str, column: str) -> str:
    """Returns the text.

    Raises:
        Rejected: it contains control characters.
    """
    if any(letter < " " and letter not in "\t\n\r" for letter in text):
        raise refuse(column, text, "not text: it contains control characters")
    return text


def _is_no_class(value: Any) -> bool:
    """Returns whether a value stands for no class where classes are numbered."""
    return value in (NO_CLASS_NUMBER, str(NO_CLASS_NUMBER)) and not isinstance(value, float)


def name_of(value: Any, column: str, names: Sequence[str] = ()) -> str | None:
    """Returns the value as a short string; None if there is no value, or a blank one."""
    text = text_of(value, column, names) or ""
    if len(text) > LONGEST_NAME:
        count = f"{len(text):,} characters, but a name has at most {LONGEST_NAME:,}"
        raise bad_row(f"column {column!r}: {text!r:.60} has {count}")
    return text if text.strip() else None


def require_name(value: Any, column: str, names: Sequence[str] = ()) -> str:
    """Returns the value as a short string that is not blank.

    Raises:
        Rejected: it is blank, too long, or not text.
    """
    name = name_of(value, column, names)
    if name is None:
        raise refuse(column, None, "")
    return name


def list_of(value: Any, column: str, separator: str) -> list[Any]:
    """Converts a value to a list; no value becomes an empty list.

    A string is JSON if it begins with `[`; otherwise, it is split at the separator.
    """
    if isinstance(value, str):
        if not value.lstrip().startswith("["):
            return [word.strip() for word in value.split(separator) if word.strip()]
        value = parse_json(value, column)
    if not isinstance(value, list | None):
        raise refuse(column, value, "not a list")
    return value or []


def texts_of(value: Any, column: str, separator: str, names: Sequence[str] = ()) -> list[str]:
    """Returns a value as a list of non-empty strings."""
    return [
        require_name(each, column, names)
        for each in list_of(value, column, separator)
        if not (names and _is_no_class(each))
    ]


def feature_value(value: Any, kind: FeatureKind, column: str) -> Any:
    """Returns a value as stored in a reference's features: a text, an integer or a finite float.

    A text becomes a number only as a whole (`12`, `-1.5e3`; `true` and `false` are 1 and 0); an
    integer becomes a float if `kind` says so; nothing is rounded.
    """
    if kind == "bytes":
        return text_of(value, column)
    if kind == "int64" and isinstance(value, str):
        text = value.strip()
        value = _TRUTH.get(text.lower(), value)
        if _INTEGER.fullmatch(text):
            value = int(text)
    try:
        return COERCE[kind](number_of(value, column) if kind == "float" else value)
    except FeatureValueError:
        raise refuse(
            column, value, "not a 64-bit integer" if kind == "int64" else "not a 32-bit float"
        ) from None


def number_of(value: Any, column: str) -> float:
    """Returns a value as a number; strings are decimal.

    Raises:
        Rejected: it is something else, not finite, or missing.
    """
    number = float(value) if isinstance(value, str) and _NUMBER.fullmatch(value.strip()) else value
    if (
        isinstance(number, bool)
        or not isinstance(number, int | float)
        or not abs(number) <= sys.float_info.max
    ):
        wanted = "not a finite number"
        if isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value.strip()):
            wanted += f": write a decimal point, as in {value.strip().replace(',', '.')}"
        raise refuse(column, value, wanted)
    return float(number)


def parse_json(text: str, column: str) -> Any:
    """Parses a text as JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise refuse(column, text, "not JSON") from None


def boxes_from(value: Any, column: str) -> list[list[float]]:
    """Returns a value as boxes: lists of xmin, ymin, xmax, ymax.

    Raises:
        Rejected: it is something else.
    """
    boxes = list_of(value, column, ",")
    for box in boxes:
        if not isinstance(box, list) or len(box) != 4:
            raise refuse(column, box, "not a list of four numbers")
    return [[number_of(side, column) for side in box] for box in boxes]


def pixels_of(value: Any, column: str) -> int:
    """Returns a value as a number of pixels; 0 if there is none.

    Raises:
        Rejected: it is not a whole number.
    """
    number = 0.0 if value is None or value == "" else number_of(value, column)
    if not number.is_integer() or not 0 <= number < 2**31:
        raise refuse(column, value, "not a whole number of pixels")
    return int(number)


def check_box_labels(column: str, boxes: Sequence[Any], labels: Sequence[str]) -> None:
    """Raises Rejected unless each box has a label."""
    if len(labels) != len(boxes):
        raise bad_row(f"column {column!r}: there are {len(boxes)} boxes and {len(labels)} labels")


def objects_from(
    value: Any, column: str, names: Sequence[str] = ()
) -> tuple[list[list[float]], list[str]]:
    """Returns boxes (xmin, ymin, xmax, ymax) and their classes from Hugging Face's `objects`.

    That is an object of two lists, `bbox` and `categories` (or `category`), or a list of objects
    with one of each. A box is in COCO's form: x, y, width, height.

    Args:
        value: of the cell; a text is JSON; a missing value means no boxes.
        column: for messages.
        names: of the classes, if categories are integers from 0.

    Raises:
        Rejected: it is something else, a category is missing, or a number has no class.
    """
    if isinstance(value, str) and value.strip():
        value = parse_json(value, column)
    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        value = {key: [each.get(key) for each in value] for key in set().union(*value)}
    if not isinstance(value := value or {}, Mapping):
        raise refuse(column, value, "not an object with bbox and categories")
    boxes = boxes_from(value.get("bbox"), f"{column}.bbox")
    if boxes and not {"categories", "category"} & value.keys():
        keys = ", ".join(map(str, value))
        raise bad_row(f"column {column!r} has no key categories for the classes, only {keys}")
    labels = texts_of(
        value.get("categories", value.get("category")), f"{column}.categories", ",", names
    )
    check_box_labels(column, boxes, labels)
    return [[x, y, x + width, y + height] for x, y, width, height in boxes], labels


_OF_BOXES = ("boxes", "box_labels", "attributes", "points")
"""What rows of one image add to each other."""


class ReadsKeyPoints(Protocol):
    """Reads the key points in a row."""

    def read(self, cells: Mapping[str, Any]) -> list[float]:
        """Returns x, y and visibility of each."""


@dataclass(slots=True)
class ManifestEntry:
    """The contents of a row, as strings and numbers; what the row lacks is empty.

    Attributes:
        uri: where the image is.
        key: its name in the dataset.
        label: its class.
        labels: its classes, if it may have several; None if not given.
        split: the split word.
        group: its group.
        sha256: the SHA-256 of its bytes, in hex.
        boxes: xmin, ymin, xmax, ymax of each box; None if not given.
        box_labels: the class of each box.
        attributes: the attributes of each box, by name.
        points: x, y and visibility of each key point, for each box; None if not given. Without
            boxes, those of one object.
        size: width and height of the image when annotated, if known.
        mask: where its semantic mask is.
        pairs: where its second images are, by name.
        features: the values of additional features, by key.
        fault: what is wrong with a row that names its image: other rows of the image may be valid.
    """

    uri: str = ""
    key: str = ""
    label: str = ""
    labels: list[str] | None = None
    split: str = ""
    group: str = ""
    sha256: str = ""
    boxes: list[list[float]] | None = None
    box_labels: list[str] = field(default_factory=list)
    attributes: list[Mapping[str, str]] = field(default_factory=list)
    points: list[list[float]] | None = None
    size: tuple[int, int] | None = None
    mask: str = ""
    pairs: dict[str, str] = field(default_factory=dict)
    features: dict[str, Any] = field(default_factory=dict)
    fault: str | None = None

    def join(self, other: "ManifestEntry") -> str | None:
        """Adds the boxes of another row of the same image.

        Returns:
            How the rows contradict each other; None if they do not.
        """
        for each in fields(self):
            one, two = getattr(self, each.name), getattr(other, each.name)
            if each.name not in _OF_BOXES and one != two:
                return (
                    f"its {each.name} is {two!r:.60}, and an earlier row of {self.uri!r:.100} "
                    f"has {one!r:.60}"
                )
        self.boxes = self.boxes or []
        self.boxes += other.boxes or []
        self.box_labels += other.box_labels
        self.attributes += other.attributes
        if self.points is not None:
            self.points += other.points or []
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The names of a manifest's columns.

    Attributes:
        uri: the image's path relative to `source.root`, or its URL below it; `images/{id}.jpg`
            combines columns.
        bytes: the image itself, in Parquet: binary, or a struct with binary `bytes`.
        label: the class.
        labels: several classes: a list, or separated by `source.separator`.
        split: the word for `splits.from_source`.
        group: rows of the same group stay in one split.
        key: the image's name in the dataset; by default its path, or its row number.
        sha256: the SHA-256 that the image must have, in hex.
        boxes: a list of `[xmin, ymin, xmax, ymax]`; in CSV as JSON.
        box_labels: the classes of the boxes, in the form of `labels`.
        objects: boxes with their classes: `{bbox: [[x, y, width, height], ...], categories:
            [...]}`, or a list of `{bbox: [...], category: ...}`; in CSV as JSON.
        xmin: the left side of the row's box; rows of one image are joined. An empty box: no
            objects.
        ymin: the box's upper side.
        xmax: the box's right side.
        ymax: the box's lower side.
        box_label: the box's class.
        width: the image's width when annotated: an image of another size is rejected.
        height: the image's height when annotated.
        mask: the semantic mask's path, relative to `source.root` as the image's is; with `bytes`,
            the mask itself.
    """

    uri: str = ""
    bytes: str = ""
    label: str = ""
    labels: str = ""
    split: str = ""
    group: str = ""
    key: str = ""
    sha256: str = ""
    boxes: str = ""
    box_labels: str = ""
    objects: str = ""
    xmin: str = ""
    ymin: str = ""
    xmax: str = ""
    ymax: str = ""
    box_label: str = ""
    width: str = ""
    height: str = ""
    mask: str = ""

    def named(self) -> Iterator[tuple[str, str]]:
        """Yields (setting, column) for each named column."""
        for each in fields(self):
            column = getattr(self, each.name)
            named = [name for _, name in template_parts(column)] if each.name == "uri" else [column]
            yield from ((f"source.columns.{each.name}", name) for name in named if name)

    @property
    def row_boxes(self) -> tuple[str, ...]:
        """Returns the columns of a row's only box: four sides and a class.

        The result is empty if rows do not have one box each.
        """
        columns = (self.xmin, self.ymin, self.xmax, self.ymax, self.box_label)
        return columns if any(columns) else ()

    @property
    def of_classes(self) -> tuple[str, ...]:
        """The columns that hold classes."""
        return tuple(
            filter(None, (self.label, self.labels, self.box_labels, self.objects, self.box_label))
        )

    @property
    def of_files(self) -> dict[str, str]:
        """The columns that hold files, each with the YAML key that names it."""
        if not self.bytes:
            return {}
        given = {self.bytes: "source.columns.bytes", self.mask: "source.columns.mask"}
        return {column: key for column, key in given.items() if column}

    def check(self) -> None:
        """Raises SettingError if columns are missing or contradict each other."""
        if bool(self.uri) == bool(self.bytes):
            raise SettingError(
                "source.columns",
                "names either `uri`, where the image is, or `bytes`, the image itself",
            )
        row_boxes = ("xmin", "ymin", "xmax", "ymax", "box_label")
        for group in (("boxes", "box_labels"), row_boxes, ("width", "height")):
            if any(getattr(self, name) for name in group) and not all(
                getattr(self, name) for name in group
            ):
                raise SettingError(
                    "source.columns",
                    f": {', '.join(group)} go together: name all or none of them",
                )
        given = [name for name in ("boxes", "objects", "xmin") if getattr(self, name)]
        if len(given) > 1:
            raise SettingError(
                f"source.columns.{given[0]}",
                f"and {given[1]} both name boxes: remove one of them",
            )
        if self.row_boxes and not self.uri:
            raise SettingError(
                "source.columns.xmin",
                ": rows of one image are joined by source.columns.uri: name it",
            )
        if self.width and not given:
            raise SettingError(
                "source.columns.width",
                "and height are those of images with boxes: name columns of boxes",
            )
        template_parts(self.uri)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureFrom:
    """An additional feature of an image; a subclass adds the field that names its origin.

    Attributes:
        type: `bytes` (text as UTF-8), `int64` or `float`.
        many: whether it is a list of values.
        default: replaces a missing value; without it, the image is rejected.
        where: the name of the subclass's field.
        described: the feature's meaning, for people, with `{}` for the field's value.
    """

    type: FeatureKind = "bytes"
    many: bool = False
    default: str | int | float | None = None

    where: ClassVar[str]
    described: ClassVar[str]

    @property
    def names(self) -> tuple[str, ...]:
        """Where the values are, such as the columns that it reads."""
        return (getattr(self, self.where),)

    def check(self, key: str) -> None:
        """Raises SettingError if the feature's settings are invalid."""
        name = f"source.features_from.{key}"
        self._check_origin(name)
        if self.many and self.default is not None:
            raise SettingError(
                name,
                ": many and default contradict each other: without values, the list is empty",
            )
        try:
            self.default_value()
        except Rejected:
            raise SettingError(
                f"{name}.default", f"is {self.default!r}, which is not of type {self.type}"
            ) from None

    def _check_origin(self, name: str) -> None:
        """Raises SettingError if nothing says where the values are."""
        if not getattr(self, self.where):
            raise SettingError(f"{name}.{self.where}", f"is empty: name the {self.where}")

    def default_value(self) -> Any:
        """Returns the default as stored in references, e.g. 1.0 for 1 if `type` is `float`.

        Returns None if there is no default.
        """
        if self.default is None:
            return None
        return feature_value(self.default, self.type, getattr(self, self.where))

    def as_feature(self, key: str) -> Feature:
        """Returns the feature under its name."""
        default = self.default_value()
        default = default.encode() if isinstance(default, str) else default
        text = self.described.format(getattr(self, self.where))
        return Feature(key, self.type, key, text, many=self.many, default=default)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureColumn(FeatureFrom):
    """An additional feature from a column, or from several.

    The YAML keys below its name are these attributes and those of `FeatureFrom`.

    Attributes:
        column: the column.
        columns: instead of `column`, several columns, whose values become one list in this order: a
            list of names and patterns (`x_*`), or one of them. The columns that match a pattern are
            in the order of the table. `Manifest.settle` replaces patterns by names.
    """

    column: str = ""
    columns: str | tuple[str, ...] = ()

    where: ClassVar[str] = "column"
    described: ClassVar[str] = "column `{}`"

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it reads."""
        if self.column:
            return (self.column,)
        return (self.columns,) if isinstance(self.columns, str) else self.columns

    @property
    def key_of_names(self) -> str:
        """The YAML key that names the columns."""
        return "column" if self.column else "columns"

    def _check_origin(self, name: str) -> None:
        if self.column and self.columns:
            raise SettingError(
                f"{name}.column", "and columns contradict each other: remove one of them"
            )
        if not all(self.names) or not self.names:
            raise SettingError(
                f"{name}.column",
                f"is empty: name the column, or several columns in {name}.columns",
            )
        if self.columns and self.many:
            raise SettingError(
                f"{name}.many",
                ": a cell of columns holds one value: remove it, or name one column that holds "
                "lists",
            )
        if len(set(self.names)) < len(self.names):
            twice = next(each for each in self.names if self.names.count(each) > 1)
            raise SettingError(f"{name}.columns", f"names {twice!r} twice: remove one of them")

    def as_feature(self, key: str) -> Feature:
        """Returns the feature under its name; several columns become a list without a default."""
        if self.column:
            return super(FeatureColumn, self).as_feature(key)
        count, shown = len(self.names), [f"`{name}`" for name in self.names]
        listed = f"`{self.names[0]}` to `{self.names[-1]}`" if count > 20 else ", ".join(shown)
        return Feature(key, self.type, key, f"{count} columns: {listed}", many=True)

    def value_in(self, cells: Mapping[str, Any], separator: str) -> Any:
        """Returns the feature's value or values in a row; an empty cell has none.

        Raises:
            Rejected: a value is missing or of another type.
        """
        if self.many:
            return [
                feature_value(each, self.type, self.column)
                for each in list_of(cells.get(self.column), self.column, separator)
            ]
        values = [self._value_of(cells.get(name), name) for name in self.names]
        return values[0] if self.column else values

    def _value_of(self, cell: Any, column: str) -> Any:
        if cell is None or cell == "":
            if self.default is None:
                raise refuse(column, cell, "")
            return self.default_value()
        return feature_value(cell, self.type, column)


@dataclass(frozen=True)
class CellReader:
    """Makes entries from rows with named cells.

    Attributes:
        columns: the columns' names.
        features: additional features.
        separator: separates several labels in one text.
        class_names: by column, the names of its numbered classes, from 0.
        unlabeled: which images without a class are kept, instead of being refused.
        attributes: the columns of the attributes of boxes, by name.
        pairs: where second images are, by name: columns, or names of columns in braces.
        key_points: reads the key points of the object in a row; None if there are none.
    """

    columns: Columns
    features: Mapping[str, FeatureColumn]
    separator: str
    class_names: Mapping[str, Sequence[str]]
    unlabeled: Unlabeled = "auto"
    attributes: Mapping[str, str] = field(default_factory=dict)
    pairs: Mapping[str, str] = field(default_factory=dict)
    key_points: ReadsKeyPoints | None = None

    def read(self, cells: Mapping[str, Any]) -> ManifestEntry:
        """Makes the entry of one row.

        Raises:
            Rejected: a value is missing or does not fit its column. If rows of one image are
                joined, a row that names its image becomes an entry with a fault instead.
        """
        uri = self._fill(self.columns.uri, cells)
        try:
            return self._read(uri, cells)
        except Rejected as error:
            if not self.columns.row_boxes:
                raise
            return ManifestEntry(uri=uri, boxes=[], fault=error.detail)

    def _fill(self, template: str, cells: Mapping[str, Any]) -> str:
        """Returns a path from a column, or from columns in braces."""
        parts = template_parts(template)
        return "".join(self._fill_part(text, column, cells) for text, column in parts)

    def _read(self, uri: str, cells: Mapping[str, Any]) -> ManifestEntry:
        entry = ManifestEntry(uri=uri)
        for name in ("key", "label", "split", "group", "sha256"):
            if column := getattr(self.columns, name):
                if name == "key" or (name == "label" and self._needs_class(cells)):
                    setattr(entry, name, self._require_name(cells, column))
                else:
                    setattr(entry, name, self._name(cells, column) or "")
        if self.columns.mask in self.columns.of_files:
            entry.mask = self.columns.mask
        elif self.columns.mask:
            entry.mask = self._require_name(cells, self.columns.mask)
        entry.pairs = {name: self._fill(each, cells) for name, each in self.pairs.items()}
        if self.columns.labels:
            entry.labels = self._texts_in(self.columns.labels, cells)
        self._read_boxes(entry, cells)
        if self.key_points is not None:
            has_object = entry.boxes is None or bool(entry.boxes)
            entry.points = [self.key_points.read(cells)] if has_object else []
        for key, feature in self.features.items():
            entry.features[key] = feature.value_in(cells, self.separator)
        return entry

    def _needs_class(self, cells: Mapping[str, Any]) -> bool:
        """Returns whether a row without a class is refused.

        Raises:
            Rejected: its class is the number that stands for none, which is refused, too.
        """
        column = self.columns.label
        cell = cells.get(column)
        if not self.class_names.get(column) or not _is_no_class(cell):
            return self.unlabeled != "keep"
        if self.unlabeled == "reject":
            remedy = "set source.unlabeled=keep to keep such images"
            raise bad_row(f"column {column!r}: {cell!r} stands for no class: {remedy}")
        return False

    def _read_boxes(self, entry: ManifestEntry, cells: Mapping[str, Any]) -> None:
        columns = self.columns
        if columns.boxes:
            entry.boxes = boxes_from(cells.get(columns.boxes), columns.boxes)
            entry.box_labels = self._texts_in(columns.box_labels, cells)
            check_box_labels(columns.box_labels, entry.boxes, entry.box_labels)
        if columns.objects:
            names = self.class_names.get(columns.objects, ())
            entry.boxes, entry.box_labels = objects_from(
                cells.get(columns.objects), columns.objects, names
            )
        if columns.row_boxes:
            *sides, column = columns.row_boxes
            label = self._name(cells, column)
            values = [cells.get(side) for side in sides]
            entry.boxes, entry.box_labels = [], []
            if label:
                entry.boxes = [list(map(number_of, values, sides))]
                entry.box_labels = [label]
            elif any(value is not None and str(value).strip() for value in values):
                raise refuse(column, label, "")
        if entry.boxes and self.attributes:
            entry.attributes = self._read_attributes(len(entry.boxes), cells)
        if columns.width:
            width, height = (
                pixels_of(cells.get(column), column) for column in (columns.width, columns.height)
            )
            entry.size = (width, height) if width and height else None

    def _read_attributes(self, boxes: int, cells: Mapping[str, Any]) -> list[Mapping[str, str]]:
        """Returns the attributes of each of the boxes of a row.

        Raises:
            Rejected: a list of values has another length than that of the boxes.
        """
        found: list[dict[str, str]] = [{} for _ in range(boxes)]
        for name, column in self.attributes.items():
            values = [cells.get(column)]
            if not self.columns.row_boxes:
                values = list_of(cells.get(column), column, self.separator)
            if len(values) != boxes:
                counts = f"{len(values)} values for {format_count(boxes, 'box')}"
                raise bad_row(f"column {column!r}: there are {counts}")
            for own, value in zip(found, values, strict=True):
                if (text := read_attribute(value)) is not None:
                    own[name] = text
        return list(found)

    def _texts_in(self, column: str, cells: Mapping[str, Any]) -> list[str]:
        return texts_of(cells.get(column), column, self.separator, self.class_names.get(column, ()))

    def _name(self, cells: Mapping[str, Any], column: str) -> str | None:
        return name_of(cells.get(column), column, self.class_names.get(column, ()))

    def _require_name(self, cells: Mapping[str, Any], column: str) -> str:
        return require_name(cells.get(column), column, self.class_names.get(column, ()))

    def _fill_part(self, text: str, column: str, cells: Mapping[str, Any]) -> str:
        """Returns a text of the template, and the value of the column that follows it, if any."""
        return text + self._require_name(cells, column) if column else text


@cache
def template_parts(uri: str, key: str = "source.columns.uri") -> tuple[tuple[str, str], ...]:
    """Splits a path's template into strings, each with the column that follows it.

    Args:
        uri: the template, or the name of one column.
        key: the YAML key that it was written under, for the message.

    Raises:
        SettingError: braces do not match, or contain anything but a column's name.
    """
    if "{" not in uri:
        return (("", uri),)
    pieces = re.split(r"\{([^{}]+)\}", uri)
    texts, columns = pieces[0::2], pieces[1::2]
    if not columns or any("{" in text or "}" in text for text in texts) or uri.endswith(".*"):
        advice = "write columns in braces and an extension, such as images/{id}.jpg"
        raise SettingError(key, f"is {uri!r}: {advice}")
    return tuple(zip(texts, [*columns, ""], strict=True))
