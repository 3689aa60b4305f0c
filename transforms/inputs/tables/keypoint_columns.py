"""The columns of key points in a table: one for x and one for y of each."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from recordmill.schemas.errors import SettingError
from recordmill.schemas.formatting import format_count, show_first
from recordmill.transforms.inputs.tables.cells import UnreadableTableError
from recordmill.transforms.inputs.tables.column_patterns import header_of, match_columns
from recordmill.transforms.inputs.tables.manifest_columns import number_of, refuse
from recordmill.transforms.inputs.tables.read_table import TableFormat

_NAME = "{name}"
_USUAL = tuple(
    (form.format(x), form.format(y))
    for form in (
        "{{name}}_{}",
        "{{name}}.{}",
        "{{name}} {}",
        "{}_{{name}}",
        "{}{{name}}",
        "{{name}}{}",
    )
    for x, y in ("xy", "XY")
)
"""Patterns of the columns of x and y: `{name}_x` and `{name}_y`, `x{name}` and `y{name}`."""

_VISIBLE = 2
"""COCO's code of a point that is visible; 0 is one that is not labeled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPointColumns:
    """The columns of the key points of the object in a row.

    Attributes:
        x: the columns of x: `{name}_x`, where `{name}` stands for a point's name. Empty: there are
            no key points.
        y: the columns of y.
        visibility: the columns of COCO's codes: 0 for a point that is not labeled, 1 for a hidden
            one, 2 for a visible one. Empty: points with x and y are visible.
        columns: instead of `x` and `y`, columns in which x and y alternate: names and patterns
            (`*`), in the order of the table.
        names: the names of the points, in their order; by default those of all columns that `x`
            matches, in the order of the table, or the numbers of pairs in `columns`, from 1.
    """

    x: str = ""
    y: str = ""
    visibility: str = ""
    columns: str | tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def check(self) -> None:
        """Raises SettingError if a pattern is missing, or has no place for names."""
        if self.columns and (self.x or self.y or self.visibility):
            what = "and x, y or visibility contradict each other: remove one of them"
            raise SettingError("source.keypoints.columns", what)
        for each in ("x", "y", "visibility"):
            pattern, key = getattr(self, each), f"source.keypoints.{each}"
            if pattern and pattern.count(_NAME) != 1:
                raise SettingError(key, f"is {pattern!r}: write {_NAME} once, as in {_NAME}_{each}")
            if not (pattern or self.columns) and each != "visibility" and self != KeyPointColumns():
                raise SettingError(key, "is empty, and x and y go together: name its columns")
        if len({*self.names}) < len(self.names):
            twice = next(each for each in self.names if self.names.count(each) > 1)
            raise SettingError("source.keypoints.names", f"has {twice!r} twice: remove one of them")

    def __bool__(self) -> bool:
        """Whether there are key points."""
        return bool(self.x or self.columns)

    @property
    def is_settled(self) -> bool:
        """Whether the names of all points, and those of their columns, are known."""
        return bool(self.names) and (bool(self.x) or len(self.columns) == 2 * len(self.names))

    def list_columns(self) -> Iterator[tuple[str, str]]:
        """Yields the YAML key and the name of each column of the named points."""
        yield from (("source.keypoints.columns", column) for column in self.columns)
        for each in ("x", "y", "visibility"):
            if pattern := getattr(self, each):
                key = f"source.keypoints.{each}"
                yield from ((key, pattern.replace(_NAME, name)) for name in self.names)

    def read(self, cells: Mapping[str, Any]) -> list[float]:
        """Returns x, y and visibility of each point in a row, 0 for one without x and y.

        Raises:
            Rejected: a cell is not a number, or only one of x and y is empty.
        """
        points: list[float] = []
        for at, name in enumerate(self.names):
            columns = [self.x.replace(_NAME, name), self.y.replace(_NAME, name)]
            if self.columns:
                columns = list(self.columns[2 * at : 2 * at + 2])
            values = [cells.get(column) for column in columns]
            if all(map(_is_empty, values)):
                points += (0.0, 0.0, 0)
                continue
            for column, value in zip(columns, values, strict=True):
                if _is_empty(value):
                    raise refuse(column, None, "")
            code: float = _VISIBLE
            if self.visibility:
                column = self.visibility.replace(_NAME, name)
                code = number_of(cells.get(column), column)
            points += (*map(number_of, values, columns), code)
        return points

    def match(self, header: Sequence[str], others: Collection[str]) -> "KeyPointColumns":
        """Returns the columns with the names of the points in a table, in its order.

        Args:
            header: its columns.
            others: columns with another meaning.

        Raises:
            SettingError: there are none, or one has no column for y.
        """
        if self.columns:
            return self._match_pairs(header, others)
        before, after = self.x.split(_NAME)
        pattern = re.compile(f"{re.escape(before)}(.+){re.escape(after)}")
        found = [
            match[1]
            for column in header
            if column not in others and (match := pattern.fullmatch(column))
        ]
        known = show_first(map(repr, header))
        if not found:
            what = f"is {self.x!r}, and no column matches; the table has {known}: correct it"
            raise SettingError("source.keypoints.x", what)
        settled = replace(self, names=tuple(dict.fromkeys(found)))
        for key, column in settled.list_columns():
            if column not in header:
                raise SettingError(key, f": the table has no column {column!r}, only {known}")
        return settled

    def _match_pairs(self, header: Sequence[str], others: Collection[str]) -> "KeyPointColumns":
        key = "source.keypoints.columns"
        pairs = match_columns(key, self.columns, header, (), others)
        count = len(pairs) // 2
        if len(pairs) % 2:
            what = f"are {len(pairs)} columns, {show_first(map(repr, pairs))}, and not pairs"
            raise SettingError(key, f"{what}: correct it")
        names = self.names or tuple(str(number) for number in range(1, count + 1))
        if len(names) != count:
            what = f"has {len(names)} names for {format_count(count, 'key point')}: correct it"
            raise SettingError("source.keypoints.names", what)
        return replace(self, columns=pairs, names=names)


def guess_key_points(numbers: Sequence[str]) -> KeyPointColumns | None:
    """Returns the columns of key points, with the names of these, by the names of columns.

    Two points may be the corners of a box: their names must be more than numbers. In columns that
    are counted through, x and y may alternate. None if there are fewer points.

    Args:
        numbers: the columns with numbers.
    """
    for x, y in _USUAL:
        pattern = re.compile(re.escape(x).replace(re.escape(_NAME), "(.+)"))
        found = filter(None, map(pattern.fullmatch, numbers))
        names = tuple(each[1] for each in found if y.replace(_NAME, each[1]) in numbers)
        if len(names) > 2 or (len(names) == 2 and not all(map(str.isdecimal, names))):
            return KeyPointColumns(x=x, y=y, names=names)
    count = len(numbers)
    counted = list(map(str, range(count + 1)))
    is_counted = list(numbers) in (counted[:-1], counted[1:])
    if count > 4 and count % 2 == 0 and is_counted:
        return KeyPointColumns(columns="*", names=tuple(map(str, range(1, count // 2 + 1))))
    return None


def settle_key_points(
    columns: KeyPointColumns,
    tables: Iterable[tuple[str, str]],
    table_format: TableFormat,
    others: Collection[str],
) -> KeyPointColumns:
    """Returns the columns with the names of the points in tables, which all have the same.

    Args:
        columns: they are not settled.
        tables: the name and the place of each table.
        table_format: their format.
        others: columns with another meaning.

    Raises:
        SettingError: a table has no matching column, or two tables have different points.
    """
    first, found = "", columns
    for name, uri in sorted(tables):
        try:
            header, unmatched = header_of(uri, table_format)
        except UnreadableTableError:
            continue  # the job says why
        matched = columns.match(header, {*others, *unmatched})
        if first and matched != found:
            what = f": {first} and {name} have different key points: list them"
            raise SettingError("source.keypoints.names", what)
        first, found = first or name, matched
    return found


def _is_empty(cell: Any) -> bool:
    """Tells if a cell has no value; pandas has NaN for it."""
    return cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell))
