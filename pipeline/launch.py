"""One run of the command: flags, the conversion, and the summary."""

import gc
import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from recordmill import storage
from recordmill.pipeline.configuration.options import MODULE, UsageError, build_parser, check_flags, wants_json
from recordmill.pipeline.terminal.printable import last_line
from recordmill.pipeline.terminal.terminal import Terminal
from recordmill.schemas.outcome import FAILED, INTERRUPTED, TERMINATED, WRONG_USAGE, Outcome

if TYPE_CHECKING:
    from recordmill.pipeline.configuration.job import Job

MOST_NOTES = 20
"""The most notes in the line of JSON; all are in `recordmill.json`."""


def launch(argv: Sequence[str], build: Callable[..., Any], prog: str = MODULE) -> int:
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
    parser = build_parser(prog)
    flags, job = parser.parse_args([]), None  # the defaults if the flags are wrong
    try:
        flags, beam_arguments = parser.parse_known_args(argv)
        check_flags(flags, beam_arguments, prog)
    except UsageError as error:
        outcome = Outcome("failed", str(error), WRONG_USAGE)
    else:
        try:
            outcome, job = _attempt(flags, beam_arguments, build, terminal)
        except KeyboardInterrupt:  # while modules are imported
            outcome = Outcome("failed", "interrupted before any work", INTERRUPTED)
    terminal.tell(outcome, job)
    text = _summary_line(outcome, job, flags, round(time.monotonic() - started, 3))
    if wants_json(flags.json, sys.stdout):
        sys.stdout.write(text.decode())
        sys.stdout.flush()
    if not _write_files(outcome, job, flags, text, terminal):
        outcome = replace(outcome, exit_code=outcome.exit_code or FAILED)
    if outcome.exit_code in (INTERRUPTED, TERMINATED):
        os._exit(outcome.exit_code)  # worker threads may still be decoding; do not wait for them
    gc.freeze()  # nor what is left at the end
    return outcome.exit_code


def _attempt(
    flags: Namespace, beam_arguments: list[str], build: Callable[..., Any], terminal: Terminal
) -> "tuple[Outcome, Job | None]":
    """Imports Beam and everything else that a conversion needs, and runs it."""
    gc.disable()  # collecting garbage during imports takes 0.1 s
    from recordmill.pipeline.attempt import attempt
    from recordmill.pipeline.runners.run_job import Terminated

    def stop(*_: object) -> None:
        raise Terminated

    # Imported objects stay: exempt them from garbage collection (0.4 s of a run of 100 images).
    gc.freeze()
    gc.enable()
    signal.signal(signal.SIGTERM, stop)
    return attempt(flags, beam_arguments, build, terminal)


def _summary_line(outcome: Outcome, job: "Job | None", flags: Namespace, seconds: float) -> bytes:
    """The line on stdout: short, since a caller may read all of stderr before it reads this."""
    line = {
        "status": outcome.status,
        "exit_code": outcome.exit_code,
        "sentence": outcome.sentence,
        "output": job.run.output if job else _shown(flags.output),
        "plan_id": outcome.plan_id,
        **outcome.numbers,
        **({"recognised": job.layout.as_dict()} if job and job.layout else {}),
        "notes": outcome.notes[:MOST_NOTES],
        "seconds": {"total": seconds},
    }
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def _write_files(outcome: Outcome, job: "Job | None", flags: Namespace, line: bytes, terminal: Terminal) -> bool:
    """Writes the requested files; returns False if one cannot be written.

    The job writes the outcome file, unless it crashed or never began.
    """
    told = orjson.dumps(
        {**outcome.as_dict(), "run_id": job.run.run_id if job else ""},
        option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
    )
    outcome_file = flags.outcome_file if outcome.status not in ("submitted", "built") else None
    written = True
    for what, path, content in (("summary", flags.summary_json, line), ("outcome", outcome_file, told)):
        try:
            if path:
                storage.write_file(path, content)
        except Exception as error:  # noqa: BLE001  # stores raise errors of any class
            why = getattr(error, "strerror", None) or last_line(error)
            terminal.say(f"error: the {what} {path} cannot be written: {why.lower()}")
            written = False
    return written


def _shown(path: str | None) -> str | None:
    """A path as text, whatever its bytes."""
    return path and path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
