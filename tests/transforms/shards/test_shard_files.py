import hashlib
import json
import os
from collections import Counter
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from stored_records import read_records
from write_shard import write_shard

from recordmill.schemas.dataset.side_files import row_from_json
from recordmill.schemas.dataset.totals import ImageTotals, RowTotals, ShardReport
from recordmill.schemas.digests import digest_of, version_digest_of
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ShardBatch
from recordmill.storage.dataset_files import shard_path, staging_folder
from recordmill.storage.tfrecord_file import DamagedFileError, RecordSink
from recordmill.transforms.records.convert_image import ConvertedImage
from recordmill.transforms.shards.shard_files import (
    InputDigests,
    failed_report,
    find_finished,
    fingerprint,
)

STORED = {"bytes": 5, "sha256": "0f" * 32, "class": "cat", "label": 0, "changes": ["rotated"]}
REJECTED = {
    "spelling": None,
    "bytes": None,
    "sha256": None,
    "class": None,
    "stage": "read",
    "detail": "it is bad",
}


def image(key, record=b"record", **row):
    stored = {
        "key": key,
        "bytes": 5,
        "sha256": "0f" * 32,
        "class": "cat",
        "label": 0,
        "changes": ("rotated",),
        **row,
    }
    return ConvertedImage(record, row_from_json(stored))


def bad(key, reason="truncated"):
    return ConvertedImage(None, row_from_json({**REJECTED, "key": key, "rejected": reason}))


@pytest.fixture
def staging(tmp_path):
    folder = tmp_path / "staging"
    folder.mkdir()
    return folder


MARK = InputDigests("ab" * 32, "cd" * 32)


def write(staging, images, mark=MARK, compression="none"):
    return write_shard(str(staging), "train", 7, images, mark, compression)


IMAGES = [
    image("a", b"first"),
    bad("b"),
    image("c", b"second!", **{"class": None, "changes": ()}),
    bad("d"),
    bad("e", "empty"),
]


def fresh():
    return [ConvertedImage(each.record, replace(each.row)) for each in IMAGES]


def test_a_shard_is_its_file_its_sidecar_and_its_note(staging):
    report = write(staging, fresh())
    kinds = ["columns", "done.json", "jsonl", "tfrecord", "versions"]
    assert sorted(os.listdir(staging)) == [f"train-00007.{kind}" for kind in kinds]
    stored, sidecar = (
        (staging / "train-00007.tfrecord").read_bytes(),
        (staging / "train-00007.jsonl").read_bytes(),
    )
    assert list(read_records(str(staging / "train-00007.tfrecord"))) == [b"first", b"second!"]
    assert [json.loads(line) for line in sidecar.splitlines()] == [
        {**STORED, "key": "a", "offset": 0, "length": 5, "record": None},
        {**REJECTED, "key": "b", "rejected": "truncated"},
        {
            **STORED,
            "key": "c",
            "class": None,
            "changes": [],
            "offset": 21,
            "length": 7,
            "record": None,
        },
        {**REJECTED, "key": "d", "rejected": "truncated"},
        {**REJECTED, "key": "e", "rejected": "empty"},
    ]
    assert report == ShardReport(
        split="train",
        index=7,
        references=5,
        digest="ab" * 32,
        records=2,
        bytes=len(stored),
        sha256=hashlib.sha256(stored).hexdigest(),
        sidecar_sha256=hashlib.sha256(sidecar).hexdigest(),
        rows=RowTotals(
            records=2,
            input_bytes=10,
            classes=Counter({"cat": 1, "": 1}),
            rejected=Counter(truncated=2, empty=1),
            changes=Counter(rotated=1),
        ),
        annotations={},
        images=ImageTotals(),
    )


def test_what_finds_copies_is_reported_and_found_again(staging):
    contents = [2**64 - 1, 7]
    images = [image("a", sha256="f" * 64), bad("b"), image("c", sha256=f"{7:016x}{0:048x}")]
    report = write(staging, images)
    assert np.frombuffer(report.contents, "<u8").tolist() == contents
    assert find_finished(str(staging), "train", 7, MARK).contents == report.contents


def test_writing_again_gives_the_same_bytes(staging, tree):
    write(staging, fresh())
    before = tree(staging)
    write(staging, fresh())
    assert tree(staging) == before


def test_a_finished_shard_is_found_by_its_fingerprint(staging):
    report = write(staging, fresh())
    assert find_finished(str(staging), "train", 7, MARK) == replace(report, reused=True)
    assert find_finished(str(staging), "train", 7, MARK._replace(digest="00" * 32)) is None
    assert find_finished(str(staging), "train", 7, MARK._replace(versions="00" * 32)) is None
    assert find_finished(str(staging), "train", 8, MARK) is None
    assert find_finished(str(staging / "absent"), "train", 7, MARK) is None


def test_a_shard_of_format_2_is_written_again(staging):
    write(staging, [image("a")])
    path = staging / "train-00007.done.json"
    done = json.loads(path.read_bytes())
    assert done.pop("format") == 3
    done["format"] = 2
    path.write_text(json.dumps(done))
    assert find_finished(str(staging), "train", 7, MARK) is None


def test_a_shard_whose_note_is_of_another_form_is_written_again(staging):
    write(staging, [image("a")])
    path = staging / "train-00007.done.json"
    done = json.loads(path.read_bytes())
    # Before they were kept by kind.
    done["report"]["annotations"] = {"dropped": {"unknown_class": {"7": 1}}, "bare": 1}
    path.write_text(json.dumps(done))
    assert find_finished(str(staging), "train", 7, MARK) is None


@pytest.mark.parametrize("kind", ["tfrecord", "jsonl", "columns", "versions", "done.json"])
def test_a_shard_that_lost_a_file_is_not_finished(staging, kind):
    write(staging, fresh())
    os.remove(shard_path(str(staging), "train", 7, kind))
    assert find_finished(str(staging), "train", 7, MARK) is None


@pytest.mark.parametrize("reason", ["changed", "vanished", "unreadable"])
def test_a_shard_with_rejects_that_may_heal_is_done_again(staging, reason):
    write(staging, [image("a"), bad("b", reason)])
    assert find_finished(str(staging), "train", 7, MARK) is None


REF = ImageRef("a", "/x/a", 5, "1", label="cat")


def mark_of(refs):
    return fingerprint(ShardBatch.of(refs, 0))


FIELDS = ["key", "size", "version", "offset", "length", "label", "group", "split", "features"]


@pytest.mark.parametrize("field", FIELDS)
def test_the_fingerprint_changes_with_what_was_listed(field):
    value = 9 if isinstance(getattr(REF, field), int) else "other"
    changed, before = mark_of([replace(REF, **{field: value})]), mark_of([REF])
    assert (changed.digest != before.digest) == (field != "version")
    assert (changed.versions != before.versions) == (field in ("key", "size", "version"))


def test_the_fingerprint_holds_every_reference_in_any_order_and_no_place():
    other = replace(REF, key="b")
    marks = [
        mark_of(refs) for refs in ([], [REF], [other], [REF, other], [REF, REF], [REF, REF, other])
    ]
    assert len({mark.digest for mark in marks}) == len({mark.versions for mark in marks}) == 6
    assert mark_of([other, REF]) == mark_of([REF, other])
    assert mark_of([replace(REF, uri="/y/a")]) == mark_of([REF])


def test_the_fingerprint_is_the_sum_of_the_digests_in_hex():
    refs = [REF, replace(REF, key="b"), replace(REF, key="c")]
    assert mark_of(refs) == (
        f"{sum(map(digest_of, refs)) % 2**256:064x}",
        f"{sum(map(version_digest_of, refs)) % 2**256:064x}",
    )
    assert mark_of([]) == ("0" * 64, "0" * 64)


def failing(images, error):
    yield from images
    raise error


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), ValueError("a bug"), KeyboardInterrupt()]
)
def test_nothing_is_left_after_an_error(staging, error):
    with pytest.raises(type(error)):
        write(staging, failing(fresh(), error))
    assert os.listdir(staging) == []


def test_an_earlier_shard_stays_after_an_error(staging, tree):
    write(staging, fresh())
    before = tree(staging)
    with pytest.raises(ValueError, match="a bug"):
        write(staging, failing(fresh(), ValueError("a bug")))
    assert tree(staging) == before


def test_a_record_that_is_lost_on_the_way_is_found(staging, monkeypatch):
    real = RecordSink.write
    monkeypatch.setattr(
        RecordSink, "write", lambda sink, record: None if record == b"first" else real(sink, record)
    )
    with pytest.raises(DamagedFileError, match="2 records were written and 1 are there"):
        write(staging, fresh())
    assert os.listdir(staging) == []


def test_every_cut_leaves_a_shard_that_is_finished_or_done_again(staging, cut_after):
    whole = []
    for most in count():
        with cut_after(most) as done:
            whole.append(write(staging, fresh()))
        found = find_finished(str(staging), "train", 7, MARK)
        if whole:
            break
        assert found is None
    assert len(done) == most > 4
    assert found == replace(whole[0], reused=True)


def test_the_file_is_closed_after_an_error(staging, monkeypatch):
    # Left open it would come back on stores where a file is there when it is closed.
    closed = []
    real = RecordSink.close
    monkeypatch.setattr(RecordSink, "close", lambda sink: (closed.append(sink.offset), real(sink)))
    with pytest.raises(ValueError, match="a bug"):
        write(staging, failing(fresh(), ValueError("a bug")))
    assert len(closed) == 1


def test_a_shard_of_rejects_alone_has_an_empty_file(staging):
    report = write(staging, [bad("a")])
    assert (report.records, report.bytes, report.rows.rejected) == (0, 0, {"truncated": 1})


def test_a_gzip_shard_reads_back(staging):
    report = write(staging, fresh(), compression="gzip")
    assert (report.records, (staging / "train-00007.tfrecord").read_bytes()[:2]) == (2, b"\x1f\x8b")


def test_places_have_fixed_names():
    assert staging_folder("/out", "abc") == "/out/.staging-abc"
    assert shard_path("/s", "train", 12, "jsonl") == "/s/train-00012.jsonl"


def test_a_failed_shard_reports_its_problem_and_its_references():
    report = failed_report("train", 3, 2, "the disk is full")
    assert report == ShardReport("train", 3, 2, RowTotals(), {}, problem="the disk is full")
