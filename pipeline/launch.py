"""Runs the command once: flags, the conversion, and the summary."""

import atexit
import gc
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from recordmill import storage
from recordmill.pipeline.configuration.options import (
    IN_PROCESS_RUNNERS,
    MODULE,
    LaunchOptions,
    check_options,
    find_result_files,
    parse_options,
    write_json,
)
from recordmill.pipeline.explain_failure import check_space_for_imports, explain_failure
from recordmill.pipeline.quiet_libraries import show_libraries
from recordmill.pipeline.terminal import Terminal
from recordmill.schemas.dataset.json_values import as_json
from recordmill.schemas.dataset.outcome import Outcome
from recordmill.schemas.earlier_names import with_earlier_keys
from recordmill.schemas.errors import (
    FAILED,
    INTERRUPTED,
    TERMINATED,
    RecordmillError,
    Terminated,
)
from recordmill.schemas.formatting import last_line

if TYPE_CHECKING:
    import apache_beam as beam

    from recordmill.pipeline.job import BuildPipeline, Job

MOST_NOTES = 20
"""The most notes in the line of JSON; `recordmill.json` has all of them."""


def launch(argv: Sequence[str], build: "BuildPipeline", prog: str = MODULE) -> int:
    """Runs one conversion and reports the result.

    Args:
        argv: the flags.
        build: builds the pipeline of a job.
        prog: what the user typed before the flags.

    Returns:
        The exit code.
    """
    started = time.monotonic()
    terminal = Terminal(sys.stderr)
    options, job = find_result_files(argv), None  # the rest has defaults if the flags are wrong
    with ExitStack() as quiet:
        try:
            options = parse_options(argv, prog)
            terminal = _begin_reporting(options, quiet)
            check_space_for_imports()
            options = check_options(options, prog)
            outcome, job = _attempt(options, build, terminal)
        except RecordmillError as error:
            outcome = Outcome("failed", str(error), error.exit_code)
        except KeyboardInterrupt:  # while modules are imported
            outcome = Outcome("failed", "interrupted before any work", INTERRUPTED)
        except (ImportError, MemoryError, OSError, RuntimeError) as error:  # also then
            sentence = explain_failure(error, options.output)
            if sentence is None:
                raise
            outcome = Outcome("failed", sentence, FAILED)
        if options.runner not in IN_PROCESS_RUNNERS:
            # Beam's own exit handlers, which end job servers, run before this one.
            atexit.register(quiet.pop_all().close)
    output = job.run.output if job else options.output
    _report(outcome, output, options, terminal)
    line = _summary_line(outcome, job, output, round(time.monotonic() - started, 3))
    write_json(line.decode(), options.json)
    if not _write_files(outcome, job, options, line):
        outcome = replace(outcome, exit_code=outcome.exit_code or FAILED)
    if outcome.exit_code in (INTERRUPTED, TERMINATED):
        os._exit(outcome.exit_code)  # worker threads may still be decoding; do not wait for them
    gc.freeze()  # skips the final garbage collection
    return outcome.exit_code


def _begin_reporting(options: LaunchOptions, quiet: ExitStack) -> Terminal:
    """Decides which messages of libraries are shown; returns what reports on the run."""
    if options.verbose or not options.traceback:
        quiet.enter_context(show_libraries(options.verbose))
    return Terminal(None if options.quiet else sys.stderr)


def _report(outcome: Outcome, output: str, options: LaunchOptions, terminal: Terminal) -> None:
    if options.quiet:
        Terminal(sys.stderr).report_errors(outcome)
    else:
        terminal.report_outcome(outcome, output)


def _attempt(
    options: LaunchOptions, build: "BuildPipeline", terminal: Terminal
) -> "tuple[Outcome, Job | None]":
    """Imports what a conversion needs, and runs it."""

    def stop(*_: object) -> None:
        raise Terminated

    def build_at_last(root: "beam.Pipeline", job: "Job") -> "beam.PCollection[Outcome]":
        built = build(root, job)
        # Imported modules stay: the collector need not scan them again and again (0.4 s in a run of
        # 100 images). The cycles that the imports left, such as parsers of flags, are 5 MB.
        gc.collect()
        gc.freeze()
        gc.enable()
        return built

    gc.disable()  # collecting garbage during imports takes 0.1 s
    try:
        from recordmill.pipeline.attempt import attempt

        signal.signal(signal.SIGTERM, stop)
        return attempt(options, build_at_last, terminal)
    finally:
        signal.signal(signal.SIGTERM, lambda *_: None)  # only the outcome is left to report
        gc.enable()


def _summary_line(outcome: Outcome, job: "Job | None", output: str, seconds: float) -> bytes:
    """Returns the line for stdout.

    Short, since a caller may read all of stderr before it reads stdout.
    """
    shown = output.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    line = {
        "status": outcome.status,
        "exit_code": outcome.exit_code,
        "message": outcome.message,
        "output": shown or None,
        "plan_id": outcome.plan_id,
        **outcome.plain_numbers(),
        **({"recognized": job.layout.shown} if job and job.layout else {}),
        "notes": outcome.notes[:MOST_NOTES],
        "seconds": {"total": seconds},
    }
    return orjson.dumps(with_earlier_keys(line))


def _write_files(outcome: Outcome, job: "Job | None", options: LaunchOptions, line: bytes) -> bool:
    """Writes the requested files; returns False if one cannot be written.

    The job has already written the outcome file, unless it crashed or never began.
    """
    run_id = job.run.run_id if job else ""
    content = as_json({**outcome.to_object(), "run_id": run_id})
    outcome_file = options.outcome_file if outcome.status not in ("submitted", "built") else None
    written = True
    for what, path, data in (
        ("summary", options.summary_json, line + b"\n"),
        ("outcome", outcome_file, content),
    ):
        try:
            if path:
                storage.write_file(path, data)
        except Exception as error:  # noqa: BLE001  # stores raise errors of any class
            why = getattr(error, "strerror", None) or last_line(error)
            Terminal(sys.stderr).say(f"error: the {what} {path} cannot be written: {why.lower()}")
            written = False
    return written
