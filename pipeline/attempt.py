"""Runs one conversion, from flags to an outcome, whatever goes wrong.

Beam is imported as late as possible: errors in the configuration should not wait a second or two
for it. `--discard` deletes the unfinished work of earlier runs before the conversion.

For `analyze: true`, TensorFlow runs in a separate process: it would cost the launcher and each
worker seconds and half a gigabyte, and a process that has run TensorFlow Transform needs care when
it exits.
"""

import itertools
import os
import subprocess
import sys
import tempfile
import traceback
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import Any, NoReturn

from recordmill import storage
from recordmill.pipeline.configuration import preflight
from recordmill.pipeline.configuration.config import (
    Layout,
    LoadedSettings,
    Recognizer,
    load_settings,
)
from recordmill.pipeline.configuration.options import IN_PROCESS_RUNNERS, LaunchOptions
from recordmill.pipeline.configuration.resolve_settings import make_recipe, resolve_settings
from recordmill.pipeline.explain_failure import (
    check_address_space,
    describe_unexpected,
    explain_failure,
)
from recordmill.pipeline.import_beam import import_beam_for_local_files
from recordmill.pipeline.job import BuildPipeline, Job
from recordmill.pipeline.sample import ensure_sample
from recordmill.pipeline.terminal import Terminal
from recordmill.reading.analyze_dataset import check_tensorflow
from recordmill.schemas.dataset.file_names import (
    MARKER,
    STAGING_PREFIX,
    TRANSFORM_FN,
    staging_names,
)
from recordmill.schemas.dataset.outcome import Outcome
from recordmill.schemas.errors import (
    FAILED,
    INTERRUPTED,
    TERMINATED,
    RecordmillError,
    Terminated,
    UsageError,
)
from recordmill.schemas.formatting import format_count
from recordmill.schemas.python_process import python_environment
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.source import Input
from recordmill.schemas.version import VERSION
from recordmill.storage.dataset_files import (
    analysis_fits,
    current_folder,
    read_analysis,
    read_marker,
    work_folders,
)
from recordmill.storage.written_files import take_back
from recordmill.transforms.planning.earlier_dataset import (
    EarlierDatasets,
    EarlierNames,
    open_earlier_datasets,
)
from recordmill.transforms.planning.runs import RunSettings, find_busy
from recordmill.transforms.shards.resources import (
    available_processors,
    default_processes,
    fewest_for_processes,
)

_NOTE_ON_BEAMS_WRITER = (
    "--writer=beam writes no recordmill.json, sidecars or report; another run starts over, in "
    "another order"
)


def attempt(
    options: LaunchOptions, build: BuildPipeline, terminal: Terminal
) -> tuple[Outcome, Job | None]:
    """Runs one conversion.

    Args:
        options: the flags.
        build: builds the pipeline of a job.
        terminal: reports progress and notes.

    Returns:
        The outcome, and the job if one was made.
    """
    job = None
    try:
        job = prepare_job(options, terminal)
        # Imports Beam; errors in the configuration have been reported before.
        from recordmill.pipeline.runners import run_job

        check_address_space()
        outcome = analyze_output(run_job(job, build, options, terminal), job, terminal)
    except RecordmillError as error:
        outcome = Outcome("failed", str(error), error.exit_code)
    except KeyboardInterrupt as error:
        outcome = Outcome("failed", _stopped("interrupted", str(error), job), INTERRUPTED)
    except Terminated as error:
        outcome = Outcome("failed", _stopped("stopped by a signal", str(error), job), TERMINATED)
    except Exception as error:  # noqa: BLE001  # whatever a runner or a store raises is reported in one sentence
        if options.traceback:
            traceback.print_exc()
        output = job.run.output if job else options.output
        message = explain_failure(error, output) or describe_unexpected(error)
        outcome = Outcome("failed", message, FAILED)
    return outcome, job


def _stopped(how: str, what_was_done: str, job: Job | None) -> str:
    if what_was_done:
        return f"{how}: {what_was_done}"
    count = format_count(0, "image")
    if job is not None:
        count = format_count(job.run.progress.done, job.run.progress.unit)
    return f"{how} after {count}: run the same command again"


def prepare_job(options: LaunchOptions, terminal: Terminal) -> Job:
    """Turns the flags into a job; also carries out `--discard`.

    Raises:
        UsageError: the flags or the configuration are wrong.
        RecordmillError: an input or the output is unusable.
    """
    preflight.check_secrets(options.beam_arguments)
    if options.sample:
        options = _choose_sample(options, terminal)
    inputs, output = preflight.parse_inputs(options.input), preflight.parse_path(options.output)
    places = [*(each.path for each in inputs), output, options.config or ""]
    needs_beam = not (options.is_here and all(map(storage.is_local, places)))
    if needs_beam and not options.in_pipeline:  # that program's pipeline sets them
        _set_up_beam(options, inputs, output)  # reading needs the flags with a store's address
    recognizer = _recognizer_of(inputs, terminal)
    loaded = load_settings(options.config, options.set, recognizer, options.keywords)
    inputs = tuple(replace(each, path=_path_for_workers(each.path, options)) for each in inputs)
    output = _path_for_workers(output, options)
    preflight.check_places(inputs, output)
    preflight.probe_dataset_store("output", output, options.is_here)
    folders = _find_folders(inputs, options)
    preflight.check_versions(inputs, output, options.is_here)
    notes: list[str] = []
    settings = resolve_settings(loaded.settings, inputs, output, notes.append, options.writer)
    lists = preflight.read_lists(settings)
    recipe = make_recipe(settings, loaded.comment, lists)
    if not needs_beam and not options.in_pipeline:
        _set_up_beam(options, inputs, output, is_local=True)
    if options.discard and not options.plan:
        _discard_leftovers(output, terminal)
    notes += [*_prepare_writer(options, output), *_prepare_analysis(options, settings, output)]
    named = _name_earlier(options, settings, output)
    earlier: EarlierDatasets | EarlierNames = named
    if not options.in_pipeline:
        earlier = open_earlier_datasets(named, settings.unit, settings.seed)
    run_id = uuid.uuid4().hex[:12]
    outcome_file = _outcome_file(output, run_id, options)
    run = RunSettings(
        run_id=run_id,
        output=output,
        outcome_file=_path_for_workers(outcome_file, options),
        inputs=folders,
        exclusions=lists.exclusions,
        corrections=lists.corrections,
        reuses=bool(named.reuse or named.updated),
        versions=options.versions,
        overwrite=options.overwrite or options.update,
        update=options.update,
        preview=options.plan,
        writer=options.writer,
        threads=options.threads,
        processes=_count_processes(options, settings),
        gives_processes=bool(options.processes),
        fewest_for_processes=0 if options.processes else fewest_for_processes(settings),
        notes=(*notes, *_note_processes(options)),
        facts=_facts_of(options),
    )
    run = _add_recognition(run, loaded, options)
    return Job(settings, inputs, recipe, run, loaded.layout, earlier)


def _recognizer_of(inputs: Sequence[Input], terminal: Terminal) -> Recognizer:
    """Returns what recognizes the layout of the inputs, if there are any yet."""
    if not inputs:
        return _refuse_to_recognize
    return partial(_recognize, inputs, terminal)


def _recognize(
    inputs: Sequence[Input], terminal: Terminal, written: Mapping[str, Any]
) -> tuple[dict[str, Any], Layout | None]:
    # Not needed for a configuration in a file.
    from recordmill.pipeline.configuration.recognize_layout import fill_in

    return fill_in(inputs, terminal.say, written)


def _prepare_analysis(
    options: LaunchOptions, settings: DatasetSettings, output: str
) -> Iterator[str]:
    """Checks that TensorFlow is there if it is needed; yields a note if nothing will start it."""
    if not settings.analyze:
        return
    if options.in_pipeline:
        yield f"once the dataset exists, run {_ANALYZE} {output}"
    elif (options.wait or options.is_here) and not options.plan:
        check_tensorflow()


def _refuse_to_recognize(written: Mapping[str, Any]) -> NoReturn:
    """Says that the layout of inputs that are not known yet cannot be recognized."""
    raise UsageError(
        "source.kind is not set, and inputs that a PCollection gives cannot be looked at before: "
        'set it, as in source={"kind": "class_folders"}'
    )


def _prepare_writer(options: LaunchOptions, output: str) -> list[str]:
    """Checks that Beam's writer finds no dataset in the output; returns notes on the writer."""
    if options.writer != "beam":
        return []
    preflight.check_free_of_datasets(output, options.is_here)
    return [_NOTE_ON_BEAMS_WRITER]


def _find_folders(inputs: Sequence[Input], options: LaunchOptions) -> dict[str, str]:
    """Returns the folder of each input, by the input's name."""
    written = zip(inputs, options.input, strict=True)
    return {
        each.name: preflight.find_folder(each.path, text, options.is_here) for each, text in written
    }


def _add_recognition(
    run: RunSettings, loaded: LoadedSettings, options: LaunchOptions
) -> RunSettings:
    """Adds what the plan must know about the recognition of the input."""
    return replace(
        run,
        is_recognized=loaded.is_recognized,
        other_classes=loaded.layout.other_classes if loaded.layout else None,
        command=options.command if options.owns_process else (),
        left_by_user=loaded.left_by_user,
        names_convention=loaded.names_convention,
    )


def _discard_leftovers(output: str, terminal: Terminal) -> None:
    for line in discard_staging(output):
        terminal.say(line)


def _facts_of(options: LaunchOptions) -> dict[str, str]:
    """Returns facts about this run for the part `run` of the marker."""
    return {
        "recordmill": VERSION,
        "beam": version("apache-beam"),
        "runner": options.runner,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _name_earlier(options: LaunchOptions, settings: DatasetSettings, output: str) -> EarlierNames:
    """Names the earlier datasets, and makes sure that their stores can be reached."""
    if options.against and not settings.expect.compares:
        raise UsageError(
            "--against has no effect, since nothing in expect is compared with a previous dataset"
        )
    reuse = tuple(_earlier_folder(each, options) for each in options.reuse)
    against = updated = ""
    if options.against:
        against = _earlier_folder(options.against, options)
    if options.update:
        updated = output
    return EarlierNames(reuse, updated, against)


def _earlier_folder(path: str, options: LaunchOptions) -> str:
    """Returns the folder of an earlier dataset, whose store answers."""
    folder = _path_for_workers(preflight.parse_path(path), options)
    preflight.probe_dataset_store("dataset", folder, options.is_here)
    return folder


def _set_up_beam(
    options: LaunchOptions, inputs: Sequence[Input], output: str, is_local: bool = False
) -> None:
    """Imports Beam, checks its flags, and sets them for its file systems.

    File systems are used before there is a pipeline.
    """
    if is_local and options.owns_process:
        import_beam_for_local_files()
    from apache_beam.io.filesystems import FileSystems
    from apache_beam.options.pipeline_options import PipelineOptions

    from recordmill.pipeline.runners import check_dataflow, is_dataflow

    arguments = list(options.beam_arguments)
    FileSystems.set_options(PipelineOptions(arguments))
    if is_dataflow(options.runner):
        check_dataflow(arguments, [each.path for each in inputs], output, options.outcome_file)


def _note_processes(options: LaunchOptions) -> Iterator[str]:
    """Yields a note if a flag asks for more processes than help."""
    most = _most_processes()
    if options.processes > most:
        why = "more than two for each processor do not help"
        yield f"--processes={options.processes} became {most}: {why}"


def _most_processes() -> int:
    return 2 * available_processors()


def _count_processes(options: LaunchOptions, settings: DatasetSettings) -> int:
    """Returns the number of processes that write shards.

    Unless a flag decides it, there are as many as processors and memory allow.
    """
    alone = (
        options.runner in IN_PROCESS_RUNNERS and sys.platform == "linux" and bool(sys.executable)
    )
    alone = alone and not any(each.startswith("--direct_") for each in options.beam_arguments)
    if options.processes > 1 and not alone:
        why = "another runner, or another system than Linux, starts its own workers"
        raise UsageError(
            f"--processes={options.processes} is for DirectRunner in one process: {why}; remove it"
        )
    # Worker processes cannot import a function that was typed into a notebook.
    typed = any(name.startswith("__main__:") for name in settings.user_functions.values())
    if options.processes or options.threads or not alone or (typed and not options.owns_process):
        return min(options.processes or 1, _most_processes())
    return default_processes()


def _choose_sample(options: LaunchOptions, terminal: Terminal) -> LaunchOptions:
    folder = str(ensure_sample())
    terminal.say(f"converting the generated sample {folder}")
    config, output = (
        options.config or "configs/class_folders.yaml",
        options.output or os.path.join("out", "quickstart"),
    )
    return replace(options, config=config, input=(folder,), output=output)


def _path_for_workers(path: str, options: LaunchOptions) -> str:
    """Returns a path that is also valid for workers, which may start in other folders."""
    stays = options.is_here and not options.in_pipeline
    return path if stays or not storage.is_local(path) else os.path.abspath(path)


def _outcome_file(output: str, run_id: str, options: LaunchOptions) -> str:
    """Returns the file to which the job writes its outcome.

    It is in the output, or in the temporary folder for a local job. The output is the only place
    that a remote job and this process are known to share, even for `--plan`. A launcher that waits
    deletes the file after reading it, so a plan leaves nothing; with `--no-wait` the file is the
    only report.
    """
    if options.outcome_file:
        return options.outcome_file
    if options.is_here:
        return os.path.join(tempfile.gettempdir(), f"recordmill-{run_id}.json")
    return storage.join(output, f".outcome-{run_id}.json")


def discard_staging(output: str) -> list[str]:
    """Deletes the unfinished work of earlier runs in an output folder and its versions.

    Returns one line about each. A complete dataset whose publishing was interrupted is published:
    half of it may already be in the output. If that is impossible, both halves are deleted.

    Raises:
        RecordmillError: a run on this machine is using it, or it cannot be deleted.
    """
    stagings = {
        folder: staging_names(storage.folder_names(folder))
        for folder in work_folders(output)
        if folder == output or not storage.is_link(folder)  # what a link leads to is not ours
    }
    if busy := next(filter(None, itertools.starmap(find_busy, stagings.items())), None):
        raise RecordmillError(busy)
    try:
        return [_discard(folder, name) for folder, names in stagings.items() for name in names]
    except OSError as error:
        raise RecordmillError(storage.explain_output_error(error, output)) from None


def _discard(output: str, name: str) -> str:
    # Imports Beam.
    from recordmill.transforms.publishing.staged_dataset import (
        publish_staged,
        roll_back,
    )

    staging, plan_id = storage.join(output, name), name.removeprefix(STAGING_PREFIX)
    pending, done = storage.join(staging, MARKER), f"deleted the unfinished work {name}"
    if storage.exists(pending) and not storage.is_link(staging):
        try:
            publish_staged(output, plan_id)
            return (
                f"{name} held a complete dataset, whose publication was interrupted: it is now "
                "in place"
            )
        except (OSError, ValueError) as error:
            done = (
                f"deleted {name}, whose dataset was complete and cannot be published: "
                f"{' '.join(str(error).split())}"
            )
    if storage.exists(pending) and not storage.is_link(staging):
        # If its marker cannot be used, its files in the output are unknown.
        with suppress(ValueError):
            roll_back(output, plan_id)
    if count := take_back(staging, output):
        done += f", and {format_count(count, 'file')} that it had begun to put in place"
    storage.remove_folder(staging)
    return done


_ANALYZE = "recordmill analyze"


def analyze_output(outcome: Outcome, job: Job, terminal: Terminal) -> Outcome:
    """Analyzes a finished dataset if settings request it, and adds the result to the outcome."""
    if not job.settings.analyze or outcome.exit_code:
        return outcome
    output = job.run.output
    if outcome.status in ("submitted", "built"):
        return replace(
            outcome, notes=(*outcome.notes, f"once the dataset exists, run {_ANALYZE} {output}")
        )
    numbers = outcome.dataset
    if numbers is None:
        return outcome
    output = current_folder(output)
    if analysis_fits(read_analysis(output), read_marker(output)):
        return replace(outcome, numbers=replace(numbers, analysis="kept"))
    terminal.say(f"{outcome.message}; now TensorFlow Transform analyzes them")
    failed = _run_analysis(output, terminal.muted)
    if failed:
        message = (
            f"{outcome.message}; the analysis failed (exit code {failed}): run {_ANALYZE} {output}"
        )
        numbers = replace(numbers, analysis="failed")
        return replace(outcome, exit_code=FAILED, message=message, numbers=numbers)
    message = f"{outcome.message}; {TRANSFORM_FN}/ has been made"
    return replace(outcome, message=message, numbers=replace(numbers, analysis="analyzed"))


def _run_analysis(output: str, muted: bool) -> int:
    """Runs the analysis in its own process, which reports to stderr; returns its exit code."""
    command = [sys.executable, "-P", "-m", "recordmill.pipeline.analyze", "--", output]
    stderr = subprocess.DEVNULL if muted else None
    done = subprocess.run(
        command, env=python_environment(), stdout=subprocess.DEVNULL, stderr=stderr, check=False
    )
    return done.returncode
