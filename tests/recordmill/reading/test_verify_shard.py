import hashlib

import pytest

from recordmill.reading.dataset import Dataset, Shard
from recordmill.reading.example import expect
from recordmill.reading.verify_shard import MOST_FINDINGS, verify_shard

STRANGER = expect(Dataset("/x", "files", ()))


@pytest.fixture
def verify(tmp_path):
    def go(content, level="frames", **stated):
        (tmp_path / "a.tfrecord").write_bytes(content)
        return verify_shard(
            Shard("a", "a.tfrecord", str(tmp_path / "a.tfrecord"), **stated), STRANGER, level
        )

    return go


def test_a_sound_file(verify, frame, example):
    check = verify(
        frame(example(a=1)) + frame(example(a=2, b=b"x")), "files", records=2, bytes=None
    )
    assert (check.records, check.findings, check.kinds) == (
        2,
        [],
        {("a", "int64"): (0, 0), ("b", "bytes"): (1, len(frame(example(a=1))))},
    )


def test_a_feature_keeps_its_kind(verify, frame, example):
    check = verify(frame(example(a=1)) + 2 * frame(example(a=b"x")))
    assert check.kinds == {("a", "int64"): (0, 0), ("a", "bytes"): (1, len(frame(example(a=1))))}


def test_a_frame_without_an_example(verify, frame):
    (finding,) = verify(frame(b"\xff")).findings
    expected = "a.tfrecord, record 0 at byte 0: the data cannot be parsed as a tf.train.Example"
    assert str(finding) == expected


def test_the_metadata_are_compared(verify, frame, example):
    content = frame(example(a=1))
    assert verify(content, "files", sha256="0" * 64).findings[0].kind == "sha256"
    assert verify(content, "frames", sha256="0" * 64).findings == []
    assert (
        verify(content, "files", bytes=7).findings[0].detail
        == f"expected 7 bytes, found {len(content)}"
    )


def test_a_missing_file():
    (finding,) = verify_shard(Shard("a", "a", "/no/such/file"), STRANGER, "frames").findings
    assert str(finding) == "a: the file is missing"


def test_a_folder_in_the_place_of_a_file(tmp_path):
    (finding,) = verify_shard(Shard("a", "a", str(tmp_path)), STRANGER, "frames").findings
    assert str(finding) == "a: the file cannot be read: is a directory"


def test_endless_findings_are_counted(verify, frame):
    check = verify(frame(b"\xff") * (MOST_FINDINGS + 5))
    assert len(check.findings) == MOST_FINDINGS + 1
    assert str(check.findings[-1]) == "a.tfrecord: 5 further findings in this file"


def test_progress_adds_up(tmp_path, frame, example):
    (tmp_path / "a").write_bytes(frame(example(a=1)) * 1000)
    counts = []
    verify_shard(Shard("a", "a", str(tmp_path / "a")), STRANGER, "frames", progress=counts.append)
    assert sum(counts) == 1000


def test_rows_tell_the_number_and_the_source(verify, frame, tmp_path):
    content = b'{"key":"x","rejected":"empty"}\n{"key":"a","offset":0}\n{"key":"b","offset":17}\n'
    (tmp_path / "rows").write_bytes(content)
    check = verify(3 * frame(b"\xff"), sidecar=str(tmp_path / "rows"))
    places = [(finding.record, finding.offset, finding.source) for finding in check.findings]
    assert places == [(0, 0, "a"), (1, 17, "b"), (2, 34, "")]


def test_the_digest_of_the_sidecar_is_compared(verify, frame, example, tmp_path):
    (tmp_path / "rows").write_bytes(content := b'{"key":"a","offset":0}\n')
    stated = {
        "sidecar": str(tmp_path / "rows"),
        "sidecar_sha256": hashlib.sha256(content).hexdigest(),
    }
    other, malformed = verify(frame(example(x=1)), "files", **stated).findings
    assert other.detail == "the record is not the one that its row in the sidecar describes"
    assert malformed.detail.startswith("the sidecar's rows are malformed (")
    stated["sidecar_sha256"] = "0"
    *_, finding = verify(frame(example(x=1)), "files", **stated).findings
    assert (finding.kind, finding.detail[:35]) == ("sha256", "the sidecar has another sha256 than")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "the sidecar is missing ("),
        (b"{", "the sidecar cannot be read: "),
        (b"[1]\n", "the sidecar cannot be"),
    ],
)
def test_unreadable_sidecars_are_reported_once(verify, frame, tmp_path, content, said):
    if content is not None:
        (tmp_path / "rows").write_bytes(content)
    unreadable, *others = verify(2 * frame(b"\xff"), sidecar=str(tmp_path / "rows")).findings
    assert unreadable.detail.startswith(said)
    assert [(finding.record, finding.offset, finding.source) for finding in others] == [
        (0, 0, ""),
        (1, 17, ""),
    ]
