"""Which column of a table is the class, and which others may be."""

from collections.abc import Collection, Mapping

from recordmill.transforms.inputs.tables.column_contents import (
    find_name_column,
    holds_prose,
    holds_truth,
    is_no_class,
    may_be_class,
    names_group,
    names_id,
    names_split,
)
from recordmill.transforms.inputs.tables.table_boxes import SIZES
from recordmill.transforms.inputs.tables.table_heads import TableHead

_LABEL = (
    *("label", "class", "classname", "labelname", "category", "species", "breed", "target"),
    *("diagnosis", "labels", "tag", "classid", "labelid", "categoryid", "dx"),
)
"""Names of columns of classes, likely ones first, in lower case and without punctuation."""


def find_class_column(
    left: Mapping[str, str], head: TableHead, *, has_objects: bool, corners: Collection[str] = ()
) -> str | None:
    """Returns the key of the column of the class among those without another meaning.

    Returns None without one.

    Args:
        left: columns by their names in lower case and without punctuation.
        head: the table.
        has_objects: whether another column holds objects with classes of their own.
        corners: the keys of the sides of boxes.
    """
    classes = [key for key, name in left.items() if not is_no_class(name, head)]
    if label := next((key for key in _LABEL if key in classes), None):
        return find_name_column(label, left, head) or label
    if corners:
        classes = [key for key in classes if key not in (*corners, *SIZES)]
        left = {key: name for key, name in left.items() if key not in (*corners, *SIZES)}
    if len(left) > 1 or not classes or has_objects:
        return None
    if may_be_class(classes[0], left[classes[0]], head):
        return classes[0]
    return None


def find_candidates(left: Mapping[str, str], head: TableHead) -> dict[str, str]:
    """Returns the columns without a meaning that may be the class, each with its first cell.

    Text may be, even if no cell comes again.
    """
    classes = [key for key, name in left.items() if not is_no_class(name, head)]
    likely = [key for key in classes if may_be_class(key, left[key], head)]
    texts = [key for key in classes if not head.holds_numbers(left[key])]
    names = [left[key] for key in dict.fromkeys((*likely, *texts))]
    names = [each for each in names if not holds_prose(each, head)]
    if len(left) > 1:
        names = [each for each in names if not holds_truth(each, head)]
        names = [each for each in names if not names_id(each)] or names
    return {name: next(filter(None, head.cells(name)), "") for name in names}


def holds_values(name: str, head: TableHead) -> bool:
    """Returns whether a column holds numbers that say something about an image."""
    if names_split(name, head) or names_group(name) or names_id(name):
        return False
    return head.holds_numbers(name)
