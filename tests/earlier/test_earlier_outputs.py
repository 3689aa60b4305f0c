"""Versions, unfinished work and files that users wrote for commit 728cb4bb are used, or refused.

Tests with the comment "from plan version 3 on" fail at 728cb4bb itself; test_earlier_datasets.py
says why.
"""

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

import recordmill
from recordmill.pipeline.configuration.config import load_settings
from recordmill.pipeline.diff import main as diff
from recordmill.pipeline.inspect import main as inspect
from recordmill.pipeline.verify import main as verify
from recordmill.pipeline.versions import main as versions
from tests.earlier.conftest import (
    CLONED,
    COMMANDS,
    CURRENT,
    HERE,
    OLD,
    PHOTOS,
    Ask,
    contents_of,
    differences_in,
    each_command,
    edit_photos,
    marker_of,
    notes_on_plan_version,
)
from tests.pipeline.conftest import Conversion

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

# Versions


def pointer() -> dict[str, Any]:
    return marker_of("nightly")


def assert_is_rolled_back(ask: Ask, version: str) -> None:
    """Goes back from a version, and checks that the old one is what it was."""
    code, line = ask(versions, "nightly", "--rollback")
    assert (code, line["current"]) == (0, CURRENT)
    assert pointer() == {"recordmill": 2, "current": CURRENT, "previous": version}
    code, line = ask(verify, "nightly", "--level", "pixels")
    assert (code, line["path"], line["findings"]) == (0, f"nightly/{CURRENT}", [])
    assert recordmill.open_dataset("nightly").marker.fingerprint.dataset == PHOTOS


def test_a_night_with_a_new_photo_adds_a_version_that_can_be_rolled_back(
    place_output, again, ask, tree
):
    place_output("nightly", CLONED)
    before = {name: tree(f"nightly/{name}") for name in (OLD, CURRENT)}
    edit_photos()
    done = again("nightly")
    new = done.line["version"]
    assert (done.code, done.line["status"], new in (OLD, CURRENT)) == (0, "published", False)
    assert pointer() == {"recordmill": 2, "current": new, "previous": CURRENT}
    assert sorted(os.listdir("nightly")) == sorted([OLD, CURRENT, new, "recordmill.json"])
    assert recordmill.open_dataset("nightly").counts == {"train": 10, "test": 3}
    code, line = ask(diff, f"nightly/{CURRENT}", f"nightly/{new}")
    assert (code, line["unchanged"]) == (1, 11)
    assert line["examples"] == {"added": ["cat/new.jpg"], "other_bytes": ["dog/0.jpg"]}
    assert ask(verify, "nightly", "--level", "pixels")[1]["findings"] == []
    assert_is_rolled_back(ask, new)
    assert {name: tree(f"nightly/{name}") for name in before} == before
    next_night = again("nightly")
    assert (next_night.code, next_night.line["status"]) == (0, "kept")
    assert f"{new} is the current version again" in next_night.line["notes"]
    assert pointer() == {"recordmill": 2, "current": new, "previous": CURRENT}


@pytest.mark.parametrize("flags", [("--versions", "--update"), ("--versions",)])
def test_a_night_without_changes_adds_a_version_once(place_output, convert, ask, tree, flags):
    # from plan version 3 on
    place_output("nightly", CLONED)
    source, _, settings = COMMANDS["nightly"]
    before = {name: tree(f"nightly/{name}") for name in (OLD, CURRENT)}
    done = convert(source, *flags, output=Path("nightly"), settings=settings)
    new = done.line["version"]
    assert (done.code, done.line["status"], new in (OLD, CURRENT)) == (0, "published", False)
    assert len(notes_on_plan_version(done)) == 1
    marker = marker_of(f"nightly/{new}")
    assert (marker["run"]["images_reused"], marker["fingerprint"]["dataset"]) == (0, PHOTOS)
    assert pointer() == {"recordmill": 2, "current": new, "previous": CURRENT}
    again = convert(source, *flags, output=Path("nightly"), settings=settings)
    assert (again.line["status"], again.line["version"]) == ("kept", new)
    assert_is_rolled_back(ask, new)
    assert {name: tree(f"nightly/{name}") for name in before} == before
    again = convert(source, *flags, output=Path("nightly"), settings=settings)
    assert (again.line["status"], pointer()["current"]) == ("kept", new)


def test_old_versions_are_listed_chosen_and_deleted(place, ask):
    place("nightly")
    code, line = ask(versions, "nightly")
    listed = [(each["version"], each["current"], each["records"]) for each in line["versions"]]
    assert (code, line["current"]) == (0, CURRENT)
    assert listed == [(OLD, False, 12), (CURRENT, True, 12)]
    assert ask(versions, "nightly", "--use", OLD)[1]["current"] == OLD
    assert pointer() == {"recordmill": 2, "current": OLD, "previous": CURRENT}
    assert recordmill.open_dataset("nightly").folder == f"nightly/{OLD}"
    assert ask(versions, "nightly", "--drop", CURRENT)[0] == 0
    assert sorted(os.listdir("nightly")) == [OLD, "recordmill.json"]


def test_an_output_with_old_versions_takes_no_dataset_in_place(place_output, convert):
    place_output("nightly")
    done = convert("photos", output=Path("nightly"))
    sentence = "nightly has versions: add --versions, or choose another output"
    assert done.answer == (1, sentence)


def test_an_output_with_an_old_dataset_takes_no_versions(place_output, again):
    place_output("classes")
    why = "classes holds a dataset that is not in a version"
    sentence = f"{why}: choose another output, or remove --versions"
    assert again("classes", "--versions").answer == (1, sentence)


# Files that users wrote


def test_a_list_of_excluded_images_is_read(place_output, again, ask):
    place_output("boxes")
    done = again("boxes", output="new")
    assert done.marker["ledger"] == {
        "listed": 11,
        "written": 7,
        "rejected": {},
        "ignored": {"without_annotation": 1},
        "left_out": {"duplicate": 1, "excluded": 2},
    }
    assert done.line["notes"][-1] == "lines of removed.txt that match nothing: 1"
    for name in ("boxes", "new"):
        code, line = ask(verify, name, "--absent", "removed.txt")
        assert (code, line["findings"]) == (0, [])


def test_a_longer_list_of_excluded_images_updates_an_old_dataset(place_output, again, ask):
    place_output("boxes")
    with open("removed.txt", "a") as file:
        file.write("key:train/b.jpg\n")
    assert [each.partition(":")[0] for each in differences_in(again("boxes"))] == ["exclude"]
    code, line = ask(verify, "boxes", "--absent", "removed.txt")
    found = sorted(each["shard"] for each in line["findings"])
    sidecar = "sidecars/train-00000-of-00002.tfrecord.jsonl"
    assert (code, found) == (1, ["records.index", sidecar])
    done = again("boxes", "--update")
    left_out = {"duplicate": 1, "excluded": 3}
    assert (done.code, done.marker["ledger"]["left_out"]) == (0, left_out)
    code, line = ask(verify, "boxes", "--absent", "removed.txt")
    assert (code, line["findings"]) == (0, [])


def test_images_that_must_not_be_there_are_found_in_the_files_of_an_old_report(place_output, ask):
    place_output("classes")
    Path("list.txt").write_text("key:dog/gray.png\n")
    code, line = ask(verify, "classes", "--absent", "list.txt")
    found = sorted(each["shard"] for each in line["findings"])
    sidecar = "sidecars/train-00000-of-00001.tfrecord.jsonl"
    assert (code, found) == (1, ["records.index", "report.html", "report.json", sidecar])


@each_command
def test_images_that_must_not_be_there_are_found_after_the_same_command(
    place_output, again, ask, name
):
    place_output(name)
    again(name, "--overwrite")
    key, sidecar, others = {
        "classes": ("dog/gray.png", "train-00000-of-00001", ["report.html", "samples.svg"]),
        "boxes": ("val/d.jpg", "validation-00000-of-00001", []),
    }[name]
    Path("list.txt").write_text(f"key:{key}\n")
    code, line = ask(verify, name, "--absent", "list.txt")
    found = sorted(each["shard"] for each in line["findings"])
    wanted = ["records.index", *others, f"sidecars/{sidecar}.tfrecord.jsonl"]
    assert (code, found) == (1, wanted)


def test_a_configuration_is_read(place_output, again):
    place_output("boxes")
    done = again("boxes", output="new")
    assert (done.code, done.line["status"]) == (0, "published")
    boxes = {"clipped": 1, "listed": 12, "outside": 1, "with_left_out_images": 3, "written": 8}
    assert done.line["boxes"] == boxes
    assert done.line["dropped_boxes"] == {"outside": {"dog": 1}}
    croissant = json.loads(Path("new/croissant.json").read_bytes())
    assert (croissant["license"], croissant["version"]) == ("CC-BY-4.0", "1.2.0")
    assert croissant["creator"]["name"] == "The Zoo of Springfield"
    assert croissant["citeAs"] == "Springfield's pets, 2026"
    info = json.loads(Path("new/dataset_info.json").read_bytes())
    assert info["redistributionInfo"] == {"license": "CC-BY-4.0"}


def test_both_spellings_of_the_license_are_read(place_output, again):
    # from plan version 3 on
    place_output("boxes")
    made = again("boxes", output="made")
    text = Path("boxes.yaml").read_text()
    assert text.count("licence: ") == 1
    Path("boxes.yaml").write_text(text.replace("licence: ", "license: "))
    same = again("boxes", output="same")
    assert (made.code, same.code, same.errors) == (0, 0, [])
    assert contents_of("same") == contents_of("made")


def test_the_old_spelling_of_a_setting_is_read_or_the_new_one_is_named(place, convert):
    place("photos")
    rows = ["path,class", "cat/0.jpg,cat", "cat/1.jpg,cat", "dog/0.jpg,dog", "dog/1.jpg,"]
    Path("photos/list.csv").write_text("\n".join(rows) + "\n")
    columns = {"uri": "path", "label": "class"}
    source = {"kind": "manifest", "columns": columns, "unlabelled": "keep"}
    Path("rows.yaml").write_text(yaml.safe_dump({"source": source, "report": False}))
    done = convert("photos/list.csv", "--config=rows.yaml", output=Path("new"))
    if done.code:
        assert done.code == 2
        assert "unlabeled" in done.errors[0]
    else:
        classes = [each["classes"] for each in done.marker["splits"].values()]
        assert {name for each in classes for name in each} == {"", "cat", "dog"}


@pytest.mark.parametrize("path", sorted((HERE / "configs").iterdir()), ids=lambda path: path.stem)
def test_a_copy_of_a_shipped_configuration_is_read(path):
    written = yaml.safe_load(path.read_text(encoding="utf-8"))
    loaded = load_settings(str(path), [])
    assert type(loaded.settings.source).kind == written["source"]["kind"]
    assert loaded.settings.source == load_settings(f"configs/{path.name}", []).settings.source


# Unfinished work


STAGING = ".staging-c2b04445e6636d0e"
"""What a run left in `unfinished` that was stopped by `max_rejected`."""


def test_a_run_that_rejected_too_much_is_finished_with_a_higher_limit(
    place_output, again, ask, place
):
    place_output("unfinished")
    place("classes")
    assert [path.name for path in Path("unfinished").iterdir()] == [STAGING]
    done = again("unfinished")
    assert (done.code, done.line["status"], done.staging) == (0, "published", [])
    assert done.marker["fingerprint"]["dataset"] == PHOTOS
    assert done.marker["splits"] == marker_of("classes")["splits"]
    assert ask(verify, "unfinished", "--level", "pixels")[1]["findings"] == []


def test_a_run_that_rejected_too_much_is_not_resumed_but_deleted(place_output, again):
    # from plan version 3 on
    place_output("unfinished")
    done = again("unfinished")
    assert done.marker["run"]["shards_reused"] == 0
    deleted = f"deleted {STAGING}, which another run had left: no run will resume from it"
    assert done.line["notes"] == [deleted]


def leave_as_killed(folder: str) -> None:
    """Makes the unfinished work that of a run that was killed before it checked its limits."""
    staging = Path(folder, STAGING)
    for name in ("outcome.json", "rejected.jsonl"):
        (staging / name).unlink()
    claim = {"plan": STAGING.removeprefix(".staging-"), "run": "0", "host": socket.gethostname()}
    claim |= {"process": 4_194_305, "since": "2026-11-22T10:33:14+00:00"}  # no Linux process has it
    (staging / "claim-0.json").write_text(json.dumps(claim))


def test_a_run_that_was_killed_is_finished(place_output, again, ask):
    place_output("unfinished")
    leave_as_killed("unfinished")
    done = again("unfinished")
    assert (done.code, done.line["status"]) == (0, "published")
    assert done.marker["fingerprint"]["dataset"] == PHOTOS
    assert ask(verify, "unfinished", "--level", "pixels")[1]["findings"] == []
    named = [path.name for path in done.staging if path.name in "".join(done.line["notes"])]
    assert named == [path.name for path in done.staging]
    again("unfinished", "--discard")
    assert Conversion(0, "", "", Path("unfinished")).staging == []


def test_shards_of_a_killed_run_are_made_again(place_output, again):
    # from plan version 3 on
    place_output("unfinished")
    leave_as_killed("unfinished")
    done = again("unfinished")
    assert (done.marker["run"]["shards_reused"], done.marker["run"]["images_reused"]) == (0, 0)


def test_unfinished_work_is_discarded(place_output, again):
    place_output("unfinished")
    done = again("unfinished", "--discard", settings={"seed": 8})
    assert (done.code, done.marker["run"]["shards_reused"], done.staging) == (0, 0, [])
    assert f"deleted the unfinished work {STAGING}" in done.stderr.splitlines()


@pytest.mark.parametrize("command", [verify, inspect])
def test_unfinished_work_is_not_read_as_a_dataset(place, ask, command):
    place("unfinished")
    code, line = ask(command, "unfinished")
    why = f"unfinished is not finished: it holds {STAGING}"
    how = (
        "of a run that is still working on it, or was interrupted, or failed: run the same command "
        "again"
    )
    assert (code, line["message"]) == (1, f"{why}, {how}, corrected if it failed")


CUT = ".staging-3c589cec45399e21"
"""What a run left in `cut` that ended while its third file was put in place."""


def test_a_publication_that_was_cut_is_completed(place_output, again, ask):
    place_output("cut")
    assert sorted(os.listdir("cut")) == [CUT, "config.yaml", "labels.txt"]
    fingerprint = marker_of(f"cut/{CUT}")["fingerprint"]
    done = again("cut")
    assert (done.code, done.line["status"], done.staging) == (0, "published", [])
    assert done.marker["fingerprint"] == fingerprint
    assert done.line["ledger"]["left_out"] == {"limit": 8}
    assert ask(verify, "cut", "--level", "pixels")[1]["findings"] == []
    assert contents_of("cut") == contents_of(again("cut", output="made").output)


def test_a_publication_that_was_cut_is_completed_and_then_replaced(place_output, again):
    # from plan version 3 on
    place_output("cut")
    done = again("cut")
    completed = (
        f"{CUT} held a complete dataset, whose publication was interrupted: it is now in place"
    )
    assert completed in done.line["notes"]
    assert len(notes_on_plan_version(done)) == 1
    assert done.marker["plan"]["recipe"]["plan_version"] == 4


def test_a_publication_that_was_cut_is_completed_before_another_dataset_is_refused(
    place_output, again, ask
):
    place_output("cut")
    done = again("cut", settings={"images.grayscale": "expand"})
    assert differences_in(done) == ["images.grayscale: keep -> expand"]
    assert done.staging == []
    code, line = ask(verify, "cut", "--level", "pixels")
    assert (code, line["records"], line["findings"]) == (0, 4, [])
