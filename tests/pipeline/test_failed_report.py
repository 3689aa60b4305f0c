"""The report of a run that rejected too much, and its unfinished work as a dataset."""

import json
import re
import shlex

import pytest

from recordmill.pipeline.command import run_command
from recordmill.pipeline.run import build
from recordmill.reading.dataset import open_dataset
from recordmill.schemas.errors import LoadError
from recordmill.viewing.viewed_dataset import open_viewed

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


@pytest.fixture
def photos_with_a_cut_one(class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 12, "dog": 5}, size=(240, 160))
    whole = (root / "cat/00.jpg").read_bytes()
    (root / "cat/cut.jpg").write_bytes(whole[: len(whole) * 2 // 3])
    return root


def staging_of(done):
    (staging,) = done.output.glob(".staging-*")
    return staging


def test_a_failed_run_shows_what_it_converted_and_rejected(convert, photos_with_a_cut_one):
    done = convert(photos_with_a_cut_one, settings={"max_rejected.count": 0})
    assert done.code == 3
    path = staging_of(done) / "report.html"
    assert f"{path} shows what was converted" in done.stderr
    assert done.line["report"] == str(path)
    page = path.read_text(encoding="utf-8")
    assert "18 files were found and each is accounted for: 17 written, 1 rejected." in page
    assert re.search(r'<img src="data:image/jpeg;base64,[^"]+" alt="cat/cut.jpg">', page)


def test_the_unfinished_work_opens_as_a_dataset(convert, photos_with_a_cut_one):
    done = convert(photos_with_a_cut_one, settings={"max_rejected.count": 0})
    opened = open_dataset(staging_of(done))
    assert opened.kind == "recordmill"
    keys = [row.key for shard in opened.shards for row in shard.rows() if hasattr(row, "height")]
    expected = [*(f"cat/{at:02}.jpg" for at in range(12)), *(f"dog/{at:02}.jpg" for at in range(5))]
    assert sorted(keys) == expected
    assert sum(len([*shard.intact_records()]) for shard in opened.shards) == 17


def test_the_next_run_removes_it_and_resumes(convert, photos_with_a_cut_one):
    convert(photos_with_a_cut_one, settings={"max_rejected.count": 0})
    again = convert(photos_with_a_cut_one, settings={"max_rejected.count": 1})
    assert (again.code, again.line["report"]) == (0, "report.html")
    assert "2 of 2 shards had been finished by an earlier run" in again.line["notes"]
    assert not [*again.output.glob(".staging-*")]
    assert not again.files & {"unpublished.json", "train-00000.pictures.json"}


def test_a_broken_contract_has_a_report_too(convert, photos_with_a_cut_one):
    settings = {"max_rejected.count": 1, "expect.classes": ["cat"]}
    done = convert(photos_with_a_cut_one, settings=settings)
    assert done.code == 4
    assert (staging_of(done) / "report.html").exists()
    assert done.line["report"] == str(staging_of(done) / "report.html")


def test_without_a_report_nothing_is_described(convert, photos_with_a_cut_one):
    done = convert(photos_with_a_cut_one, settings={"max_rejected.count": 0, "report": False})
    assert done.code == 3
    assert not {"report.html", "unpublished.json"} & {
        each.name for each in staging_of(done).iterdir()
    }
    assert "report" not in done.line
    assert not (staging_of(done) / "duplicates.jsonl").exists()


def test_a_report_that_cannot_be_made_does_not_hide_why_the_run_failed(
    convert, photos_with_a_cut_one, monkeypatch
):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("recordmill.transforms.publish_dataset.list_duplicates", fail)
    done = convert(photos_with_a_cut_one, settings={"max_rejected.count": 0})
    assert done.code == 3
    assert done.line["message"].startswith("1 of 18 images (5.56%) was rejected (1 truncated)")
    (note,) = (each for each in done.line["notes"] if each.startswith("report.html was not made ("))
    # Without a description, `inspect --report` would fail as the report did.
    assert note.endswith(f": recordmill view {staging_of(done)} shows what was converted")
    assert len(open_viewed(str(staging_of(done))).shards) == 2


def test_the_report_of_described_work_can_be_made_again(
    convert, photos_with_a_cut_one, monkeypatch
):
    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("recordmill.reading.report.write_report.render_report", fail)
        done = convert(photos_with_a_cut_one, settings={"max_rejected.count": 0})
    (note,) = (each for each in done.line["notes"] if each.startswith("report.html was not made ("))
    command = note.partition("): recordmill ")[2].removesuffix(" makes it")
    assert run_command(shlex.split(command), build) == 0
    assert (staging_of(done) / "report.html").exists()


def test_unfinished_work_that_names_files_outside_is_refused(convert, photos_with_a_cut_one):
    done = convert(photos_with_a_cut_one, settings={"max_rejected.count": 0})
    path = staging_of(done) / "unpublished.json"
    pending = json.loads(path.read_text())
    pending["switch"]["moves"][0][0] = "../secret-00000.tfrecord"
    path.write_text(json.dumps(pending))
    with pytest.raises(LoadError, match="is not safe to use"):
        open_dataset(staging_of(done))
