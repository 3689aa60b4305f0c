import gc
import os
import resource
import signal
import tempfile
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.storage.temporary_files import DigestIndex, SortedRows, TemporaryFileError

DIGESTS = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**56 - 1, 2**56, 2**63, 2**64 - 1]))


def array(numbers):
    return np.array(numbers, np.uint64)


@given(st.lists(st.lists(DIGESTS, max_size=12), max_size=12), st.integers(1, 40))
def test_repeated_digests_are_found_whatever_fits_into_memory(parts, in_memory):
    contents = DigestIndex(in_memory)
    for part in parts:
        contents.add(array(part))
    numbers = [number for part in parts for number in part]
    for _ in range(2):  # asking changes nothing
        assert contents.repeated().tolist() == sorted(number for number, times in Counter(numbers).items() if times > 1)
        assert contents.in_order().tolist() == numbers
    assert len(contents) == len(numbers)


def test_more_may_come_after_asking():
    contents = DigestIndex(2)
    contents.add(array([5, 6, 7]))
    assert contents.repeated().tolist() == []
    contents.add(array([6]))
    assert contents.repeated().tolist() == [6]


def test_nothing_is_nothing():
    assert DigestIndex().repeated().tolist() == []
    assert DigestIndex().in_order().tolist() == []


def test_memory_is_bounded():
    random = np.random.default_rng(0)
    contents = DigestIndex(20_000)
    tracemalloc.start()
    for _ in range(100):
        contents.add(random.integers(0, 2**64, 10_000, np.uint64))
    contents.add(contents.repeated())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(contents) == 1_000_000
    assert peak < 2_000_000  # all of them would be 8,000,000


def test_no_name_is_left_and_no_open_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    contents = DigestIndex(1)
    contents.add(array([1, 2, 3]))
    assert list(tmp_path.iterdir()) == []
    del contents
    gc.collect()
    assert before is None or len(os.listdir("/proc/self/fd")) == before


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
        contents = DigestIndex(10)
        contents.add(array(range(100)))
        with pytest.raises(TemporaryFileError) as caught:
            contents.add(array(range(100)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert str(caught.value) == (
        "temporary files cannot be written (file too large): set TMPDIR to a folder with more room"
    )


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "ab", "é"]), st.binary(max_size=5)), max_size=60))
def test_rows_come_by_key_and_then_in_their_order(added):
    rows = SortedRows()
    for row in added:
        rows.add([row])
    assert list(rows) == sorted(added, key=lambda row: row[0])


def test_memory_is_bounded_for_rows():
    rows = SortedRows()
    tracemalloc.start()
    rows.add((f"{number % 977}", bytes(1_000)) for number in range(5_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(len(value) for _, value in rows) == 5_000_000
    assert peak < 100_000


def test_a_full_disk_is_one_sentence_for_rows(tmp_path, monkeypatch):
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    rows = SortedRows()
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        with pytest.raises(TemporaryFileError) as caught:
            rows.add((f"{number}", bytes(1_000)) for number in range(20_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert str(caught.value).startswith("temporary files cannot be written (")
    assert str(caught.value).endswith("): set TMPDIR to a folder with more room")
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_source_of_rows_is_not_one_of_temporary_files():
    def read():
        yield "a", b"1"
        raise FileNotFoundError(2, "No such file or directory", "train-00000.jsonl")

    with pytest.raises(FileNotFoundError, match=r"train-00000\.jsonl"):
        SortedRows().add(read())
