import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.transforms.publishing.near_duplicates import MOST_BITS, find_near_pairs

CENTRES = st.integers(0, 2**64 - 1)
FLIPS = st.lists(st.integers(0, 63), max_size=7)


def distances(hashes):
    """Of every two places, by brute force."""
    values = [int(value) for value in hashes]
    return {(at, to): (values[at] ^ values[to]).bit_count() for to in range(len(values)) for at in range(to)}


@given(st.lists(CENTRES, min_size=1, max_size=4), st.lists(st.tuples(st.integers(0, 3), FLIPS), max_size=25))
def test_all_near_pairs_are_found_and_no_others(centres, copies):
    hashes = set(centres)
    for number, flips in copies:
        hashes.add(centres[number % len(centres)] ^ sum(1 << bit for bit in set(flips)))
    hashes = np.array(sorted(hashes), np.uint64)
    found = find_near_pairs(hashes)
    near = {pair: distance for pair, distance in distances(hashes).items() if distance <= MOST_BITS}
    assert found.complete
    assert dict(zip(map(tuple, found.pairs.tolist()), found.distances.tolist(), strict=True)) == near
    measured = [(distance, *pair) for distance, pair in zip(found.distances, found.pairs.tolist(), strict=True)]
    assert measured == sorted(measured)


def test_equal_hashes_are_paired_with_the_first_of_them():
    far, near = 2**40 - 1, 2**40 - 4
    found = find_near_pairs(np.array([0, far, 0, near, 0, far], np.uint64))
    assert found.pairs.tolist() == [[0, 2], [0, 4], [1, 5], [1, 3]]
    assert found.distances.tolist() == [0, 0, 0, 2]


@pytest.mark.parametrize("hashes", [[], [5]])
def test_few_hashes_have_no_pairs(hashes):
    found = find_near_pairs(np.array(hashes, np.uint64))
    assert (found.pairs.shape, found.distances.shape, found.complete) == ((0, 2), (0,), True)


def test_too_many_images_are_reported():
    hashes = np.arange(64, dtype=np.uint64)  # six bits: nearly all pairs are near
    everything = find_near_pairs(hashes)
    assert everything.complete
    assert len(everything.pairs) == sum(distance <= MOST_BITS for distance in distances(hashes).values())
    some = find_near_pairs(hashes, most_pairs=10)
    assert (some.complete, some.pairs.tolist()) == (False, everything.pairs[:10].tolist())
    assert set(some.distances.tolist()) == {1}
    hurried = find_near_pairs(hashes, comparisons=100)
    assert not hurried.complete
    assert len(hurried.pairs) < len(everything.pairs)
