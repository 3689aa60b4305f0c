import json

import pytest

from recordmill.transforms.files import storage
from recordmill.transforms.planning.output_state import (
    OutputState,
    decide_action,
    differences,
    find_fault,
    holds_plan,
    read_output,
)

SHARDS = [{"name": f"train-{n}.tfrecord", "sidecar": f"sidecars/train-{n}.jsonl", "bytes": 1000 + n} for n in (0, 1)]
MARKER = {
    "plan": {"id": "aaa", "recipe": {"seed": 0, "images": {"quality": 95}}},
    "splits": {"train": {"shards": SHARDS}},
    "ledger": {"rejected": {"decode_error": 3}},
    "files": ["labels.txt", "sidecars/rejected-00000.jsonl"],
}
FILES = ["train-0.tfrecord", "train-1.tfrecord", "sidecars/train-0.jsonl", "sidecars/train-1.jsonl", *MARKER["files"]]
RECIPE = {"seed": 1, "images": {"quality": 95}}


def decide(state, plan_id="aaa", overwrite=False):
    return decide_action(state, plan_id, RECIPE, overwrite)


@pytest.fixture
def dataset(tmp_path):
    """A folder with the files that MARKER lists."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    for shard in SHARDS:
        (tmp_path / shard["name"]).write_bytes(bytes(shard["bytes"]))
    (tmp_path / "recordmill.json").write_text(json.dumps(MARKER))
    return tmp_path


@pytest.mark.parametrize("names", [[], [".staging-aaa"], ["NOTES.md", "photos", "records", "shards_1", "2of.txt"]])
def test_a_folder_without_a_dataset_is_converted_into(names):
    assert decide(OutputState("/out", names)) == ("convert", "")


def test_the_same_dataset_is_kept(dataset):
    expected = ("keep", f"{dataset} already holds this dataset: nothing to do")
    state = read_output(str(dataset), "aaa")
    assert decide(state) == expected
    assert decide(state, overwrite=True) == expected


def test_what_could_not_be_read_may_be_tried_again(dataset):
    rejected = {"changed": 1, "decode_error": 3, "unreadable": 1200}
    (dataset / "recordmill.json").write_text(json.dumps({**MARKER, "ledger": {"rejected": rejected}}))
    state = read_output(str(dataset), "aaa")
    assert decide(state) == (
        "keep",
        f"{dataset} already holds this dataset, without what could not be read then (1 changed, 1,200 unreadable): "
        "--overwrite tries it again",
    )
    assert decide(state, overwrite=True) == ("convert", "")


def test_another_dataset_is_refused_with_the_differences_or_overwritten():
    state = OutputState("/out", ["recordmill.json"], MARKER)
    assert decide(state, "bbb") == (
        "refuse",
        "/out holds another dataset (seed: 0 -> 1): choose another output, or replace it with --overwrite",
    )
    assert decide(state, "bbb", overwrite=True) == ("convert", "")


@pytest.mark.parametrize("name", FILES)
def test_a_dataset_that_lost_a_file_is_rebuilt_only_when_asked(dataset, name):
    (dataset / name).unlink()
    state = read_output(str(dataset), "aaa")
    assert find_fault(str(dataset), MARKER) == f"lacks {name}"
    assert decide(state) == (
        "refuse",
        f"{dataset} lacks {name}, against its recordmill.json: run again with --overwrite to rebuild it",
    )
    assert decide(state, overwrite=True) == ("convert", "")


@pytest.mark.parametrize(("size", "said"), [(0, "0"), (1000, "1,000"), (1002, "1,002")])
def test_a_shard_of_another_size_is_rebuilt_only_when_asked(dataset, size, said):
    (dataset / "train-1.tfrecord").write_bytes(bytes(size))
    state = read_output(str(dataset), "aaa")
    assert decide(state) == (
        "refuse",
        f"{dataset} holds train-1.tfrecord with {said} bytes instead of 1,001, against its recordmill.json: "
        "run again with --overwrite to rebuild it",
    )
    assert decide(state, overwrite=True) == ("convert", "")


def test_a_whole_dataset_has_no_fault(dataset):
    assert find_fault(str(dataset), MARKER) == ""


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("marker", [None, MARKER], ids=["without", "with"])
def test_another_plans_staging_is_refused(marker, overwrite):
    assert decide(OutputState("/out", [".staging-aaa", ".staging-bbb"], marker), overwrite=overwrite) == (
        "refuse",
        "/out holds .staging-bbb, the unfinished work of another configuration or input: "
        "finish that run, delete it with --discard, or choose another output",
    )


@pytest.mark.parametrize(
    "names",
    [[".staging-aaa"], [".staging-aaa", *FILES[1:]], [".staging-aaa", "recordmill.json", *FILES]],
    ids=["nothing", "some", "all"],
)
@pytest.mark.parametrize("marker", [None, MARKER], ids=["without", "with"])
def test_a_switch_that_was_cut_is_finished(names, marker):
    state = OutputState("/out", names, marker, pending=True)
    assert decide(state) == ("finish", "an earlier run was cut while publishing: its dataset is now in place")


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
        f"/out holds {name}, which belongs to no finished dataset: choose an empty folder",
    )


@pytest.mark.parametrize("content", [b"", b"{", json.dumps(MARKER).encode()[:-5], b"\0" * 100, b"\xff"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_damaged_marker_is_refused_in_a_sentence(dataset, content, overwrite):
    (dataset / "recordmill.json").write_bytes(content)
    state = read_output(str(dataset), "aaa")
    assert state.marker is None
    assert decide(state, overwrite=overwrite) == (
        "refuse",
        f"{dataset}/recordmill.json cannot be read: choose another output, or delete that folder",
    )
    assert not holds_plan(str(dataset), "aaa")


def test_a_marker_that_vanishes_while_it_is_looked_at_is_none(dataset, monkeypatch):
    # Another run takes it away between the two looks.
    real = storage.folder_names

    def vanish(folder):
        names = real(folder)
        (dataset / "recordmill.json").unlink()
        return names

    monkeypatch.setattr(storage, "folder_names", vanish)
    state = read_output(str(dataset), "aaa")
    assert (state.marker, "recordmill.json" in state.names) == (None, False)


@pytest.mark.parametrize("content", ["{}", "[]", '"a"', "{"])
def test_a_marker_that_is_none_is_refused_in_a_sentence(tmp_path, content):
    (tmp_path / "recordmill.json").write_text(content)
    action, sentence = decide_action(read_output(str(tmp_path), "aaa"), "aaa", {}, overwrite=True)
    advice = "choose another output, or delete that folder"
    assert (action, sentence) == ("refuse", f"{tmp_path}/recordmill.json cannot be read: {advice}")


def test_a_folder_holds_the_plan_of_its_marker(dataset):
    assert holds_plan(str(dataset), "aaa")
    assert not holds_plan(str(dataset), "bbb")
    assert not holds_plan(str(dataset / "absent"), "aaa")


def test_differences_name_the_keys_path():
    old = {"a": 1, "b": {"c": [1], "d": 2}, "gone": 3, "listing": {"digest": "x", "references": 1}}
    new = {"a": 1, "b": {"c": [2], "d": 2}, "new": 4, "listing": {"digest": "y", "references": 1}}
    assert differences(old, new) == ["b.c: [1] -> [2]", "gone: 3 -> not set", "other images", "new: not set -> 4"]
    assert differences(old, old) == []


def test_other_images_are_told_in_words():
    old, new = ({"listing": {"digest": digest, "references": count}} for digest, count in (("a", 1219), ("b", 80)))
    assert differences(old, new) == ["other images", "80 of them instead of 1,219"]


def test_an_output_is_read_from_its_folder(tmp_path):
    output = str(tmp_path)
    assert read_output(f"{output}/absent", "aaa") == OutputState(f"{output}/absent", [], None, False)
    (tmp_path / "recordmill.json").write_text(json.dumps(MARKER))
    staging = tmp_path / ".staging-aaa"
    staging.mkdir()
    names = [".staging-aaa", "recordmill.json"]
    assert read_output(output, "aaa") == OutputState(output, names, MARKER, False)
    (staging / "recordmill.json").write_text("{")  # that it is there is enough
    assert read_output(output, "aaa") == OutputState(output, names, MARKER, True)
    assert read_output(output, "bbb").pending is False
