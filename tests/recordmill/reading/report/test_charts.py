import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.reading.report.write_report import draw_histogram, draw_numbers


def test_a_histogram_shows_its_filled_range():
    chart = draw_histogram(np.array([0, 0, 3, 0, 6, 0, 0, 0, 0, 0]), str)
    assert chart.counts == [3, 0, 6]
    assert chart.labels == [(16.667, "2"), (50.0, "3"), (83.333, "4")]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=140).filter(any))
def test_a_histogram_is_a_part_of_its_counts(counts):
    chart = draw_histogram(np.array(counts), str)
    assert sum(chart.counts) == sum(counts)
    assert any(counts[at : at + len(chart.counts)] == chart.counts for at in range(len(counts)))
    assert 1 <= len(chart.labels) <= 4
    assert all(0 < at < 100 for at, _ in chart.labels)


@pytest.mark.parametrize(
    ("numbers", "counts", "columns", "first"),
    [
        ([4, 6, 6], None, [1, 0, 2], "4"),
        ([0.0, 24.0, 24.0, 1.5], None, [1, 1, *[0] * 21, 2], "0"),
        ([0, 240], None, [1, *[0] * 22, 1], "0"),
        ([-1.7e308, 1.7e308], None, [1, *[0] * 22, 1], "-1.7e+308"),
        ([0, 1, 3], [3, 4, 3], [3, 4, 0, 3], "0"),
        ([0, 100, 48], [1, 2, 3], [1, *[0] * 10, 3, *[0] * 11, 2], "0"),
    ],
)
def test_histograms_of_numbers(numbers, counts, columns, first):
    chart = draw_numbers(numbers, counts)
    assert (chart.counts, chart.labels[0][1]) == (columns, first)


@pytest.mark.parametrize("numbers", [[], [1.0, 1.0]])
def test_a_single_number_has_no_histogram(numbers):
    assert draw_numbers(numbers) is None
