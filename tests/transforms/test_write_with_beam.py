"""The moves and the refusals of `--writer=beam`; tests/pipeline/test_beam_writer.py runs whole conversions."""

import errno

import pytest

from recordmill import storage
from recordmill.transforms.run_settings import RunSettings
from recordmill.transforms.write_with_beam import _move, find_others


@pytest.fixture
def run(tmp_path):
    return RunSettings(run_id="r", output=str(tmp_path / "out"), outcome_file="")


@pytest.fixture
def staging(tmp_path):
    folder = tmp_path / "out/.staging-r"
    folder.mkdir(parents=True)
    for name in ("a", "b"):
        (folder / name).write_text(name)
    return folder


MOVES = {"a": "train", "b": "test"}


def test_a_step_that_a_runner_repeats_moves_the_rest(run, staging, tree, tmp_path):
    _move(str(staging), {"a": "train"}, run)
    _move(str(staging), MOVES, run)  # as after a cut
    _move(str(staging), MOVES, run)
    assert tree(tmp_path / "out") == {"train": b"a", "test": b"b"}


def test_a_move_that_fails_leaves_nothing(run, staging, tree, tmp_path, monkeypatch):
    move = storage.move_file

    def fail_on_b(source, target):
        if source.endswith("b"):
            raise OSError(errno.ENOSPC, "No space left on device", source)
        move(source, target)

    monkeypatch.setattr(storage, "move_file", fail_on_b)
    with pytest.raises(OSError, match="No space left"):
        _move(str(staging), MOVES, run)
    assert tree(tmp_path / "out") == {".staging-r/b": b"b"}


def test_files_that_came_meanwhile_are_not_replaced(run, staging, tree, tmp_path):
    (tmp_path / "out/train").write_text("another's")
    with pytest.raises(ValueError, match="holds train: choose another output"):
        _move(str(staging), MOVES, run)
    assert (tmp_path / "out/train").read_text() == "another's"


def test_only_a_run_s_own_folder_and_outcomes_may_be_there(staging, tmp_path):
    output = tmp_path / "out"
    (output / ".outcome-x.json").touch()
    assert find_others(str(output), "r") == ""
    assert find_others(str(tmp_path / "absent")) == ""
    assert find_others(str(output)).endswith("holds .staging-r: delete unfinished work with --discard")
    (output / "notes.txt").touch()
    assert find_others(str(output), "r").endswith("holds notes.txt: choose another output")
