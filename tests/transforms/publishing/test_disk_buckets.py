import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from recordmill.transforms.publishing.disk_buckets import DiskBuckets

VALUES = st.recursive(st.none() | st.integers(-(2**31), 2**31) | st.text(max_size=5), st.lists, max_leaves=4)


@given(st.lists(st.tuples(st.integers(0, 5), VALUES), max_size=60), st.integers(1, 400))
def test_each_group_comes_back_in_its_order(rows, in_memory):
    spool = DiskBuckets(in_memory)
    expected = {}
    for group, value in rows:
        spool.add(group, value)
        expected.setdefault(group, []).append(value)
    assert {group: list(spool.read(group)) for group in spool.groups()} == expected
    assert spool.groups() == sorted(expected)


def test_an_unknown_group_is_empty():
    assert list(DiskBuckets().read(3)) == []


def test_line_breaks_in_texts_break_no_row():
    spool = DiskBuckets(1)
    texts = ["a\nb", "a\u2028b", "a\r\nb\x0b\x0c\x1c\x85"]
    for text in texts:
        spool.add(0, text)
    assert list(spool.read(0)) == texts


def test_memory_is_bounded():
    spool = DiskBuckets(10_000)
    tracemalloc.start()
    for number in range(2_000):
        spool.add(number % 20, {"key": f"{number}" * 20})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(len(list(spool.read(group))) for group in range(20)) == 2_000
    assert peak < 150_000  # all of them would be more than 200,000, without their objects
