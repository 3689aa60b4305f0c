"""Tables of the names of classes that images' tables have by an id, as Open Images' `/m/01g317`."""

import csv
import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from recordmill.schemas.formatting import show_first
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.class_names import why_unread
from recordmill.transforms.inputs.folder_sketch import FolderSketch
from recordmill.transforms.inputs.named_files import DataFile, read_sibling, resolve_inside
from recordmill.transforms.inputs.tables.cells import UnreadableTableError
from recordmill.transforms.inputs.tables.manifest_columns import ManifestEntry

NAMES_OF_IDS = "*class-descriptions*.csv"
"""Names of Open Images' tables of classes, in lower case."""


@dataclass(slots=True)
class NamesOfIds:
    """The names of classes by their ids.

    Attributes:
        names: by id.
        unknown: ids without a name that were asked for.
    """

    names: Mapping[str, str]
    unknown: set[str] = field(default_factory=set)

    def around(self, read: Callable[[Any], ManifestEntry]) -> Callable[[Any], ManifestEntry]:
        """Reads entries, with the names of their classes."""
        return lambda cells: self.rename(read(cells))

    def explain_unknown(self, path: str) -> str | None:
        """Says which classes have no name; None if all have one."""
        if not self.unknown:
            return None
        shown = show_first(sorted(self.unknown), 3)
        return f"classes without a name in {path} keep their ids: {shown}"

    def rename(self, entry: ManifestEntry) -> ManifestEntry:
        """Replaces the ids of an entry's classes by their names."""
        if entry.label:
            entry.label = self._name(entry.label)
        if entry.labels is not None:
            entry.labels = list(map(self._name, entry.labels))
        entry.box_labels = list(map(self._name, entry.box_labels))
        return entry

    def _name(self, label: str) -> str:
        if label not in self.names:
            self.unknown.add(label)
            return label
        return self.names[label]


def read_names_of_ids(file: DataFile, path: str) -> NamesOfIds:
    """Reads a table with an id and a name in each row, with or without a header.

    A name of several classes gets the id after it, so that they stay apart.

    Args:
        file: the table of images.
        path: the table of names, relative to the folder of `file`.

    Raises:
        UnreadableTableError: it cannot be read, or a row has no two cells.
    """
    try:
        below = posixpath.normpath(posixpath.join(file.folder, path))
        text = read_sibling(resolve_inside(file.root, below)).decode("utf-8-sig")
    except (Rejected, ValueError) as error:
        why = why_unread(error)
        raise UnreadableTableError(f"{path} (source.class_names_file): {why}") from None
    rows = [row for row in csv.reader(text.splitlines()) if row]
    if not rows or any(len(row) < 2 or not row[1].strip() for row in rows):
        raise UnreadableTableError(
            f"{path} (source.class_names_file): write a class and its name into each row"
        )
    names = {row[0].strip(): row[1].strip() for row in rows}
    counts = Counter(names.values())
    return NamesOfIds(
        {key: name if counts[name] == 1 else f"{name} ({key})" for key, name in names.items()}
    )


def find_names_of_ids(tables: Iterable[str], sketch: FolderSketch) -> str | None:
    """Finds Open Images' table of names; its path is relative to the folder of all tables.

    Of several, that of the classes of boxes comes first.
    """
    found = [
        path
        for path in sketch.all_ending(".csv")
        if fnmatchcase(posixpath.basename(path).lower(), NAMES_OF_IDS)
    ]
    folders = {posixpath.dirname(path) for path in tables}
    if not found or len(folders) != 1:
        return None
    best = min(found, key=_rank)
    return posixpath.relpath(best, folders.pop() or ".")


def _rank(path: str) -> tuple[bool, Sequence[str]]:
    return "boxable" not in path, path
