"""`--writer=beam`: stock `WriteToTFRecord` in the same command, with the same ledger."""

import json
import os
import signal
from collections import Counter

import pytest
from apache_beam.io import tfrecordio
from stored_records import read_records

from recordmill.pipeline.convert import convert as convert_in_python
from recordmill.schemas.dataset.outcome import ConversionError
from recordmill.transforms import publish_dataset
from tests.pipeline.conftest import encode_picture

BEAM = "--writer=beam"
COUNT = {"shards.count": 2}
IDLE = (
    "has no effect, since --writer=beam writes records in random order, and no "
    "recordmill.json: remove it"
)

pytestmark = [pytest.mark.usefixtures("eager_pipeline", "cheap_fsync"), pytest.mark.runner]


def records_in(folder):
    return {
        path.name: len(list(read_records(str(path)))) for path in sorted(folder.glob("*.tfrecord"))
    }


def left_in(output):
    return sorted(path.name for path in output.iterdir()) if output.exists() else []


@pytest.fixture
def faulty(photos):
    """Ten images, and what is rejected, ignored or left out of them."""
    (photos / "dog/text.jpg").write_bytes(b"no picture")
    (photos / "dog/empty.jpg").touch()
    (photos / "dog/.hidden").touch()
    (photos / "stray.jpg").write_bytes(b"in no class")
    return photos


def test_everything_listed_is_accounted_for(faulty, convert, tmp_path):
    fractions = {
        "splits.fractions": {"train": 0.5, "test": 0.25},
        "limit": 8,
        "max_rejected.share": 1,
    }
    flags = (BEAM, f"--outcome_file={tmp_path / 'outcome.json'}")
    done = convert(faulty, *flags, settings={**COUNT, **fractions})
    ours = convert(faulty, output=done.output.parent / "ours", settings={**COUNT, **fractions})
    assert (done.code, done.errors) == (0, [])
    assert done.line["status"] == "written"
    ledger = done.line["ledger"]
    assert ledger == ours.line["ledger"]
    assert ledger["ignored"] == {"hidden": 1}
    assert ledger["rejected"]["no_class"] == 1
    assert (
        sum(sum(ledger[fate].values()) for fate in ("rejected", "ignored", "left_out"))
        + ledger["written"]
        == 14
    )
    counts = records_in(done.output)
    assert sum(counts.values()) == ledger["written"]
    by_split = Counter()
    for name, count in counts.items():
        by_split[name.split("-")[0]] += count
    assert by_split == {name: split["images"] for name, split in done.line["splits"].items()}
    assert left_in(done.output) == ["labels.txt", *counts]
    assert (done.output / "labels.txt").read_text() == "0:cat\n1:dog\n"
    assert [note for note in done.line["notes"] if "--writer=beam" in note] == [
        "--writer=beam writes no recordmill.json, sidecars or report; another run starts over, in "
        "another order"
    ]
    outcome = json.loads((tmp_path / "outcome.json").read_bytes())
    assert {key: outcome[key] for key in ("status", "exit_code", "message")} == {
        "status": "written",
        "exit_code": 0,
        "message": f"{ledger['written']} images are in {done.output}",
    }
    assert outcome["numbers"]["ledger"] == ledger


def test_files_with_records_have_the_names_of_the_settings(photos, convert):
    names = {
        "shards.count": 40,
        "shards.name": "{split}.{number}of{count}.{records}",
        "compression": "gzip",
    }
    done = convert(photos, BEAM, settings={**names, "splits.fractions": {"all": 1}})
    expected = [f"all.{number}of10.1.gz" for number in range(1, 11)]
    assert left_in(done.output) == [*sorted(expected), "labels.txt"]
    assert [len(list(read_records(str(done.output / name)))) for name in expected] == [1] * 10
    assert done.line["splits"]["all"]["shards"] == 10


def test_too_many_rejected_leave_an_empty_output(faulty, convert):
    done = convert(faulty, BEAM, settings={**COUNT, "max_rejected": {"count": 2, "share": 0.01}})
    assert done.code == 3
    assert done.errors[0] == (
        "3 of 13 images (23.08%) were rejected (1 empty, 1 no_class, 1 unknown_format), which is "
        "over max_rejected.count (2) and max_rejected.share (1.00%)"
    )
    reasons = [line.partition(":")[0] for line in done.errors[1:4]]
    assert reasons == ["empty", "no_class", "unknown_format"]
    assert done.errors[4].endswith("or accept the loss with --set max_rejected.count=3")
    assert len(done.errors) == 6
    assert done.line["ledger"]["rejected"] == {"empty": 1, "no_class": 1, "unknown_format": 1}
    assert left_in(done.output) == []


def test_boxes_are_counted_and_limited(tmp_path, convert):
    good, unknown, outside = "0 0.5 0.5 0.5 0.5\n", "7 0.5 0.5 0.5 0.5\n", "0 2.5 0.5 0.5 0.5\n"
    for name, text in {"a": good * 5 + outside, "b": good, "c": unknown}.items():
        (tmp_path / f"ships/images/{name}.jpg").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"ships/images/{name}.jpg").write_bytes(encode_picture(name))
        (tmp_path / f"ships/labels/{name}.txt").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"ships/labels/{name}.txt").write_text(text)
    (tmp_path / "ships/data.yaml").write_text("names: [ship, boat]\n")
    yolo = {
        "source.kind": "yolo",
        "convention": "tf_object_detection",
        "splits.fractions": {"train": 1},
        **COUNT,
    }
    failed = convert(tmp_path / "ships", BEAM, settings=yolo)
    assert failed.code == 3
    assert failed.errors[0].startswith(
        "all boxes of 1 class (7) were dropped (1 outside: ship; 1 unknown_class: 7)"
    )
    assert left_in(failed.output) == []
    done = convert(tmp_path / "ships", BEAM, settings={**yolo, "labels.classes": ["ship"]})
    assert done.line["boxes"] == {"listed": 8, "written": 6, "outside": 1, "unknown_class": 1}
    assert done.line["dropped_boxes"] == {"outside": {"ship": 1}, "unknown_class": {"7": 1}}


def test_a_record_that_beam_doubles_fails_the_run(photos, convert, monkeypatch):
    write, seen = tfrecordio._TFRecordUtil.write_record, []

    def write_the_third(file, value):
        seen.append(value)
        for _ in range(2 if len(seen) == 3 else 1):
            write(file, value)

    monkeypatch.setattr(tfrecordio._TFRecordUtil, "write_record", write_the_third)
    done = convert(photos, BEAM, settings={**COUNT, "splits.fractions": {"all": 1}})
    assert (done.code, done.errors) == (
        1,
        ["split all has 10 Examples, and its files hold 11: something was lost or written twice"],
    )
    assert left_in(done.output) == []


def test_an_output_that_holds_another_dataset_is_refused(photos, convert, tmp_path):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset/labels.txt").write_text("mine")
    done = convert(photos, BEAM, settings=COUNT)
    assert (done.code, done.line["status"]) == (1, "refused")
    assert done.line["plan_id"] == ""  # the id of the run is not one
    assert (done.output / "labels.txt").read_text() == "mine"
    assert "labels.txt" in done.errors[0]
    assert left_in(done.output) == ["labels.txt"]


def test_a_dataset_of_the_main_job_is_not_replaced(photos, convert):
    ours = convert(photos, settings=COUNT)
    before = left_in(ours.output)
    done = convert(photos, BEAM, settings=COUNT)
    assert (done.code, done.errors) == (
        1,
        [f"--writer=beam replaces no dataset, and {done.output} holds one: choose another output"],
    )
    assert left_in(done.output) == before


def test_a_file_of_the_users_is_not_overwritten(photos, convert, tmp_path):
    names = {"shards.count": 1, "shards.name": "my-{split}.bin", "splits.fractions": {"all": 1}}
    mine = tmp_path / "dataset/my-all.bin"
    mine.parent.mkdir()
    mine.write_text("mine")
    done = convert(photos, BEAM, settings=names)
    assert (done.code, mine.read_text()) == (1, "mine")
    assert done.errors == [
        f"{done.output} holds {mine.name}, which is not part of a Recordmill dataset: move it "
        "away, or "
        "choose another output"
    ]
    assert left_in(done.output) == [mine.name]


def test_what_a_killed_run_has_left_is_deleted_and_a_file_of_the_users_stays(
    photos, convert, tmp_path
):
    (tmp_path / "dataset/.staging-abc").mkdir(parents=True)
    (tmp_path / "dataset/.staging-abc/train-00000-of-00002.tfrecord").write_text("half")
    (tmp_path / "dataset/notes.txt").write_text("mine")
    done = convert(photos, BEAM, settings=COUNT)
    assert done.code == 0
    assert (
        "deleted .staging-abc, which another run had left: no run will resume from it"
        in done.line["notes"]
    )
    assert left_in(done.output) == ["labels.txt", "notes.txt", *records_in(done.output)]
    assert (done.output / "notes.txt").read_text() == "mine"
    assert sum(records_in(done.output).values()) == 10


def kill_at(convert, photos, number):
    """Kills a run at a rename, removal or forced write of its last step, by their number; returns
    the number of those that it has done, and of files in the output."""
    from recordmill import storage
    from recordmill.storage import written_files

    process = os.fork()
    if process:
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        moved = [name for name in left_in(photos.parent / "dataset") if ".staging" not in name]
        return status, len(moved)
    calls = [0]

    def counting(function):
        def call(*given):
            calls[0] += 1
            if calls[0] == number:
                os._exit(100 + number)
            return function(*given)

        return call

    publish = written_files.publish_written

    def cut(*given):
        with pytest.MonkeyPatch.context() as patch:
            for name in ("move_file", "write_file", "remove_files", "force_to_disk"):
                patch.setattr(storage, name, counting(getattr(storage, name)))
            return publish(*given)

    try:
        publish_dataset.publish_written = cut
        convert(photos, BEAM, settings=COUNT)
    finally:
        os._exit(1)


@pytest.mark.parametrize(
    "writer",
    [pytest.param((BEAM,), id="beam"), pytest.param((), id="recordmill", marks=pytest.mark.slow)],
)
def test_a_run_that_is_killed_between_renames_is_not_in_the_way(photos, convert, writer):
    assert kill_at(convert, photos, 7) == (107, 2)
    output = photos.parent / "dataset"
    done = convert(photos, *writer, settings=COUNT)
    assert (done.code, done.errors) == (0, [])
    assert list(output.glob(".staging-*")) == []
    if writer:
        assert left_in(output) == ["labels.txt", *records_in(output)]
        assert sum(records_in(output).values()) == 10
    else:
        assert done.line["status"] == "published"
    note = "deleted 2 files that a killed run with --writer=beam"
    assert any(each.startswith(note) for each in done.line["notes"])


@pytest.mark.slow
def test_a_killed_run_is_discarded_with_what_it_had_moved(photos, convert):
    assert kill_at(convert, photos, 7) == (107, 2)
    before = left_in(photos.parent / "dataset")
    preview = convert(photos, "--plan", settings=COUNT)
    assert (preview.code, preview.line["status"], left_in(preview.output)) == (0, "planned", before)
    done = convert(photos, BEAM, "--discard", settings=COUNT)
    assert done.code == 0
    assert sum(records_in(done.output).values()) == 10


def test_an_interruption_between_renames_leaves_an_empty_output(photos, convert, monkeypatch):
    from recordmill import storage

    move = storage.move_file

    def stop_late(source, target):
        if target.endswith("labels.txt"):
            raise KeyboardInterrupt
        move(source, target)

    monkeypatch.setattr(storage, "move_file", stop_late)
    monkeypatch.setattr("os._exit", lambda code: None)
    assert convert(photos, BEAM, settings=COUNT).code != 0
    assert left_in(photos.parent / "dataset") == []


def test_the_main_job_waits_for_it_and_refuses_what_it_wrote(photos, convert):
    done = convert(photos, BEAM, settings=COUNT)
    before = {path.name: path.read_bytes() for path in done.output.iterdir()}
    other = convert(photos, settings=COUNT)
    assert other.code == 1
    assert other.line["status"] == "refused"
    assert {name: (done.output / name).read_bytes() for name in before} == before


@pytest.mark.slow
def test_an_interruption_leaves_an_empty_output(photos, convert, monkeypatch):
    from recordmill.transforms import write_with_beam

    def stop(*_):
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(write_with_beam, "load_image", stop)
    monkeypatch.setattr("os._exit", lambda code: None)
    done = convert(photos, BEAM, settings=COUNT)
    assert done.code == 143
    assert done.errors == ["stopped by a signal after 0 images: run the same command again"]
    assert left_in(done.output) == []


@pytest.mark.parametrize(
    ("settings", "errors"),
    [
        (
            {},
            [
                "shards.count is not set, and --writer=beam needs the number of each split's "
                "files: set it"
            ],
        ),
        (
            {**COUNT, "index_files": True, "images.moments": True, "images.near_duplicates": True},
            [
                f"{key} {IDLE}"
                for key in ("images.moments", "images.near_duplicates", "index_files")
            ],
        ),
        (
            {**COUNT, "analyze": True},
            [f"analyze {IDLE}"],
        ),
        (
            {**COUNT, "expect.rejected": 0.5, "license": "CC0-1.0", "version": "1.2.0"},
            [f"{key} {IDLE}" for key in ("expect", "license", "version")],
        ),
        ({**COUNT, "shards.size": "1MB"}, None),
    ],
)
def test_settings_that_need_sidecars_are_refused_by_name(photos, convert, settings, errors):
    done = convert(photos, BEAM, settings=settings)
    assert done.code == 2
    assert (
        done.errors[0].startswith("shards.size has no effect")
        if errors is None
        else done.errors == errors
    )
    assert not done.output.exists()


@pytest.mark.parametrize(
    "flag", ["--plan", "--overwrite", "--threads=2", "--processes=2", "--against=x", "--reuse=x"]
)
def test_flags_without_effect_are_refused_by_name(photos, convert, flag):
    done = convert(photos, BEAM, flag, settings=COUNT)
    assert done.code == 2
    assert done.errors[0].startswith(f"{flag.split('=')[0]} has no effect with --writer=beam: ")
    assert not done.output.exists()


def test_no_refusal_recommends_another_refused_flag(photos, convert):
    done = convert(photos, BEAM, "--update", settings=COUNT)
    assert (done.code, done.errors) == (
        2,
        ["--update has no effect with --writer=beam: remove it"],
    )


def test_another_writer_is_refused(photos, convert):
    done = convert(photos, "--writer=own", settings=COUNT)
    assert done.code == 2
    assert "--writer" in done.errors[0]


def test_recordmill_convert_refuses_it(photos, tmp_path):
    with pytest.raises(
        ConversionError, match="--writer=beam makes no dataset that could be opened"
    ):
        convert_in_python(
            photos, tmp_path / "dataset", runner_options={"writer": "beam"}, quiet=True
        )
