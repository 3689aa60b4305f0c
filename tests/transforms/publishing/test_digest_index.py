import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.transforms.publishing.digest_index import DigestIndex

DIGESTS = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**56 - 1, 2**56, 2**63, 2**64 - 1]))


def array(numbers):
    return np.array(numbers, np.uint64)


@given(st.lists(st.lists(DIGESTS, max_size=12), max_size=12), st.integers(1, 40))
def test_repeated_digests_are_found_whatever_fits_into_memory(parts, in_memory):
    contents = DigestIndex(in_memory)
    for part in parts:
        contents.add(array(part))
    numbers = [number for part in parts for number in part]
    expected = sorted((number, times) for number, times in Counter(numbers).items() if times > 1)
    for _ in range(2):  # asking changes nothing
        values, counts = contents.repeated()
        assert list(zip(values.tolist(), counts.tolist(), strict=True)) == expected
    assert len(contents) == len(numbers)


def test_more_may_come_after_asking():
    contents = DigestIndex(2)
    contents.add(array([5, 6, 7]))
    assert contents.repeated()[0].tolist() == []
    contents.add(array([6]))
    assert contents.repeated()[0].tolist() == [6]


def test_the_order_is_there_until_some_are_put_away():
    contents = DigestIndex(3)
    contents.add(array([9, 1]))
    contents.add(array([5]))
    assert contents.in_order().tolist() == [9, 1, 5]
    contents.add(array([4]))
    with pytest.raises(ValueError, match="the order of 4 digests was not kept"):
        contents.in_order()


def test_the_order_is_kept_where_it_is_asked_for():
    contents = DigestIndex(1)
    contents.keep_order()
    contents.add(array([9, 1, 9]))
    assert contents.in_order().tolist() == [9, 1, 9]
    assert contents.repeated()[0].tolist() == [9]


def test_nothing_is_nothing():
    assert [each.tolist() for each in DigestIndex().repeated()] == [[], []]
    assert DigestIndex().in_order().tolist() == []


def test_memory_is_bounded():
    random = np.random.default_rng(0)
    contents = DigestIndex(20_000)
    tracemalloc.start()
    for _ in range(100):
        contents.add(random.integers(0, 2**64, 10_000, np.uint64))
    contents.add(contents.repeated()[0])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(contents) == 1_000_000
    assert peak < 2_000_000  # all of them would be 8,000,000
