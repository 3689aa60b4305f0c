"""Turns flags into a job, or says in one sentence what is wrong with them, before any work."""

import os
import sys
import tempfile
import uuid
from argparse import Namespace
from dataclasses import replace
from datetime import UTC, datetime

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from recordmill import storage
from recordmill.pipeline.analyze_output import check_analysis_is_possible
from recordmill.pipeline.configuration.config import load_settings
from recordmill.pipeline.configuration.job import Job
from recordmill.pipeline.configuration.options import IN_PROCESS_RUNNERS, LOCAL_RUNNERS, Parser, UsageError
from recordmill.pipeline.configuration.preflight import (
    PathError,
    check_answer,
    check_places,
    check_secrets,
    check_summary,
    find_folder,
    normal_path,
    parse_inputs,
)
from recordmill.pipeline.configuration.recognise_layout import LayoutFinder
from recordmill.pipeline.configuration.resolve_settings import make_recipe, resolve_settings
from recordmill.pipeline.discard import discard_staging
from recordmill.pipeline.runners.dataflow import check_dataflow, is_dataflow
from recordmill.pipeline.sample import ensure_sample
from recordmill.pipeline.terminal.terminal import Terminal
from recordmill.schemas.version import VERSION
from recordmill.transforms.run_settings import RunSettings
from recordmill.transforms.shards.read_ahead import default_threads


def prepare_job(flags: Namespace, beam_arguments: list[str], terminal: Terminal) -> Job:
    """Makes a job of the flags; `--discard` is done here too.

    Raises:
        UsageError: the flags are wrong.
        ConfigError: the configuration is.
        PathError: an input or the output is unusable.
    """
    try:
        check_summary(flags.summary_json, flags.output)
    except PathError:
        flags.summary_json = None  # nor is this reported there
        raise
    check_secrets(beam_arguments)
    _check_beam_flags(beam_arguments, elsewhere=flags.runner not in LOCAL_RUNNERS)
    FileSystems.set_options(PipelineOptions(beam_arguments))  # a store's address is needed before there is a pipeline
    if flags.sample:
        _choose_sample(flags, terminal)
    inputs, output = parse_inputs(flags.input), normal_path(flags.output)
    finder = LayoutFinder(inputs, terminal.say)
    loaded = load_settings(flags.config, flags.set or [], finder.fill_in)
    if is_dataflow(flags.runner):
        check_dataflow(beam_arguments, [each.path for each in inputs], output, flags.outcome_file)
    inputs = tuple(replace(each, path=_path_elsewhere(each.path, flags.runner)) for each in inputs)
    output = _path_elsewhere(output, flags.runner)
    check_places(inputs, output, flags.plan)
    here = flags.runner in LOCAL_RUNNERS
    check_answer(output, inputs, here)
    if flags.discard and not flags.plan:
        for line in discard_staging(output):
            terminal.say(line)
    folders = {each.name: find_folder(each, text, here) for each, text in zip(inputs, flags.input, strict=True)}
    notes: list[str] = []
    settings = resolve_settings(loaded.settings, inputs, output, notes.append)
    run_id = uuid.uuid4().hex[:12]
    outcome_file = flags.outcome_file or _outcome_file(output, run_id, flags.runner)
    run = RunSettings(
        run_id=run_id,
        output=output,
        outcome_file=_path_elsewhere(outcome_file, flags.runner),
        inputs=folders,
        overwrite=flags.overwrite,
        preview=flags.plan,
        names_convention=loaded.names_convention,
        threads=flags.threads,
        processes=_processes(flags, beam_arguments),
        notes=tuple(notes),
        facts=_facts_of(flags.runner),
    )
    recipe = make_recipe(settings, finder.comment or loaded.comment)
    job = Job(settings, inputs, recipe, run, finder.found)
    check_analysis_is_possible(job, here=flags.wait or here)
    return job


def _facts_of(runner: str) -> dict[str, str]:
    return {
        "recordmill": VERSION,
        "beam": beam.__version__,
        "runner": runner,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _processes(flags: Namespace, beam_arguments: list[str]) -> int:
    """The number of processes that write shards: two if nothing else determines it, and forks are safe."""
    alone = flags.alone and flags.runner in IN_PROCESS_RUNNERS
    alone = alone and not any(each.startswith("--direct_") for each in beam_arguments)
    return 2 if alone and not flags.threads and default_threads() > 1 and sys.platform == "linux" else 1


def _check_beam_flags(arguments: list[str], elsewhere: bool) -> None:
    """Checks Beam's flags by its own definitions; a remote runner may know more of them."""
    beams = Parser(add_help=False, allow_abbrev=False, conflict_handler="resolve")
    for options in PipelineOptions.__subclasses__():
        options._add_argparse_args(beams)  # type: ignore[arg-type]  # Beam's own parser adds ValueProviders only
    _, unknown = beams.parse_known_args(arguments)
    if unknown and not elsewhere:
        raise UsageError(f"there is no flag {unknown[0]}: see --help")


def _choose_sample(flags: Namespace, terminal: Terminal) -> None:
    flags.config = flags.config or "configs/class_folders.yaml"
    flags.input = [str(ensure_sample())]
    flags.output = flags.output or os.path.join("out", "quickstart")
    terminal.say(f"no --input given: converting the generated sample {flags.input[0]}")


def _path_elsewhere(path: str, runner: str) -> str:
    """A path that is valid for workers too, which may start in other folders."""
    return path if runner in LOCAL_RUNNERS or not storage.is_local(path) else os.path.abspath(path)


def _outcome_file(output: str, run_id: str, runner: str) -> str:
    """The file for the job's outcome: in a local temporary folder if the job runs here, otherwise in the output.

    The output is the only place that a remote job and this process are known to share, also for `--plan`. A launcher
    that waits deletes the file after reading it, so a plan leaves nothing; with `--no_wait` the file is the only
    report.
    """
    if runner in LOCAL_RUNNERS:
        return os.path.join(tempfile.gettempdir(), f"recordmill-{run_id}.json")
    return storage.join(output, f".outcome-{run_id}.json")
