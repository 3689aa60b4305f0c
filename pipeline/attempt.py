"""Runs one conversion, from flags to an outcome, whatever goes wrong."""

import traceback
from typing import TYPE_CHECKING

from recordmill.pipeline.configuration.job import Job
from recordmill.pipeline.configuration.options import LaunchOptions
from recordmill.pipeline.prepare import prepare_job
from recordmill.pipeline.terminal.printable import last_line
from recordmill.pipeline.terminal.terminal import Terminal
from recordmill.schemas.errors import RecordmillError
from recordmill.schemas.formatting import format_count
from recordmill.schemas.outcome import FAILED, INTERRUPTED, TERMINATED, Outcome, Terminated
from recordmill.transforms.shards.progress import PROGRESS

if TYPE_CHECKING:
    from recordmill.pipeline.runners.run_job import Build


def attempt(options: LaunchOptions, build: "Build", terminal: Terminal) -> tuple[Outcome, Job | None]:
    """Runs one conversion.

    Args:
        options: the flags.
        build: builds the pipeline of a job.
        terminal: reports progress and notes.

    Returns:
        How it ended, and the job, if there was one.
    """
    job = None
    try:
        job = prepare_job(options, terminal)
        # With these comes Beam, which takes two seconds: an error in the configuration is reported without it.
        from recordmill.pipeline.analyze_output import analyze_output
        from recordmill.pipeline.runners.run_job import run_job

        outcome = run_job(job, build, options, terminal)
        outcome = analyze_output(outcome, job, terminal)
    except RecordmillError as error:
        outcome = Outcome("failed", str(error), error.exit_code)
    except KeyboardInterrupt as error:
        outcome = Outcome("failed", _stopped("interrupted", str(error)), INTERRUPTED)
    except Terminated as error:
        outcome = Outcome("failed", _stopped("stopped by a signal", str(error)), TERMINATED)
    except Exception as error:  # noqa: BLE001  # whatever a runner or a store raises is reported in one sentence
        if options.traceback:
            traceback.print_exc()
        outcome = Outcome("failed", _unexpected(error), FAILED)
    return outcome, job


def _stopped(how: str, what_was_done: str) -> str:
    if what_was_done:
        return f"{how}: {what_was_done}"
    return f"{how} after {format_count(PROGRESS.done, PROGRESS.unit)}: run the same command again to go on from there"


def _unexpected(error: Exception) -> str:
    where = "--traceback shows where; a rerun goes on from finished shards"
    return f"unexpected {type(error).__name__}: {last_line(error)} ({where})"
