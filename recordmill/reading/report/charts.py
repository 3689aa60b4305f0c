"""The geometry of the report's charts: plain numbers that its template draws as SVG.

A chart is 100 units wide on every screen: it is stretched to fit, and its texts are HTML around it, which keeps its
size.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

FLOW_HEIGHT = 150.0
"""Height of a flow's whole stream, in pixels."""

ROW_HEIGHT = 46.0
"""Minimum height of a flow's row, in pixels: two lines of text."""

THINNEST = 2.0
"""Minimum thickness of a branch, in pixels: one image in a million stays visible."""

MOST_TICKS = 5

LONGEST_SCALE = 40
"""The most characters on the scale of single numbers."""

Counts = NDArray[np.int64]

Label = Callable[[int], str]
"""Gives the text for the lower end of a bin."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch of a flow, in pixels.

    Attributes:
        start: where it leaves the stream.
        end: where it arrives, in the middle of its row.
        thickness: its share of the stream.
        row: the height of its row.
    """

    start: float
    end: float
    thickness: float
    row: float


def draw_flow(counts: Sequence[int]) -> list[Branch]:
    """Divides a stream into branches for these counts, from top to bottom, each as thick as its share."""
    total = max(sum(counts), 1)
    thick = [max(THINNEST, FLOW_HEIGHT * count / total) for count in counts]
    rows = [max(ROW_HEIGHT, each + 8) for each in thick]
    starts = accumulate(thick, initial=(sum(rows) - sum(thick)) / 2)
    tops = accumulate(rows, initial=0.0)
    return [
        Branch(start, top + (row - each) / 2, each, row)
        for start, top, each, row in zip(starts, tops, thick, rows, strict=False)
    ]


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on a scale: its place, from 0 at the left or the top to 100, and its text."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """The counts of columns of equal width, and the vertical and horizontal scales."""

    counts: list[int]
    up: list[Tick]
    along: list[Tick]


def draw_histogram(counts: Counts, label: Label, least: int = 6, centred: bool = False) -> Histogram:
    """The columns of a histogram, from the first bin that is not empty to the last, at least `least` of them.

    Args:
        counts: by bin.
        label: the texts of the scale below.
        least: minimum number of columns.
        centred: whether a bin is a single number, shown below the middle of its column, instead of a range.
    """
    first, last = _widen(np.flatnonzero(counts), len(counts), least)
    along = mark_numbers(first, last, label) if centred else mark_edges(first, last, label)
    return Histogram(counts[first : last + 1].tolist(), mark_counts(int(counts.max())), along)


def mark_counts(highest: int) -> list[Tick]:
    """A scale from 0 to the highest column, at round numbers."""
    step = 10 ** math.floor(math.log10(max(highest, 1)))
    step = max(next(step * part // 10 for part in (2, 5, 10, 20) if highest * 10 <= 5 * step * part), 1)
    return [Tick(round(100 - 100 * number / highest, 3), f"{number:,}") for number in range(0, highest + 1, step)]


def mark_edges(first: int, last: int, label: Label) -> list[Tick]:
    """A scale along bins that are ranges, from the lower end of the first to the upper end of the last."""
    bins = last - first + 1
    step = math.ceil(bins / (MOST_TICKS - 1))
    edges = [*range(0, bins, step), bins]
    if bins - edges[-2] < 0.75 * step and len(edges) > 2:
        del edges[-2]
    return [Tick(round(100 * at / bins, 3), label(first + at)) for at in edges]


def mark_numbers(first: int, last: int, label: Label) -> list[Tick]:
    """A scale along bins that are single numbers."""
    bins = last - first + 1
    longest = max(len(label(first + at)) for at in range(bins))
    step = math.ceil(bins / max(LONGEST_SCALE // (longest + 1), 1))
    return [Tick(round(100 * (at + 0.5) / bins, 3), label(first + at)) for at in range(0, bins, step)]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Counts by row (from the top) and column, the highest count, and the vertical and horizontal scales."""

    rows: list[list[int]]
    highest: int
    up: list[Tick]
    along: list[Tick]

    def shade(self, count: int) -> float:
        """How dark a cell is, from 0.2 to 1, on a logarithmic scale."""
        return round(0.2 + 0.8 * math.log1p(count) / math.log1p(self.highest), 2)


def draw_heat_map(counts: Counts, label: Label, least: int = 6) -> HeatMap:
    """The part of counts by (column, row) that is not empty; rows count from the bottom."""
    across, upwards = np.nonzero(counts)
    left, right = _widen(across, counts.shape[0], least)
    bottom, top = _widen(upwards, counts.shape[1], least)
    shown = counts[left : right + 1, bottom : top + 1].T[::-1]
    up = [Tick(round(100 - tick.at, 3), tick.text) for tick in mark_edges(bottom, top, label)]
    return HeatMap(shown.tolist(), int(counts.max()), up, mark_edges(left, right, label))


def _widen(filled: NDArray[np.int64], bins: int, least: int) -> tuple[int, int]:
    """The first and last of at least `least` bins, with the filled ones in the middle."""
    first, last = int(filled.min()), int(filled.max())
    missing = max(least - (last - first + 1), 0)
    first = max(first - missing // 2, 0)
    return first, min(max(last, first + min(least, bins) - 1), bins - 1)
