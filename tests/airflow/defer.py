"""Executes the DAG's `convert` for Dataflow as a worker would, and prints what it is deferred
to."""

import json
import sys
from pathlib import Path
from unittest.mock import MagicMock

sys.path.insert(0, str(Path(__file__).parents[2] / "deploy" / "airflow"))

import recordmill_dag
from airflow.sdk.exceptions import TaskDeferred

recordmill_dag.ObjectStoragePath = MagicMock()  # there is no store here
convert = recordmill_dag.convert
options = {
    "project": "my-project",
    "region": "europe-west1",
    "temp_location": "gs://b/temp",
    "sdk_container_image": "image",
}
convert.runner = "dataflow"
convert.pipeline_options |= {
    "input": "gs://b/raw",
    "output": "gs://b/d",
    "outcome-file": "gs://b/d.outcome.json",
}
try:
    convert.execute(
        {"params": {"beam_options": options}, "ti": MagicMock(), "task_instance": MagicMock()}
    )
except TaskDeferred as deferred:
    trigger, arguments = deferred.trigger.serialize()
    answer = {"method": deferred.method_name, "trigger": trigger, "arguments": arguments}
    sys.stdout.write(json.dumps(answer, default=str) + "\n")
