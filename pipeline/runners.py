"""Builds one job, runs it on a runner, waits for it, and finds out how it ended.

Portable runners and Dataflow have checks of their own, of flags and of the machines that they name,
before any work. Sources for Dataflow: `apache_beam.runners.dataflow.dataflow_runner` and
`internal.apiclient` of Beam 2.77.
"""

import io
import os
import re
import shutil
import signal
import socket
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stderr, suppress
from typing import Any

import apache_beam as beam
import grpc
import orjson
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    JobServerOptions,
    PipelineOptions,
    PortableOptions,
    SetupOptions,
    TestOptions,
    WorkerOptions,
)
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from recordmill import storage
from recordmill.pipeline.configuration.options import (
    IN_PROCESS_RUNNERS,
    LOCAL_RUNNERS,
    LaunchOptions,
)
from recordmill.pipeline.configuration.preflight import call_with_timeout
from recordmill.pipeline.job import BuildPipeline, Job
from recordmill.pipeline.terminal import Terminal
from recordmill.schemas.dataset.outcome import Outcome
from recordmill.schemas.errors import FAILED, RecordmillError, Terminated, UsageError
from recordmill.schemas.formatting import last_line
from recordmill.transforms.planning.runs import release_claims
from recordmill.transforms.shards.worker_processes import workers_allowed

JOB_SERVER_RUNNERS = ("PortableRunner", "FlinkRunner", "SparkRunner")
"""Runners with a Beam job server, whose answer that a job was canceled says nothing about the
cluster."""

SECONDS_TO_CANCEL = 10.0
"""How long a runner may take to accept a cancellation."""


def run_job(job: Job, build: BuildPipeline, options: LaunchOptions, terminal: Terminal) -> Outcome:
    """Runs one job.

    Returns:
        How it ended; or that it was submitted to a remote runner and not waited for, or only built.

    Raises:
        UsageError: there is no such runner, or it lacks a flag.
        RecordmillError: its job server does not answer.
        KeyboardInterrupt, Terminated: it was interrupted; the text says what happened to a remote
            job.
        Exception: whatever the runner raises.
    """
    progress = job.run.progress
    progress.begin(job.settings.unit, options.owns_process)
    pipeline, here = _make_pipeline(options.runner, options.beam_arguments)
    check_job_server(options.runner, pipeline.options)
    named = pipeline.options.view_as(GoogleCloudOptions)  # Beam's attribute for every runner
    named.job_name = named.job_name or f"recordmill-{job.run.run_id}"
    leave = not options.wait and not here
    if leave and ends_with_this_process(options.runner, pipeline.options):
        terminal.say(
            f"note: --no-wait has no effect, "
            f"since the job server of {options.runner} ends with this process"
        )
        leave = False
    build(pipeline, job)
    result, end_server = None, None
    try:
        with _workers_for(job, options), terminal.watch(progress) if here else nullcontext():
            result, end_server = _start(pipeline)
            if is_dataflow(options.runner):
                if sentence := explain_built(pipeline.options):
                    return Outcome("built", sentence, 0)
                terminal.say(name_job(result, pipeline.options))
            if leave:  # a job in this process ends with it
                sentence = (
                    f"the job was submitted; it will say how it ended in {job.run.outcome_file}"
                )
                return Outcome("submitted", sentence, 0)
            if not here:
                terminal.say(f"the job runs on {options.runner}; progress is shown there")
            state = result.wait_until_finish()
    except BaseException as error:
        # The job's last step, which releases the lock, was not reached.
        if here and not options.plan:
            release_claims(job.run.output, job.run.run_id)
        if not (stop := _find_signal(error)):
            raise
        canceled = _cancel(
            result, options.runner, pipeline.options, resumes=options.writer != "beam"
        )
        if end_server:
            end_server()
        raise _repeat(stop, None if options.is_here else canceled) from None
    return _read_outcome(job, options.runner, state, keep=bool(options.outcome_file))


def _workers_for(job: Job, options: LaunchOptions) -> AbstractContextManager[None]:
    """Allows worker processes for a job.

    The launcher is forked only if it has neither threads nor clients of stores.
    """
    if job.run.processes == 1:
        return nullcontext()
    places = [job.run.output, *(each.path for each in job.inputs)]
    if job.run.outcome_file is not None:
        places.append(job.run.outcome_file)
    # The user's modules may have started some.
    has_no_threads = options.owns_process and not job.settings.user_functions
    return workers_allowed(
        job.run.processes - 1 if has_no_threads and all(map(storage.is_local, places)) else 0,
        job.run.progress,
    )


def _make_pipeline(runner: str, beam_arguments: Sequence[str]) -> tuple[beam.Pipeline, bool]:
    """Returns an empty pipeline, and whether the work is done in this process."""
    in_process, said = runner in IN_PROCESS_RUNNERS, io.StringIO()
    try:
        with redirect_stderr(said):  # what argparse says of a wrong value
            flags = [*beam_arguments]
            if not in_process:
                flags.append(f"--runner={runner}")
            options = PipelineOptions(flags)
            options.view_as(SetupOptions).save_main_session = False
            # For the name DirectRunner, Beam would look for a Prism binary, and so behave
            # differently online and off.
            pipeline = beam.Pipeline(runner=FnApiRunner() if in_process else None, options=options)
            # For steps in other languages; a killed run would leave it.
            os.rmdir(pipeline.local_tempdir)
            return pipeline, in_process or loops_back(runner, options)
    except SystemExit:
        why = said.getvalue().strip().rpartition("error: ")[2]
        raise UsageError(
            f"the flags {' '.join(beam_arguments)} cannot be understood by Beam: {why}"
        ) from None
    except (
        ValueError,
        ImportError,
        AttributeError,
    ) as error:
        # The last two: for a runner given by its class's path.
        raise UsageError(
            f"no job can be made for --runner={runner}: {' '.join(str(error).split())}"
        ) from None


def _start(pipeline: beam.Pipeline) -> tuple[Any, Callable[[], None] | None]:
    """Submits the job to its runner, and keeps our own handling of Ctrl-C.

    A runner that starts a job server would end it at Ctrl-C, before the job could be canceled
    through it.

    Returns:
        The runner's result, and a function that ends its job server: an interrupted launcher skips
        exit handlers.
    """
    ours = signal.getsignal(signal.SIGINT)
    try:
        result = pipeline.run()
    except grpc.FutureTimeoutError:  # after --job_server_timeout
        endpoint = pipeline.options.view_as(PortableOptions).job_endpoint
        raise RecordmillError(
            f"no job server answers at --job_endpoint={endpoint}: start it"
        ) from None
    theirs = signal.getsignal(signal.SIGINT)
    if theirs is ours or not callable(theirs):
        return result, None
    signal.signal(signal.SIGINT, ours)

    def end_server() -> None:
        with suppress(KeyboardInterrupt):  # called by the runner's handler
            theirs(signal.SIGINT, None)

    return result, end_server


def _find_signal(error: BaseException | None) -> BaseException | None:
    """Returns the signal that caused an error, or None.

    Beam turns a signal during a step in this thread into a RuntimeError.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt | Terminated):
        error = error.__cause__ or error.__context__
    return error


def _repeat(stop: BaseException, report: str | None) -> BaseException:
    """Makes a signal's exception again, whose text says what happened to the job."""
    if report is None:
        return type(stop)()
    return type(stop)(report)


def _cancel(result: Any, runner: str, options: PipelineOptions, resumes: bool = True) -> str | None:
    """Cancels a job that would continue without this process.

    Returns:
        A sentence about it; None if the job ends with this process.
    """
    if runner in IN_PROCESS_RUNNERS:
        return None
    if result is None:
        return f"the job may have reached {runner} already: look there, and stop it if it runs"
    on_flink, problem = False, ""
    try:
        if runner == "FlinkRunner":
            name = options.view_as(GoogleCloudOptions).job_name
            on_flink = call_with_timeout(lambda: cancel_on_flink(options, name), SECONDS_TO_CANCEL)
        call_with_timeout(result.cancel, SECONDS_TO_CANCEL)
    except (KeyboardInterrupt, Terminated):
        problem = ", since a second signal came"
    except Exception as error:  # noqa: BLE001  # whatever a runner raises is reported
        problem = f" ({last_line(error)})"
    if on_flink or not (problem or runner in JOB_SERVER_RUNNERS):
        how = "to continue from its finished shards" if resumes else "with --discard to start over"
        return f"the job on {runner} was canceled; run the same command again {how}"
    return f"the job on {runner} may go on{problem}: look there, and stop it if it runs"


def _read_outcome(job: Job, runner: str, state: Any, keep: bool) -> Outcome:
    path = job.run.outcome_file
    assert path is not None  # each command has one
    found = orjson.loads(storage.read_range(path)) if storage.exists(path) else {}
    if found.get("run_id") != job.run.run_id:  # none, or an earlier run's
        sentence = (
            f"the job on {runner} ended ({state}) without saying how: its outcome was expected "
            f"in {path}"
        )
        if storage.is_local(path) and runner not in LOCAL_RUNNERS:
            sentence += ", which must be a folder that its workers and this machine share"
        return Outcome("failed", sentence, FAILED)
    if not keep:
        storage.remove_files([path])
    return Outcome.from_json(found)


OWN_JOB_SERVERS = ("FlinkRunner", "SparkRunner", "PrismRunner")
"""Runners that start a job server, which ends with this process, unless `--job_endpoint` names
one."""

ENDED_ON_FLINK = ("FINISHED", "FAILED", "CANCELED")

SECONDS_TO_CONNECT = 5.0


def loops_back(runner: str, options: PipelineOptions) -> bool:
    """Returns whether a portable runner sends the work back to this process.

    Beam decides this in `default_environment`.
    """
    chosen = options.view_as(PortableOptions).environment_type
    if chosen:
        return bool(chosen == "LOOPBACK")
    return runner == "PrismRunner" or (runner == "FlinkRunner" and not _flink_address(options))


def ends_with_this_process(runner: str, options: PipelineOptions) -> bool:
    """Returns whether a job would be lost if this process ended.

    This is so if the work is done here, or if this process owns the job server.
    """
    ours = runner in OWN_JOB_SERVERS and not options.view_as(PortableOptions).job_endpoint
    return loops_back(runner, options) or (
        ours and not options.view_as(FlinkRunnerOptions).flink_submit_uber_jar
    )


def check_job_server(runner: str, options: PipelineOptions) -> None:
    """Checks that a job server is named, or that there is everything needed to start one.

    Raises:
        UsageError: a flag or Java is missing.
        RecordmillError: Flink does not answer.
    """
    if options.view_as(PortableOptions).job_endpoint:
        return
    if runner == "PortableRunner":
        raise UsageError(
            "--runner=PortableRunner needs --job_endpoint=HOST:PORT, the address of a Beam job "
            "server"
        )
    if runner != "FlinkRunner":
        return
    java = options.view_as(JobServerOptions).job_server_java_launcher
    if not options.view_as(FlinkRunnerOptions).flink_submit_uber_jar and not shutil.which(java):
        raise UsageError(
            f"FlinkRunner needs {java} for its job server: install Java, or give --job_endpoint"
        )
    master = _flink_address(options)
    if master is None:
        return
    # Other forms are left to Beam.
    if place := re.fullmatch(r"(?:http://)?\[?([\w.:-]+?)\]?:(\d+)", master):
        try:
            socket.create_connection((place[1], int(place[2])), timeout=SECONDS_TO_CONNECT).close()
        except (OSError, OverflowError) as error:  # the latter: a port above 65,535
            raise RecordmillError(
                f"no Flink answers at --flink_master={master} ({error}): start it"
            ) from None


def cancel_on_flink(options: PipelineOptions, name: str) -> bool:
    """Cancels a job through Flink's own interface.

    Beam's job server claims to cancel it, but lets a batch job continue.

    Args:
        options: the flags, which name the cluster.
        name: the job's name.

    Returns:
        Whether Flink accepted it; False if no cluster is named, or it runs no such job.

    Raises:
        OSError: the cluster does not answer.
    """
    master = _flink_address(options)
    if master is None:
        return False
    root = master if "://" in master else f"http://{master}"
    with urllib.request.urlopen(f"{root}/jobs/overview", timeout=SECONDS_TO_CONNECT) as answer:
        jobs = orjson.loads(answer.read())["jobs"]
    found = [
        job["jid"] for job in jobs if job["name"] == name and job["state"] not in ENDED_ON_FLINK
    ]
    for jid in found:
        cancel = urllib.request.Request(f"{root}/jobs/{jid}?mode=cancel", method="PATCH")
        urllib.request.urlopen(cancel, timeout=SECONDS_TO_CONNECT).close()
    return bool(found)


def _flink_address(options: PipelineOptions) -> str | None:
    """Returns the address of the given Flink cluster; None for one that Beam starts itself."""
    master = str(options.view_as(FlinkRunnerOptions).flink_master).strip()
    if master in ("", "[auto]", "[local]"):
        return None
    return master


def is_dataflow(runner: str) -> bool:
    """Returns whether the name means Dataflow's runner to Beam."""
    return runner.lower().removesuffix("runner") == "dataflow"


def check_dataflow(
    beam_arguments: Sequence[str], inputs: Sequence[str], output: str, outcome_file: str | None
) -> None:
    """Checks what Beam does not check for Dataflow.

    A job without the package, or with a local folder, would fail on its workers.

    Raises:
        UsageError: the workers could not do the job.
    """
    places = [
        *(("--input", path) for path in inputs),
        ("--output", output),
        ("--outcome-file", outcome_file or "x://"),
    ]
    for flag, path in places:
        if storage.is_local(path):
            raise UsageError(
                f"Dataflow's workers do not see {path} of this machine: give {flag} as "
                "gs://bucket/..."
            )
    options = PipelineOptions(list(beam_arguments))
    setup, worker = options.view_as(SetupOptions), options.view_as(WorkerOptions)
    if not (setup.setup_file or setup.extra_packages or worker.sdk_container_image):
        how = "add --setup_file=./setup.py, or an image that holds it as --sdk_container_image"
        raise UsageError(f"Dataflow's workers lack Recordmill: {how}")


def explain_built(options: PipelineOptions) -> str | None:
    """Says what was built instead of starting a job; returns None if one was started.

    A flex template's launcher also requests a template, and starts the job from it once this
    process has exited: there is nothing to wait for here, whatever the flags.
    """
    if options.view_as(TestOptions).dry_run:
        return "the Dataflow job was built and, as --dry_run asks, not started"
    template = options.view_as(GoogleCloudOptions).template_location
    if not template:
        return None
    return f"the Dataflow job was built and is a template in {template}"


def name_job(result: Any, options: PipelineOptions) -> str:
    """Returns the line about a started job from which Airflow's operator reads its id."""
    cloud = options.view_as(GoogleCloudOptions)
    place = f"https://console.cloud.google.com/dataflow/jobs/{cloud.region}/{result.job_id()}?project={cloud.project}"
    return f"Created job with id: [{result.job_id()}], see {place}"
