import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.reading.report.write_report import (
    FLOW_HEIGHT,
    ROW_HEIGHT,
    THINNEST,
    draw_flow,
    draw_heat_map,
    draw_histogram,
    mark_counts,
    mark_edges,
    mark_numbers,
)

COUNTS = st.lists(st.integers(0, 10**9), min_size=1, max_size=12)


def test_a_flow_divides_by_share():
    large, small = draw_flow([90, 10])
    # The first branch begins at the stem's top and ends in the middle of its row; the second follows it.
    assert (large.start, large.end, large.thickness, large.row) == (19.5, 4.0, 0.9 * FLOW_HEIGHT, 143.0)
    assert (small.start, small.end, small.thickness, small.row) == (154.5, 143.0 + 15.5, 15.0, ROW_HEIGHT)


@given(COUNTS)
def test_branches_are_side_by_side_and_visible(counts):
    branches, top = draw_flow(counts), 0.0
    start = branches[0].start
    for branch in branches:
        assert branch.thickness >= THINNEST
        assert branch.start == pytest.approx(start)
        assert top <= branch.end <= branch.end + branch.thickness <= top + branch.row + 1e-6
        start += branch.thickness
        top += branch.row


def test_a_histogram_shows_its_filled_range():
    chart = draw_histogram(np.array([0, 0, 3, 0, 6, 0, 0, 0, 0, 0]), str, least=3)
    assert chart.counts == [3, 0, 6]
    assert [(tick.at, tick.text) for tick in chart.up] == [(100, "0"), (66.667, "2"), (33.333, "4"), (0, "6")]
    assert [(tick.at, tick.text) for tick in chart.along] == [(0, "2"), (33.333, "3"), (66.667, "4"), (100, "5")]


def test_single_numbers_stand_below_the_middle_of_their_columns():
    chart = draw_histogram(np.array([3, 0, 6]), str, least=3, centred=True)
    assert [(tick.at, tick.text) for tick in chart.along] == [(16.667, "0"), (50, "1"), (83.333, "2")]


@pytest.mark.parametrize(
    ("highest", "shown"),
    [
        (1, ["0", "1"]),
        (7, ["0", "2", "4", "6"]),
        (12, ["0", "5", "10"]),
        (1_234, ["0", "500", "1,000"]),
        (10**6, ["0", "200,000", "400,000", "600,000", "800,000", "1,000,000"]),
    ],
)
def test_counts_are_marked_at_round_numbers(highest, shown):
    assert [tick.text for tick in mark_counts(highest)] == shown


@given(st.integers(1, 10**12))
def test_no_scale_of_counts_is_crowded_or_leaves_the_chart(highest):
    ticks = mark_counts(highest)
    assert 2 <= len(ticks) <= 6
    assert all(0 <= tick.at <= 100 for tick in ticks)


@given(st.integers(0, 90), st.integers(0, 90))
def test_no_scale_of_bins_is_crowded_or_leaves_the_chart(first, more):
    edges, numbers = mark_edges(first, first + more, str), mark_numbers(first, first + more, str)
    assert (edges[0].text, edges[-1].text) == (f"{first}", f"{first + more + 1}")
    assert (edges[0].at, edges[-1].at) == (0, 100)
    assert len(edges) <= 5
    assert sum(len(tick.text) + 1 for tick in numbers) <= 40
    assert all(0 < tick.at < 100 for tick in numbers)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=40).filter(any), st.integers(1, 8))
def test_a_histogram_is_a_part_of_its_counts(counts, least):
    shown = draw_histogram(np.array(counts), str, least).counts
    assert sum(shown) == sum(counts)
    assert len(shown) >= min(least, len(counts)) or counts[-len(shown) :] == shown
    assert any(counts[at : at + len(shown)] == shown for at in range(len(counts)))


def test_a_heat_map_has_rows_from_the_bottom_and_shades_by_logarithm():
    counts = np.zeros((10, 10), np.int64)
    counts[2, 3], counts[4, 5] = 99, 9
    chart = draw_heat_map(counts, str, least=3)
    assert (chart.rows, chart.highest) == ([[0, 0, 9], [0, 0, 0], [99, 0, 0]], 99)
    assert [tick.text for tick in chart.along] == ["2", "3", "4", "5"]
    assert [(tick.at, tick.text) for tick in chart.up] == [(100, "3"), (66.667, "4"), (33.333, "5"), (0, "6")]
    assert (chart.shade(99), chart.shade(9)) == (1.0, 0.6)
