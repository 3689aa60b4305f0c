"""Files next to tables that name numbered classes: `id,name` in a table, or one name per line."""

import posixpath
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from recordmill.transforms.inputs.class_names import split_names
from recordmill.transforms.inputs.folder_sketch import FolderSketch
from recordmill.transforms.inputs.image_suffixes import IMAGE_ENDINGS
from recordmill.transforms.inputs.tables.table_heads import TableHead, head_of

NAME_LISTS = (
    *("labels.txt", "classes.txt", "names.txt", "categories.txt", "class_names.txt"),
    *("classnames.txt", "label_names.txt", "labels.names", "obj.names"),
)
"""Names of files that may have the name of one class in each line, from number 0."""

NAME_TABLES = (
    *("classes.csv", "class_names.csv", "class_list.csv", "class_dict.csv", "class_labels.csv"),
    *("class_map.csv", "label_map.csv", "labelmap.csv", "labels_map.csv", "label_names.csv"),
    *("labels.csv", "names.csv", "categories.csv", "species.csv", "id_to_name.csv"),
)
"""Names of tables that may have the number and the name of one class in each row."""

_MOST_BYTES = 1023
"""Fewer than recognition reads of a file: such a file was read as a whole."""


@dataclass(frozen=True, slots=True)
class NamedClasses:
    """The names of classes in a file.

    Attributes:
        path: the file.
        names: by number.
        are_labels: whether the table has these names itself, so that they are not needed.
    """

    path: str
    names: Mapping[int, str]
    are_labels: bool = False

    @property
    def in_order(self) -> list[str]:
        """The names, if their numbers count from 0; otherwise none."""
        counts = range(len(self.names))
        return [self.names[number] for number in counts] if {*self.names} == {*counts} else []

    @property
    def is_claimed(self) -> bool:
        """Whether its names can be used without a question."""
        name = posixpath.basename(self.path).lower()
        is_needed = bool(self.in_order) and not self.are_labels
        return is_needed and name in (*NAME_LISTS, *NAME_TABLES)


def find_class_names(
    labels: Iterable[str], sketch: FolderSketch, tables: Collection[str]
) -> NamedClasses | None:
    """Finds the only file that names all of these classes, by number or by name.

    Args:
        labels: the classes of a table, as far as seen.
        sketch: the input.
        tables: the table, and others that cannot name its classes.
    """
    used = {*labels}
    found = []
    for path, head in sketch.heads.items():
        if path in tables:
            continue
        names = _read_names(path, sketch) if used and len(head) <= _MOST_BYTES else {}
        if names and used <= {*names.values()}:
            found.append(NamedClasses(path, names, are_labels=True))
        elif names and used <= {*map(str, names)}:
            found.append(NamedClasses(path, names))
    return found[0] if len(found) == 1 else None


def _read_names(path: str, sketch: FolderSketch) -> Mapping[int, str]:
    if path.lower().endswith((".csv", ".tsv")):
        return _names_in_table(head_of(path, sketch))
    if posixpath.basename(path).lower() not in NAME_LISTS:
        return {}
    try:
        names = split_names(sketch.heads[path].decode("utf-8-sig"))
    except ValueError:  # it is not text, or has a blank line
        return {}
    return dict(enumerate(names)) if _are_names(names) else {}


def _names_in_table(head: TableHead) -> Mapping[int, str]:
    """Returns the names in a table with a column of different numbers and one of different names.

    Of several columns of names, the one with `name` in its own counts.
    """
    if not head.is_header or len({len(row) for row in head.rows}) != 1:
        return {}
    columns = {name: head.cells(name) for name in head.header}
    numbers = [cells for cells in columns.values() if all(map(str.isdecimal, cells))]
    names = {name: cells for name, cells in columns.items() if _are_names(cells)}
    called = [cells for name, cells in names.items() if "name" in name.lower()]
    found = called or [*names.values()]
    if not numbers or len(set(numbers[0])) < len(numbers[0]) or len(found) != 1:
        return {}
    return dict(zip(map(int, numbers[0]), found[0], strict=True))


def _are_names(names: Sequence[str]) -> bool:
    """Returns whether texts may name classes.

    They differ, and none is empty, a number or an image.
    """
    differ = len(names) > 1 and len(set(names)) == len(names)
    return differ and not any(
        not name or name.replace(".", "").isdecimal() or name.lower().endswith(IMAGE_ENDINGS)
        for name in names
    )
