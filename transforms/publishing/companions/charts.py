"""The geometry of the report's charts: plain numbers that its template draws as SVG.

A chart's width is 100 units, whatever the screen's: it is stretched to its place, and its texts stand around it in
HTML, where they keep their size.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FLOW_HEIGHT = 150.0
"""Pixels of the whole stream of a flow."""

ROW_HEIGHT = 46.0
"""Pixels of a flow's row at least: two lines of text."""

THINNEST = 2.0
"""Pixels of a branch at least, or one image in a million could not be seen."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch of a flow.

    Attributes:
        path: its outline, as an SVG path.
        top: where its row begins, in pixels.
        height: of its row.
    """

    path: str
    top: float
    height: float


@dataclass(frozen=True, slots=True)
class Flow:
    """A stream that divides: the branches from top to bottom, and the stream's own place before it does, in pixels."""

    branches: list[Branch]
    height: float
    stem_top: float
    stem_height: float


def draw_flow(counts: Sequence[int]) -> Flow:
    """The stream of these counts, each branch as thick as its share."""
    total = max(sum(counts), 1)
    thick = [max(THINNEST, FLOW_HEIGHT * count / total) for count in counts]
    rows = [max(ROW_HEIGHT, each + 8) for each in thick]
    height, stem = sum(rows), sum(thick)
    start = stem_top = (height - stem) / 2
    branches, top = [], 0.0
    for each, row in zip(thick, rows, strict=True):
        end = top + (row - each) / 2
        path = (
            f"M0 {start:.1f}C50 {start:.1f} 50 {end:.1f} 100 {end:.1f}V{end + each:.1f}"
            f"C50 {end + each:.1f} 50 {start + each:.1f} 0 {start + each:.1f}Z"
        )
        branches.append(Branch(path, top, row))
        start += each
        top += row
    return Flow(branches, height, stem_top, stem)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of a chart: `left` and `width` of 100, `top` and `height` of 100, and what it counts."""

    left: float
    top: float
    width: float
    height: float
    count: int = 0
    place: int = 0


def draw_stack(counts: Sequence[int], longest: int) -> list[Box]:
    """One bar of several parts, from left to right, on a scale where `longest` is the whole width; no empty parts."""
    boxes, left = [], 0.0
    for place, count in enumerate(counts):
        if count:
            width = max(100 * count / max(longest, 1), 0.25)
            boxes.append(Box(round(left, 3), 0, round(width, 3), 100, count, place))
            left += width
    return boxes


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on a scale: its place, of 100 from the left or the top, and what stands there."""

    at: float
    text: str


Label = Callable[[int], str]
"""What stands at the lower end of a bin."""

MOST_TICKS = 5

LONGEST_SCALE = 40
"""Letters below a chart of single numbers."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Columns of equal width, the bins that the first and the last one stand for, and both scales."""

    columns: list[Box]
    first: int
    last: int
    up: list[Tick]
    along: list[Tick]


def draw_histogram(counts: NDArray[np.int64], label: Label, least: int = 6, centred: bool = False) -> Histogram:
    """The columns of a histogram, from the first bin that holds anything to the last, at least `least` of them.

    Args:
        counts: by bin.
        label: what stands on the scale below.
        least: columns.
        centred: whether a bin is one number, which stands below the middle of its column, and not a range.
    """
    filled = np.flatnonzero(counts)
    first, last = _widen(filled, len(counts), least)
    width, highest = 100 / (last - first + 1), int(counts.max())
    columns = []
    for number in filled.tolist():
        count = int(counts[number])
        height = max(100 * count / highest, 1.5)
        columns.append(Box(round((number - first) * width, 3), round(100 - height, 3), width, height, count, number))
    along = mark_numbers(first, last, label) if centred else mark_edges(first, last, label)
    return Histogram(columns, first, last, mark_counts(highest), along)


def mark_counts(highest: int) -> list[Tick]:
    """A scale from 0 to the highest column, at round numbers."""
    step = 10 ** math.floor(math.log10(max(highest, 1)))
    step = max(next(step * part // 10 for part in (2, 5, 10, 20) if highest * 10 <= 5 * step * part), 1)
    return [Tick(round(100 - 100 * number / highest, 3), f"{number:,}") for number in range(0, highest + 1, step)]


def mark_edges(first: int, last: int, label: Label) -> list[Tick]:
    """A scale along bins that are ranges, from the lower end of the first to the upper end of the last."""
    bins = last - first + 1
    step = math.ceil(bins / (MOST_TICKS - 1))
    return [Tick(round(100 * at / bins, 3), label(first + at)) for at in _spread(bins, step)]


def mark_numbers(first: int, last: int, label: Label) -> list[Tick]:
    """A scale along bins that are single numbers."""
    bins = last - first + 1
    longest = max(len(label(first + at)) for at in range(bins))
    step = math.ceil(bins / max(LONGEST_SCALE // (longest + 1), 1))
    return [Tick(round(100 * (at + 0.5) / bins, 3), label(first + at)) for at in range(0, bins, step)]


def _spread(bins: int, step: int) -> list[int]:
    """Every so manieth edge, and the last."""
    edges = list(range(0, bins, step))
    if bins - edges[-1] < 0.75 * step and len(edges) > 1:
        edges.pop()
    return [*edges, bins]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Cells with their darkness from 0 to 1; the first and last bin of both axes, and their scales."""

    cells: list[tuple[Box, float]]
    columns: tuple[int, int]
    rows: tuple[int, int]
    up: list[Tick]
    along: list[Tick]


def draw_heat_map(counts: NDArray[np.int64], label: Label, least: int = 6) -> HeatMap:
    """The cells of counts by (column, row) that hold anything; rows count from the bottom. Shades go by logarithm."""
    across, up = np.nonzero(counts)
    left, right = _widen(across, counts.shape[0], least)
    bottom, top = _widen(up, counts.shape[1], least)
    width, height = 100 / (right - left + 1), 100 / (top - bottom + 1)
    most = np.log1p(counts.max())
    cells = []
    for column, row in zip(across.tolist(), up.tolist(), strict=True):
        count = int(counts[column, row])
        box = Box(round((column - left) * width, 3), round((top - row) * height, 3), width, height, count, column)
        cells.append((box, round(0.2 + 0.8 * float(np.log1p(count) / most), 2)))
    upwards = [Tick(round(100 - tick.at, 3), tick.text) for tick in mark_edges(bottom, top, label)]
    return HeatMap(cells, (left, right), (bottom, top), upwards, mark_edges(left, right, label))


def _widen(filled: NDArray[np.int64], bins: int, least: int) -> tuple[int, int]:
    """The first and last of at least `least` bins that cover all filled ones, with these in the middle."""
    first, last = int(filled.min()), int(filled.max())
    missing = max(least - (last - first + 1), 0)
    first = max(first - missing // 2, 0)
    return first, min(max(last, first + min(least, bins) - 1), bins - 1)
