import errno
import json
import os
from contextlib import suppress
from itertools import count

import pytest
from make_marker import EMPTY_RUN, marker_json

from recordmill import storage
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.dataset.marker import Marker, PlanEntry
from recordmill.schemas.errors import LoadError
from recordmill.storage.dataset_files import contents_digest
from recordmill.transforms.claim_output import decide_action, read_output
from recordmill.transforms.publishing.staged_dataset import publish_staged

OLD = {
    "train-0-of-3": b"old 0",
    "train-1-of-3": b"old 1",
    "train-2-of-3": b"old 2",
    "same-name": b"old same",
}
NEW = {"train-0-of-2": b"new 0", "train-1-of-2": b"new 1", "same-name": b"new same"}
PLANS = ["", "old", "new"]
"""Of the dataset that is replaced: none, another one, and the same, which is damaged or was made of
unread files."""
SIDE_FILES = ["labels.txt", "config.yaml", "rejected.jsonl"]


def described(plan_id, files):
    shards = [
        {"name": name, "sidecar": f"sidecars/{name}.jsonl", "bytes": len(content)}
        for name, content in files.items()
    ]
    splits = {"train": {"shards": shards}}
    return marker_json(
        plan_id=plan_id, splits=splits, files=SIDE_FILES, run={**EMPTY_RUN, "id": plan_id}
    )


def contents(word, plan_id, files):
    """All files that a dataset has."""
    return {
        **files,
        **{f"sidecars/{name}.jsonl": b"sidecar of " + content for name, content in files.items()},
        **{name: f"{word} {name}".encode() for name in SIDE_FILES},
    }


def arrange(output, with_old):
    """An output with a finished dataset of the plan, if one is given, and another one complete in
    staging."""
    staging = output / ".staging-new"
    staging.mkdir(parents=True)
    old = contents("old", "old", OLD) if with_old else {}
    for name, content in old.items():
        (output / name).parent.mkdir(exist_ok=True)
        (output / name).write_bytes(content)
    if with_old:
        (output / "recordmill.json").write_text(json.dumps(described(with_old, OLD)))
    moves = []
    for index, (target, content) in enumerate(contents("new", "new", NEW).items()):
        (staging / f"train-{index:05}.jsonl").write_bytes(content)
        moves.append([f"train-{index:05}.jsonl", target])
    (staging / "train-0.done.json").write_text("{}")
    switch = {"moves": moves, "removes": list(old)}
    (staging / "recordmill.json").write_text(
        json.dumps({**described("new", NEW), "switch": switch})
    )


def without_staging(files):
    return {name: content for name, content in files.items() if not name.startswith(".staging-")}


@pytest.mark.parametrize("with_old", PLANS)
def test_a_cut_at_any_step_is_repaired_by_the_next_run(tmp_path, tree, cut_after, with_old):
    seen = set()
    for most in count():
        output = tmp_path / f"{most}"
        arrange(output, with_old)
        before = without_staging(tree(output))
        with cut_after(most) as done:
            publish_staged(str(output), "new")
        after = without_staging(tree(output))
        marker = json.loads(after.get("recordmill.json", b"null"))
        if marker is None:
            seen.add("none")
        elif marker == described("new", NEW):
            seen.add("new")
            assert after == {
                **contents("new", "new", NEW),
                "recordmill.json": after["recordmill.json"],
            }
        else:  # a marker, where there is one, describes the files that are there
            seen.add("old")
            assert after == before
        state = read_output(str(output), "new")
        action, _ = decide_action(state, PlanEntry("new", {"compression": "none"}), False)
        if action == "finish":
            assert to_json(publish_staged(str(output), "new")) == described("new", NEW)
        else:  # cut while the last of staging was deleted
            assert action == "keep"
            storage.remove_folder(str(output / ".staging-new"))
        whole = tree(output)
        assert json.loads(whole.pop("recordmill.json")) == described("new", NEW)
        assert whole == contents("new", "new", NEW)
        assert sorted(os.listdir(output)) == sorted(
            [*NEW, *SIDE_FILES, "recordmill.json", "sidecars"]
        )
        if len(done) < most:
            break
    assert seen == {"new", "none"} | ({"old"} if with_old else set())


@pytest.mark.parametrize("with_old", PLANS)
def test_two_cuts_are_repaired_too(tmp_path, tree, cut_after, with_old):
    for first in range(0, 20, 3):
        for second in range(1, 20, 4):
            output = tmp_path / f"{first}-{second}"
            arrange(output, with_old)
            with cut_after(first):
                publish_staged(str(output), "new")
            with cut_after(second):
                if read_output(str(output), "new").pending:
                    publish_staged(str(output), "new")
            if read_output(str(output), "new").pending:
                publish_staged(str(output), "new")
            whole = without_staging(tree(output))
            del whole["recordmill.json"]
            assert whole == contents("new", "new", NEW)


def test_a_move_that_copied_and_did_not_delete_is_done_again(tmp_path, tree):
    # As on an object store that was cut between the two.
    arrange(tmp_path, "old")
    (tmp_path / "same-name").write_bytes(NEW["same-name"])
    (tmp_path / "recordmill.json").unlink()
    publish_staged(str(tmp_path), "new")
    assert tree(tmp_path)["same-name"] == NEW["same-name"]


STEPS = [
    "remove_files",
    "make_folder",
    "folder_names",
    "exists",
    "move_file",
    "write_file",
    "remove_folder",
]


@pytest.mark.parametrize("with_old", PLANS)
def test_two_runs_that_switch_at_once_leave_the_whole_dataset(
    tmp_path, tree, monkeypatch, with_old
):
    # The second switches all at once between any two steps of the first.
    for at in count():
        output = tmp_path / f"{at}"
        arrange(output, with_old)
        steps = []

        def within(real, output=output, steps=steps, at=at):
            def call(*arguments):
                steps.append(real.__name__)
                if len(steps) == at + 1:
                    with suppress(FileNotFoundError):  # the first has published everything already
                        publish_staged(str(output), "new")
                return real(*arguments)

            return call

        # Which `publish` takes for what it is.
        with (
            monkeypatch.context() as patch,
            suppress(FileNotFoundError),
        ):
            for name in STEPS:
                patch.setattr(storage, name, within(getattr(storage, name)))
            publish_staged(str(output), "new")
        whole = tree(output)
        assert json.loads(whole.pop("recordmill.json")) == described("new", NEW)
        assert whole == contents("new", "new", NEW)
        if len(steps) <= at:
            break
    assert at > 10


def test_files_of_others_stay(tmp_path, tree):
    arrange(tmp_path, "old")
    (tmp_path / "NOTES.txt").write_bytes(b"mine")
    (tmp_path / "sidecars/mine").write_bytes(b"mine")
    publish_staged(str(tmp_path), "new")
    assert {name for name, content in tree(tmp_path).items() if content == b"mine"} == {
        "NOTES.txt",
        "sidecars/mine",
    }


@pytest.mark.parametrize("fits", [False, True])
def test_what_was_learned_from_the_old_dataset_goes_with_it(tmp_path, tree, fits):
    output = tmp_path / "out"
    arrange(output, "old")
    pending = json.loads((output / ".staging-new" / "recordmill.json").read_bytes())
    pending["plan"]["recipe"] = {"compression": "none", "labels": {"catch_all": None}}
    pending["labels"] = {"cat": 0}
    for number, shard in enumerate(pending["splits"]["train"]["shards"]):
        shard["sidecar_sha256"] = f"{number}"
    (output / ".staging-new" / "recordmill.json").write_text(json.dumps(pending))
    contents = contents_digest(Marker.from_json(pending), "train") if fits else "of the old one"
    (output / "transform_fn").mkdir()
    (output / "transform_fn" / "saved_model.pb").write_text("model")
    note = {"split": "train", "size": [1, 1], "contents": contents}
    (output / "transform_fn" / "analysis.json").write_text(json.dumps(note))
    publish_staged(str(output), "new")
    learned = {name for name in tree(output) if name.startswith("transform_fn")}
    assert learned == (
        {"transform_fn/saved_model.pb", "transform_fn/analysis.json"} if fits else set()
    )


def failing_from(monkeypatch, first, last):
    """Of the moves those from one to another fail, as in an outage; gives what was moved or
    tried."""
    calls, original = [], storage.move_file

    def move(source, target):
        calls.append(target)
        if first <= len(calls) <= last:
            raise OSError(errno.EIO, os.strerror(errno.EIO), source, None, target)
        original(source, target)

    monkeypatch.setattr(storage, "move_file", move)
    return calls


def staged(output):
    return {name for name in os.listdir(output / ".staging-new") if name.endswith(".jsonl")}


@pytest.mark.parametrize("with_old", PLANS)
def test_a_move_that_fails_leaves_nothing_of_a_dataset(tmp_path, tree, monkeypatch, with_old):
    for fails in count(1):
        output = tmp_path / f"{fails}"
        arrange(output, with_old)
        whole = staged(output)
        with monkeypatch.context() as patch:
            calls = failing_from(patch, fails, fails)
            with suppress(OSError):
                publish_staged(str(output), "new")
                break
        assert without_staging(tree(output)) == {}
        assert os.listdir(output) == [".staging-new"]
        assert staged(output) == whole
        state = read_output(str(output), "new")
        assert decide_action(state, PlanEntry("new", {"compression": "none"}), False) == (
            "convert",
            "",
        )
    assert len(calls) < fails
    assert fails == len(whole) + 3  # the marker is written and moved too


@pytest.mark.parametrize("with_old", PLANS)
def test_a_switch_that_nothing_can_be_taken_back_from_is_finished_by_the_next_run(
    tmp_path, tree, monkeypatch, with_old
):
    for fails in (1, 3, 8):
        output = tmp_path / f"{fails}"
        arrange(output, with_old)
        with monkeypatch.context() as patch:
            failing_from(patch, fails, 1000)
            with pytest.raises(OSError, match="Input/output error"):
                publish_staged(str(output), "new")
        action, _ = decide_action(
            read_output(str(output), "new"), PlanEntry("new", {"compression": "none"}), False
        )
        assert action == ("finish" if fails > 1 else "convert")
        if action == "finish":
            publish_staged(str(output), "new")
            assert without_marker(tree(output)) == contents("new", "new", NEW)


def without_marker(files):
    assert json.loads(files.pop("recordmill.json")) == described("new", NEW)
    return files


@pytest.mark.parametrize("with_old", PLANS)
@pytest.mark.parametrize("name", ["labels.txt", "train-1-of-2", "sidecars/train-1-of-2.jsonl"])
def test_what_no_file_can_be_renamed_to_is_found_before_anything_is_touched(
    tmp_path, tree, with_old, name
):
    arrange(tmp_path, with_old)
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).mkdir(parents=True)
    before = tree(tmp_path)
    with pytest.raises(OSError, match="directory"):
        publish_staged(str(tmp_path), "new")
    assert tree(tmp_path) == before


def test_a_file_that_is_gone_again_is_noticed_before_the_marker(tmp_path, monkeypatch):
    # Another run of the same plan may be taking its files back.
    arrange(tmp_path, "")
    original = storage.move_file

    def move(source, target):
        original(source, target)
        if source.endswith("00004.jsonl"):
            os.unlink(tmp_path / "train-0-of-2")

    monkeypatch.setattr(storage, "move_file", move)
    with pytest.raises(FileNotFoundError, match="train-0-of-2"):
        publish_staged(str(tmp_path), "new")
    assert not (tmp_path / "recordmill.json").exists()


def test_a_staging_marker_without_its_moves_is_damaged(tmp_path):
    (tmp_path / ".staging-p").mkdir()
    (tmp_path / ".staging-p" / "recordmill.json").write_text(json.dumps(marker_json()))
    with pytest.raises(
        LoadError,
        match=r"was interrupted and cannot be completed \(it is not of type dict\): delete it with",
    ):
        publish_staged(str(tmp_path), "p")
