import hashlib

import pytest

from recordmill.reading.shard import Shard
from recordmill.reading.sidecar_rows import SidecarRows
from recordmill.reading.verify.verify_shard import ShardCheck


def check_with(path):
    return ShardCheck(Shard("train", "a", "/a", sidecar=str(path)))


def test_rows_tell_the_number_and_the_source(tmp_path):
    content = b'{"key":"x","rejected":"empty"}\n{"key":"a","offset":0}\n{"key":"b","offset":21}\n'
    (tmp_path / "rows").write_bytes(content)
    check = check_with(tmp_path / "rows")
    rows = SidecarRows(check)
    assert rows.place(21, 7) == (1, 21, "b")
    assert rows.place(22, 7) == (7, 22, "")
    assert rows.sha256 == hashlib.sha256(content).hexdigest()
    assert check.findings == []


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "the sidecar is missing ("), (b"{", "the sidecar cannot be read: "), (b"[1]\n", "the sidecar cannot be")],
)
def test_unreadable_sidecars_are_reported_once(tmp_path, content, said):
    if content is not None:
        (tmp_path / "rows").write_bytes(content)
    check = check_with(tmp_path / "rows")
    rows = SidecarRows(check)
    assert [rows.place(0, 3), rows.place(5, 4)] == [(3, 0, ""), (4, 5, "")]
    (finding,) = check.findings
    assert finding.detail.startswith(said)
