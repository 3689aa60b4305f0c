from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.digests import HASH_RANGE, order_of
from recordmill.transforms.planning import summary
from recordmill.transforms.planning.summary import HashHistogram, range_of

HASHES = st.integers(0, HASH_RANGE - 1)
PAIRS = st.lists(st.tuples(HASHES, st.integers(0, 10**9)), max_size=40)


@pytest.fixture(scope="module", autouse=True)
def eight_bins():
    """So that histograms of a few hashes are coarse already."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summary, "MAX_BINS", 8)
        yield


def histogram_of(pairs):
    histogram = HashHistogram()
    for number, weight in pairs:
        histogram.add(number, weight)
    return histogram


def merged(*parts):
    total = HashHistogram()
    for part in parts:
        total.merge(histogram_of(part))
    return total


@given(PAIRS, st.data())
def test_any_partition_merged_in_any_order_gives_the_same(pairs, data):
    parts = [[], [], []]
    for pair in pairs:
        parts[data.draw(st.integers(0, 2))].append(pair)
    for order in permutations(parts):
        assert merged(*order) == histogram_of(pairs)


@given(PAIRS, PAIRS, PAIRS)
def test_merging_is_associative(one, two, three):
    left = merged(one, two)
    left.merge(histogram_of(three))
    right = merged(two, three)
    total = histogram_of(one)
    total.merge(right)
    assert left == total


@given(PAIRS)
def test_no_weight_is_lost_and_the_bins_are_bounded(pairs):
    histogram = histogram_of(pairs)
    assert sum(histogram.bins.values()) == sum(weight for _, weight in pairs)
    assert len(histogram.bins) <= 8
    if histogram.shift:  # half as coarse would not have fitted
        assert len({number >> (histogram.shift - 1) for number, _ in pairs}) > 8


def test_merging_leaves_the_other_as_it_is():
    fine = histogram_of([(5, 1)])
    coarse = histogram_of([(number << 60, 1) for number in range(16)])
    fine.merge(coarse)
    assert coarse == histogram_of([(number << 60, 1) for number in range(16)])
    assert (fine.shift, coarse.shift) == (61, 61)


@given(PAIRS, st.integers(1, 12))
def test_as_many_ranges_as_wanted_and_none_is_empty(pairs, parts):
    histogram = histogram_of(pairs)
    starts = histogram.cut(parts)
    assert len(starts) == max(1, min(parts, len(histogram.bins)))
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    if pairs:
        assert {range_of(starts, number) for number, _ in pairs} == set(range(len(starts)))


@given(PAIRS, st.integers(1, 12), HASHES)
def test_a_hash_falls_into_the_range_that_begins_at_or_before_it(pairs, parts, number):
    starts = histogram_of(pairs).cut(parts)
    index = range_of(starts, number)
    assert starts[index] <= number
    assert index == len(starts) - 1 or number < starts[index + 1]


def test_an_empty_histogram_gives_one_range():
    assert HashHistogram().cut(5) == [0]


def test_a_number_in_use_is_counted_on_top():
    assert histogram_of([(3, 10), (3, 5), (4, 1)]).bins == {3: 15, 4: 1}


def test_one_bin_with_nearly_all_the_weight_still_leaves_no_range_empty():
    histogram = histogram_of([(number, 10**9 if number == 7 else 1) for number in range(8)])
    starts = histogram.cut(4)
    assert {range_of(starts, number) for number in range(8)} == {0, 1, 2, 3}


def test_ranges_are_even(monkeypatch):
    monkeypatch.setattr(summary, "MAX_BINS", 1 << 16)
    pairs = [(order_of(0, f"{index}"), 1000 + index % 7) for index in range(10_000)]
    starts = histogram_of(pairs).cut(16)
    sizes = [0] * 16
    for number, weight in pairs:
        sizes[range_of(starts, number)] += weight
    assert max(sizes) - min(sizes) <= 2 * 1006


def test_coarse_ranges_are_nearly_even(monkeypatch):
    monkeypatch.setattr(summary, "MAX_BINS", 512)
    pairs = [(order_of(0, f"{index}"), 1) for index in range(20_000)]
    histogram = histogram_of(pairs)
    assert histogram.shift > 0
    starts = histogram.cut(4)
    sizes = [0] * 4
    for number, _ in pairs:
        sizes[range_of(starts, number)] += 1
    assert max(sizes) - min(sizes) < 400


@given(PAIRS, st.integers(0, 6))
def test_equal_ranges_are_the_same_whatever_else_there_is(pairs, bits):
    histogram, parts = histogram_of(pairs), 2**bits
    starts, width = histogram.cut_equally(parts), max(HASH_RANGE // parts, 1 << histogram.shift)
    assert starts[0] == 0
    assert sorted({number // width * width for number, _ in pairs})[1:] == starts[1:]
    assert len({range_of(starts, number) for number, _ in pairs}) == (len(starts) if pairs else 0)
