"""The commands of the DAG for Airflow, run from the wheel.

Small stand-ins take the place of Airflow's classes; `make test-airflow` runs the DAG with Airflow.
"""

import importlib
import json
import subprocess
import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace

import jinja2
import pytest
from PIL import Image

FOLDER = Path(__file__).parents[2] / "deploy" / "airflow"


class Operator:
    """Runs the command that `start_python_pipeline` of Airflow's `BeamHook` runs."""

    def __init__(self, **given):
        vars(self).update(given)

    def __rshift__(self, after):
        return after

    def execute(self, context):
        options = {**self.pipeline_options, "labels": "airflow-version=v3-3-2"}
        flags = [
            f"--{name}" if value is True else f"--{name}={value}" for name, value in options.items()
        ]
        program = [self.py_interpreter, *self.py_options, self.py_file]
        subprocess.run([*program, f"--runner={self.runner}", *flags], check=True)


class Task:
    """What `@task` makes of a function."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *arguments):
        return Operator()


class Events:
    """Remembers the events that a task adds."""

    def __init__(self):
        self.added = []

    def add(self, asset, extra):
        self.added.append((asset, extra))


def task(function=None, **settings):
    return Task(function) if function else Task


task.branch = task
AIRFLOW = {
    "airflow.providers.apache.beam.operators.beam": {"BeamRunPythonPipelineOperator": Operator},
    "airflow.sdk": {
        "Asset": lambda uri: uri,
        "AssetAlias": lambda name: name,
        "DAG": lambda **settings: nullcontext(),
        "ObjectStoragePath": Path,
        "Param": lambda default, **description: default,
        "task": task,
    },
    "airflow.sdk.exceptions": {"AirflowException": Exception, "AirflowFailException": Exception},
}


@pytest.fixture
def dag(installed, tmp_path, monkeypatch):
    """The DAG's module, in an empty folder, with the Python of an environment with the wheel."""
    for name, content in AIRFLOW.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("RECORDMILL_PYTHON", str(installed / "python"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.syspath_prepend(str(FOLDER))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    yield importlib.import_module("recordmill_dag")
    for name in ("recordmill_dag", "check_conversion"):
        del sys.modules[name]


def render(values, params):
    """Fills in what Airflow fills in when a task starts."""
    templates = jinja2.Environment()
    templates.filters["ds"] = lambda date: date.strftime("%Y-%m-%d")
    run = SimpleNamespace(logical_date=datetime(2026, 3, 4, tzinfo=UTC))

    def fill(value):
        return (
            templates.from_string(value).render(params=params, dag_run=run)
            if isinstance(value, str)
            else value
        )

    return {name: fill(value) for name, value in values.items()}


def test_the_tasks_of_a_night(dag, tmp_path):
    for label in ("cat", "dog"):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for number in range(20):
            Image.new("RGB", (16, 12), (number, 9, ord(label[0]))).save(
                tmp_path / "photos" / label / f"{number}.png"
            )
    output = f"{tmp_path}/datasets/{{date}}"
    params = {
        **dag.PARAMS,
        "input": f"{tmp_path}/photos",
        "output": output,
        "classes": ["cat", "dog"],
    }
    given = render(
        {"output": dag.OUTPUT, "outcome": dag.OUTCOME, "runner": dag.convert.runner}, params
    )
    dag.convert.runner = given["runner"]
    dag.convert.pipeline_options = render(dag.convert.pipeline_options, params)

    dag.convert.execute({"params": params})
    assert given["output"] == str(tmp_path / "datasets" / "2026-03-04")
    assert json.loads(Path(given["outcome"]).read_bytes())["status"] == "published"
    assert dag.choose.function(given["outcome"]) == "check"
    events = {"recordmill": Events()}
    images = dag.check.function(given["output"], given["outcome"], params, events)
    assert sum(images.values()) == 40
    dag.drop_old.function(given["output"], params)
    pointer = json.loads(Path(given["output"], "recordmill.json").read_bytes())
    marker = json.loads(Path(given["output"], pointer["current"], "recordmill.json").read_bytes())
    extra = {"version": pointer["current"], "plan_id": marker["plan"]["id"]}
    assert events["recordmill"].added == [(Path(given["output"]).as_uri(), extra)]

    dag.convert.pipeline_options = render(dag.convert.pipeline_options, params)
    dag.convert.execute({"params": params})
    assert json.loads(Path(given["outcome"]).read_bytes())["status"] == "kept"
    dag.check.function(given["output"], given["outcome"], params, events)
    assert len(events["recordmill"].added) == 1
