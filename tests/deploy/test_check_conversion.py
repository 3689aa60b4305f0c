"""The check of the DAG for Airflow, on what real conversions say."""

import ast
import importlib.util
import json
import sys
from pathlib import Path

import pytest
from PIL import Image

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

REPO = Path(__file__).parents[2]
FOLDER = REPO / "deploy" / "airflow"


@pytest.fixture(scope="module")
def find_problems():
    spec = importlib.util.spec_from_file_location(
        "check_conversion", FOLDER / "check_conversion.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.find_problems


@pytest.fixture(scope="module")
def converted(tmp_path_factory, run_command):
    """What a conversion of 40 images and one that is none have reported, in both shapes, and its
    marker."""
    folder = tmp_path_factory.mktemp("converted")
    for label in ("cat", "dog"):
        (folder / "photos" / label).mkdir(parents=True)
        for number in range(20):
            Image.new("RGB", (16, 12), (number, 9, ord(label[0]))).save(
                folder / "photos" / label / f"{number}.png"
            )
    (folder / "photos" / "cat" / "none.jpg").write_bytes(b"no picture")
    (folder / "photos" / "cat" / "Thumbs.db").write_bytes(b"")
    files = "--summary-json summary.json --outcome-file outcome.json"
    done = run_command(f"recordmill run --input photos --output dataset {files}", folder)
    assert done.returncode == 0, done.stderr
    names = ("summary.json", "outcome.json", "dataset/recordmill.json")
    return [json.loads((folder / name).read_bytes()) for name in names]


@pytest.fixture(params=[0, 1], ids=["summary", "outcome"])
def line(converted, request):
    return json.loads(json.dumps(converted[request.param]))


@pytest.fixture
def marker(converted):
    return json.loads(json.dumps(converted[2]))


def ledger(line):
    return line["numbers"]["ledger"] if "numbers" in line else line["ledger"]


def test_a_good_dataset_has_no_problem(find_problems, line, marker):
    assert find_problems(line, marker, ["cat", "dog"], 1 / 41) == []
    assert find_problems({**line, "status": "kept"}, marker, [], 1.0) == []


def test_too_many_rejected(find_problems, line, marker):
    assert find_problems(line, marker) == ["1 of 41 images were rejected, more than 1.00%"]


def test_a_ledger_that_does_not_add_up(find_problems, line, marker):
    ledger(line)["listed"] += 1
    assert find_problems(line, marker, max_rejected=1) == [
        "43 were listed, and 40 + 1 + 1 + 0 are accounted for"
    ]


def test_an_empty_split(find_problems, line, marker):
    marker["splits"]["test"] |= {"records": 0, "classes": {}}
    assert find_problems(line, marker, max_rejected=1) == ["the split test is empty"]


def test_nothing_was_written(find_problems, line, marker):
    ledger(line).update(listed=1, written=0, rejected={}, ignored={"system_file": 1})
    marker["splits"] = {}
    assert find_problems(line, marker) == ["no image was written"]


def test_missing_classes(find_problems, line, marker):
    assert find_problems(line, marker, ["zebra", "cat", "ape"], 1) == [
        "no image is of the class ape, zebra"
    ]


def test_a_dataset_of_another_run(find_problems, line, marker):
    mine = marker["plan"]["id"]
    marker["plan"]["id"] = "another"
    assert find_problems(line, marker, max_rejected=1) == [
        f"the dataset is of plan another, not {mine}"
    ]


@pytest.mark.parametrize(
    ("status", "code"), [("failed", 3), ("submitted", 0), ("planned", 0), ("refused", 1)]
)
def test_output_that_is_not_a_finished_conversion(find_problems, marker, status, code):
    line = {"status": status, "exit_code": code, "message": "why.", "plan_id": ""}
    assert find_problems(line, marker) == [
        f"the conversion is {status} with exit code {code}: why."
    ]


def test_several_problems_are_all_reported(find_problems, line, marker):
    marker["splits"]["test"] |= {"records": 0, "classes": {}}
    assert len(find_problems(line, marker, ["zebra"])) == 3


def test_the_check_needs_no_airflow():
    tree = ast.parse((FOLDER / "check_conversion.py").read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= set(sys.stdlib_module_names) | {"collections.abc"}


def test_the_dag_gives_flags_that_there_are():
    from recordmill.pipeline.configuration.options import build_parser, hyphenated

    tree = ast.parse((FOLDER / "recordmill_dag.py").read_text(encoding="utf-8"))
    dicts = [
        node.value
        for node in ast.walk(tree)
        if (isinstance(node, ast.keyword) and node.arg == "pipeline_options")
        or (isinstance(node, ast.AugAssign) and ast.unparse(node.target) == "self.pipeline_options")
    ]
    flags = {key.value for each in dicts if isinstance(each, ast.Dict) for key in each.keys}
    flags |= {
        node.targets[0].slice.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Subscript)
        and ast.unparse(node.targets[0].value) == "self.pipeline_options"
    }
    assert flags == {
        "input",
        "output",
        "config",
        "versions",
        "update",
        "no-wait",
        "outcome-file",
    }
    known = build_parser().flag_names()
    assert {hyphenated(f"--{flag}") for flag in flags} <= {*known}
