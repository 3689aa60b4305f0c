"""What a run finds in its output, and what it leaves there."""

import errno
import json
import os
import shutil
import threading

import pytest
from cut_switch import cut_switch

from recordmill.pipeline.inspect import main as inspect
from recordmill.pipeline.verify import main as verify
from recordmill.reading.dataset import describe_split

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

TWO = {"shards.count": 2, "splits.fractions": {"train": 0.6, "test": 0.4}}


@pytest.fixture
def published(convert, photos):
    done = convert(photos, settings=TWO)
    assert done.code == 0
    return done


def test_a_rerun_finds_the_dataset_and_touches_nothing(convert, photos, published, state_of):
    before = state_of(published.output)
    again = convert(photos, settings=TWO)
    assert (again.code, again.line["status"]) == (0, "kept")
    assert again.line["message"] == f"{published.output} already holds this dataset: nothing to do"
    assert {key: again.line[key] for key in ("plan_id", "ledger", "splits")} == {
        key: published.line[key] for key in ("plan_id", "ledger", "splits")
    }
    assert state_of(published.output) == before


def test_a_rerun_with_overwrite_keeps_the_same_dataset_too(convert, photos, published, state_of):
    before = state_of(published.output)
    assert convert(photos, "--overwrite", settings=TWO).line["status"] == "kept"
    assert state_of(published.output) == before


@pytest.mark.parametrize(
    ("settings", "difference"),
    [
        ({"seed": 7, "convention": "tutorial"}, "convention: default -> tutorial, seed: 0 -> 7"),
        ({"splits.fractions": {"train": 0.5, "test": 0.5}}, "splits.fractions.test: 0.4 -> 0.5"),
    ],
)
def test_other_settings_are_refused_with_what_differs(
    convert, photos, published, state_of, settings, difference
):
    before = state_of(published.output)
    refused = convert(photos, settings={**TWO, **settings})
    assert (refused.code, refused.line["status"]) == (1, "refused")
    (sentence,) = refused.errors
    assert sentence.startswith(f"{published.output} holds another dataset ({difference}")
    assert sentence.endswith("): choose another output, or replace it with --overwrite")
    assert state_of(published.output) == before


def test_other_images_are_refused(convert, photos, published, picture, state_of):
    before = state_of(published.output)
    (photos / "cat/new.jpg").write_bytes(picture("new"))
    refused = convert(photos, settings=TWO)
    assert refused.errors == [
        f"{published.output} holds another dataset (other images, 11 of them instead of 10): "
        "choose another output, or replace it with --overwrite"
    ]
    assert state_of(published.output) == before


def test_overwrite_replaces_everything(convert, photos, published, tmp_path):
    other = {"shards.count": 1, "splits.fractions": {"all": 1.0}, "images.quality": 80}
    (published.output / "mine.txt").write_text("not Recordmill's")
    replaced = convert(photos, "--overwrite", settings=other)
    assert (replaced.code, replaced.line["status"]) == (0, "published")
    fresh = convert(photos, settings=other, output=tmp_path / "fresh")
    assert replaced.files == fresh.files | {"mine.txt"}
    assert replaced.deterministic_files == fresh.deterministic_files
    assert replaced.lasting_marker == fresh.lasting_marker
    assert (published.output / "mine.txt").read_text() == "not Recordmill's"
    assert set(os.listdir(replaced.output / "sidecars")) == {"all-00000-of-00001.tfrecord.jsonl"}


def test_overwrite_with_files_of_the_same_names(convert, photos, published, tmp_path):
    other = {**TWO, "images.reencode": "always"}
    replaced = convert(photos, "--overwrite", settings=other)
    fresh = convert(photos, settings=other, output=tmp_path / "fresh")
    assert replaced.deterministic_files == fresh.deterministic_files
    assert replaced.files == fresh.files


def test_a_dataset_that_lacks_a_shard_is_rebuilt_on_request(convert, photos, published):
    lost = published.shards()[1]
    content = lost.read_bytes()
    lost.unlink()
    refused = convert(photos, settings=TWO)
    assert (refused.code, refused.errors) == (
        1,
        [
            f"{published.output} lacks {lost.name}, against its recordmill.json: "
            "run again with --overwrite to rebuild it"
        ],
    )
    assert convert(photos, "--overwrite", settings=TWO).code == 0
    assert lost.read_bytes() == content


@pytest.mark.parametrize(
    "name", ["old.record", "labels.txt", "a.tfrec", "train-00000-of-00002", "config.yaml"]
)
def test_files_that_readers_would_mix_in_or_publishing_would_replace_are_refused(
    convert, photos, tmp_path, name
):
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset" / name).write_bytes(b"")
    refused = convert(photos)
    assert (refused.code, os.listdir(refused.output)) == (1, [name])
    assert refused.errors == [
        f"{refused.output} holds {name}, which is not part of a Recordmill dataset: move it away, "
        "or "
        "choose another output"
    ]


NAMED = {
    "shards.count": 2,
    "splits.fractions": {"all": 1},
    "shards.name": "my-{split}-{number}-{count}.bin",
}


@pytest.mark.parametrize("name", ["my-all-1-2.bin", "my-all-1-1.bin", "my-all-10-12.bin"])
@pytest.mark.parametrize("flags", [[], ["--plan"], ["--overwrite"]])
def test_a_users_file_with_the_name_of_a_shard_is_refused(convert, photos, tmp_path, flags, name):
    mine = tmp_path / "dataset" / name
    mine.parent.mkdir()
    mine.write_text("mine")
    refused = convert(photos, *flags, settings=NAMED)
    assert (refused.code, refused.line["status"], os.listdir(refused.output)) == (
        1,
        "refused",
        [name],
    )
    assert refused.errors == [
        f"{refused.output} holds {name}, which is not part of a Recordmill dataset: move it away, "
        "or "
        "choose another output"
    ]
    assert mine.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "flag"), [("my-all-1-2.bin", "--overwrite"), ("label_map.pbtxt", "--update")]
)
def test_a_users_file_next_to_a_dataset_with_the_name_of_a_new_file_is_refused(
    convert, photos, published, state_of, flag, name
):
    mine = published.output / name
    mine.write_text("mine")
    before = state_of(published.output)
    refused = convert(photos, flag, settings=NAMED)
    assert (refused.code, refused.line["status"]) == (1, "refused")
    assert refused.errors == [
        f"{refused.output} holds {name}, which is not part of a Recordmill dataset: move it away, "
        "or "
        "choose another output"
    ]
    assert state_of(published.output) == before
    mine.rename(published.output / "my-all.bin")
    assert convert(photos, flag, settings=NAMED).code == 0
    assert (published.output / "my-all.bin").read_text() == "mine"


def test_the_same_dataset_is_rebuilt_only_without_a_users_file_that_could_be_a_shard(
    convert, photos
):
    done = convert(photos, settings=NAMED)
    mine = done.output / "my-all-3-3.bin"
    mine.write_text("mine")
    assert convert(photos, settings=NAMED).line["status"] == "kept"
    os.utime(photos / "cat/00.jpg", (1, 1))
    refused = convert(photos, "--overwrite", settings=NAMED)
    assert (refused.code, refused.line["status"], mine.read_text()) == (1, "refused", "mine")
    mine.unlink()
    rebuilt = convert(photos, "--overwrite", settings=NAMED)
    assert (rebuilt.code, rebuilt.line["status"], rebuilt.files) == (0, "published", done.files)


def test_an_interrupted_publishing_is_completed_where_shards_have_names_of_the_users_own(
    convert, photos, tmp_path
):
    output = tmp_path / "switched"
    fresh = {
        count: convert(
            photos, settings={**NAMED, "shards.count": count}, output=tmp_path / f"{count}"
        )
        for count in (2, 3)
    }
    for count in (2, 3):
        with cut_switch("move_file", 6):
            cut = convert(
                photos, "--overwrite", settings={**NAMED, "shards.count": count}, output=output
            )
        assert (cut.code, len(cut.staging), (output / "recordmill.json").exists()) == (1, 1, False)
        assert (output / f"my-all-1-{count}.bin").exists()
        again = convert(
            photos, "--overwrite", settings={**NAMED, "shards.count": count}, output=output
        )
        assert (again.code, again.staging, again.files) == (0, [], fresh[count].files)


@pytest.fixture
def unfinished(convert, photos, tmp_path):
    """An output with the staging of a run that failed."""
    (photos / "emu").mkdir()
    (photos / "emu/bad.jpg").write_bytes(b"no picture")
    failed = convert(photos, settings=TWO)
    assert (failed.code, len(failed.staging)) == (3, 1)
    return failed


@pytest.mark.parametrize("flags", [[], ["--overwrite"]])
def test_a_run_that_failed_by_its_rejections_is_not_in_the_way_of_the_corrected_one(
    convert, photos, unfinished, flags
):
    (gone,) = unfinished.staging
    assert f"{gone}/rejected.jsonl lists it" in unfinished.errors
    done = convert(photos, *flags, settings={**TWO, "ignore": ["bad.jpg"]})
    assert (done.code, done.line["status"], done.staging) == (0, "published", [])
    note = f"deleted {gone.name}, which another run had left: no run will resume from it"
    assert done.line["notes"] == [note]
    assert f"note: {note}" in " ".join(done.stderr.split())
    assert done.marker["notes"] == []


def test_a_wrong_setting_is_not_in_the_way_of_the_right_one(convert, photos):
    for wrong in (
        {"shards.name": "labels.txt"},
        {"splits.from_folders": ["train"]},
        {"images.quality": 0},
    ):
        assert convert(photos, settings={"shards.count": 1, **wrong}).code != 0
    done = convert(photos, settings={"shards.count": 1})
    assert (done.code, done.line["status"]) == (0, "published")


def test_finished_shards_of_another_plan_stay_and_are_reported(convert, photos, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("recordmill.transforms.publishing.staged_dataset.stage_dataset", fail)
        failed = convert(photos, settings=TWO)
    (stays,) = failed.staging
    assert (failed.code, failed.errors[0].endswith(f"; finished shards are in {stays}")) == (
        1,
        True,
    )
    done = convert(photos, settings={**TWO, "seed": 1})
    assert (done.code, done.line["status"], done.staging) == (0, "published", [stays])
    assert done.line["notes"] == [
        f"{stays} stays, with 4 finished shards of another configuration or input: "
        "the command that started it resumes from there, --discard deletes it"
    ]
    first = convert(photos, "--overwrite", settings=TWO)
    assert (first.code, first.staging, first.marker["run"]["shards_reused"]) == (0, [], 4)


@pytest.mark.parametrize("versions", [(), ("--versions",)], ids=["in_place", "versions"])
def test_killed_nights_do_not_pile_up(convert, photos, monkeypatch, versions):
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    flags = ("--update", *versions)
    picture = next((photos / "cat").iterdir()).read_bytes()
    assert convert(photos, *flags, settings=TWO).code == 0
    for night in (1, 2):
        (photos / f"cat/night{night}.jpg").write_bytes(picture)
        with monkeypatch.context() as patch:
            patch.setattr("recordmill.transforms.publishing.staged_dataset.stage_dataset", fail)
            assert convert(photos, *flags, settings=TWO).code == 1
    (photos / "cat/night3.jpg").write_bytes(picture)
    done = convert(photos, *flags, settings=TWO)
    assert (done.code, done.line["status"]) == (0, "published")
    assert list(done.output.glob("**/.staging-*")) == []
    assert len([*done.output.glob("**/labels.txt")]) == 1 + len(versions)
    notes = [note for note in done.line["notes"] if note.startswith("deleted .staging-")]
    assert [note.split("left, ")[1] for note in notes] == [
        "with 4 finished shards: no run will resume from it"
    ]


def test_what_others_left_confuses_no_reader(convert, photos, published, capsys):
    leftover = published.output / ".staging-other"
    leftover.mkdir()
    for name in ("train-00000.tfrecord", "train-00000.jsonl"):
        (leftover / name).write_bytes(b"torn")
    (leftover / "train-00000.done.json").write_text('{"report": {"records": 3}}')
    assert verify([str(published.output)]) == 0
    assert inspect([str(published.output)]) == 0
    assert len(capsys.readouterr().err.splitlines()) > 5
    assert describe_split(str(published.output), "train").num_examples == len(
        published.keys("train")
    )
    assert convert(photos, settings=TWO).line["status"] == "kept"


def test_discard_deletes_it_and_goes_on(convert, photos, unfinished):
    (photos / "emu/bad.jpg").unlink()
    name = unfinished.staging[0].name
    done = convert(photos, "--discard", settings={**TWO, "seed": 1})
    assert (done.code, done.staging) == (0, [])
    assert f"deleted the unfinished work {name}" in done.stderr


def test_discard_leaves_a_finished_dataset_alone(convert, photos, published, state_of):
    before = state_of(published.output)
    assert convert(photos, "--discard", settings=TWO).line["status"] == "kept"
    assert state_of(published.output) == before


def test_plan_discards_nothing(convert, photos, unfinished, state_of):
    before = state_of(unfinished.output)
    convert(photos, "--discard", "--plan", settings={**TWO, "seed": 1})
    assert state_of(unfinished.output) == before


def test_success_leaves_the_dataset_alone_even_after_a_cut_in_the_cleaning_up(
    convert, photos, published
):
    # Killed between the marker and the removal of the staging folder, or within it.
    staging = published.output / f".staging-{published.line['plan_id']}"
    staging.mkdir()
    (staging / "train-00000.done.json").write_text("{}")
    assert convert(photos, "--plan", settings=TWO).staging == [staging]
    again = convert(photos, settings=TWO)
    assert (again.code, again.line["status"], again.staging) == (0, "kept", [])


CUTS = {"remove_files": [1, 2], "move_file": [1, 2, 6, 10], "write_file": [1], "remove_folder": [1]}


def test_an_interrupted_publishing_is_completed_by_the_next_run(
    convert, photos, published, tmp_path
):
    other = {**TWO, "shards.count": 3}
    fresh = {2: published, 3: convert(photos, settings=other, output=tmp_path / "three")}
    output = tmp_path / "switched"
    convert(photos, settings=TWO, output=output)
    shards = 2
    for name, counts in CUTS.items():
        for count in counts:
            shards = 5 - shards
            settings = {**TWO, "shards.count": shards}
            with cut_switch(name, count):
                cut = convert(photos, "--overwrite", settings=settings, output=output)
            assert (cut.code, len(cut.staging)) == (1, 1), (name, count)
            assert (output / "recordmill.json").exists() == (
                (name, count) in {("remove_files", 1), ("remove_folder", 1)}
            )
            again = convert(photos, "--overwrite", settings=settings, output=output)
            assert (again.code, again.staging) == (0, []), (name, count)
            assert again.files == fresh[shards].files, (name, count)
            assert again.deterministic_files == fresh[shards].deterministic_files
            assert again.lasting_marker == fresh[shards].lasting_marker


@pytest.fixture
def cut(convert, photos, published):
    """An output in which the replacement of one dataset by another, of three shards, was cut
    halfway."""
    with cut_switch("move_file", 2):
        done = convert(
            photos, "--overwrite", settings={**TWO, "shards.count": 3}, output=published.output
        )
    assert (done.code, len(done.staging), (done.output / "recordmill.json").exists()) == (
        1,
        1,
        False,
    )
    return done


def test_a_run_of_another_plan_publishes_what_was_cut_and_is_refused_as_next_to_any_dataset(
    convert, photos, cut
):
    settings, (staging,) = {**TWO, "seed": 7}, cut.staging
    planned = convert(photos, "--plan", settings=settings, output=cut.output)
    assert (planned.code, planned.line["status"], planned.staging) == (1, "refused", [staging])
    done = convert(photos, settings=settings, output=cut.output)
    assert (done.code, done.line["status"], done.staging) == (1, "refused", [])
    assert (
        f"{staging.name} held a complete dataset, whose publication was interrupted: "
        "it is now in place" in (done.line["notes"])
    )
    assert "(seed: 0 -> 7, shards.count: 3 -> 2)" in done.line["message"]
    assert len(done.marker["splits"]["train"]["shards"]) == 3


def test_what_was_cut_and_cannot_be_read_is_refused(convert, photos, cut):
    (cut.staging[0] / "recordmill.json").write_text("{")
    done = convert(photos, "--overwrite", settings=TWO, output=cut.output)
    assert (done.code, done.line["status"]) == (1, "refused")
    assert done.line["message"].endswith(": delete it with --discard, or choose another output")


def test_a_run_of_another_plan_replaces_what_was_cut_with_overwrite(convert, photos, cut, tmp_path):
    settings = {**TWO, "seed": 7}
    assert convert(photos, "--plan", "--overwrite", settings=settings, output=cut.output).code == 0
    done = convert(photos, "--overwrite", settings=settings, output=cut.output)
    assert (done.code, done.staging) == (0, [])
    assert done.files == convert(photos, settings=settings, output=tmp_path / "fresh").files


@pytest.mark.slow
def test_two_runs_of_one_plan_at_once_end_in_one_dataset(spawn, photos, published, tmp_path):
    flags = [f"--set={key}={json.dumps(value)}" for key, value in TWO.items()]
    runs = [spawn(f"--input={photos}", f"--output={tmp_path / 'both'}", *flags) for _ in range(2)]
    for run in runs:
        run.communicate(timeout=60)
    again = type(published)(0, "", "", tmp_path / "both")
    assert 0 in {run.returncode for run in runs}  # the other may find its staging gone, and says so
    assert again.deterministic_files == published.deterministic_files
    assert again.lasting_marker == published.lasting_marker


def test_a_finished_shard_is_used_again_only_if_its_images_are_unchanged(
    convert, photos, unfinished
):
    limits = {**TWO, "max_rejected.lost_classes": 1}
    os.utime(photos / "cat/00.jpg", (1, 1))
    done = convert(photos, settings=limits)
    shards = sum(len(split["shards"]) for split in done.marker["splits"].values())
    assert (done.code, done.marker["run"]["shards_reused"]) == (0, shards - 1)


def test_a_reader_through_the_marker_sees_old_or_new_or_none(convert, photos, published):
    """While one dataset replaces another, over and over."""
    output, seen, problems, stop = published.output, set(), [], threading.Event()

    def read():
        while not stop.is_set():
            try:
                text = (output / "recordmill.json").read_bytes()
                marker = json.loads(text)
                there = [
                    (output / shard["name"]).stat().st_size == shard["bytes"]
                    for split in marker["splits"].values()
                    for shard in split["shards"]
                ]
                if not all(there) and (output / "recordmill.json").read_bytes() == text:
                    problems.append(marker["plan"]["id"])
                seen.add(marker["plan"]["id"])
            except FileNotFoundError:
                seen.add("being replaced")

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for round_ in range(3):
            assert convert(photos, "--overwrite", settings={**TWO, "seed": round_ + 1}).code == 0
    finally:
        stop.set()
        reader.join()
    assert problems == []
    assert len(seen) >= 4


def test_moving_a_dataset_keeps_it_whole(convert, photos, published, tmp_path):
    shutil.move(published.output, tmp_path / "moved")
    assert convert(photos, settings=TWO, output=tmp_path / "moved").line["status"] == "kept"


def test_a_name_that_a_folder_has_keeps_a_dataset_from_being_published_until_it_is_free(
    convert, photos, tmp_path
):
    output = tmp_path / "dataset"
    taken = output / "config.yaml"
    assert convert(photos, settings={"seed": 1}).code == 0
    taken.unlink()
    taken.mkdir()
    before = {path.name for path in output.iterdir()}
    for _ in range(2):
        failed = convert(photos, "--overwrite", settings=TWO)
        assert failed.code == 1
        assert failed.errors[0].startswith(
            f"the output {output} cannot be written: is a directory ({taken}); finished"
        )
        assert {path.name for path in output.iterdir()} == before | {failed.staging[0].name}
    taken.rmdir()
    done = convert(photos, "--overwrite", settings=TWO)
    assert (done.code, done.line["status"], done.staging) == (0, "published", [])
