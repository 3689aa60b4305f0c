"""docs/json_summary.md and its schema: each status of a real run, and all its properties."""

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest
from documented_inputs import draw_collections
from summary_schema import check_summary, read_schema

from recordmill.schemas.dataset.outcome import (
    DatasetNumbers,
    FailedNumbers,
    Outcome,
    OutcomeStatus,
    PlannedNumbers,
)

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

PAGE = "docs/json_summary.md"
TEXT = (Path(__file__).parents[2] / PAGE).read_text(encoding="utf-8")
RUN = "recordmill run photos"

# `submitted` and `built` come from runners that start no job here: every summary of tests/pipeline
# is held to the schema, and test_dataflow.py has both.
COMMANDS = {
    "published": f"{RUN} dataset",
    "kept": f"{RUN} dataset",
    "planned": f"{RUN} other --plan",
    "refused": f"{RUN} dataset --set seed=1",
    "failed": f"{RUN} strict --set max_rejected.count=0 --set max_rejected.share=0",
    "written": f"{RUN} written --writer=beam --set shards.count=1",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = draw_collections(tmp_path_factory.mktemp("summaries"))
    (folder / "photos/cat/text.jpg").write_text("text", encoding="utf-8")
    return folder


def test_the_commands_of_the_page_write_a_summary_that_fits(run_page, tmp_path):
    folder = draw_collections(tmp_path)
    converted, shown = run_page(PAGE, folder)
    written = json.loads((folder / "summary.json").read_bytes())
    assert check_summary(written) == json.loads(converted.stdout) == json.loads(shown.stdout)


def test_a_run_of_each_status_fits_the_schema(run_command, folder, choose_runner):
    for status, command in COMMANDS.items():
        if status == "written":
            choose_runner(True)
        done = run_command(command, folder)
        line = check_summary(json.loads(done.stdout))
        assert (line["status"], line["exit_code"]) == (status, done.returncode)


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ("strict --set max_rejected.count=0 --set max_rejected.share=0", 3),
        ("new --set 'expect.classes=[cat]'", 4),
        ("other --plan --set max_rejected.count=0 --set max_rejected.share=0", 0),
        ("other --zzz", 2),
        ("photos/below", 1),
        ("gone/../\x1b", 0),
    ],
)
def test_runs_of_each_exit_code_fit_the_schema(run_command, folder, flags, code):
    done = run_command(f"{RUN} {flags}", folder)
    assert done.returncode == code, done.stderr
    assert check_summary(json.loads(done.stdout))["exit_code"] == code


def test_the_page_and_the_schema_have_every_status():
    rows = re.findall(r"^\| `(\w+)` \| [\d, or]+ \|", TEXT, re.MULTILINE)
    statuses = [*get_args(OutcomeStatus)]
    assert rows == statuses == read_schema()["properties"]["status"]["enum"]


def test_the_schema_has_every_property_with_its_meaning():
    properties = read_schema()["properties"]
    named = {
        field.name
        for kind in (Outcome, DatasetNumbers, PlannedNumbers, FailedNumbers)
        for field in fields(kind)
    } - {"numbers"}
    assert named - properties.keys() == set()
    for name, each in properties.items():
        assert each.get("deprecated") or name == "seconds" or each["description"].endswith(".")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"status": "done"}, "'done' is not one of"),
        ({"exit_code": 0}, "should not be valid"),
        ({"zzz": 1}, "Additional properties"),
        ({"plan_id": 3}, "3 is not of type"),
    ],
)
def test_other_summaries_do_not_fit(change, problem):
    line = {
        **{"status": "failed", "exit_code": 1, "message": "x", "output": None},
        **{"plan_id": "", "notes": [], "seconds": {"total": 0.1}},
    }
    assert check_summary(line) == line
    with pytest.raises(AssertionError, match=problem):
        check_summary({**line, **change})
