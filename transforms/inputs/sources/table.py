"""Tables without images: each row of CSV, JSON lines or Parquet becomes an Example of typed columns."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
import orjson
import pyarrow as pa

from recordmill.schemas.features import Feature
from recordmill.schemas.image_ref import Content, ImageRef, Listed
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.class_names import LONGEST_NAME
from recordmill.transforms.inputs.sources.source import Source
from recordmill.transforms.inputs.tables.cells import (
    TYPES,
    CellError,
    ColumnSettings,
    Row,
    UnreadableTableError,
    bad_row,
    from_json,
    infer_type,
    is_rounded,
    read_cell,
    to_json,
)
from recordmill.transforms.inputs.tables.read_table import TABLE_FILES, TableFormat, read_table
from recordmill.transforms.inputs.tables.read_table import Table as OpenTable

_ZEROS: dict[str, int | float | str] = {"int64": 0, "float": 0.0, "bytes": ""}


@dataclass
class _Column:
    """What is known about a column.

    Attributes:
        first: where each type was first seen, for messages.
        values: the number of rows with a value.
        as_text: whether all values are strings.
        blank: a number that is text only because of a space before it.
    """

    first: dict[str, str] = field(default_factory=dict)
    values: int = 0
    as_text: bool = True
    blank: str = ""


class ColumnTypes:
    """Collects the types of columns, table by table; the result does not depend on the order."""

    def __init__(self, without: Collection[str]) -> None:
        """The columns in `without` are ignored."""
        self._without = without
        self._columns: defaultdict[str, _Column] = defaultdict(_Column)
        self._rows = 0

    def add(self, table: OpenTable, path: str) -> None:
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
        self._rows += 1
        for name, cell in cells.items():
            if name in self._without:
                continue
            column = self._columns[name]
            column.as_text &= as_text
            if not (seen := _type_of(cell, as_text)):
                continue
            column.values += 1
            if seen == "string" and as_text and cell[0] == " " and infer_type(cell.strip(" ")) in ("int", "float"):
                column.blank = column.blank or f"{cell!r:.40} ({place})"
            seen = declared.get(name) or seen
            if seen not in column.first:
                column.first[seen] = f"{place}: {cell!r:.40}"

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
            if column.first:
                settings = ColumnSettings(type=_merge(name, column.first, column.as_text))
                has_default = column.values < self._rows and not settings.many
                found[name] = replace(settings, default=_ZEROS[settings.kind]) if has_default else settings
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
    if len(types) > 1:
        types.discard("[]")
    if types == {"int", "uint"}:
        return "int"
    if len(types) == 1 and (word := types.pop()).removesuffix("[]") in TYPES:
        return word
    if len(seen) == 1:
        (word, place), *_ = seen.items()
        hint = "it holds only empty lists" if word == "[]" else f"it holds a {word}, which a feature cannot hold"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(TableFormat, Source):
    r"""The source `table`; `TableFormat` has further keys.

    Attributes:
        columns: the columns that become features, each with its type, or with a mapping of `type`, `feature`, `enum`,
            `default`, `meaning`. Types: `bool`, `enum`, `int`, `uint`, `float`, `double`, `number`, `string`, `bytes`;
            `float[]` is a list of floats.
        infer: whether all other columns become features too, with types inferred from all rows: `yes`, `no`, or `auto`,
            which infers them if `columns` is empty.
        label: the column of class names.
        split: the column of words that `splits.from_source` maps to splits.
        group: the column of groups; rows of the same group stay in one split.
        key: the column of unique names for rows; without it, a row is named after its file and number.
    """

    columns: Mapping[str, ColumnSettings] = field(default_factory=dict)
    infer: Literal["auto", "yes", "no"] = "auto"
    label: str = ""
    split: str = ""
    group: str = ""
    key: str = ""

    contents: ClassVar[Literal["images", "rows"]] = "rows"
    files: ClassVar[tuple[str, ...]] = TABLE_FILES
    split_settings: ClassVar[tuple[str, ...]] = ("split",)
    group_setting: ClassVar[str] = "group"

    def __post_init__(self) -> None:
        """Raises ValueError if a setting is invalid."""
        features = Counter(column.feature or name for name, column in self.columns.items())
        for feature, count in features.items():
            if count > 1:
                raise ValueError(f"source.columns: two columns become the feature {feature!r}: set feature of one")
        self.check_format()

    @property
    def _named(self) -> dict[str, str]:
        """The columns that are not features, by their role: `label`, `split`, `group`, `key`."""
        columns = {"label": self.label, "split": self.split, "group": self.group, "key": self.key}
        return {role: column for role, column in columns.items() if column}

    @property
    def gives_labels(self) -> bool:
        """Whether a column of classes is named."""
        return bool(self.label)

    def settle(self, files: Iterator[ImageRef], note: Callable[[str], None]) -> "Table":
        """Infers the types of undeclared columns in one pass over all rows."""
        if self.infer == "no" or (self.infer == "auto" and self.columns):
            return replace(self, infer="no")
        types = ColumnTypes(without={*self.columns, *self._named.values()})
        for file in files:
            try:
                with read_table(file.uri, self) as table:
                    types.add(table, file.key)
            except UnreadableTableError as error:
                raise ValueError(f"source: {file.key} cannot be read: {error}") from None
        found = types.settled()
        for name, cell in types.blanks.items():
            note(f"column {name!r} has numbers after blanks, such as {cell}, which are text: set source.blanks=skip")
        for name in types.empty:
            note(f"column {name!r} has no value in any row and is left out: declare source.columns.{name} to keep it")
        return replace(self, columns={**self.columns, **found}, infer="no")

    def features(self) -> tuple[Feature, ...]:
        """One feature per column."""
        return tuple(column.as_feature(name) for name, column in self.columns.items())

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields one reference per row, with the row's values in `features`."""
        wanted = {name: f"source.columns.{name}" for name in self.columns}
        wanted |= {column: f"source.{what}" for what, column in self._named.items()}
        has_rows = False
        rounded: dict[str, str] = {}
        below = file.key[: len(file.key) - len(path)]
        place = file.replace(spelling="", size=-1, version="")
        try:
            with read_table(file.uri, self, wanted) as table:
                for row in table.rows:
                    has_rows = True
                    ref = place.replace(key=f"{file.key}:{row.number}")
                    try:
                        yield self._make_reference(ref, below, row, table.as_text, rounded)
                    except Rejected as error:
                        yield ref.notice("rejected", "bad_row", f"{path}, {row.place}{error.detail}")
        except UnreadableTableError as error:
            yield file.notice("fatal", "bad_table", f"the table {file.key} cannot be used: {error}")
            return
        for name, where in rounded.items():
            yield file.notice("warning", "rounded", f"column {name!r} {where}")
        if not has_rows:
            raise Rejected("list", "no_rows", "the table has no rows")

    def _describe_rounded(self, name: str, value: float, row: Row, as_text: bool) -> str:
        whole = f"{value:.0f} ({row.place}), which a 32-bit float turns into {np.float32(value):.0f}"
        advice = "int" if self.columns[name].default is None else "{type: int, default: 0}"
        write = "" if as_text else "write whole numbers, and "
        return f"holds whole numbers that lose digits, such as {whole}: {write}declare source.columns.{name}: {advice}"

    def _make_reference(self, ref: ImageRef, below: str, row: Row, as_text: bool, rounded: dict[str, str]) -> ImageRef:
        """The reference of a row; columns whose values lose digits are added to `rounded`."""
        if row.cells is None:
            raise bad_row(f": {row.fault}")
        names = {what: _as_name(row.cells.get(column), column) for what, column in self._named.items()}
        if "key" in names:
            names["key"] = below + names["key"]
        values, lossy = {}, {}
        for name, column in self.columns.items():
            try:
                value = read_cell(row.cells.get(name), column, as_text)
            except CellError as error:
                raise bad_row(f", column {name!r}: {error}") from None
            if value is not None:
                values[column.feature or name] = to_json(value)
                if name not in rounded and is_rounded(value):
                    lossy[name] = self._describe_rounded(name, value, row, as_text)
            elif column.default is None and not column.many:
                raise bad_row(f", column {name!r}: there is no value; source.columns.{name}.default allows it")
        rounded |= lossy  # only now: the row is not rejected
        features = orjson.dumps(values)
        return ref.replace(features=features.decode(), length=len(features), **names)

    def read(self, ref: ImageRef, max_bytes: int) -> Content:  # the reference contains the row
        """The row itself; `data` is its features as JSON."""
        values: dict[str, Any] = orjson.loads(ref.features)
        kinds = {column.feature or name: column.kind for name, column in self.columns.items()}
        fields = {name: from_json(value, kinds[name]) for name, value in values.items()}
        return Content(ref.features.encode(), None, fields=fields)


def _as_name(cell: Any, column: str) -> str:
    """A label, split, group or key as text."""
    if isinstance(cell, str) and len(cell) > LONGEST_NAME:
        count = f"{len(cell):,} characters, but a name has at most {LONGEST_NAME:,}"
        raise bad_row(f", column {column!r}: {cell!r:.60} has {count}")
    if isinstance(cell, str) and cell.strip():
        return unicodedata.normalize("NFC", cell.strip())
    if isinstance(cell, int):
        return str(cell)
    shown = "there is no value" if cell is None or cell == "" else f"{cell!r:.60} is not text"
    raise bad_row(f", column {column!r}: {shown}")


SOURCE = Table
