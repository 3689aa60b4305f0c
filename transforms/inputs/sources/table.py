"""Tables without images: rows of CSV, JSON lines or Parquet become Examples of typed columns."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
import orjson

from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import Feature
from recordmill.schemas.image_ref import Content, ImageRef, Listed
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.sources.source import Source
from recordmill.transforms.inputs.tables.cells import (
    TYPES,
    ColumnSettings,
    TableRow,
    UnreadableTableError,
    bad_row,
    decode_cell,
    encode_cell,
    infer_type,
    is_rounded,
    read_cell,
)
from recordmill.transforms.inputs.tables.manifest_columns import require_name
from recordmill.transforms.inputs.tables.read_table import TABLE_FILES, TableFormat, read_table
from recordmill.transforms.inputs.tables.read_table import TableFile as OpenTable

_ZEROS: dict[str, int | float | str] = {"int64": 0, "float": 0.0, "bytes": ""}


class ColumnTypes:
    """Collects the types of columns, table by table; the result does not depend on the order."""

    def __init__(self, without: Collection[str]) -> None:
        """The columns in `without` are ignored."""
        self._without = without
        # Where each type of a column was first seen.
        self._first: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._values: Counter[str] = Counter()  # rows with a value, by column
        self._not_text: set[str] = set()  # columns whose values are not all strings
        self._unnamed: set[str] = set()
        self._no_index: set[str] = set()  # of those, the ones that do not count the rows
        self._rows = 0

    def add(self, table: OpenTable, path: str) -> None:
        """Adds all rows of a table; malformed ones are skipped.

        Raises:
            UnreadableTableError: it cannot be read to its end.
        """
        self._unnamed |= table.unnamed
        for place, row in enumerate(table.rows):
            self._rows += row.cells is not None
            self._no_index |= {
                name for name in table.unnamed if (row.cells or {}).get(name) != str(place)
            }
            for name, cell in (row.cells or {}).items():
                if name in self._without:
                    continue
                first = self._first[name]
                if not table.as_text:
                    self._not_text.add(name)
                if seen := _type_of(cell, table.as_text):
                    self._values[name] += 1
                    if seen not in first:
                        first[seen] = f"{path}, {row.place}: {cell!r:.40}"

    @property
    def indexes(self) -> list[str]:
        """The columns without a name that count the rows from 0, as pandas' index does; sorted."""
        return sorted(self._unnamed - self._no_index)

    @property
    def empty(self) -> list[str]:
        """The columns without a single value, sorted."""
        return sorted(name for name, first in self._first.items() if not first)

    def settled(self) -> dict[str, ColumnSettings]:
        """Returns the columns' settings by name; columns without a single value are left out.

        If a row lacks a column's value, the column's default is its type's zero, as in TensorFlow's
        tutorial.

        Raises:
            ValueError: a column has several types, or one that no feature can have; the message
                names it and the rows.
        """
        found = {}
        for name, first in sorted(self._first.items()):
            if first:
                settings = ColumnSettings(type=_merge(name, first, name not in self._not_text))
                has_default = self._values[name] < self._rows and not settings.many
                found[name] = (
                    replace(settings, default=_ZEROS[settings.kind]) if has_default else settings
                )
        return found


def _type_of(cell: Any, as_text: bool) -> str | None:
    """Returns the type of a cell; None if it has no value."""
    if cell is None or (as_text and cell == ""):
        return None
    if as_text:
        return infer_type(cell)
    if isinstance(cell, list):
        types = {_type_of(each, False) for each in cell} or {None}
        return f"{types.pop() or ''}[]" if len(types) == 1 else "list of several types"
    return "string" if isinstance(cell, str) else type(cell).__name__


def _merge(name: str, seen: Mapping[str, str], as_text: bool) -> str:
    """Returns the type of all values of a column; empty lists are of any type."""
    types = set(seen)
    if as_text and len(types) > 1:
        return "float" if types == {"int", "float"} else "string"
    (word, *others) = types - {"[]"} or types
    if not others and word.removesuffix("[]") in TYPES:
        return word
    found = " and ".join(f"{kind} ({place})" for kind, place in seen.items())
    raise SettingError(
        "source",
        f": column {name!r} holds {found}: declare its type, or only others, in source.columns",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(TableFormat, Source):
    r"""The source `table`; `TableFormat` has further keys.

    Attributes:
        columns: the columns that become features, with their types, or with a mapping of `type`,
            `feature`, `enum`, `default`, `meaning`. Types: `bool`, `enum`, `int`, `uint`, `float`,
            `double`, `number`, `string`, `bytes`; `float[]` is a list of floats.
        infer: whether the other columns become features with inferred types: `yes`, `no`, or
            `auto`: if `columns` is empty.
        label: the column of class names.
        split: the column of words for `splits.from_source`.
        group: the column of groups; rows of the same group stay in one split.
        key: the column of unique names; without it, a row is named after its file and number.
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
    reads_sets: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raises ValueError if a setting is invalid."""
        features = Counter(column.feature or name for name, column in self.columns.items())
        for feature, count in features.items():
            if count > 1:
                raise SettingError(
                    "source.columns",
                    f": two columns become the feature {feature!r}: set feature of one",
                )
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
                raise SettingError("source", f": {file.key} cannot be read: {error}") from None
        found = types.settled()
        for name in types.indexes:
            found.pop(name, None)
            note(
                f"{name} has no name, counts the rows and is left out: declare "
                f"source.columns.{name} to keep it"
            )
        for name in types.empty:
            note(
                f"column {name!r} has no value in any row and is left out: declare "
                f"source.columns.{name} to keep it"
            )
        return replace(self, columns={**self.columns, **found}, infer="no")

    def features(self) -> tuple[Feature, ...]:
        """Returns one feature per column."""
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
                        yield ref.notice(
                            "rejected", "bad_row", f"{path}, {row.place}: {error.detail}"
                        )
                yield from table.report(file)
        except UnreadableTableError as error:
            yield file.notice("fatal", "bad_table", f"the table {file.key} cannot be used: {error}")
            return
        for name, where in rounded.items():
            what = f"column {name!r} holds whole numbers that lose digits in 32 bits: {where}"
            advice = (
                f"declare source.columns.{name} as int, and write integers if the table is not CSV"
            )
            yield file.notice("warning", "rounded", f"{what}: {advice}")
        if not has_rows:
            raise Rejected("list", "no_rows", "the table has no rows")

    def _make_reference(
        self, ref: ImageRef, below: str, row: TableRow, as_text: bool, rounded: dict[str, str]
    ) -> ImageRef:
        """Returns the reference of a row.

        Columns whose values lose digits are added to `rounded`.
        """
        if row.fault is not None:
            raise bad_row(row.fault)
        names = {}
        for role, named in self._named.items():
            name = require_name(row.cells.get(named), named).strip()
            names[role] = (below if role == "key" else "") + unicodedata.normalize("NFC", name)
        values = {}
        for name, column in self.columns.items():
            value = read_cell(row.cells.get(name), name, column, as_text)
            if value is not None:
                values[column.feature or name] = encode_cell(value)
                if name not in rounded and is_rounded(value):
                    rounded[name] = f"{value:.0f} ({row.place}) becomes {np.float32(value):.0f}"
            elif column.default is None and not column.many:
                raise bad_row(
                    f"column {name!r}: there is no value; source.columns.{name}.default allows it"
                )
        features = orjson.dumps(values)
        return ref.replace(features=features.decode(), length=len(features), **names)

    def read(self, ref: ImageRef, max_bytes: int) -> Content:  # the reference contains the row
        """Returns the row itself; `data` is its features as JSON."""
        values: dict[str, Any] = orjson.loads(ref.features)
        kinds = {column.feature or name: column.kind for name, column in self.columns.items()}
        fields = {name: decode_cell(value, kinds[name]) for name, value in values.items()}
        return Content(ref.features.encode(), None, fields=fields)


SOURCE = Table
