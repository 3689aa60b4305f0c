"""Dataflow: checks that Beam does not make before a job starts, and messages about started jobs.

Sources: `apache_beam.runners.dataflow.dataflow_runner` and `internal.apiclient` of Beam 2.77.
"""

from collections.abc import Sequence
from typing import Any

from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    SetupOptions,
    TestOptions,
    WorkerOptions,
)

from recordmill import storage
from recordmill.schemas.errors import UsageError


def is_dataflow(runner: str) -> bool:
    """Whether the name means Dataflow's runner to Beam."""
    return runner.lower().removesuffix("runner") == "dataflow"


def check_dataflow(beam_arguments: Sequence[str], inputs: Sequence[str], output: str, outcome_file: str | None) -> None:
    """Checks what Beam does not: a job without the package, or with a local folder, would fail on its workers.

    Raises:
        UsageError: the workers could not do the job.
    """
    places = [*(("--input", path) for path in inputs), ("--output", output), ("--outcome_file", outcome_file or "x://")]
    for flag, path in places:
        if storage.is_local(path):
            raise UsageError(f"Dataflow's workers do not see {path} of this machine: give {flag} as gs://bucket/...")
    options = PipelineOptions(list(beam_arguments))
    setup, worker = options.view_as(SetupOptions), options.view_as(WorkerOptions)
    if not (setup.setup_file or setup.extra_packages or worker.sdk_container_image):
        raise UsageError(
            "Dataflow's workers lack Recordmill: ship it with --setup_file=./setup.py, or name an image that holds it "
            "with --sdk_container_image"
        )


def explain_built(options: PipelineOptions) -> str:
    """What was built instead of starting a job, in a sentence; empty if one was started.

    A flex template's launcher also requests a template, and starts the job from it once this process has exited:
    there is nothing to wait for here, whatever the flags.
    """
    if options.view_as(TestOptions).dry_run:
        return "the Dataflow job was built and, as --dry_run asks, not started"
    template = options.view_as(GoogleCloudOptions).template_location
    return f"the Dataflow job was built and is a template in {template}" if template else ""


def name_job(result: Any, options: PipelineOptions) -> str:
    """The line about a started job, in the form from which Airflow's operator reads its id."""
    cloud = options.view_as(GoogleCloudOptions)
    place = f"https://console.cloud.google.com/dataflow/jobs/{cloud.region}/{result.job_id()}?project={cloud.project}"
    return f"Created job with id: [{result.job_id()}], see {place}"
