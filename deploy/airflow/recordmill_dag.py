"""Airflow 3: makes a dataset version per date, and checks it before downstream tasks use it.

It needs apache-airflow-providers-apache-beam and -google (the former does not load without the
latter). Recordmill has its own environment; set RECORDMILL_PYTHON to its Python. Parameters may
contain `{date}`, the run's date.
"""

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta

from airflow.providers.apache.beam.operators.beam import BeamRunPythonPipelineOperator
from airflow.sdk import DAG, ObjectStoragePath, Param, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from check_conversion import find_problems

WITH_DATE = "{{ params.%s | replace('{date}', (dag_run.logical_date or dag_run.run_after) | ds) }}"
INPUT, OUTPUT = WITH_DATE % "input", WITH_DATE % "output"
SUMMARY = f"{OUTPUT}.{{{{ (dag_run.logical_date or dag_run.run_after) | ds }}}}.summary.json"
PYTHON = os.environ.get("RECORDMILL_PYTHON", "/opt/recordmill/bin/python")

# Wrong flags or configuration (2), too many rejected (3), in the provider's words; a retry would
# fail again.
FINAL = ("failed with return code 2", "failed with return code 3")

# The dataset is not as `expect` says: the DAG continues with `report_breach` in place of `check`.
NOT_AS_EXPECTED = 4

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

    On other runners, this process does the work or waits for it, and writes the summary. On
    Dataflow, the operator stops reading output once it knows the job's id, so only the outcome file
    that the job writes is reliable.
    """

    def execute(self, context):
        """Completes the flags with values that are known only at run time."""
        given = dict(context["params"]["beam_options"])
        summary_path = self.pipeline_options.pop("summary-json")
        self.deferrable = self.runner.lower() in ("dataflow", "dataflowrunner")
        if self.deferrable:
            self.runner = "DataflowRunner"  # the name that the operator knows
            self.dataflow_config = {
                "job_name": "recordmill",
                "project_id": given.pop("project", None),
                "location": given.pop("region", "us-central1"),
            }
            self.pipeline_options |= {"no-wait": True, "outcome-file": summary_path}
        else:
            self.pipeline_options["summary-json"] = summary_path
        self.pipeline_options |= given
        try:
            return super().execute(context)
        except AirflowException as error:
            if str(error).endswith(f"failed with return code {NOT_AS_EXPECTED}"):
                return None  # the summary has the breaches
            if str(error).endswith(FINAL):
                raise AirflowFailException(
                    f"{error}: a retry would fail again; see the log above"
                ) from error
            raise


@task.branch(retries=0)
def choose(summary_path: str) -> str:
    """Names the task that continues: the dataset is there, or it was not as expected."""
    return "report_breach" if _read(summary_path)["exit_code"] == NOT_AS_EXPECTED else "check"


@task(retries=0)
def report_breach(summary_path: str) -> str:
    """Returns why nothing was published; put your alert here.

    Tasks that depend on `check` are skipped.
    """
    return _read(summary_path)["message"]


@task(retries=0)  # checking a dataset again does not change it
def check(dataset: str, summary_path: str, params: dict | None = None) -> dict[str, int]:
    """Fails if the dataset must not be used; returns images by split."""
    summary = _read(summary_path)
    version = {**summary, **summary.get("numbers", {})}.get("version", "")
    marker = {} if summary["exit_code"] else _read(f"{dataset}/{version}/recordmill.json")
    if problems := find_problems(summary, marker, params["classes"], params["max_rejected"]):
        raise AirflowFailException(f"{dataset}: {'; '.join(problems)}")
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
            "summary-json": SUMMARY,
            "versions": True,
            "update": True,
        },
    )
    checked = check(OUTPUT, SUMMARY)
    convert >> choose(SUMMARY) >> [checked, report_breach(SUMMARY)]
    checked >> drop_old(OUTPUT)
