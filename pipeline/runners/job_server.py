"""Checks the flags of portable runners, and the machines they name, before any work."""

import logging
import os
import re
import shutil
import socket
import threading
import time
import urllib.request
from urllib.parse import urlsplit

import orjson
from apache_beam.options.pipeline_options import FlinkRunnerOptions, JobServerOptions, PipelineOptions, PortableOptions

from recordmill.pipeline.terminal.terminal import Terminal
from recordmill.schemas.errors import RecordmillError, UsageError

OWN_JOB_SERVERS = ("FlinkRunner", "SparkRunner", "PrismRunner")
"""Runners that start a job server, which ends with this process, unless `--job_endpoint` names one."""

QUIET_LOGGERS = ("apache_beam", "PIL")

ENDED_ON_FLINK = ("FINISHED", "FAILED", "CANCELED")

SECONDS_TO_CONNECT = 5.0


def loops_back(runner: str, options: PipelineOptions) -> bool:
    """Whether a portable runner sends the work back to this process; Beam decides this in `default_environment`."""
    chosen = options.view_as(PortableOptions).environment_type
    if chosen:
        return bool(chosen == "LOOPBACK")
    return runner == "PrismRunner" or (runner == "FlinkRunner" and not _flink_address(options))


def ends_with_this_process(runner: str, options: PipelineOptions) -> bool:
    """Whether a job would be lost if this process ended: the work is done here, or this process owns the job server."""
    ours = runner in OWN_JOB_SERVERS and not options.view_as(PortableOptions).job_endpoint
    return loops_back(runner, options) or (ours and not options.view_as(FlinkRunnerOptions).flink_submit_uber_jar)


def check_job_server(runner: str, options: PipelineOptions, terminal: Terminal) -> None:
    """Checks that there is a job server, or everything needed to start one.

    Waits up to `--job_server_timeout` for a job server that does not answer yet, as Beam does.

    Raises:
        UsageError: a flag is missing, or names a file that does not exist.
        RecordmillError: there is no answer at an address.
    """
    portable = options.view_as(PortableOptions)
    if endpoint := portable.job_endpoint:
        seconds = float(portable.job_server_timeout)
        _check_address(endpoint, seconds, f"no job server answers at --job_endpoint={endpoint}", terminal)
    elif runner == "PortableRunner":
        raise UsageError("--runner=PortableRunner needs --job_endpoint=HOST:PORT, the address of a Beam job server")
    elif runner == "FlinkRunner":
        _check_flink(options, terminal)


def cancel_on_flink(options: PipelineOptions, name: str) -> bool:
    """Cancels a job through Flink's own interface: Beam's job server claims to, but lets a batch job continue.

    Args:
        options: the flags, which name the cluster.
        name: the job's name.

    Returns:
        Whether Flink accepted it; False if no cluster is named, or it runs no such job.

    Raises:
        OSError: the cluster does not answer.
    """
    master = _flink_address(options)
    if not master:
        return False
    root = master if "://" in master else f"http://{master}"
    with urllib.request.urlopen(f"{root}/jobs/overview", timeout=SECONDS_TO_CONNECT) as answer:
        jobs = orjson.loads(answer.read())["jobs"]
    found = [job["jid"] for job in jobs if job["name"] == name and job["state"] not in ENDED_ON_FLINK]
    for jid in found:
        cancel = urllib.request.Request(f"{root}/jobs/{jid}?mode=cancel", method="PATCH")
        urllib.request.urlopen(cancel, timeout=SECONDS_TO_CONNECT).close()
    return bool(found)


def quiet_beam(quiet: bool) -> None:
    """Mutes or restores the logs of Beam and Pillow: what matters in them is reported in one sentence."""
    for name in QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL if quiet else logging.WARNING)
    # Beam logs a job server's output on the root logger; a filter there sees only that, not other loggers.
    root = logging.getLogger()
    root.removeFilter(_drop)
    threading.excepthook = _report_thread_error if quiet else threading.__excepthook__
    if quiet:
        root.addFilter(_drop)


def _drop(_: logging.LogRecord) -> bool:
    return False


def _report_thread_error(args: threading.ExceptHookArgs) -> None:
    """Ignores the gRPC errors of Beam's threads when a runner closes the connection, as at the end of every job."""
    if args.exc_type.__module__.partition(".")[0] != "grpc":
        threading.__excepthook__(args)


def _flink_address(options: PipelineOptions) -> str:
    """The address of the given Flink cluster; empty for one that Beam starts itself."""
    master = str(options.view_as(FlinkRunnerOptions).flink_master).strip()
    return "" if master in ("[auto]", "[local]") else master


def _check_flink(options: PipelineOptions, terminal: Terminal) -> None:
    jar = options.view_as(FlinkRunnerOptions).flink_job_server_jar
    if jar and not urlsplit(jar).scheme and not os.path.isfile(jar):
        raise UsageError(f"there is no file {jar}: --flink_job_server_jar names the jar of Beam's job server")
    java = options.view_as(JobServerOptions).job_server_java_launcher
    uber = options.view_as(FlinkRunnerOptions).flink_submit_uber_jar
    if not uber and not shutil.which(java):
        raise UsageError(
            f"FlinkRunner starts a job server and there is no {java} to run it: install Java, or name a job server "
            "that runs in --job_endpoint"
        )
    if master := _flink_address(options):
        _check_address(urlsplit(master).netloc or master, 0.0, f"no Flink answers at --flink_master={master}", terminal)


def _check_address(address: str, seconds: float, problem: str, terminal: Terminal) -> None:
    """Tries HOST:PORT; other forms are left to gRPC."""
    parts = re.fullmatch(r"\[?([\w.:-]+?)\]?:(\d+)", address)
    if not parts:
        return
    deadline, waits = time.monotonic() + seconds, False
    while True:
        try:
            socket.create_connection((parts[1], int(parts[2])), timeout=SECONDS_TO_CONNECT).close()
            return
        except (OSError, OverflowError) as error:  # the latter: a port above 65,535
            why = (getattr(error, "strerror", None) or str(error)).lower()
        if time.monotonic() >= deadline:
            raise RecordmillError(f"{problem} ({why}): start it, or correct the address")
        if not waits:
            terminal.say(f"waiting for the job server at {address}: {why}")
            waits = True
        time.sleep(min(1.0, max(0.0, deadline - time.monotonic())))
