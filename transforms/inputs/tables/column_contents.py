"""What the sampled cells of a column hold: one class or several, prose, images, or splits."""

import re
from collections import Counter
from collections.abc import Collection, Mapping

from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.transforms.inputs.image_suffixes import IMAGE_ENDINGS
from recordmill.transforms.inputs.split_words import (
    SPLIT_KEYS,
    guess_splits,
    has_other_meanings,
    is_doubtful_split,
    may_be_split,
    name_splits,
)
from recordmill.transforms.inputs.tables.table_heads import (
    HELD_LIST,
    NUMBERS,
    TableHead,
    is_held,
    is_struct,
)

_SHAPES = re.compile(r"\s*(\[?\{|\['|-?[0-9.]+( -?[0-9.]+)+\s*$)")
"""How a cell begins that holds shapes as JSON (Label Studio), a list as Python writes it, or runs
of pixels (Kaggle)."""

_NO_NAME = re.compile(
    r"[a-z]{2,10}://.*|[0-9a-f]{32,}|[0-9a-f]{8}-[0-9a-f-]{27}"
    r"|[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}([T ].*)?|[0-9]{1,2}[/.][0-9]{1,2}[/.][0-9]{2,4}",
    re.IGNORECASE,
)
"""A URL, a hash, or a date."""

_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+(\.[0-9]{3})*,[0-9]+")

_LIST = re.compile(r'\s*\["')
_MEASURES = frozenset(
    {"age", "angle", "count", "height", "price", "rating", "score", "size", "weight", "width"}
)
"""Names of columns that are not taken for the class if they hold numbers."""

_TEXTS = frozenset(
    {"text", "caption", "sentence", "description", "prompt", "comment", "title", "question"}
    | {"answer", "report", "url", "link", "license", "author", "date", "time", "timestamp"}
)
"""Names of columns that are not taken for the class, also with a plural's s."""

_NAMES = frozenset(
    {"name", "labelname", "classname", "categoryname", "labeltext", "classtext", "labelstr"}
    | {"class", "category", "species", "breed"}
)
"""Names of columns that may hold the names of numbered classes."""

_GROUPS = frozenset(
    {"patient", "subject", "participant", "person", "user", "annotator", "rater", "worker"}
    | {"study", "series", "session", "scan", "sequence", "video", "clip", "frame", "slide"}
    | {"sample", "specimen", "individual", "group", "batch", "uuid", "guid"}
)
"""Names of columns, also with `id`, that say where an image comes from, and not what it shows."""

_ID = re.compile(r"(?:.*[_\s.-])?(?:ids?|no|nr|num|number|index|idx|key)|.*[a-z]I[dD]s?", re.DOTALL)
"""Names of columns of ids; `classId` is known before."""

_TRUTH = frozenset({"true", "false"})

SEPARATORS = "|;,"
"""Characters that usually separate several classes in a text."""

_FEWEST_CELLS = 5
_WORDS_OF_PROSE = 4


def names_images(name: str, head: TableHead) -> bool:
    """Returns whether all sampled cells end like the names of images."""
    cells = [cell.lower() for cell in head.cells(name) if cell]
    return bool(cells) and all(cell.endswith(IMAGE_ENDINGS) for cell in cells)


_ONE = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_NUMBERS = re.compile(
    rf"[\[({{]+\s*{_ONE}(?:[\s,;\[\](){{}}]+{_ONE})+[\s\])}}]*|{_ONE}(?:[\s,;]+{_ONE}){{3,}}"
)
"""A list of numbers, such as a box or points: in brackets, or at least four."""


def is_no_class(name: str, head: TableHead) -> bool:
    """Returns whether a column surely holds no classes, but images, numbers, dates or the like."""
    first = head.first().get(name, "")
    if is_held(first) or is_struct(first):
        return True
    if names_split(name, head) or names_group(name) or holds_decimal_commas(name, head):
        return True
    if _SHAPES.match(first) or first in (NUMBERS, HELD_LIST) or head.holds_fractions(name):
        return True
    cells = [cell for cell in head.cells(name) if cell]
    if not cells:
        return False
    is_no_name = all(map(_NO_NAME.fullmatch, cells)) or all(map(_NUMBERS.fullmatch, cells))
    return is_no_name or names_images(name, head)


def names_split(name: str, head: TableHead) -> bool:
    """Returns whether a column surely says which split an image is in, whatever the words."""
    values = sorted({cell for cell in head.cells(name) if cell})
    if not may_be_split(name) or not values or is_doubtful_split(name, values):
        return False
    return not has_other_meanings(name) or bool(guess_splits(name, values))


def names_group(name: str) -> bool:
    """Returns whether a column says by its name which patient, video or the like is shown."""
    plain = re.sub(r"[^a-z]", "", name.lower())
    return plain in _GROUPS or plain.removesuffix("id") in _GROUPS


def names_id(name: str) -> bool:
    """Returns whether a column's name is that of ids or numbers of rows."""
    return bool(_ID.fullmatch(name) or _ID.fullmatch(name.lower()))


def holds_truth(name: str, head: TableHead) -> bool:
    """Returns whether all sampled cells, at least two, are `true` or `false`, in any case."""
    cells = [cell.lower() for cell in head.cells(name) if cell]
    return len(cells) > 1 and _TRUTH.issuperset(cells)


def holds_decimal_commas(name: str, head: TableHead) -> bool:
    """Returns whether all sampled cells are numbers, and at least one has a decimal comma.

    They may also be two numbered classes each.
    """
    cells = [cell for cell in head.cells(name) if cell]
    numbers = [cell for cell in cells if _DECIMAL_COMMA.fullmatch(cell)]
    return bool(numbers) and all(cell in numbers or cell.isdecimal() for cell in cells)


def may_be_class(key: str, name: str, head: TableHead) -> bool:
    """Returns whether the only column that has no other meaning holds classes.

    Classes come again. Prose does not, and almost all of its cells differ.

    Args:
        key: the column's name in lower case and without punctuation.
        name: the column.
        head: the table.
    """
    if (key in _MEASURES and head.holds_numbers(name)) or key.removesuffix("s") in _TEXTS:
        return False
    if holds_truth(name, head):
        return False
    is_long = len([cell for cell in head.cells(name) if cell]) >= _FEWEST_CELLS
    return not (holds_prose(name, head) or (is_long and _differ(name, head)))


def holds_prose(name: str, head: TableHead) -> bool:
    """Returns whether a column holds sentences that almost all differ."""
    cells = [cell for cell in head.cells(name) if cell]
    words = sum(len(cell.split()) for cell in cells)
    return _differ(name, head) and words >= _WORDS_OF_PROSE * len(cells)


def _differ(name: str, head: TableHead) -> bool:
    """Returns whether almost all cells of a column differ."""
    cells = [cell for cell in head.cells(name) if cell]
    return len(cells) > 1 and 10 * len(set(cells)) >= 9 * len(cells)


def find_separator(key: str, name: str, head: TableHead) -> str | None:
    """Finds what separates several classes in a cell; None if cells hold one.

    Separated by anything but `|`, some class must be in two different cells.

    Args:
        key: the column's name in lower case and without punctuation.
        name: the column.
        head: the table.
    """
    cells = {cell for cell in head.cells(name) if cell}
    if any(map(_LIST.match, cells)):
        return "|"  # lists in JSON need none
    if key in ("tags", "labels"):
        return separator_in(cells, " ")
    return separator_in(cells)


def separator_in(cells: Collection[str], more: str = "") -> str | None:
    """Returns the character that separates several classes in some texts; None if each holds one.

    Args:
        cells: different texts.
        more: another separator than the usual ones.
    """
    for separator in f"{SEPARATORS}{more}":
        several = [cell.split(separator) for cell in cells if separator in cell]
        parts = Counter(part.strip() for cell in cells for part in {*cell.split(separator)})
        recur = any(parts[part.strip()] > 1 for each in several for part in each if part.strip())
        if several and (recur or separator == "|"):
            return separator
    return None


def find_name_column(key: str, left: Mapping[str, str], head: TableHead) -> str | None:
    """Finds the column with the names of classes that another column numbers.

    Args:
        key: the key of the column of numbers in `left`.
        left: columns by their names in lower case and without punctuation.
        head: the table.

    Returns:
        The key of that column; None if there is none, or it contradicts the numbers.
    """
    if not head.holds_numbers(left[key]):
        return None
    for other, name in left.items():
        if other == key or not (other in _NAMES or other == f"{key}name"):
            continue
        pairs = set(zip(head.cells(left[key]), head.cells(name), strict=False))
        numbers, names = ({pair[at] for pair in pairs} for at in (0, 1))
        if not head.holds_numbers(name) and len(pairs) == len(numbers) == len(names):
            return other
    return None


def find_split(left: Mapping[str, str], head: TableHead) -> str | None:
    """Returns the key of the column that says which split an image is in, in words.

    Returns None without one.
    """
    for key in SPLIT_KEYS:
        cells = [cell.lower() for cell in head.cells(left[key]) if cell] if key in left else []
        if cells and all(cell in SPLIT_NAMES for cell in cells):
            return key
    return None


def find_other_split(left: Mapping[str, str], head: TableHead) -> tuple[str, dict[str, str]]:
    """Finds a column that may say which split an image is in, otherwise than in the usual words.

    Returns:
        The column, empty if there is none; and the splits of its values: those that they seem to
        mean, or else splits of their own names.
    """
    for key in SPLIT_KEYS:
        values = sorted({cell for cell in head.cells(left[key]) if cell}) if key in left else []
        if values and not is_doubtful_split(key, values):
            return left[key], guess_splits(key, values) or name_splits(values)
    return "", {}
