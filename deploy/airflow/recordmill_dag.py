"""Airflow 3: makes a dataset version per date, and checks it before downstream tasks use it.

It needs apache-airflow-providers-apache-beam and -google (the former does not load without the
latter). Recordmill has its own environment; set RECORDMILL_PYTHON to its Python. Parameters may
contain `{date}`, the run's date. See docs/airflow.md.
"""

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.providers.apache.beam.operators.beam import BeamRunPythonPipelineOperator
from airflow.sdk import DAG, Asset, AssetAlias, ObjectStoragePath, Param, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from check_conversion import find_problems

WITH_DATE = "{{ params.%s | replace('{date}', (dag_run.logical_date or dag_run.run_after) | ds) }}"
INPUT, OUTPUT = WITH_DATE % "input", WITH_DATE % "output"
OUTCOME = f"{OUTPUT}.{{{{ (dag_run.logical_date or dag_run.run_after) | ds }}}}.outcome.json"
PYTHON = os.environ.get("RECORDMILL_PYTHON", "/opt/recordmill/bin/python")

# Wrong flags or configuration, and too many rejected: a retry would fail again.
FINAL = (2, 3)

# The dataset is not as `expect` says: the DAG continues with `report_breach` in place of `check`.
NOT_AS_EXPECTED = 4

# Schedule other DAGs on it: they run after each published version, but not if nothing has changed.
PUBLISHED = AssetAlias("recordmill")

PARAMS = {
    "input": Param(
        "/data/photos", type="string", description="the folder with the images; may contain {date}"
    ),
    "output": Param(
        "/data/dataset",
        type="string",
        description="the folder with the versions; may contain {date}",
    ),
    "config": Param(
        "configs/class_folders.yaml", type="string", description="the YAML that defines the dataset"
    ),
    "runner": Param(
        "DirectRunner", type="string", description="DirectRunner, PrismRunner, DataflowRunner, ..."
    ),
    "beam_options": Param(
        {}, type="object", description="other flags of Recordmill, Beam and the runner"
    ),
    "keep": Param(7, type="integer", minimum=1, description="versions that are kept"),
    "classes": Param(
        [], type="array", items={"type": "string"}, description="classes that must have images"
    ),
    "max_rejected": Param(
        0.01, type="number", minimum=0, maximum=1, description="the share that may be rejected"
    ),
}


class ConvertImages(BeamRunPythonPipelineOperator):
    """Runs `python -m recordmill`. On Dataflow, it waits for the job without a worker slot.

    How the conversion ended is in the outcome file, on every runner.
    """

    def execute(self, context):
        """Completes the flags with values that are known only at run time."""
        outcome_path = ObjectStoragePath(self.pipeline_options["outcome-file"])
        outcome_path.unlink(missing_ok=True)  # of an earlier try
        given = dict(context["params"]["beam_options"])
        self.deferrable = self.runner.lower() in ("dataflow", "dataflowrunner")
        if self.deferrable:
            self.runner = "DataflowRunner"  # the name that the operator knows
            self.dataflow_config = {
                "job_name": "recordmill",
                "project_id": given.pop("project", None),
                "location": given.pop("region", "us-central1"),
            }
            self.pipeline_options["no-wait"] = True
        self.pipeline_options |= given
        try:
            return super().execute(context)
        except AirflowException as error:
            # A process that was killed has written none.
            outcome = json.loads(outcome_path.read_text()) if outcome_path.exists() else {}
            code = outcome.get("exit_code")
            if code == NOT_AS_EXPECTED:
                return None  # the outcome has the breaches
            if code in FINAL:
                sentence = f"{outcome['message']} (exit code {code}: a retry would fail again)"
                raise AirflowFailException(sentence) from error
            raise


@task.branch(retries=0)
def choose(outcome_path: str) -> str:
    """Names the task that continues: the dataset is there, or it was not as expected."""
    return "report_breach" if _read(outcome_path)["exit_code"] == NOT_AS_EXPECTED else "check"


@task(retries=0)
def report_breach(outcome_path: str) -> str:
    """Returns why nothing was published; put your alert here.

    Tasks that depend on `check` are skipped.
    """
    return _read(outcome_path)["message"]


@task(retries=0, outlets=[PUBLISHED])  # checking a dataset again does not change it
def check(
    dataset: str, outcome_path: str, params: dict | None = None, outlet_events: dict | None = None
) -> dict[str, int]:
    """Fails if the dataset must not be used; returns images by split.

    Adds an event for the dataset if there is a new version.
    """
    outcome = _read(outcome_path)
    version = outcome.get("numbers", {}).get("version", "")
    marker = {} if outcome["exit_code"] else _read(f"{dataset}/{version}/recordmill.json")
    if problems := find_problems(outcome, marker, params["classes"], params["max_rejected"]):
        raise AirflowFailException(f"{dataset}: {'; '.join(problems)}")
    if outcome["status"] == "published":
        uri = dataset if "://" in dataset else Path(dataset).absolute().as_uri()
        extra = {"version": version, "plan_id": outcome["plan_id"]}
        outlet_events[PUBLISHED].add(Asset(uri), extra=extra)
    return {name: split["records"] for name, split in marker["splits"].items()}


@task
def drop_old(dataset: str, params: dict | None = None) -> None:
    """Deletes old versions, but never the current one."""
    subprocess.run(
        [PYTHON, "-m", "recordmill", "versions", dataset, "--keep", str(params["keep"])], check=True
    )


def _read(path: str) -> dict:
    return json.loads(ObjectStoragePath(path).read_text())


with DAG(
    dag_id="recordmill",
    description="Images to TFRecords, a version of the dataset per date",
    schedule="@daily",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    params=PARAMS,
    tags=["recordmill"],
    default_args={
        "retries": 2,
        # A retry resumes from the finished shards.
        "retry_delay": timedelta(seconds=float(os.environ.get("RECORDMILL_RETRY_SECONDS", "300"))),
    },
):
    convert = ConvertImages(
        task_id="convert",
        py_interpreter=PYTHON,
        py_options=["-m"],
        py_file="recordmill",  # `run` is the default command; the operator appends the flags
        runner="{{ params.runner }}",
        pipeline_options={
            "input": INPUT,
            "output": OUTPUT,
            "config": "{{ params.config }}",
            "outcome-file": OUTCOME,
            "versions": True,
            "update": True,
        },
    )
    checked = check(OUTPUT, OUTCOME)
    convert >> choose(OUTCOME) >> [checked, report_breach(OUTCOME)]
    checked >> drop_old(OUTPUT)
