"""One run of the command: flags, checks, the pipeline, and what is told at the end."""

import gc
import logging
import os
import signal
import sys
import tempfile
import time
import uuid
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import apache_beam as beam
import orjson
import yaml
from apache_beam.options.pipeline_options import PipelineOptions, SetupOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from pipeline.config import ConfigError, load_settings, name_dataset
from pipeline.job import Job
from pipeline.options import LOCAL_RUNNERS, build_parser, find_unknown_flag
from pipeline.preflight import PlaceError, UsageError, check_places, discard_staging, normal_output, parse_inputs
from pipeline.sample import ensure_sample
from pipeline.terminal import Terminal
from schemas.outcome import FAILED, WRONG_USAGE, Outcome
from schemas.version import VERSION
from transforms import storage
from transforms.progress import PROGRESS
from transforms.run_settings import RunSettings

Build = Callable[[beam.Pipeline, Job], Any]

INTERRUPTED, TERMINATED = 130, 143
"""What shells expect of a process that was ended by SIGINT and SIGTERM."""


class _StoppedError(BaseException):
    """SIGTERM arrived."""


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
    flags, beam_arguments = build_parser(VERSION).parse_known_args(argv)
    terminal = Terminal(sys.stderr)
    clock = {"started": time.monotonic()}
    job = None
    signal.signal(signal.SIGTERM, _stop)
    try:
        job = _prepare(flags, beam_arguments, terminal)
        clock["building"] = time.monotonic()
        outcome = _run(job, build, flags, beam_arguments, terminal)
    except (UsageError, ConfigError) as error:
        outcome = Outcome("failed", str(error), WRONG_USAGE)
    except PlaceError as error:
        outcome = Outcome("failed", str(error), FAILED)
    except KeyboardInterrupt:
        outcome = Outcome("failed", _stopped("interrupted"), INTERRUPTED)
    except _StoppedError:
        outcome = Outcome("failed", _stopped("stopped by a signal"), TERMINATED)
    seconds = round(time.monotonic() - clock["started"], 3)
    terminal.tell(outcome, job)
    try:
        _write_summary(outcome, job, flags, seconds)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        terminal.say(f"error: the summary {flags.summary_json} cannot be written: {why}")
        outcome = replace(outcome, exit_code=outcome.exit_code or FAILED)
    if outcome.exit_code in (INTERRUPTED, TERMINATED):
        os._exit(outcome.exit_code)  # worker threads may still be decoding, and nobody waits for them
    gc.freeze()  # nor what is left at the end
    return outcome.exit_code


def _stop(*_: object) -> None:
    raise _StoppedError


def _stopped(how: str) -> str:
    return f"{how} after {PROGRESS.done:,} images: run the same command again to go on from there"


def _prepare(flags: Namespace, beam_arguments: list[str], terminal: Terminal) -> Job:
    local = flags.runner in LOCAL_RUNNERS
    if local and (unknown := find_unknown_flag(beam_arguments)):
        raise UsageError(unknown)
    _choose_places(flags, terminal)
    settings, plain = load_settings(flags.config, flags.set or [])
    inputs, output = parse_inputs(flags.input), normal_output(flags.output)
    check_places(inputs, output, flags.plan)
    if flags.discard and not flags.plan:
        for line in discard_staging(output):
            terminal.say(line)
    settings, plain = name_dataset(settings, plain, output)
    run_id = uuid.uuid4().hex[:12]
    run = RunSettings(
        run_id=run_id,
        output=output,
        outcome_file=flags.outcome_file or _outcome_file(output, run_id, flags.runner),
        recipe=plain,
        config_text=yaml.safe_dump(_yaml_ready(plain), sort_keys=False, allow_unicode=True),
        inputs={
            each.name: each.path if not os.path.isfile(each.path) else os.path.dirname(each.path) for each in inputs
        },
        overwrite=flags.overwrite,
        preview=flags.plan,
        threads=flags.threads,
        facts={
            "recordmill": VERSION,
            "beam": beam.__version__,
            "runner": flags.runner,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        },
    )
    return Job(settings, inputs, run)


def _choose_places(flags: Namespace, terminal: Terminal) -> None:
    """Without any place given, the sample is converted; with one, both must be."""
    if not flags.input and not flags.output and not flags.config:
        flags.config = "configs/class_folders.yaml"
        flags.input = [str(ensure_sample())]
        flags.output = os.path.join("out", "quickstart")
        terminal.say(f"no --input given: converting the sample that Recordmill draws itself, {flags.input[0]}")
    if not flags.input:
        raise UsageError("--input is missing: name the folder with the images")
    if not flags.output:
        raise UsageError("--output is missing: name the folder for the dataset")


def _outcome_file(output: str, run_id: str, runner: str) -> str:
    """Where the job says how it ended: beside this process where the job runs there, else in the output."""
    if runner in LOCAL_RUNNERS:
        return os.path.join(tempfile.gettempdir(), f"recordmill-{run_id}.json")
    return storage.join(output, f".outcome-{run_id}.json")


def _yaml_ready(value: Any) -> Any:
    """Tuples as lists: YAML has no tuples."""
    if isinstance(value, dict):
        return {key: _yaml_ready(each) for key, each in value.items()}
    return [_yaml_ready(each) for each in value] if isinstance(value, list | tuple) else value


def _run(job: Job, build: Build, flags: Namespace, beam_arguments: list[str], terminal: Terminal) -> Outcome:
    PROGRESS.reset()
    logging.getLogger("apache_beam").setLevel(logging.WARNING if flags.traceback else logging.CRITICAL)
    in_process = flags.runner in ("DirectRunner", "FnApiRunner")
    arguments = list(beam_arguments) if in_process else [*beam_arguments, f"--runner={flags.runner}"]
    options = PipelineOptions(arguments)
    options.view_as(SetupOptions).save_main_session = False
    # Behind the name DirectRunner Beam would look for a Prism binary, and run elsewhere on line than off line.
    pipeline = beam.Pipeline(runner=FnApiRunner() if in_process else None, options=options)
    build(pipeline, job)
    try:
        with terminal.watch(PROGRESS):
            result = pipeline.run()
            if not flags.wait:
                return Outcome(
                    "submitted", f"the job was submitted; it will say how it ended in {job.run.outcome_file}", 0
                )
            result.wait_until_finish()
    except Exception as error:  # whatever a runner raises, people are told in one sentence
        if stop := _find_stop(error):
            raise stop from None
        if flags.traceback:
            raise
        return Outcome("failed", _unexpected(error), FAILED)
    return _read_outcome(job.run.outcome_file, keep=bool(flags.outcome_file))


def _find_stop(error: BaseException | None) -> BaseException | None:
    """The signal behind an error: Beam makes a RuntimeError of one that arrives while this thread runs a step."""
    while error is not None and not isinstance(error, KeyboardInterrupt | _StoppedError):
        error = error.__cause__ or error.__context__
    return error


def _unexpected(error: Exception) -> str:
    last = str(error).strip().splitlines()[-1:] or [""]
    text = last[0] if len(last[0]) < 300 else f"{last[0][:300]}..."
    return f"unexpected {type(error).__name__}: {text} (--traceback shows where; a rerun goes on from finished shards)"


def _read_outcome(path: str, keep: bool) -> Outcome:
    told = orjson.loads(storage.read_range(path))
    if not keep:
        storage.remove_files([path])
    fields = {key: told[key] for key in ("status", "sentence", "exit_code", "plan_id", "numbers")}
    return Outcome(**fields, notes=tuple(told["notes"]))


def _write_summary(outcome: Outcome, job: Job | None, flags: Namespace, seconds: float) -> None:
    """The one line of stdout: short, since a launcher may read stderr to its end before it reads this."""
    line = {
        "status": outcome.status,
        "exit_code": outcome.exit_code,
        "sentence": outcome.sentence,
        "output": job.run.output if job else _shown(flags.output),
        "plan_id": outcome.plan_id,
        **outcome.numbers,
        "seconds": {"total": seconds},
    }
    text = orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
    sys.stdout.write(text.decode())
    sys.stdout.flush()
    if flags.summary_json:
        storage.write_file(flags.summary_json, text)


def _shown(path: str | None) -> str | None:
    """A path as text, whatever its bytes are."""
    return path and path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
