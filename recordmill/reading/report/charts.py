"""Computes the charts of the report: columns, and round numbers below them.

A chart is plain numbers. The template draws it as SVG, 100 units wide.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recordmill.reading.report.image_statistics import (
    AREA_BINS,
    ASPECT_BINS,
    BINS_PER_DOUBLING,
    Counts,
    ObjectPlaces,
)
from recordmill.schemas.formatting import format_size, most_frequent

MOST_LABELS = 5
"""The most labels below a histogram."""

MOST_COLUMNS = 24
"""The most columns of a histogram of numbers."""


class ChartLabel(NamedTuple):
    """A label below a chart: its place, from 0 at the left to 100, and its text."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """The counts of columns of equal width, and the labels below them.

    Attributes:
        counts: the counts, from the first that is not zero to the last.
        labels: the labels, from left to right.
        is_logarithmic: whether columns stand for equal ratios instead of equal differences.
    """

    counts: list[int]
    labels: list[ChartLabel]
    is_logarithmic: bool = False


def draw_sides(counts: Counts) -> Histogram:
    """Draws a histogram of widths or heights in pixels, counted by `BINS_PER_DOUBLING`."""
    return _draw_by_ratio(counts, _place_in_doublings, "{:,.0f}".format, _DECIMAL)


def draw_bytes(counts: Counts) -> Histogram:
    """Draws a histogram of sizes in bytes, counted by `BINS_PER_DOUBLING`."""
    return _draw_by_ratio(counts, _place_in_doublings, _show_bytes, _BINARY)


def _place_in_doublings(value: float) -> float:
    return math.log2(value) * BINS_PER_DOUBLING


def _show_bytes(count: float) -> str:
    return format_size(count).replace(".0 ", " ")


def draw_areas(areas: Counts) -> Histogram:
    """Draws a histogram of shares of an image, which were counted by `AREA_BINS` doublings."""
    return _draw_by_ratio(areas, lambda value: math.log2(value) + AREA_BINS, show_share, _DECIMAL)


def show_share(share: float) -> str:
    """Returns a share of an image in percent, with two digits."""
    percent = 100 * share
    if percent >= 10:
        return f"{percent:.0f}%"
    return f"{percent:.2g}%"


_RATIOS = ((1, 1), (2, 1), (1, 2), (3, 2), (2, 3), (4, 1), (1, 4), (8, 1), (1, 8), (16, 1), (1, 16))
"""Width and height of the ratios that may be labeled, the most wanted first."""


def draw_aspects(counts: Counts) -> Histogram:
    """Draws a histogram of width / height, which were counted by `ASPECT_BINS`."""
    first, end = _find_filled(counts)
    labels = list[ChartLabel]()
    for width, height in _RATIOS:
        # A column is around its ratio, so that squares are in the middle of one.
        at = math.log2(width / height) * BINS_PER_DOUBLING + ASPECT_BINS // 2 + 0.5
        if first < at < end and len(labels) < MOST_LABELS:
            labels.append(_label(at, first, end, f"{width}:{height}"))
    return Histogram(counts[first:end].tolist(), sorted(labels), is_logarithmic=True)


def draw_numbers(numbers: Sequence[float], counts: Sequence[int] | None = None) -> Histogram | None:
    """Draws a histogram of finite numbers.

    It has a column for each integer if they are few, otherwise for equal ranges.

    Args:
        numbers: the numbers.
        counts: how often each occurs; None if all occur once.

    Returns:
        None without two different numbers, or if they differ by less than a billionth.
    """
    if not numbers:
        return None
    quarters = np.array(numbers, np.float64) / 4  # the largest floats do not overflow
    least, most = quarters.min(), quarters.max()
    if most - least <= _LEAST_RANGE * max(abs(least), abs(most)):
        return None
    are_few = most - least < MOST_COLUMNS / 4 and all(number == int(number) for number in numbers)
    if are_few:
        columns, end = round(4 * (most - least)) + 1, most + 0.25
    else:
        columns, end = MOST_COLUMNS, most
    found, edges = np.histogram(quarters, columns, (least, end), weights=counts)
    if are_few:
        step = -(-columns // MOST_LABELS)
        places = range(0, columns, step)
        labels = [_label(at + 0.5, 0, columns, f"{4 * edges[at]:,.0f}") for at in places]
    else:
        width = (end - least) / columns
        labels = [
            _label((value - least) / width, 0, columns, f"{4 * value:,.6g}")
            for value in _round_steps(least, end)
        ]
    return Histogram(found.astype(np.int64).tolist(), labels)


def _round_steps(least: float, most: float) -> Iterator[float]:
    """Yields quarters of round numbers in a range: at most `MOST_LABELS`, a round step apart."""
    rough = 4 * ((most - least) / MOST_LABELS)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough) / 4
    if math.isfinite(step) and step > 0:
        for number in range(math.ceil(least / step), math.floor(most / step) + 1):
            yield number * step


_LEAST_RANGE = 1e-9
"""The smallest range of a histogram, as a share of its largest number: floats are too far apart for
narrower columns."""

_POWERS = 10.0 ** np.arange(-8, 13)
_FACTORS = ([1], [1, 3], [1, 2, 5], [1, 2, 3, 5, 7], [1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9])
_DECIMAL = [np.outer(_POWERS, factors).ravel().tolist() for factors in _FACTORS]
_BINARY = [[2.0**power for power in range(0, 50, step)] for step in (10, 5, 2, 1)]
"""Round numbers that may be labeled: few for a wide range, then more for narrower ones."""


def _draw_by_ratio(
    counts: Counts,
    place_of: Callable[[float], float],
    show: Callable[[float], str],
    rounds: Sequence[Sequence[float]],
) -> Histogram:
    """Draws a histogram whose columns stand for equal ratios, with labels at round numbers.

    Args:
        counts: the columns.
        place_of: returns the place of a value, in columns from the first.
        show: returns the text of a value.
        rounds: the round numbers that may be labeled, the fewest first.
    """
    first, end = _find_filled(counts)
    chosen = list[float]()
    for values in rounds:
        inside = [value for value in values if first <= place_of(value) <= end]
        if len(inside) > MOST_LABELS and len(chosen) > 1:
            break
        chosen = inside
    step = max(1, -(-len(chosen) // MOST_LABELS))
    labels = [_label(place_of(value), first, end, show(value)) for value in chosen[::step]]
    return Histogram(counts[first:end].tolist(), labels, is_logarithmic=True)


def _find_filled(counts: Counts) -> tuple[int, int]:
    """Returns the first column that is not empty, and the one after the last."""
    filled = np.flatnonzero(counts)
    return int(filled[0]), int(filled[-1]) + 1


def _label(at: float, first: int, end: int, text: str) -> ChartLabel:
    return ChartLabel(round(100 * (at - first) / (end - first), 3), text)


class HeatCell(NamedTuple):
    """A cell of a heat map: its row and column from 0, and its heat from 0 to 1."""

    row: int
    column: int
    heat: float


def draw_heat_map(places: ObjectPlaces) -> list[HeatCell]:
    """Draws where objects are: the more objects are over a cell, the hotter it is.

    The hottest cell has the heat 1; cells without objects are left out.
    """
    hottest = places.heat.max()
    return [
        HeatCell(int(row), int(column), round(float(places.heat[row, column] / hottest), 3))
        for row, column in np.argwhere(places.heat > 0)
    ]


MOST_CLASSES = 10
"""The most classes whose sizes are shown."""


class ClassSizes(NamedTuple):
    """The sizes of a class's objects, as shares of their image.

    Attributes:
        name: the class.
        objects: the number of its objects.
        small: a tenth of the objects are smaller.
        median: half of the objects are smaller.
        large: a tenth of the objects are larger.
    """

    name: str
    objects: int
    small: float
    median: float
    large: float


def compare_sizes(places: ObjectPlaces) -> list[ClassSizes]:
    """Returns the sizes of objects by class, of the most frequent classes."""
    counts = {name: len(shares) for name, shares in places.shares.items() if name}
    found = []
    for name in most_frequent(counts)[:MOST_CLASSES]:
        small, median, large = np.quantile(places.shares[name], (0.1, 0.5, 0.9)).tolist()
        found.append(ClassSizes(name, counts[name], small, median, large))
    return found


def place_on_areas(share: float) -> float:
    """Returns the place of a share of an image on a scale of doublings, from 0 to 100."""
    return round(100 * (1 + max(math.log2(max(share, 2.0**-AREA_BINS)) / AREA_BINS, -1)), 2)
