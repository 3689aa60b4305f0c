"""Tables without a header: what their columns hold decides what they are called.

Only columns whose meaning is plain get the name of a meaning. The user decides about the others.
"""

from collections.abc import Iterator, Sequence

from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.transforms.inputs.tables.column_contents import (
    holds_prose,
    is_no_class,
    may_be_class,
)
from recordmill.transforms.inputs.tables.table_boxes import SIDES, hold_corners
from recordmill.transforms.inputs.tables.table_heads import TableHead

RETINANET = ("path", *SIDES, "box_label")
"""The columns of RetinaNet's CSV, which has no header."""


def name_unnamed(head: TableHead) -> tuple[str, ...]:
    """Names the columns of a table without a header, whose first cells are paths of images.

    They are `path`, then `label` and `split` where their cells show that, or else `column_2` and so
    on. The columns of RetinaNet's CSV are named `RETINANET`.
    """
    names = ["path", *(f"column_{place}" for place in range(2, len(head.rows[0]) + 1))]
    numbered = TableHead((tuple(names), *head.rows))
    if _are_boxes(numbered):
        return RETINANET
    sides = find_unnamed_sides(numbered)
    left = [name for name in names[1:] if any(numbered.cells(name)) and name not in sides]
    meanings = {}
    if split := _find_split(left, numbered):
        meanings[split] = "split"
        left.remove(split)
    if label := _find_label(left, numbered):
        meanings[label] = "label"
    return tuple(meanings.get(name, name) for name in names)


def find_unnamed_sides(head: TableHead) -> tuple[str, ...]:
    """Finds four numbers in a row, in columns without a name, that may be a box.

    Four sides come before a place and a size. The result is empty if there are none.
    """
    found = [
        places
        for places in _windows(head.header, len(SIDES))
        if all(name.startswith("column_") and _may_be_side(name, head) for name in places)
    ]
    of_corners = [places for places in found if hold_corners(places, head)]
    # A number of the class comes again; it may be before the sides or after them.
    likely = [places for places in of_corners if _leaves_class(places, head)]
    return next(iter((*likely, *of_corners, *found)), ())


def _windows(names: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    for start in range(len(names) - size + 1):
        yield tuple(names[start : start + size])


def _may_be_side(name: str, head: TableHead) -> bool:
    return head.holds_numbers(name) and not head.holds_flags(name)


def _leaves_class(sides: Sequence[str], head: TableHead) -> bool:
    """Returns whether one of the columns that are not sides may be the class."""
    return any(
        not is_no_class(name, head) and may_be_class("", name, head)
        for name in head.header[1:]
        if name not in sides
    )


def _are_boxes(head: TableHead) -> bool:
    """Returns whether rows are those of RetinaNet.

    A path, four sides, which may be empty, and a class.

    A number before the sides may be the class, too.
    """
    _, *sides, label = head.header
    if len(sides) != len(SIDES) or not hold_corners(sides, head):
        return False
    return not (head.holds_numbers(label) and hold_corners([*sides[1:], label], head))


def _find_split(left: Sequence[str], head: TableHead) -> str | None:
    """Finds the only column whose cells are words for splits; None if that is not clear.

    A class may be called `train`, too: then all cells that were seen may be this word.
    """
    found = []
    for name in left:
        words = {cell.lower() for cell in head.cells(name) if cell}
        if words <= SPLIT_NAMES.keys():
            found.append((name, {SPLIT_NAMES[word] for word in words}))
    if len(found) != 1:
        return None
    ((split, meant),) = found
    others = [name for name in left if name != split]
    has_class = any(_is_text_of_classes(name, head) for name in others)
    return split if len(meant) > 1 or has_class else None


def _find_label(left: Sequence[str], head: TableHead) -> str | None:
    """Finds the column of classes: the only column, or the only one of text that comes again.

    If numbers come again, too, they must be those of the classes.
    """
    if len(left) == 1:
        name = left[0]
        words = {cell.lower() for cell in head.cells(name)}
        is_unclear = (
            is_no_class(name, head) or holds_prose(name, head) or words <= SPLIT_NAMES.keys()
        )
        return None if is_unclear else name
    texts = [name for name in left if _is_text_of_classes(name, head)]
    if len(texts) != 1:
        return None
    for name in left:
        is_label_like = head.holds_numbers(name) and not is_no_class(name, head)
        if is_label_like and may_be_class("", name, head) and not _are_paired(name, texts[0], head):
            return None
    return texts[0]


def _is_text_of_classes(name: str, head: TableHead) -> bool:
    is_text = not head.holds_numbers(name) and not is_no_class(name, head)
    return is_text and may_be_class("", name, head)


def _are_paired(numbers: str, names: str, head: TableHead) -> bool:
    """Returns whether each number has one name, and each name one number."""
    pairs = set(zip(head.cells(numbers), head.cells(names), strict=False))
    return len(pairs) == len({number for number, _ in pairs}) == len({name for _, name in pairs})
