import json

import pytest

from recordmill.reading.dataset import Dataset, StoredShard
from recordmill.reading.report import write_report
from recordmill.reading.report.write_report import read_contents
from recordmill.schemas.dataset.side_files import Remark, ReportData
from tests.support.make_marker import make_marker


def group(*images, kind="same_bytes", **more):
    splits, classes = (sorted({image[at] or "" for image in images}) for at in (1, 2))
    named = [{"key": key, "split": split, "class": label} for key, split, label in images]
    return {"kind": kind, "splits": splits, "classes": classes, "images": named, **more}


@pytest.fixture
def described(tmp_path):
    """`described(duplicates, rejected, **marker)`: the contents of a folder with these files."""

    def read(duplicates=(), rejected=(), rows=(), **marker):
        for name, lines in (("duplicates", duplicates), ("rejected", rejected), ("rows", rows)):
            (tmp_path / f"{name}.jsonl").write_text(
                "".join(f"{json.dumps(line)}\n" for line in lines)
            )
        (tmp_path / "config.yaml").write_text("seed: 1\n")
        shards = (StoredShard("train", "", "", sidecar=str(tmp_path / "rows.jsonl")),)
        made = make_marker(**marker)
        return read_contents(
            Dataset(str(tmp_path), "recordmill", shards, (), made.labels, made), made
        )

    return read


def test_the_worst_groups_come_first(described):
    plain = [
        group((f"{at}", "train", "cat"), (f"{at}b", "train", "cat"), sha256="", count=2)
        for at in range(9)
    ]
    crossing = group(("x", "train", "cat"), ("y", "test", "cat"), sha256="", count=2)
    conflict = group(("v", "train", "cat"), ("w", "train", "dog"), sha256="", count=2)
    pair = group(("p", "train", "cat"), ("q", "train", "cat"), kind="look_alike", distance=3)
    found = described([*plain, crossing, conflict, pair])
    keys = [[image.key for image in each.images] for each in found.groups]
    assert keys == [
        ["v", "w"],
        ["x", "y"],
        ["0", "0b"],
        ["1", "1b"],
        ["2", "2b"],
        ["3", "3b"],
        ["p", "q"],
    ]
    assert [each.distance for each in found.groups] == [None] * 6 + [3]


def test_of_a_large_group_the_first_images_are_shown(described):
    images = [(f"{at}", "train", "cat") for at in range(9)]
    rows = [{"key": key, "bytes": 1, "class": label} for key, _, label in images]
    found = described([group(*images, sha256="", count=9)], rows=rows)
    assert {name: row.key for name, (_, row) in found.statistics.named.items()} == {
        ("train", f"{at}"): f"{at}" for at in range(6)
    }


def test_some_rejected_files_of_each_reason_are_kept(described):
    line = {
        "uri": "u",
        "stage": "decode",
        "detail": "d",
        "bytes": None,
        "sha256": None,
        "class": None,
    }
    found = described(
        rejected=[{**line, "reason": ("empty", "cut")[at % 2], "key": f"{at}"} for at in range(40)]
    )
    assert {reason: [file.key for file in files] for reason, files in found.rejected.items()} == {
        "empty": ["0", "2", "4", "6", "8"],
        "cut": ["1", "3", "5", "7", "9"],
    }
    assert write_report.MOST_OF_REASON == 5


def test_remarks_have_their_sections_if_these_were_kept(described, tmp_path):
    assert described(remarks=["One."]).data == ReportData((Remark("One."),))
    assert described().data == ReportData()
    (tmp_path / "report.json").write_text(
        '{"remarks": [{"text": "One.", "section": "sizes"}], "examples": [{"change": "rotated"}]}'
    )
    assert described(remarks=["One."], files=["report.json"]).data == ReportData(
        (Remark("One.", "sizes"),)
    )


@pytest.mark.parametrize(("name", "title"), [("pets", "pets"), ("", "animals")])
def test_the_title_is_the_name_or_that_of_the_folder(name, title, tmp_path, monkeypatch):
    marker = make_marker(name=name)
    (tmp_path / "animals").mkdir()
    monkeypatch.chdir(tmp_path / "animals")
    for folder in (".", str(tmp_path / "animals"), "gs://bucket/animals"):
        dataset = Dataset(folder, "recordmill", (), marker_or_none=marker)
        assert write_report.ReportContents(dataset=dataset, marker=marker).title == title
