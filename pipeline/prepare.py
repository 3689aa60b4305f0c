"""Turns flags into a job, or says in one sentence what is wrong with them, before any work."""

import os
import sys
import tempfile
import uuid
from argparse import Namespace
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import apache_beam as beam
import yaml
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from recordmill import storage
from recordmill.pipeline.analyze_output import check_analysis_is_possible
from recordmill.pipeline.configuration.config import ConfigError, load_settings, name_dataset, read_comment
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
from recordmill.pipeline.configuration.resolve_source import resolve_source
from recordmill.pipeline.discard import discard_staging
from recordmill.pipeline.runners.dataflow import check_dataflow, is_dataflow
from recordmill.pipeline.sample import ensure_sample
from recordmill.pipeline.terminal.terminal import Terminal
from recordmill.schemas.added_setting import leave_out_added
from recordmill.schemas.version import VERSION
from recordmill.transforms.dataset_settings import DatasetSettings
from recordmill.transforms.idle_settings import find_idle, find_unused_words
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
    written: dict[str, Any] = {}
    settings, plain = load_settings(flags.config, flags.set or [], finder.fill_in, written.update)
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
    settings, plain = resolve_source(*name_dataset(settings, plain, output), inputs, notes.append)
    if idle := find_idle(settings):
        raise ConfigError("\n".join(idle))
    run_id = uuid.uuid4().hex[:12]
    outcome_file = flags.outcome_file or _outcome_file(output, run_id, flags.runner)
    run = RunSettings(
        run_id=run_id,
        output=output,
        outcome_file=_path_elsewhere(outcome_file, flags.runner),
        recipe={**leave_out_added(settings, plain), **_functions_of(settings)},
        config_text=(finder.comment or read_comment(flags.config)) + _as_yaml(plain),
        inputs=folders,
        overwrite=flags.overwrite,
        preview=flags.plan,
        names_convention=written.get("convention") is not None,
        threads=flags.threads,
        processes=_processes(flags, beam_arguments),
        notes=(*notes, *find_unused_words(settings)),
        facts=_facts_of(flags.runner),
    )
    job = Job(settings, inputs, run, finder.found)
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


def _functions_of(settings: DatasetSettings) -> dict[str, dict[str, Any]]:
    """The functions with digests of their code: a change of code makes another dataset."""
    functions = {name: {**asdict(each), "code": each.code_digest} for name, each in settings.features.items()}
    return {"functions": functions} if functions else {}


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


def _as_yaml(plain: dict[str, Any]) -> str:
    text: str = yaml.safe_dump(_yaml_ready(plain), sort_keys=False, allow_unicode=True)
    return text


def _yaml_ready(value: Any) -> Any:
    """Tuples as lists: YAML has no tuples."""
    if isinstance(value, dict):
        return {key: _yaml_ready(each) for key, each in value.items()}
    return [_yaml_ready(each) for each in value] if isinstance(value, list | tuple) else value
