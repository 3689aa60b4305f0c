import hashlib
import struct
import zlib

import pytest

from recordmill.reading.dataset import Dataset, StoredShard
from recordmill.reading.example import expect
from recordmill.reading.verify_shard import MOST_FINDINGS, verify_shard

STRANGER = expect(Dataset("/x", "files", ()))


@pytest.fixture
def verify(tmp_path):
    def go(content, level="frames", **stated):
        (tmp_path / "a.tfrecord").write_bytes(content)
        return verify_shard(
            StoredShard("a", "a.tfrecord", str(tmp_path / "a.tfrecord"), **stated), STRANGER, level
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
    (finding,) = verify_shard(StoredShard("a", "a", "/no/such/file"), STRANGER, "frames").findings
    assert str(finding) == "a: the file is missing"


def test_a_folder_in_the_place_of_a_file(tmp_path):
    (finding,) = verify_shard(StoredShard("a", "a", str(tmp_path)), STRANGER, "frames").findings
    assert str(finding) == "a: the file cannot be read: is a directory"


def test_endless_findings_are_counted(verify, frame):
    check = verify(frame(b"\xff") * (MOST_FINDINGS + 5))
    assert len(check.findings) == MOST_FINDINGS + 1
    assert str(check.findings[-1]) == "a.tfrecord: 5 further findings in this file"


def test_progress_adds_up(tmp_path, frame, example):
    (tmp_path / "a").write_bytes(frame(example(a=1)) * 1000)
    counts = []
    verify_shard(
        StoredShard("a", "a", str(tmp_path / "a")), STRANGER, "frames", progress=counts.append
    )
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


NO_EXAMPLE = "the record is not a tf.train.Example, or it has no features"
EVENT = b"\x09" + struct.pack("<d", 1.5e9) + b"\x1a\x0dbrain.Event:2"


@pytest.mark.parametrize("record", [b"", EVENT, b"\x0a\x00"], ids=["empty", "event", "no features"])
@pytest.mark.parametrize("level", ["frames", "files", "pixels"])
def test_a_record_without_features_is_not_an_example(verify, frame, record, level):
    check = verify(2 * frame(record), level)
    assert [(each.kind, each.detail, each.record) for each in check.findings] == [
        ("example", NO_EXAMPLE, 0),
        ("example", NO_EXAMPLE, 1),
    ]


def found(check):
    return [(each.kind, each.record, each.detail.partition(": ")[0]) for each in check.findings]


HTML = b"<html>404</html>"


@pytest.mark.parametrize("key", ["image/encoded", "image", "image_raw", "train/image", "photo"])
@pytest.mark.parametrize("wrong", [HTML, b"", b"\0" * 40])
def test_a_feature_of_images_that_holds_none_is_found(verify, frame, example, draw, key, wrong):
    records = [example({key: data, "name": b"x"}) for data in (wrong, draw(1), draw(2), wrong)]
    check = verify(b"".join(map(frame, records)), "pixels")
    problem = f"{key} holds no image"
    assert found(check) == [("pixels", 0, problem), ("pixels", 3, problem)]
    assert found(verify(b"".join(map(frame, records)), "files")) == []


@pytest.mark.parametrize(
    ("key", "data", "is_found"),
    [
        ("image/encoded", HTML, True),
        ("image/encoded", b"", True),
        ("image/encoded", bytes(3072), True),
        ("image", HTML, True),
        ("image", b"", True),
        ("image", bytes(3072), False),
        ("image_raw", bytes(range(200)), False),
        ("photo", HTML, False),
    ],
)
def test_without_any_image_the_usual_name_decides(verify, frame, example, key, data, is_found):
    check = verify(3 * frame(example({key: data, "label": 1})), "pixels")
    expected = [("pixels", n, f"{key} holds no image") for n in range(3)]
    assert found(check) == (expected if is_found else [])


def test_raw_pixels_that_say_so_are_accepted(verify, frame, example):
    raw = example({"image/encoded": bytes(3072), "image/format": b"raw"})
    assert found(verify(frame(raw), "pixels")) == []


def test_raw_pixels_that_begin_like_an_image_do_not_make_others_wrong(verify, frame, example, draw):
    raw = [frame(example(image=bytes(300))) for _ in range(30)]
    check = verify(frame(example(image=draw(1))) + b"".join(raw), "pixels")
    assert found(check) == []


def test_findings_stay_in_the_order_of_the_file(verify, frame, example, draw):
    records = [frame(example({"image/encoded": data})) for data in (HTML, draw(1), HTML)]
    check = verify(records[0] + frame(b"") + records[1] + records[2], "pixels")
    assert [(each.kind, each.record) for each in check.findings] == [
        ("pixels", 0),
        ("example", 1),
        ("pixels", 3),
    ]


def test_feature_lists_are_noted(verify, frame, example):
    lists = example({"image/caption": b"a"})
    check = verify(3 * frame(example(a=1) + b"\x12" + lists[1:]) + frame(example(a=1)))
    (note,) = check.findings
    assert (note.kind, note.is_note, note.detail) == (
        "feature_lists",
        True,
        "3 SequenceExamples with feature_lists, which nothing reads: image/caption",
    )


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz", "a.zlib"])
def test_zlib_is_read_and_a_name_that_does_not_say_so_is_reported(tmp_path, frame, example, name):
    (tmp_path / name).write_bytes(zlib.compress(3 * frame(example(a=1))))
    check = verify_shard(StoredShard("a", name, str(tmp_path / name)), STRANGER, "files")
    assert check.records == 3
    said = "its name says gzip" if name.endswith("gz") else "its name does not say so"
    assert [each.detail for each in check.findings] == (
        []
        if name == "a.zlib"
        else [f"the file is compressed with ZLIB and {said}: readers cannot know that"]
    )


def test_a_damaged_zlib_stream_is_reported(tmp_path, frame, example):
    packed = zlib.compress(200 * frame(example(a=1)))
    (tmp_path / "a.zlib").write_bytes(packed[:-2])
    check = verify_shard(StoredShard("a", "a.zlib", str(tmp_path / "a.zlib")), STRANGER, "files")
    assert [(each.kind, each.detail) for each in check.findings] == [
        ("gzip", "the ZLIB stream ends early: the file was truncated")
    ]
