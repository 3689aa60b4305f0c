"""The settings that a run prints are those in use, and what a table loses is said."""

import runpy
import shlex
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from plan_in_process import plan
from printed_commands import printed_flags

PAGE = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("test_layouts.py"))))
RECOGNIZED = [name for name in PAGE.MADE if not PAGE.ROWS[name].startswith("--config")]


def given(words):
    """The values of `--set` among the words of a command."""
    return [value for flag, value in pairwise(words) if flag == "--set"]


WITH_LISTS = ("CamVid",)
"""Layouts whose lists of images recognition ignores: with other patterns, it asks."""


@pytest.mark.parametrize(
    ("name", "more"),
    [
        *((name, []) for name in RECOGNIZED),
        *((name, ["seed=3"]) for name in RECOGNIZED[::2]),
        *((name, ["ignore=[x]"]) for name in RECOGNIZED[1::2] if name not in WITH_LISTS),
    ],
)
def test_the_printed_settings_give_the_same_plan(name, more, tmp_path):
    files, _, _ = PAGE.MADE[name]
    PAGE.write(tmp_path / "in", files)
    _, place, *words = shlex.split(PAGE.ROWS[name])
    settings = [*given(words), *more]
    found = plan(tmp_path / place, *settings)
    assert found.exit_code == 0, found.message
    (flags,) = printed_flags(found.recognized)
    again = plan(tmp_path / place, *settings, *given(flags))
    assert (again.plan_id, again.recognized) == (found.plan_id, "")


def table(header, *rows):
    return {**PAGE.images("1.jpg", "2.jpg"), "t.csv": "\n".join((header, *rows, ""))}


PETS = table("file,label,age,sex", "1.jpg,cat,1,m", "2.jpg,dog,2,f")
FLAGS = table("file,cat,dog", "1.jpg,1,0", "2.jpg,0,1")
LEFT_OUT = {
    "a table": (PETS, [], "age, sex"),
    "without its class": (PETS, ["source.columns.label="], "label, age, sex"),
    "with a feature": (PETS, ["source.features_from={age: {column: age, type: int64}}"], "sex"),
    "one-hot": (FLAGS, ["source.columns.label="], "cat, dog"),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_columns_that_are_left_out_are_named(name, tmp_path):
    files, settings, columns = LEFT_OUT[name]
    PAGE.write(tmp_path / "in", files)
    found = plan(tmp_path / "in", *settings)
    assert f"(left out: {columns})" in found.recognized
    counted = ", ".join(f"{column} (2)" for column in sorted(columns.split(", ")))
    assert f"not stored: {counted}" in found.notes
    (flags,) = printed_flags(found.recognized)
    explicit = plan(tmp_path / "in", *settings, *given(flags))
    assert f"not stored: {counted}" in explicit.notes
    assert explicit.plan_id == found.plan_id
