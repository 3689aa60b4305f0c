import resource
import signal
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.storage.temporary_files import SortedRows, TemporaryFileError


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "ab", "é"]), st.binary(max_size=5)), max_size=60)
)
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


def test_an_error_of_the_source_of_rows_is_not_one_of_temporary_files():
    def read():
        yield "a", b"1"
        raise FileNotFoundError(2, "No such file or directory", "train-00000.jsonl")

    with pytest.raises(FileNotFoundError, match=r"train-00000\.jsonl"):
        SortedRows().add(read())
