import json

import pytest

from transforms.output_state import OutputState, decide_action, differences, read_output, staging_names

MARKER = {
    "plan": {"id": "aaa", "recipe": {"seed": 0, "images": {"quality": 95}}},
    "splits": {"train": {"shards": [{"name": "train-0.tfrecord"}, {"name": "train-1.tfrecord"}]}},
}
NAMES = ["recordmill.json", "train-0.tfrecord", "train-1.tfrecord"]
RECIPE = {"seed": 1, "images": {"quality": 95}}


def decide(state, plan_id="aaa", overwrite=False):
    return decide_action(state, "/out", plan_id, RECIPE, overwrite)


@pytest.mark.parametrize("names", [[], [".staging-aaa"], ["README.md", "photos"]])
def test_a_folder_without_a_dataset_is_converted_into(names):
    assert decide(OutputState(names)) == ("convert", "")


def test_the_same_dataset_is_kept():
    expected = ("keep", "/out already holds this dataset: nothing to do")
    assert decide(OutputState(NAMES, MARKER)) == expected
    assert decide(OutputState(NAMES, MARKER), overwrite=True) == expected


def test_another_dataset_is_refused_with_the_differences_or_overwritten():
    assert decide(OutputState(NAMES, MARKER), "bbb") == (
        "refuse",
        "/out holds another dataset (seed: 0 -> 1): choose another output, or replace it with --overwrite",
    )
    assert decide(OutputState(NAMES, MARKER), "bbb", overwrite=True) == ("convert", "")


def test_a_dataset_that_lost_a_file_is_rebuilt_only_when_asked():
    assert decide(OutputState(NAMES[:2], MARKER)) == (
        "refuse",
        "/out lacks train-1.tfrecord, which its recordmill.json lists: run again with --overwrite to rebuild it",
    )
    assert decide(OutputState(NAMES[:2], MARKER), overwrite=True) == ("convert", "")


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("marker", [None, MARKER])
def test_another_plans_staging_is_refused(marker, overwrite):
    assert decide(OutputState([".staging-aaa", ".staging-bbb"], marker), overwrite=overwrite) == (
        "refuse",
        "/out holds .staging-bbb, the unfinished work of another configuration or input: "
        "finish that run, delete it with --discard, or choose another output",
    )


@pytest.mark.parametrize("names", [[".staging-aaa"], [".staging-aaa", *NAMES[1:]], [".staging-aaa", *NAMES]])
@pytest.mark.parametrize("marker", [None, MARKER])
def test_a_switch_that_was_cut_is_finished(names, marker):
    state = OutputState(names, marker, {"plan": {"id": "aaa"}})
    assert decide(state) == ("finish", "an earlier run was cut while publishing: its dataset is now in place")


@pytest.mark.parametrize(
    "name", ["a.tfrecord", "train.tfrecord-00000-of-00001", "a.tfrecord.gz", "train.record", "sidecars", "labels.txt"]
)
@pytest.mark.parametrize("overwrite", [False, True])
def test_files_that_look_like_a_datasets_are_refused_without_a_marker(name, overwrite):
    assert decide(OutputState(["README.md", name]), overwrite=overwrite) == (
        "refuse",
        f"/out holds {name}, which belongs to no finished dataset: choose an empty folder",
    )


def test_differences_name_the_keys_path():
    old = {"a": 1, "b": {"c": [1], "d": 2}, "gone": 3, "listing": {"digest": "x", "references": 1}}
    new = {"a": 1, "b": {"c": [2], "d": 2}, "new": 4, "listing": {"digest": "y", "references": 1}}
    assert differences(old, new) == ["b.c: [1] -> [2]", "gone: 3 -> None", "other images", "new: None -> 4"]
    assert differences(old, old) == []


def test_an_output_is_read_from_its_folder(tmp_path):
    assert read_output(str(tmp_path / "absent"), "aaa") == OutputState([])
    (tmp_path / "recordmill.json").write_text(json.dumps(MARKER))
    staging = tmp_path / ".staging-aaa"
    staging.mkdir()
    assert read_output(str(tmp_path), "aaa") == OutputState([".staging-aaa", "recordmill.json"], MARKER)
    (staging / "recordmill.json").write_text('{"x": 1}')
    assert read_output(str(tmp_path), "aaa").pending == {"x": 1}
    assert read_output(str(tmp_path), "bbb").pending is None


def test_staging_folders_are_known_by_their_names():
    assert staging_names([".staging-b", "x.staging-a", ".stagin", ".staging-a"]) == [".staging-b", ".staging-a"]
