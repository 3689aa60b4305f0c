"""docs/airflow.md: its commands are run by Airflow where that is installed; its table is the
DAG's."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
TEXT = (REPO / "docs" / "airflow.md").read_text(encoding="utf-8")


def parameters():
    tree = ast.parse(
        (REPO / "deploy" / "airflow" / "recordmill_dag.py").read_text(encoding="utf-8")
    )
    (given,) = [each.value for each in tree.body if ast.unparse(each).startswith("PARAMS =")]
    for name, call in zip(given.keys, given.values, strict=True):
        described = {keyword.arg: keyword.value for keyword in call.keywords}["description"]
        yield name.value, ast.literal_eval(call.args[0]), described.value


def test_the_table_is_that_of_the_dag():
    rows = re.findall(r"^\| `(\w+)` \| `(.*?)` \| (.*) \|$", TEXT, re.MULTILINE)
    assert rows == [(name, str(default), text) for name, default, text in parameters()]


def test_the_versions_are_those_of_the_tests():
    makefile = (REPO / "Makefile").read_text(encoding="utf-8")
    pinned = re.findall(r"(apache-airflow[\w-]*)==([\d.]+)", makefile)
    assert len(pinned) == 3
    assert all(f"{name} {version}" in TEXT for name, version in pinned)


def test_the_examples_of_parameters_are_some():
    names = {name for name, *_ in parameters()}
    conf = json.loads(re.search(r"--conf '(.*?)'", TEXT)[1])
    dataflow = json.loads(re.search(r"^```json\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)[1])
    assert set(conf) | set(dataflow) <= names


@pytest.mark.slow
def test_the_commands_run(tmp_path):
    pytest.importorskip("airflow", reason="no apache-airflow here: make test-airflow")
    for label in ("cat", "dog"):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for number in range(20):
            content = b"P6 4 3 255\n" + bytes([number, 7, ord(label[0])] * 12)
            (tmp_path / "photos" / label / f"{number}.ppm").write_bytes(content)
    (tmp_path / "recordmill").symlink_to(REPO)
    script = "\n".join(re.findall(r"^```bash\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)).replace(
        "/srv", str(tmp_path)
    )
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euc", script],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    output = tmp_path / "dataset"
    version = json.loads((output / "recordmill.json").read_bytes())["current"]
    assert (
        json.loads((output / version / "recordmill.json").read_bytes())["ledger"]["written"] == 40
    )
    assert (
        json.loads((tmp_path / "dataset.2026-03-04.outcome.json").read_bytes())["status"]
        == "published"
    )
    assert "2026-03-03" in done.stdout  # the last of the backfill's dates
