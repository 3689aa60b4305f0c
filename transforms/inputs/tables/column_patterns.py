"""Patterns of column names in `features_from`, and the columns of tables that match them.

The launcher replaces the patterns by names, so that a dataset's configuration has all of them, in
order, and each of its lists has the same length.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import translate

import pyarrow as pa

from recordmill.schemas.errors import SettingError
from recordmill.schemas.formatting import show_first
from recordmill.transforms.inputs.tables.cells import UnreadableTableError
from recordmill.transforms.inputs.tables.manifest_columns import FeatureColumn
from recordmill.transforms.inputs.tables.read_table import TableFormat, read_table

_SIGNS = frozenset("*?[")


def has_patterns(feature: FeatureColumn) -> bool:
    """Returns whether a feature names columns in a way that only a table can explain."""
    return isinstance(feature.columns, str) or any(map(_SIGNS.intersection, feature.columns))


def header_of(uri: str, table_format: TableFormat) -> tuple[tuple[str, ...], frozenset[str]]:
    """Returns the names of a table's columns, and those that no pattern matches.

    Those are the ones that the table itself leaves empty, and in Parquet those without single
    values. JSON lines have the keys of the first line.

    Raises:
        UnreadableTableError: it cannot be read.
    """
    with read_table(uri, table_format, {}) as table:
        if table.kind == "jsonl":
            return tuple(next((row.cells for row in table.rows if row.cells), {})), frozenset()
        keeps_blanks = table_format.blanks == "keep" or not table.as_text
        nested = {each.name for each in table.schema or () if not _is_single(each.type)}
        names = (name if keeps_blanks else name.lstrip(" ") for name in table.header)
        return tuple(names), table.unnamed | nested


def _is_single(kind: pa.DataType) -> bool:
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return is_text or pa.types.is_primitive(kind) or pa.types.is_dictionary(kind)


def match_columns(
    where: str,
    wanted: str | Sequence[str],
    header: Sequence[str],
    unmatched: Collection[str] = (),
    others: Collection[str] = (),
) -> tuple[str, ...]:
    """Returns the columns that names and patterns match, in their order and that of the table.

    A column that several of them mean comes once. A name of the table is never taken for a pattern,
    whatever characters it has.

    Args:
        where: the YAML key, for messages.
        wanted: names and patterns.
        header: the table's columns.
        unmatched: columns of the table that no pattern matches.
        others: columns with another meaning, which no pattern matches either.

    Raises:
        SettingError: there are none for one of them.
    """
    found: dict[str, None] = {}
    for each in (wanted,) if isinstance(wanted, str) else wanted:
        if each in header:
            found[each] = None
            continue
        matches = re.compile(translate(each)).match
        names = [
            name
            for name in header
            if name not in unmatched and name not in others and matches(name)
        ]
        if not names:
            raise SettingError(
                where,
                f": no column is, or matches, {each!r}; the table has "
                f"{show_first(map(repr, header))}: correct it",
            )
        found |= dict.fromkeys(names)
    return tuple(found)


def replace_patterns(
    features: Mapping[str, FeatureColumn],
    tables: Iterable[tuple[str, str]],
    table_format: TableFormat,
    others: Collection[str],
) -> dict[str, FeatureColumn]:
    """Returns the same features with names of columns instead of patterns.

    Args:
        features: at least one has patterns.
        tables: the name and the place of each table.
        table_format: their format.
        others: columns with another meaning, which no pattern matches.

    Raises:
        SettingError: a table has no matching column, or two tables have different ones.
    """
    settled = dict(features)
    first = ""
    for name, uri in sorted(tables):
        try:
            header, unmatched = header_of(uri, table_format)
        except UnreadableTableError:
            continue  # the job says why
        for key, feature in features.items():
            if not has_patterns(feature):
                continue
            where = f"source.features_from.{key}.columns"
            names = match_columns(where, feature.columns, header, unmatched, others)
            if first and names != settled[key].columns:
                raise SettingError(
                    where,
                    f": {first} and {name} have different columns for it "
                    f"({len(settled[key].names)} and {len(names)}): list the names",
                )
            settled[key] = replace(feature, columns=names)
        first = first or name
    return settled
