"""Builds one job, runs it, waits for it, and finds out how it ended."""

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import apache_beam as beam
import orjson
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions, SetupOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from recordmill import storage
from recordmill.pipeline.configuration.job import Job
from recordmill.pipeline.configuration.options import IN_PROCESS_RUNNERS, LOCAL_RUNNERS, LaunchOptions
from recordmill.pipeline.configuration.preflight import call_with_timeout
from recordmill.pipeline.runners import job_server
from recordmill.pipeline.runners.dataflow import explain_built, is_dataflow, name_job
from recordmill.pipeline.terminal.terminal import Terminal
from recordmill.schemas.dataset.json_values import from_json
from recordmill.schemas.errors import FAILED, Outcome, Terminated, UsageError
from recordmill.schemas.formatting import last_line
from recordmill.transforms.planning.output_state import release_claims
from recordmill.transforms.shards.progress import PROGRESS
from recordmill.transforms.shards.worker_processes import workers_allowed

Build = Callable[[beam.Pipeline, Job], Any]

JOB_SERVER_RUNNERS = ("PortableRunner", "FlinkRunner", "SparkRunner")
"""Runners with a Beam job server, whose answer that a job was cancelled says nothing about the cluster."""

SECONDS_TO_CANCEL = 10.0
"""How long a runner may take to accept a cancellation."""


def run_job(job: Job, build: Build, options: LaunchOptions, terminal: Terminal) -> Outcome:
    """Runs one job.

    Returns:
        How it ended; or that it was submitted to a remote runner and not waited for, or only built.

    Raises:
        UsageError: there is no such runner, or it lacks a flag.
        RecordmillError: its job server does not answer.
        KeyboardInterrupt, Terminated: it was interrupted; the text says what happened to a remote job.
        Exception: whatever the runner raises.
    """
    PROGRESS.reset(job.settings.unit, options.owns_process)
    job_server.quiet_beam(not options.traceback)
    pipeline, here = _make_pipeline(options.runner, options.beam_arguments)
    job_server.check_job_server(options.runner, pipeline.options, terminal)
    named = pipeline.options.view_as(GoogleCloudOptions)  # Beam's attribute for every runner
    named.job_name = named.job_name or f"recordmill-{job.run.run_id}"
    leave = not options.wait and not here
    if leave and job_server.ends_with_this_process(options.runner, pipeline.options):
        terminal.say(f"note: --no_wait has no effect, since the job server of {options.runner} ends with this process")
        leave = False
    build(pipeline, job)
    result, end_server = None, None
    try:
        with _workers_for(job, options), terminal.watch(PROGRESS) if here else nullcontext():
            result, end_server = _start(pipeline)
            if is_dataflow(options.runner):
                if sentence := explain_built(pipeline.options):
                    return Outcome("built", sentence, 0)
                terminal.say(name_job(result, pipeline.options))
            if leave:  # a job in this process ends with it
                sentence = f"the job was submitted; it will say how it ended in {job.run.outcome_file}"
                return Outcome("submitted", sentence, 0)
            if not here:
                terminal.say(f"the job runs on {options.runner}; progress is shown there")
            state = result.wait_until_finish()
    except BaseException as error:
        if here and not options.plan:  # the job's last step, which releases the lock, was not reached
            release_claims(job.run.output, job.run.run_id)
        if not (stop := _find_signal(error)):
            raise
        cancelled = _cancel(result, options.runner, pipeline.options, resumes=options.writer != "beam")
        if end_server:
            end_server()
        raise type(stop)("" if options.is_here else cancelled) from None
    return _read_outcome(job, options.runner, state, keep=bool(options.outcome_file))


def _workers_for(job: Job, options: LaunchOptions) -> AbstractContextManager[None]:
    """Allows worker processes for a job; forks the launcher only if it has neither threads nor clients of stores."""
    if job.run.processes == 1:
        return nullcontext()
    places = [job.run.output, job.run.outcome_file, *(each.path for each in job.inputs)]
    has_no_threads = options.owns_process and not job.settings.user_functions  # whose modules may have started some
    return workers_allowed(fork=has_no_threads and all(map(storage.is_local, places)))


def _make_pipeline(runner: str, beam_arguments: Sequence[str]) -> tuple[beam.Pipeline, bool]:
    """An empty pipeline, and whether the work is done in this process."""
    in_process = runner in IN_PROCESS_RUNNERS
    try:
        options = PipelineOptions(list(beam_arguments) if in_process else [*beam_arguments, f"--runner={runner}"])
        options.view_as(SetupOptions).save_main_session = False
        # For the name DirectRunner, Beam would look for a Prism binary, and so behave differently online and offline.
        pipeline = beam.Pipeline(runner=FnApiRunner() if in_process else None, options=options)
        os.rmdir(pipeline.local_tempdir)  # for steps in other languages; a killed run would leave it
        return pipeline, in_process or job_server.loops_back(runner, options)
    except SystemExit:
        raise UsageError(f"the flags {' '.join(beam_arguments)} cannot be understood by Beam: see above") from None
    except (ValueError, ImportError, AttributeError) as error:  # the last two: for a runner given by its class's path
        raise UsageError(f"no job can be made for --runner={runner}: {' '.join(str(error).split())}") from None


def _start(pipeline: beam.Pipeline) -> tuple[Any, Callable[[], None] | None]:
    """Submits the job to its runner, and keeps our own handling of Ctrl-C.

    A runner that starts a job server would end it at Ctrl-C, before the job could be cancelled through it.

    Returns:
        The runner's result, and a function that ends its job server: an interrupted launcher skips exit handlers.
    """
    ours = signal.getsignal(signal.SIGINT)
    result = pipeline.run()
    theirs = signal.getsignal(signal.SIGINT)
    if theirs is ours or not callable(theirs):
        return result, None
    signal.signal(signal.SIGINT, ours)

    def end_server() -> None:
        with suppress(KeyboardInterrupt):  # called by the runner's handler
            theirs(signal.SIGINT, None)

    return result, end_server


def _find_signal(error: BaseException | None) -> BaseException | None:
    """The signal that caused an error: Beam turns a signal during a step in this thread into a RuntimeError."""
    while error is not None and not isinstance(error, KeyboardInterrupt | Terminated):
        error = error.__cause__ or error.__context__
    return error


def _cancel(result: Any, runner: str, options: PipelineOptions, resumes: bool = True) -> str:
    """Cancels a job that would continue without this process; returns a sentence about it."""
    if runner in IN_PROCESS_RUNNERS:
        return ""
    if result is None:
        return f"the job may have reached {runner} already: look there, and stop it if it runs"
    has_server = runner in JOB_SERVER_RUNNERS
    certain, problem = not has_server, ""
    try:
        if runner == "FlinkRunner":
            name = options.view_as(GoogleCloudOptions).job_name
            certain = call_with_timeout(lambda: job_server.cancel_on_flink(options, name), SECONDS_TO_CANCEL)
        call_with_timeout(result.cancel, SECONDS_TO_CANCEL)
    except (KeyboardInterrupt, Terminated):
        problem = "stopped while asking"
    except Exception as error:  # noqa: BLE001  # whatever a runner raises is reported
        problem = last_line(error)
    how = "to continue from its finished shards" if resumes else "with --discard to start over"
    again = f"run the same command again {how}"
    if certain and (not problem or has_server):
        return f"the job on {runner} was cancelled; {again}"
    if problem:
        return f"the job on {runner} could not be cancelled ({problem}) and may go on: stop it there"
    return f"the job server of {runner} was asked to cancel the job, which may go on all the same: look there; {again}"


def _read_outcome(job: Job, runner: str, state: Any, keep: bool) -> Outcome:
    path = job.run.outcome_file
    found = orjson.loads(storage.read_range(path)) if storage.exists(path) else {}
    if found.get("run_id") != job.run.run_id:  # none, or an earlier run's
        sentence = f"the job on {runner} ended ({state}) without saying how: its outcome was expected in {path}"
        if storage.is_local(path) and runner not in LOCAL_RUNNERS:
            sentence += ", which must be a folder that its workers and this machine share"
        return Outcome("failed", sentence, FAILED)
    if not keep:
        storage.remove_files([path])
    return from_json(Outcome, found)
