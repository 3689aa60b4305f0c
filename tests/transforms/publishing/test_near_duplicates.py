import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recordmill.transforms.publishing.duplicates import (
    MOST_BITS,
    are_distinctive,
    count_differing,
    find_closest_apart,
    find_near_pairs,
)

CENTERS = st.integers(0, 2**64 - 1)
FLIPS = st.lists(st.integers(0, 63), max_size=7)


def distances(hashes):
    """Of every two places, by brute force."""
    values = [int(value) for value in hashes]
    return {
        (at, to): (values[at] ^ values[to]).bit_count()
        for to in range(len(values))
        for at in range(to)
    }


@given(
    st.lists(CENTERS, min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), FLIPS), max_size=25),
)
def test_all_near_pairs_are_found_and_no_others(centers, copies):
    hashes = set(centers)
    for number, flips in copies:
        hashes.add(centers[number % len(centers)] ^ sum(1 << bit for bit in set(flips)))
    hashes = np.array(sorted(hashes), np.uint64)
    pairs, complete = find_near_pairs(hashes)
    near = {pair: distance for pair, distance in distances(hashes).items() if distance <= MOST_BITS}
    assert complete
    measured = [(near[tuple(pair)], *pair) for pair in pairs.tolist()]
    assert len(measured) == len(near)
    assert measured == sorted(measured)
    assert count_differing(hashes, pairs).tolist() == [distance for distance, *_ in measured]


def test_equal_hashes_are_paired_with_the_first_of_them():
    far, near = 2**40 - 1, 2**40 - 4
    pairs, _ = find_near_pairs(np.array([0, far, 0, near, 0, far], np.uint64))
    assert pairs.tolist() == [[0, 2], [0, 4], [1, 5], [1, 3]]


@pytest.mark.parametrize("hashes", [[], [5]])
def test_few_hashes_have_no_pairs(hashes):
    pairs, complete = find_near_pairs(np.array(hashes, np.uint64))
    assert (pairs.shape, complete) == ((0, 2), True)


def test_too_many_images_are_reported():
    hashes = np.arange(64, dtype=np.uint64)  # six bits: nearly all pairs are near
    everything, complete = find_near_pairs(hashes)
    assert complete
    assert len(everything) == sum(distance <= MOST_BITS for distance in distances(hashes).values())
    some, complete = find_near_pairs(hashes, most_pairs=10)
    assert (complete, some.tolist()) == (False, everything[:10].tolist())
    assert set(count_differing(hashes, some).tolist()) == {1}
    hurried, complete = find_near_pairs(hashes, comparisons=100)
    assert not complete
    assert len(hurried) < len(everything)


@pytest.mark.parametrize("fixed", [0, 0xFFFF_FFF0_0000_0000])
def test_many_hashes_with_most_bits_in_common_are_compared(fixed):
    random = np.random.default_rng(1)
    hashes = np.unique(random.integers(0, 2**28, 600, np.uint64) << np.uint64(4) | np.uint64(fixed))
    pairs, complete = find_near_pairs(hashes, comparisons=20_000)
    assert complete
    near = sorted(pair for pair, distance in distances(hashes).items() if distance <= MOST_BITS)
    assert sorted(map(tuple, pairs.tolist())) == near
    assert len(near) > 50


def test_blank_pages_and_plain_gradients_tell_nothing():
    hashes = np.array([0, 2**64 - 1, 0b11111, 0b111111, 2**64 - 32, 2**64 - 64], np.uint64)
    assert are_distinctive(hashes).tolist() == [False, False, False, True, False, True]


@given(st.lists(st.tuples(CENTERS, st.integers(0, 3)), max_size=30))
@example([(0, 1), (2**30 - 1, 0), (2**20 - 1, 0), (2**19 - 1, 1)])
def test_the_closest_pair_apart_is_found(images):
    hashes = np.array([each for each, _ in images], np.uint64)
    parts = np.array([part for _, part in images], np.int64)
    least = [distance for (at, to), distance in distances(hashes).items() if parts[at] != parts[to]]
    found = find_closest_apart(hashes, parts)
    assert [parts[at] != parts[to] for at, to in found] == [True] * bool(least)
    assert count_differing(hashes, found).tolist() == sorted(least)[:1]


def test_of_very_many_images_those_of_the_smallest_part_are_compared():
    hashes = np.array([0, 1, 3, 7, 0xFF, 0x1FF], np.uint64)
    parts = np.array([0, 0, 0, 0, 1, 1])
    assert find_closest_apart(hashes, parts).tolist() == [[4, 3]]
    assert find_closest_apart(hashes[::-1], parts[::-1], comparisons=6).tolist() == [[0, 2]]
