"""Collections that people bring, and inputs that they have reported as troubles: right at the first
try, or stopped with commands that end right."""

from dataclasses import replace
from pathlib import Path

import pytest
from first_hour import ASKED, RIGHT, Dataset
from peer import Found, differences, read_dataset, walk_dataset
from printed_commands import follow, write_files
from reported_inputs import REPORTED_RIGHT, REPORTED_STOPPED

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

RIGHT_AT_ONCE = RIGHT | REPORTED_RIGHT
STOPPED = ASKED | REPORTED_STOPPED


def found_like(expected: Dataset) -> list[Found]:
    """What is in the dataset, without the splits that fractions choose."""
    found = read_dataset(Path("out"))
    is_split = any(each.split for each in expected)
    return found if is_split else [replace(each, split="") for each in found]


@pytest.mark.parametrize("name", RIGHT_AT_ONCE)
def test_these_are_right_at_the_first_try(name, tmp_path, run_in):
    collection = RIGHT_AT_ONCE[name]
    write_files(tmp_path / "in", collection.files)
    code, out, err = run_in(["--input", "in", *collection.flags])
    assert code == 0, err
    (expected,) = collection.datasets
    assert differences(found_like(expected), expected) == []
    assert [each for each in collection.notes if each not in " ".join((out + err).split())] == []


@pytest.mark.parametrize("name", STOPPED)
def test_these_stop_and_every_printed_command_ends_right(name, tmp_path, run_in):
    collection = STOPPED[name]
    write_files(tmp_path / "in", collection.files)
    left = list(collection.datasets)
    for end in follow(["--input", "in"], run_in):
        assert (end.codes[0] > 0, end.code) == (True, 0), (end.arguments, end.message)
        right = [
            expected
            for expected in collection.datasets
            if not differences(found_like(expected), expected)
        ]
        assert right, (end.arguments, read_dataset(Path("out")))
        left = [each for each in left if each not in right]
    assert not left


def test_columns_of_numbers_are_stored_as_the_table_has_them(tmp_path, run_in):
    write_files(tmp_path / "in", ASKED["136 targets (Udacity)"].files)
    ways = list(follow(["--input", "in"], run_in))
    (end,) = (each for each in ways if any("targets" in word for word in each.arguments))
    run_in(list(end.arguments))
    stored = sorted(tuple(features["targets"]) for _, features in walk_dataset(Path("out")))
    assert stored == sorted(tuple(n + at / 2 for n in range(12)) for at in [*range(6)] * 2)
