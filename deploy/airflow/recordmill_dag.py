"""Airflow 3: converts one collection a date with Recordmill, and checks the dataset before anything else uses it.

It needs apache-airflow-providers-apache-beam and -google (the former refuses to load without the latter) and, in an
environment of its own, Recordmill: its Python is named by RECORDMILL_PYTHON. Parameters hold `{date}`, the run's date.
"""

import json
import os
from datetime import UTC, datetime, timedelta

from airflow.providers.apache.beam.operators.beam import BeamRunPythonPipelineOperator
from airflow.sdk import DAG, ObjectStoragePath, Param, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from check_conversion import find_problems

WITH_DATE = "{{ params.%s | replace('{date}', (dag_run.logical_date or dag_run.run_after) | ds) }}"
INPUT, OUTPUT = WITH_DATE % "input", WITH_DATE % "output"
TOLD = f"{OUTPUT}.summary.json"

# Wrong flags or configuration (2), too many rejected (3), as the provider words it; a retry would end the same.
FINAL = ("failed with return code 2", "failed with return code 3")

PARAMS = {
    "input": Param("/data/photos", type="string", description="the folder with the images; may contain {date}"),
    "output": Param(
        "/data/datasets/{date}",
        type="string",
        pattern=r"\{date\}",
        description="one dataset per date; must contain {date}",
    ),
    "config": Param("configs/class_folders.yaml", type="string", description="the YAML that defines the dataset"),
    "runner": Param("DirectRunner", type="string", description="DirectRunner, PrismRunner, DataflowRunner, ..."),
    "beam_options": Param({}, type="object", description="other flags of Recordmill, Beam and the runner"),
    "classes": Param([], type="array", items={"type": "string"}, description="classes that must have images"),
    "max_rejected": Param(0.01, type="number", minimum=0, maximum=1, description="the share that may be rejected"),
}


class ConvertImages(BeamRunPythonPipelineOperator):
    """`python -m pipeline.run`; a job on Dataflow is left to itself, and its end is waited for without a worker slot.

    Elsewhere this process does the work or waits for it, and writes the summary. On Dataflow the operator stops
    reading as soon as it knows the job's id, so that only what the job itself writes can be relied on.
    """

    def execute(self, context):
        """Completes the flags, whose values are known only now."""
        given = dict(context["params"]["beam_options"])
        told = self.pipeline_options.pop("summary_json")
        self.deferrable = self.runner.lower() in ("dataflow", "dataflowrunner")
        if self.deferrable:
            self.runner = "DataflowRunner"  # by which name the operator knows it
            self.dataflow_config = {
                "job_name": "recordmill",
                "project_id": given.pop("project", None),
                "location": given.pop("region", "us-central1"),
            }
            self.pipeline_options |= {"no_wait": True, "outcome_file": told}
        else:
            self.pipeline_options["summary_json"] = told
        self.pipeline_options |= given
        try:
            return super().execute(context)
        except AirflowException as error:
            if str(error).endswith(FINAL):
                raise AirflowFailException(f"{error}: another try would end the same, see above why") from error
            raise


@task(retries=0)  # a dataset does not get better by looking at it again
def check(dataset: str, told: str, params: dict | None = None) -> dict[str, int]:
    """Fails where the dataset must not be used; returns images by split."""
    marker = json.loads(ObjectStoragePath(f"{dataset}/recordmill.json").read_text())
    summary = json.loads(ObjectStoragePath(told).read_text())
    if problems := find_problems(summary, marker, params["classes"], params["max_rejected"]):
        raise AirflowFailException(f"{dataset}: {'; '.join(problems)}")
    return {name: split["records"] for name, split in marker["splits"].items()}


with DAG(
    dag_id="recordmill",
    description="Images to TFRecords, one dataset a date",
    schedule="@daily",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    params=PARAMS,
    tags=["recordmill"],
    default_args={
        "retries": 2,
        # A retry goes on from the finished shards of the try before it.
        "retry_delay": timedelta(seconds=float(os.environ.get("RECORDMILL_RETRY_SECONDS", "300"))),
    },
):
    convert = ConvertImages(
        task_id="convert",
        py_interpreter=os.environ.get("RECORDMILL_PYTHON", "/opt/recordmill/bin/python"),
        py_options=["-m"],
        py_file="pipeline.run",
        runner="{{ params.runner }}",
        pipeline_options={"input": INPUT, "output": OUTPUT, "config": "{{ params.config }}", "summary_json": TOLD},
    )
    convert >> check(OUTPUT, TOLD)
