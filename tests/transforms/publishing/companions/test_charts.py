import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.transforms.publishing.companions.charts import (
    FLOW_HEIGHT,
    ROW_HEIGHT,
    THINNEST,
    draw_flow,
    draw_heat_map,
    draw_histogram,
    draw_stack,
    mark_counts,
    mark_edges,
    mark_numbers,
)

COUNTS = st.lists(st.integers(0, 10**9), min_size=1, max_size=12)


def test_a_flow_divides_by_share():
    flow = draw_flow([90, 10])
    assert [(branch.top, branch.height) for branch in flow.branches] == [(0.0, 143.0), (143.0, ROW_HEIGHT)]
    assert (flow.height, flow.stem_top, flow.stem_height) == (189.0, 19.5, FLOW_HEIGHT)
    # The first branch begins at the stem's top and ends in the middle of its row; the second follows it.
    assert flow.branches[0].path == "M0 19.5C50 19.5 50 4.0 100 4.0V139.0C50 139.0 50 154.5 0 154.5Z"
    assert flow.branches[1].path.startswith("M0 154.5C")


@given(COUNTS)
def test_branches_are_side_by_side_and_visible(counts):
    flow = draw_flow(counts)
    top = 0.0
    for branch in flow.branches:
        assert branch.top == pytest.approx(top)
        left_top, right_top, right_bottom, left_bottom = (
            float(re.findall(pattern, branch.path)[0])
            for pattern in (r"^M0 ([\d.]+)", r"100 ([\d.]+)V", r"V([\d.]+)C", r" 0 ([\d.]+)Z$")
        )
        assert right_bottom - right_top >= THINNEST - 0.1
        assert left_bottom - left_top == pytest.approx(right_bottom - right_top, abs=0.2)
        assert branch.top <= right_top <= right_bottom <= branch.top + branch.height + 0.1
        top += branch.height
    assert top == pytest.approx(flow.height)


def test_a_stack_leaves_out_what_is_empty():
    assert [(box.left, box.width, box.count, box.place) for box in draw_stack([5, 0, 3, 2], 20)] == [
        (0, 25.0, 5, 0),
        (25.0, 15.0, 3, 2),
        (40.0, 10.0, 2, 3),
    ]
    assert draw_stack([0, 0], 0) == []
    assert draw_stack([1], 10**9)[0].width == 0.25


def test_a_histogram_shows_its_filled_range():
    chart = draw_histogram(np.array([0, 0, 3, 0, 6, 0, 0, 0, 0, 0]), str, least=3)
    assert (chart.first, chart.last) == (2, 4)
    assert [(box.left, box.top, box.height, box.count, box.place) for box in chart.columns] == [
        (0.0, 50.0, 50.0, 3, 2),
        (66.667, 0.0, 100.0, 6, 4),
    ]
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
def test_columns_stay_within_a_histogram(counts, least):
    chart = draw_histogram(np.array(counts), str, least)
    assert sum(box.count for box in chart.columns) == sum(counts)
    assert 0 <= chart.first <= chart.last < len(counts)
    assert chart.last - chart.first + 1 >= min(least, len(counts)) or chart.last == len(counts) - 1
    for box in chart.columns:
        assert box.left >= 0
        assert box.left + box.width <= 100.01
        assert box.top + box.height == pytest.approx(100, abs=0.01)


def test_a_heat_map_has_rows_from_the_bottom_and_shades_by_logarithm():
    counts = np.zeros((10, 10), np.int64)
    counts[2, 3], counts[4, 5] = 99, 9
    chart = draw_heat_map(counts, str, least=3)
    assert (chart.columns, chart.rows) == ((2, 4), (3, 5))
    assert [tick.text for tick in chart.along] == ["2", "3", "4", "5"]
    assert [(tick.at, tick.text) for tick in chart.up] == [(100, "3"), (66.667, "4"), (33.333, "5"), (0, "6")]
    (low, dark), (high, light) = chart.cells
    assert (low.left, low.top, low.count, dark) == (0.0, 66.667, 99, 1.0)
    assert (high.left, high.top, high.count, light) == (66.667, 0.0, 9, 0.6)
