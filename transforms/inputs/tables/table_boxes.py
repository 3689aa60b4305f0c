"""Columns of boxes: the names of their sides, and those that hold boxes in another form."""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from recordmill.transforms.inputs.tables.table_heads import TableHead

SIDES = ("xmin", "ymin", "xmax", "ymax")
SIZES = ("width", "height")

_OTHER_SIDES = (
    ("x1", "y1", "x2", "y2"),
    ("x0", "y0", "x1", "y1"),
    ("left", "top", "right", "bottom"),
    ("minx", "miny", "maxx", "maxy"),
    ("xtl", "ytl", "xbr", "ybr"),
    ("startx", "starty", "endx", "endy"),
)
"""Other names of the columns of a box's sides, in lower case and without punctuation."""

_MOST_CORNERS = 2
"""The most points that describe a box."""

_BEFORE = ("", "bbox", "box", "roi", "rect", "bndbox", "boundingbox")
"""What may be before such a name, as in `Roi.X1` and `bbox_x`."""

_LEFTS, _TOPS, _RIGHTS, _BOTTOMS = zip(SIDES, *_OTHER_SIDES, strict=True)
_ACROSS = frozenset(("x", "xc", "cx", "xcenter", "centerx", "xmid", *_LEFTS, *_RIGHTS))
_DOWN = frozenset(("y", "yc", "cy", "ycenter", "centery", "ymid", *_TOPS, *_BOTTOMS))
_SIZES = frozenset({"w", "h", "width", "height"})
_WHOLE = frozenset({"bbox", "bboxes", "box", "boxes", "boundingbox", "boundingboxes", "rect"})
"""Names of columns that hold whole boxes."""


def find_corners(left: Mapping[str, str], head: TableHead) -> tuple[str, ...]:
    """Finds the columns of a box's left, upper, right and lower side.

    Columns that are not called `xmin` and so on must hold boxes in all rows seen.

    Args:
        left: columns by their names in lower case and without punctuation.
        head: the table.

    Returns:
        The keys of four columns in `left`; empty if there are none.
    """
    if all(side in left for side in SIDES):
        return SIDES
    for before in _BEFORE:
        for sides in (SIDES, *_OTHER_SIDES):
            names = tuple(f"{before}{side}" for side in sides)
            columns = [left[name] for name in names if name in left]
            if len(columns) < len(SIDES) or _number_more_points(before, left):
                continue
            if hold_corners(columns, head):
                return names
    return ()


def _number_more_points(before: str, left: Collection[str]) -> bool:
    """Tells if columns are numbered x and y of more points than the two corners of a box."""
    points = [{f"{before}x{number}", f"{before}y{number}"} for number in range(_MOST_CORNERS + 2)]
    return sum(point <= {*left} for point in points) > _MOST_CORNERS


def hold_corners(columns: Sequence[str], head: TableHead) -> bool:
    """Tells if four columns hold the left, upper, right and lower side of a box in each row."""
    if not all(map(head.holds_numbers, columns)):
        return False
    boxes = zip(*map(head.cells, columns), strict=False)
    return all(
        float(xmin) < float(xmax) and float(ymin) < float(ymax)
        for xmin, ymin, xmax, ymax in boxes
        if xmin and ymin and xmax and ymax
    )


def find_other_boxes(left: Mapping[str, str], head: TableHead) -> tuple[str, ...]:
    """Finds columns that may hold boxes in a form that is not read; empty if there are none.

    A lone number is not a box.
    """
    whole = [name for key, name in left.items() if key in _WHOLE]
    if found := [name for name in whole if not head.holds_numbers(name)]:
        return tuple(found)
    numbers = {key: name for key, name in left.items() if head.holds_numbers(name)}
    for before in _BEFORE:
        inner = {
            key.removeprefix(before): name
            for key, name in numbers.items()
            if key.startswith(before)
        }
        across, down, sizes = (inner.keys() & each for each in (_ACROSS, _DOWN, _SIZES))
        if across and down and (sizes or len(across) + len(down) > 2):
            return tuple(name for key, name in inner.items() if key in across | down | sizes)
    return ()


def are_fractions(sides: Sequence[str], head: TableHead) -> bool:
    """Returns whether boxes are parts of the image's width and height, as far as seen."""
    cells = [*filter(None, chain.from_iterable(map(head.cells, sides)))]
    return (
        all(map(head.holds_numbers, sides))
        and any(map(head.holds_fractions, sides))
        and all(0 <= float(cell) <= 1 for cell in cells)
    )
