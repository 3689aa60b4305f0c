"""`recordmill.convert`: `recordmill run` as a function, for scripts, notebooks and threads."""

import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Unpack

from recordmill.pipeline.attempt import attempt
from recordmill.pipeline.configuration.options import LaunchOptions, check_options, parse_options
from recordmill.pipeline.quiet_libraries import quiet_libraries
from recordmill.pipeline.run import build
from recordmill.pipeline.terminal import Terminal
from recordmill.reading.dataset import Dataset, open_dataset
from recordmill.schemas.dataset.outcome import ConversionError, Outcome
from recordmill.schemas.errors import INTERRUPTED, UsageError
from recordmill.schemas.settings.keywords import DatasetKeywords
from recordmill.schemas.str_path import StrPath

_PROG = "recordmill.convert"
# The process has one progress counter, and one logging that is muted meanwhile.
_ONE_AT_A_TIME = threading.Lock()


def convert(
    inputs: StrPath | Sequence[StrPath] | Mapping[str, StrPath],
    output: StrPath,
    *,
    config: StrPath | None = None,
    runner: str = "DirectRunner",
    runner_options: Mapping[str, Any] | None = None,
    against: StrPath | None = None,
    reuse: Sequence[StrPath] = (),
    update: bool = False,
    versions: bool = False,
    overwrite: bool = False,
    discard: bool = False,
    threads: int = 0,
    processes: int = 0,
    quiet: bool = False,
    traceback: bool = False,
    **settings: Unpack[DatasetKeywords],
) -> Dataset:
    """Converts a collection as `recordmill run` does; opens the dataset if it is there already.

    Progress goes to stderr. Example: `dataset = recordmill.convert("photos", "dataset")`.

    Args:
        inputs: a folder or file; or several by name. The names then begin the images' keys.
        output: the dataset's folder.
        config: a configuration, as `--config` takes it.
        runner: the name of a Beam runner.
        runner_options: flags of Beam, such as `{"flink_master": "localhost:8081"}`.
        against: the dataset with which `expect` compares; None for the one in the output.
        reuse: earlier datasets whose unchanged images are taken without decoding them.
        update: whether to replace the dataset in the output, and reuse its images.
        versions: whether to publish in a new folder below the output, and keep earlier datasets.
        overwrite: whether to replace another dataset in the output.
        discard: whether to delete the unfinished work of earlier runs first.
        threads: number of images decoded at once in a process; 0 for one per processor.
        processes: processes on DirectRunner; 0 for one per processor, or one with `threads`.
        quiet: whether to write nothing to stderr.
        traceback: whether to show where an unexpected error comes from.
        settings: as in YAML; a mapping sets only the keys in it: `images={"quality": 90}`.

    Raises:
        ConversionError: no dataset was made: the command's exit code would be above 0.
        KeyboardInterrupt: it was interrupted; the same call continues from finished shards.
    """
    flags: dict[str, Any] = {
        "output": output,
        "config": config,
        "against": against,
        "reuse": list(reuse),
        "update": update,
        "versions": versions,
        "overwrite": overwrite,
        "discard": discard,
        "runner": runner,
        "threads": threads or None,
        "processes": processes or None,
        "traceback": traceback,
    }
    return _convert(_parse(inputs, {**flags, **(runner_options or {})}, settings), quiet)


def _convert(options: LaunchOptions, quiet: bool) -> Dataset:
    terminal = Terminal(None if quiet else sys.stderr)
    with _ONE_AT_A_TIME, nullcontext() if options.traceback else quiet_libraries():
        outcome, job = attempt(options, build, terminal)
    if outcome.exit_code == INTERRUPTED:
        raise KeyboardInterrupt(outcome.message)
    if outcome.exit_code or outcome.status not in ("published", "kept") or job is None:
        raise ConversionError(outcome)
    terminal.report_outcome(outcome, job.run.output)
    return open_dataset(job.run.output)


def _parse(
    inputs: StrPath | Sequence[StrPath] | Mapping[str, StrPath],
    flags: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> LaunchOptions:
    try:
        words = [*_input_flags(inputs), *_as_flags(flags)]
        with _ONE_AT_A_TIME, quiet_libraries():  # Beam is imported, and checks its flags
            options = check_options(parse_options(words, _PROG), _PROG)
        if options.writer == "beam":
            raise UsageError(
                "--writer=beam makes no dataset that could be opened: run it as a command"
            )
        # The caller's threads would not survive a fork.
        return replace(options, keywords=settings, owns_process=False)
    except UsageError as error:
        raise ConversionError(Outcome("failed", str(error), error.exit_code)) from None


def _input_flags(inputs: StrPath | Sequence[StrPath] | Mapping[str, StrPath]) -> list[str]:
    if isinstance(inputs, Mapping):
        return [f"--input={name}={os.fspath(path)}" for name, path in inputs.items()]
    return [
        f"--input={os.fspath(path)}"
        for path in ([inputs] if isinstance(inputs, str | os.PathLike) else inputs)
    ]


def _as_flags(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if value is True:
            yield f"--{name}"
        elif value is not None and value is not False:
            for each in value if isinstance(value, list) else [value]:
                text = os.fspath(each) if isinstance(each, os.PathLike) else each
                yield f"--{name}={text}"
