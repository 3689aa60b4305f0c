import pytest

from recordmill.reading.dataset import StoredShard


def test_rows_are_those_of_records(tmp_path):
    sidecar = tmp_path / "a.jsonl"
    sidecar.write_text(
        '{"key":"a","offset":0}\n{"key":"b","rejected":"empty"}\n{"key":"c","offset":21}\n'
    )
    rows = list(StoredShard("train", "a", "/a", sidecar=str(sidecar)).rows())
    assert [(row.key, row.offset) for row in rows] == [("a", 0), ("c", 21)]


def test_without_a_sidecar_there_are_no_rows():
    assert list(StoredShard("train", "a", "/a").rows()) == []


def test_a_missing_sidecar_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(StoredShard("train", "a", "/a", sidecar=str(tmp_path / "absent")).rows())
