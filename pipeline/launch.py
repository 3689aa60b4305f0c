"""One run of the command: flags, checks, the pipeline, and what is told at the end."""

import gc
import os
import signal
import sys
import time
import traceback
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace

import orjson

from recordmill.pipeline.analyze_output import analyze_output
from recordmill.pipeline.config import ConfigError
from recordmill.pipeline.job import Job
from recordmill.pipeline.options import build_parser
from recordmill.pipeline.preflight import PlaceError, UsageError
from recordmill.pipeline.prepare import prepare_job
from recordmill.pipeline.run_job import Build, StoppedError, last_line, run_job
from recordmill.pipeline.terminal import Terminal
from recordmill.schemas.outcome import FAILED, WRONG_USAGE, Outcome
from recordmill.schemas.show_count import show_count
from recordmill.schemas.version import VERSION
from recordmill.transforms.files import storage
from recordmill.transforms.progress import PROGRESS
from recordmill.transforms.publishing.switch_dataset import as_json

INTERRUPTED, TERMINATED = 130, 143
"""What shells expect of a process that was ended by SIGINT and SIGTERM."""

MOST_NOTES = 20
"""Notes in the line of JSON; all are in `recordmill.json`."""


def launch(argv: Sequence[str], build: Build) -> int:
    """Runs one conversion and tells how it went.

    Args:
        argv: the flags.
        build: builds the pipeline of a job.

    Returns:
        The exit code.
    """
    # What is imported stays: the collector need not look through it again and again (0.4 s of a run of 100 images).
    gc.freeze()
    gc.enable()
    started = time.monotonic()
    signal.signal(signal.SIGTERM, _stop)
    terminal = Terminal(sys.stderr)
    parser = build_parser(VERSION)
    flags, job = parser.parse_args([]), None  # what holds where the flags themselves are wrong
    try:
        flags, beam_arguments = parser.parse_known_args(argv)
        job = prepare_job(flags, beam_arguments, terminal)
        outcome = run_job(job, build, flags, beam_arguments, terminal)
        outcome = analyze_output(outcome, job, terminal)
    except (UsageError, ConfigError) as error:
        outcome = Outcome("failed", str(error), WRONG_USAGE)
    except PlaceError as error:
        outcome = Outcome("failed", str(error), FAILED)
    except KeyboardInterrupt as error:
        outcome = Outcome("failed", _stopped("interrupted", str(error)), INTERRUPTED)
    except StoppedError as error:
        outcome = Outcome("failed", _stopped("stopped by a signal", str(error)), TERMINATED)
    except Exception as error:  # noqa: BLE001  # whatever a runner or a store raises is told in one sentence
        if flags.traceback:
            traceback.print_exc()
        outcome = Outcome("failed", _unexpected(error), FAILED)
    terminal.tell(outcome, job)
    text = _summary_line(outcome, job, flags, round(time.monotonic() - started, 3))
    sys.stdout.write(text.decode())
    sys.stdout.flush()
    if not _write_files(outcome, job, flags, text, terminal):
        outcome = replace(outcome, exit_code=outcome.exit_code or FAILED)
    if outcome.exit_code in (INTERRUPTED, TERMINATED):
        os._exit(outcome.exit_code)  # worker threads may still be decoding, and nobody waits for them
    gc.freeze()  # nor what is left at the end
    return outcome.exit_code


def _stop(*_: object) -> None:
    raise StoppedError


def _stopped(how: str, what_was_done: str) -> str:
    if what_was_done:
        return f"{how}: {what_was_done}"
    return f"{how} after {show_count(PROGRESS.done, PROGRESS.unit)}: run the same command again to go on from there"


def _unexpected(error: Exception) -> str:
    where = "--traceback shows where; a rerun goes on from finished shards"
    return f"unexpected {type(error).__name__}: {last_line(error)} ({where})"


def _summary_line(outcome: Outcome, job: Job | None, flags: Namespace, seconds: float) -> bytes:
    """The one line of stdout: short, since a launcher may read stderr to its end before it reads this."""
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


def _write_files(outcome: Outcome, job: Job | None, flags: Namespace, line: bytes, terminal: Terminal) -> bool:
    """Writes the files that were asked for; False where one cannot be written.

    The outcome file is the job's to write, but a job that crashed, or was never begun, has not.
    """
    told = as_json({**outcome.as_dict(), "run_id": job.run.run_id if job else ""})
    outcome_file = flags.outcome_file if outcome.status not in ("submitted", "built") else None
    written = True
    for what, path, content in (("summary", flags.summary_json, line), ("outcome", outcome_file, told)):
        try:
            if path:
                storage.write_file(path, content)
        except Exception as error:  # noqa: BLE001  # a store's errors are of any class
            why = getattr(error, "strerror", None) or last_line(error)
            terminal.say(f"error: the {what} {path} cannot be written: {why.lower()}")
            written = False
    return written


def _shown(path: str | None) -> str | None:
    """A path as text, whatever its bytes are."""
    return path and path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
