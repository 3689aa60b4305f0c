import resource
import signal
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.transforms.publishing.temporary_rows import SortedRows, TemporaryFileError


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "ab", "é"]), st.binary(max_size=5)), max_size=60))
def test_rows_come_by_key_and_then_in_their_order(added):
    rows = SortedRows()
    for row in added:
        rows.add([row])
    assert list(rows) == sorted(added, key=lambda row: row[0])


def test_memory_is_bounded():
    rows = SortedRows()
    tracemalloc.start()
    rows.add((f"{number % 977}", bytes(1_000)) for number in range(5_000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(len(value) for _, value in rows) == 5_000_000
    assert peak < 100_000


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
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
