"""The charts of the report: their columns, and round numbers below them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.reading.report.charts import (
    MOST_LABELS,
    compare_sizes,
    draw_areas,
    draw_aspects,
    draw_bytes,
    draw_heat_map,
    draw_numbers,
    draw_sides,
    place_on_areas,
)
from recordmill.reading.report.image_statistics import (
    ASPECT_BINS,
    BYTE_BINS,
    ObjectPlaces,
    count_aspects,
    count_by_size,
)


def sides(*values):
    return count_by_size(np.array(values), 68)


def texts(chart):
    return [text for _, text in chart.labels]


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ((28, 28), ["30"]),
        ((90, 700), ["100", "200", "300", "500", "700"]),
        ((32, 8_000), ["100", "300", "1,000", "3,000"]),
        ((8, 60_000), ["10", "100", "1,000", "10,000"]),
        ((200, 300), ["200", "250", "300"]),
    ],
)
def test_sides_have_round_labels_at_their_place(values, labels):
    chart = draw_sides(sides(*values))
    assert texts(chart) == labels
    assert chart.is_logarithmic


def test_a_label_stands_where_its_value_begins():
    chart = draw_sides(sides(64, 128, 256))
    assert chart.counts == [1, 0, 0, 0, 1, 0, 0, 0, 1]
    at = dict((text, at) for at, text in chart.labels)["100"]
    assert at == pytest.approx(100 * 4 * np.log2(100 / 64) / 9, abs=0.001)


def test_bytes_have_labels_at_powers_of_two():
    assert texts(draw_bytes(sides(900, 5_000))) == ["1 KiB", "2 KiB", "4 KiB"]
    assert texts(draw_bytes(count_by_size(np.array([900, 2**34]), BYTE_BINS))) == [
        "1 KiB",
        "32 KiB",
        "1 MiB",
        "32 MiB",
        "1 GiB",
    ]


def test_squares_are_labeled_in_the_middle_of_their_column():
    chart = draw_aspects(count_aspects(np.array([0.5, 1.0, 2.0])))
    assert chart.counts == [1, 0, 0, 0, 1, 0, 0, 0, 1]
    assert texts(chart) == ["1:2", "2:3", "1:1", "3:2", "2:1"]
    assert chart.labels[2].at == 50
    assert ASPECT_BINS % 2


def test_areas_are_labeled_in_percent():
    areas = np.zeros(20, np.int64)
    areas[[8, 19]] = 1
    assert texts(draw_areas(areas)) == ["0.1%", "1%", "10%", "100%"]


@given(st.lists(st.integers(0, 50), min_size=2, max_size=68).filter(any))
def test_a_chart_is_a_part_of_its_counts(counts):
    for chart in (draw_sides(np.array(counts)), draw_bytes(np.array(counts))):
        assert sum(chart.counts) == sum(counts)
        assert any(counts[at : at + len(chart.counts)] == chart.counts for at in range(len(counts)))
        assert len(chart.labels) <= MOST_LABELS
        assert all(0 <= at <= 100 for at, _ in chart.labels)
        assert chart.labels == sorted(chart.labels)


@pytest.mark.parametrize(
    ("numbers", "counts", "columns", "labels"),
    [
        ([4, 6, 6], None, [1, 0, 2], ["4", "5", "6"]),
        ([0.0, 24.0, 24.0, 1.5], None, [1, 1, *[0] * 21, 2], ["0", "5", "10", "15", "20"]),
        ([0, 240], None, [1, *[0] * 22, 1], ["0", "50", "100", "150", "200"]),
        ([0, 1, 3], [3, 4, 3], [3, 4, 0, 3], ["0", "1", "2", "3"]),
        (
            [0, 100, 48],
            [1, 2, 3],
            [1, *[0] * 10, 3, *[0] * 11, 2],
            ["0", "20", "40", "60", "80", "100"],
        ),
    ],
)
def test_numbers_have_round_labels(numbers, counts, columns, labels):
    chart = draw_numbers(numbers, counts)
    assert (chart.counts, texts(chart)) == (columns, labels)
    assert not chart.is_logarithmic


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=9))
def test_any_finite_numbers_have_a_chart(numbers):
    chart = draw_numbers(numbers)
    if chart is None:
        assert max(numbers) / 4 - min(numbers) / 4 <= 1e-9 * max(map(abs, numbers)) / 4
    else:
        assert sum(chart.counts) == len(numbers)
        assert all(-0.001 <= at <= 100.001 for at, _ in chart.labels)


@pytest.mark.parametrize(
    "numbers", [[], [1.0, 1.0], [0.0, 5e-324], [1.797693134862095e308, 1.79769313486209e308]]
)
def test_numbers_that_are_nearly_equal_have_no_histogram(numbers):
    assert draw_numbers(numbers) is None


def test_the_hottest_cell_of_a_heat_map_is_one():
    places = ObjectPlaces()
    places.heat[2, 5], places.heat[7, 1] = 4, 1
    assert draw_heat_map(places) == [(2, 5, 1.0), (7, 1, 0.25)]


def test_sizes_are_compared_for_the_most_frequent_classes():
    places = ObjectPlaces(shares={"cat": [0.1, 0.2, 0.3], "": [0.5] * 9, "dog": [0.4] * 11})
    dog, cat = compare_sizes(places)
    assert dog == ("dog", 11, 0.4, 0.4, 0.4)
    assert (cat.name, cat.objects, cat.median) == ("cat", 3, 0.2)
    assert (cat.small, cat.large) == (pytest.approx(0.12), pytest.approx(0.28))


def test_the_scale_of_areas_ends_at_the_whole_image():
    assert (place_on_areas(1.0), place_on_areas(2.0**-10), place_on_areas(0.0)) == (100, 50, 0)
