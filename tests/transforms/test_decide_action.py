import json
import shutil
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest
from make_marker import marker_json

from recordmill import storage
from recordmill.schemas.dataset.marker import PLAN_VERSION, Marker, PlanEntry
from recordmill.storage.dataset_files import find_fault, find_marker
from recordmill.transforms.claim_output import (
    Leftover,
    OutputState,
    clear_leftovers,
    decide_action,
    is_outdated,
    read_output,
)
from recordmill.transforms.planning.plan import DatasetPlan
from recordmill.transforms.planning.runs import claim_output
from recordmill.transforms.planning.summary import Summary

SHARDS = [
    {"name": f"train-{n}.tfrecord", "sidecar": f"sidecars/train-{n}.jsonl", "bytes": 1000 + n}
    for n in (0, 1)
]
LEDGER = {"listed": 5, "written": 2, "rejected": {"decode_error": 3}, "ignored": {}, "left_out": {}}
STORED = marker_json(
    {"seed": 0, "images": {"quality": 95}},
    plan_id="aaa",
    splits={"train": {"records": 2, "bytes": 2001, "shards": SHARDS}},
    ledger=LEDGER,
    files=["labels.txt", "sidecars/rejected-00000.jsonl"],
)
MARKER = Marker.from_json(STORED)
FILES = [
    "train-0.tfrecord",
    "train-1.tfrecord",
    "sidecars/train-0.jsonl",
    "sidecars/train-1.jsonl",
    *MARKER.files,
]
RECIPE = {"seed": 1, "images": {"quality": 95}, "compression": "none"}


def decide(state, plan_id="aaa", overwrite=False):
    return decide_action(state, PlanEntry(plan_id, RECIPE), overwrite)


@pytest.fixture
def dataset(tmp_path):
    """A folder with the files that MARKER lists."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    for shard in SHARDS:
        (tmp_path / shard["name"]).write_bytes(bytes(shard["bytes"]))
    (tmp_path / "recordmill.json").write_text(json.dumps(STORED))
    return tmp_path


@pytest.mark.parametrize(
    "names", [[], [".staging-aaa"], ["NOTES.md", "photos", "records", "shards_1", "2of.txt"]]
)
def test_a_folder_without_a_dataset_is_converted_into(names):
    assert decide(OutputState("/out", names)) == ("convert", "")


def test_the_same_dataset_is_kept(dataset):
    expected = ("keep", f"{dataset} already holds this dataset: nothing to do")
    state = read_output(str(dataset), "aaa")
    assert decide(state) == expected
    assert decide(state, overwrite=True) == expected


def test_a_dataset_without_unreadable_files_or_the_present_skeleton_is_outdated(dataset):
    marker = replace(MARKER, run=replace(MARKER.run, versions=f"{7:064x}"))
    plan = DatasetPlan(summary=Summary(versions=7, ignored=Counter(marker.ledger.ignored)))
    assert not is_outdated(marker, plan)
    for reason in ("changed", "unreadable"):
        ledger = replace(marker.ledger, rejected={"decode_error": 3, reason: 1})
        assert is_outdated(replace(marker, ledger=ledger), plan)
    assert is_outdated(marker, replace(plan, skeleton={"nose": ("tail",)}))


def test_another_dataset_is_refused_with_the_differences_or_overwritten():
    state = OutputState("/out", ["recordmill.json"], MARKER)
    assert decide(state, "bbb") == (
        "refuse",
        "/out holds another dataset (seed: 0 -> 1): choose another output, or replace it with "
        "--overwrite",
    )
    assert decide(state, "bbb", overwrite=True) == ("convert", "")


@pytest.mark.parametrize("name", FILES)
def test_a_dataset_that_lost_a_file_is_rebuilt_only_when_asked(dataset, name):
    (dataset / name).unlink()
    state = read_output(str(dataset), "aaa")
    assert find_fault(str(dataset), MARKER) == f"lacks {name}"
    assert decide(state) == (
        "refuse",
        f"{dataset} lacks {name}, against its recordmill.json: run again with --overwrite to "
        "rebuild it",
    )
    assert decide(state, overwrite=True) == ("convert", "")


@pytest.mark.parametrize(("size", "said"), [(0, "0"), (1000, "1,000"), (1002, "1,002")])
def test_a_shard_of_another_size_is_rebuilt_only_when_asked(dataset, size, said):
    (dataset / "train-1.tfrecord").write_bytes(bytes(size))
    state = read_output(str(dataset), "aaa")
    assert decide(state) == (
        "refuse",
        f"{dataset} holds train-1.tfrecord with {said} bytes instead of 1,001, against its "
        "recordmill.json: "
        "run again with --overwrite to rebuild it",
    )
    assert decide(state, overwrite=True) == ("convert", "")


def test_a_whole_dataset_has_no_fault(dataset):
    assert find_fault(str(dataset), MARKER) is None


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("marker", [None, MARKER], ids=["without", "with"])
def test_a_run_of_another_plan_at_work_is_refused(marker, overwrite):
    state = OutputState(
        "/out", [".staging-aaa", ".staging-bbb"], marker, True, "somebody is at work"
    )
    assert decide(state, overwrite=overwrite) == ("refuse", "somebody is at work")


def test_another_plans_dataset_whose_publishing_was_cut_is_one_of_another_plan():
    state = OutputState(
        "/out", leftovers=(Leftover(".staging-bbb"), Leftover(".staging-ccc", complete=True))
    )
    what = "/out holds .staging-ccc, a complete dataset whose publication was interrupted"
    assert decide(state) == ("refuse", f"{what}: run without --plan to finish it")
    assert decide(state, overwrite=True) == ("convert", "")


def leave(output, plan, records=(), **files):
    staging = output / f".staging-{plan}"
    staging.mkdir(parents=True)
    for number, count in enumerate(records):
        note = {"plan_version": PLAN_VERSION, "report": {"records": count}}
        (staging / f"train-{number:05d}.done.json").write_text(json.dumps(note))
    for name, content in files.items():
        (staging / name.replace("_", ".")).write_text(content)


def test_what_runs_of_other_plans_have_left_is_worth_its_finished_shards(dataset, tree):
    leave(dataset, "aaa", [5], recordmill_json="{}")  # of the dataset that is there
    leave(dataset, "empty")
    leave(dataset, "finished", [0, 5, 7])
    leave(dataset, "nothing", [0, 0])
    leave(dataset, "one", [5], outcome_json='{"exit_code": 1}')
    leave(dataset, "rejected", [5], outcome_json='{"exit_code": 3}')
    leave(
        dataset,
        "torn",
        outcome_json="[",
        **{"x.done.json": "{"},
        **{"y.done.json": '{"report": {}}'},
    )
    leave(dataset, "version", **{"x.done.json": '{"plan_version": 2, "report": {"records": 5}}'})
    state = read_output(str(dataset), "zzz")
    names = ("aaa", "empty", "finished", "nothing", "one", "rejected", "torn", "version")
    shards = {"finished": 3, "one": 1}
    assert state.leftovers == tuple(
        Leftover(f".staging-{name}", shards=shards.get(name, 0)) for name in names
    )
    assert decide(state, "zzz", overwrite=True) == ("convert", "")
    gone = "deleted .staging-{}, which another run had left: no run will resume from it"
    stays = (
        "of another configuration or input: the command that started it resumes from there, "
        "--discard deletes it"
    )
    assert clear_leftovers(state) == [
        gone.format("aaa"),
        gone.format("empty"),
        f"{dataset}/.staging-finished stays, with 3 finished shards {stays}",
        gone.format("nothing"),
        f"{dataset}/.staging-one stays, with 1 finished shard {stays}",
        gone.format("rejected"),
        gone.format("torn"),
        gone.format("version"),
    ]
    assert [path.name for path in sorted(dataset.glob(".staging-*"))] == [
        ".staging-finished",
        ".staging-one",
    ]
    assert len(tree(dataset)) == len(FILES) + 1 + 5


def test_an_update_deletes_the_finished_shards_of_other_plans_without_a_claim(dataset):
    leave(dataset, "finished", [0, 5, 7])
    leave(dataset, "nothing")
    leave(dataset, "complete", [5], recordmill_json="{}")
    state = read_output(str(dataset), "zzz")
    claim_output(str(dataset), "claimed", "another")
    leave(dataset, "elsewhere", [5])
    claim = {"run": "r", "host": "another-machine", "process": 1, "since": "now"}
    (dataset / ".staging-elsewhere/claim-r.json").write_text(json.dumps(claim))
    late = (Leftover(".staging-claimed", shards=2), Leftover(".staging-elsewhere", shards=1))
    gone = "which another run had left"
    notes = clear_leftovers(replace(state, leftovers=(*state.leftovers, *late)), is_update=True)
    assert notes[1:] == [
        f"deleted .staging-finished, {gone}, with 3 finished shards: no run will resume from it",
        f"deleted .staging-nothing, {gone}: no run will resume from it",
    ]
    assert notes[0].startswith(f"{dataset}/.staging-complete stays")
    assert [path.name for path in sorted(dataset.glob(".staging-*"))] == [
        ".staging-claimed",
        ".staging-complete",
        ".staging-elsewhere",
    ]


def test_a_complete_dataset_in_another_plans_staging_is_not_deleted(dataset):
    leave(dataset, "bbb", [5], recordmill_json="{}", outcome_json='{"exit_code": 3}')
    assert read_output(str(dataset), "zzz").leftovers == (Leftover(".staging-bbb", complete=True),)


@pytest.mark.parametrize(
    "names",
    [[".staging-aaa"], [".staging-aaa", *FILES[1:]], [".staging-aaa", "recordmill.json", *FILES]],
    ids=["nothing", "some", "all"],
)
@pytest.mark.parametrize("marker", [None, MARKER], ids=["without", "with"])
def test_a_switch_that_was_cut_is_finished(names, marker):
    state = OutputState("/out", names, marker, pending=True)
    assert decide(state) == (
        "finish",
        "an earlier run was interrupted while publishing: its dataset is now in place",
    )


@pytest.mark.parametrize(
    "name",
    [
        "a.tfrecord",
        "train.tfrecord-00000-of-00001",
        "a.tfrecord.gz",
        "train.record",
        "00-192x192-798.tfrec",
        "train-00000-of-00002",
        "train_shard_0",
        "sidecars",
        "labels.txt",
        "README.md",
        "image.class.label.labels.txt",
    ],
)
@pytest.mark.parametrize("overwrite", [False, True])
def test_files_that_look_like_a_datasets_are_refused_without_a_marker(name, overwrite):
    assert decide(OutputState("/out", ["NOTES.md", name]), overwrite=overwrite) == (
        "refuse",
        f"/out holds {name}, which is not part of a Recordmill dataset: move it away, or choose "
        "another "
        "output",
    )


@pytest.mark.parametrize("marker", [None, MARKER], ids=["without", "with"])
@pytest.mark.parametrize(
    ("pattern", "name", "is_refused"),
    [
        ("my-{}-{}.bin", "my-0-1.bin", True),
        ("my-{}-{}.bin", "my-12-40.bin", True),
        ("my-{}-{}.bin", "my-0-1.bin.old", False),
        ("my-{}-{}.bin", "my-0-1xbin", False),
        ("my-{}-{}.bin", "not-my-0-1.bin", False),
        ("my{:05d}of{:,}", "my00011of1,000,000", True),
        ("{:4d} {:x} (my)", "  12 3fA (my)", True),
        ("{:4d} {:x} (my)", "notes (my)", False),
        ("all", "all", True),
    ],
)
def test_files_with_names_of_new_shards_are_refused(pattern, name, is_refused, marker):
    state = OutputState(
        "/out", ["NOTES.md", name], marker, file_names=["other", pattern.format(0, 1)]
    )
    sentence = (
        f"/out holds {name}, which is not part of a Recordmill dataset: move it away, or choose "
        "another output"
    )
    assert decide(state, "bbb", overwrite=True) == (
        ("refuse", sentence) if is_refused else ("convert", "")
    )


def test_a_file_of_the_dataset_there_may_have_the_name_of_a_new_shard():
    names = [*(name for name in FILES if "/" not in name), "recordmill.json", "sidecars"]
    state = OutputState(
        "/out", names, MARKER, file_names=["train-0.tfrecord", "labels.txt", "sidecars"]
    )
    assert decide(state, "bbb", overwrite=True) == ("convert", "")


def test_a_folder_with_a_file_named_like_a_new_shard_is_listed_again(dataset, monkeypatch):
    # Another run has replaced the dataset meanwhile: the file is not the user's, but the old
    # dataset's.
    old, real = dataset / "train-2.tfrecord", storage.folder_names
    old.touch()

    def remove(folder):
        names = real(folder)
        old.unlink(missing_ok=True)
        return names

    monkeypatch.setattr(storage, "folder_names", remove)
    state = read_output(str(dataset), "bbb", ["train-0.tfrecord"])
    assert decide(state, "bbb", overwrite=True) == ("convert", "")


@pytest.mark.parametrize(
    "content", [b"", b"{", json.dumps(STORED).encode()[:-5], b"\0" * 100, b"\xff"]
)
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_damaged_marker_is_refused_in_a_sentence(dataset, content, overwrite):
    (dataset / "recordmill.json").write_bytes(content)
    state = read_output(str(dataset), "aaa")
    assert state.marker is None
    action, sentence = decide(state, overwrite=overwrite)
    assert action == "refuse"
    assert sentence.startswith(f"{dataset}/recordmill.json cannot be understood: it is not JSON: ")
    assert sentence.endswith(": choose another output, or delete that folder")
    assert find_marker(str(dataset)) is None


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_marker_that_vanishes_while_it_is_read_is_looked_for_again(
    dataset, monkeypatch, comes_back
):
    # Another run takes it away between the two looks.
    real, content = storage.folder_names, (dataset / "recordmill.json").read_bytes()

    def vanish(folder):
        names = real(folder)
        (dataset / "recordmill.json").unlink(missing_ok=True)
        if comes_back:
            monkeypatch.setattr(storage, "folder_names", come_back)
        return names

    def come_back(folder):
        (dataset / "recordmill.json").write_bytes(content)
        return real(folder)

    monkeypatch.setattr(storage, "folder_names", vanish)
    state = read_output(str(dataset), "aaa")
    assert (state.marker, "recordmill.json" in state.names) == (
        (MARKER, True) if comes_back else (None, False)
    )


def test_half_of_another_runs_switch_is_never_taken_for_a_state(dataset, monkeypatch):
    # The same plan's switch goes on between any two things that are looked at.
    whole = {name: (dataset / name).read_bytes() for name in (*FILES, "recordmill.json")}
    for most in range(12):
        for name in ("recordmill.json", *FILES):
            (dataset / name).unlink(missing_ok=True)
        (dataset / "sidecars").rmdir()
        staging = dataset / ".staging-aaa"
        staging.mkdir()
        steps = [
            partial((staging / "recordmill.json").write_text, "{}"),
            (dataset / "sidecars").mkdir,
        ]
        steps += [partial((dataset / name).write_bytes, content) for name, content in whole.items()]
        steps += [partial(storage.remove_folder, str(staging))]
        for step in steps[:most]:
            step()
        del steps[:most]

        def go_on(real, steps=steps):
            def call(*arguments):
                answer = real(*arguments)
                for step in steps[:1]:
                    step()
                del steps[:1]
                return answer

            return call

        with monkeypatch.context() as patch:
            for name in ("folder_names", "exists", "read_range"):
                patch.setattr(storage, name, go_on(getattr(storage, name)))
            action, sentence = decide(read_output(str(dataset), "aaa"))
        assert action in ("convert", "finish", "keep"), sentence
        for step in steps:
            step()


def test_files_that_another_run_takes_back_meanwhile_are_nobodys(dataset, monkeypatch):
    real = storage.folder_names

    def roll_back(folder):
        names = real(folder)
        for name in FILES:
            (dataset / name).unlink(missing_ok=True)
        shutil.rmtree(dataset / "sidecars", ignore_errors=True)
        return names

    (dataset / "recordmill.json").unlink()
    monkeypatch.setattr(storage, "folder_names", roll_back)
    assert decide(read_output(str(dataset), "aaa")) == ("convert", "")


NEWER = [
    json.dumps({**STORED, "recordmill": 4}),
    *(json.dumps({**STORED, key: None}) for key in STORED),
]


@pytest.mark.parametrize("content", ["{}", "[]", '"a"', "{", *NEWER])
def test_a_marker_that_cannot_be_understood_is_refused_in_a_sentence(tmp_path, content):
    (tmp_path / "recordmill.json").write_text(content)
    action, sentence = decide(read_output(str(tmp_path), "aaa"), overwrite=True)
    assert action == "refuse"
    assert sentence.startswith(f"{tmp_path}/recordmill.json cannot be understood: ")
    assert sentence.endswith(": choose another output, or delete that folder")


def test_an_output_is_read_from_its_folder(tmp_path):
    output = str(tmp_path)
    assert read_output(f"{output}/absent", "aaa") == OutputState(
        f"{output}/absent", [], None, False
    )
    (tmp_path / "recordmill.json").write_text(json.dumps(STORED))
    staging = tmp_path / ".staging-aaa"
    staging.mkdir()
    names = [".staging-aaa", "recordmill.json"]
    assert read_output(output, "aaa") == OutputState(output, names, MARKER, False)
    (staging / "recordmill.json").write_text("{")  # that it is there is enough
    assert read_output(output, "aaa") == OutputState(output, names, MARKER, True)
    assert read_output(output, "bbb").pending is False
