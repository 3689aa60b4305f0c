"""`--writer=beam`: converts what is planned image by image, and writes with Beam's `WriteToTFRecord`.

Beam writes into a staging folder. The files are read back, and get their names in the output only if they hold what was
listed and not rejected. There is no marker, so that no run resumes another one.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter

import apache_beam as beam
from apache_beam.pvalue import AsSingleton

from recordmill import storage
from recordmill.schemas.dataset.file_names import LABELS, STAGING_PREFIX
from recordmill.schemas.dataset.marker import DuplicateCounts, SameBytes
from recordmill.schemas.dataset.shard_report import FinishedShards, ShardReport
from recordmill.schemas.dataset.totals import AnnotationTotals, RowTotals
from recordmill.schemas.formatting import format_count, show_names
from recordmill.schemas.outcome import DONE, FAILED, TOO_MANY_REJECTED, Outcome
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.example_layout import ExampleLayout
from recordmill.storage.dataset_files import staging_folder
from recordmill.storage.many_files import move_files
from recordmill.storage.output_errors import explain_output_error
from recordmill.transforms import compose
from recordmill.transforms.planning.output_lock import claim_output, remove_staging
from recordmill.transforms.planning.plan import Plan
from recordmill.transforms.publish_dataset import find_excess, list_losses, write_outcome
from recordmill.transforms.publishing.ledger import LedgerError, balance_ledger
from recordmill.transforms.publishing.marker import build_marker, check_names, name_shards
from recordmill.transforms.run_settings import RunSettings
from recordmill.transforms.shards.progress import PROGRESS


def write_with_beam(
    batches: beam.PCollection[ReferenceBatch],
    plans: beam.PCollection[Plan],
    settings: DatasetSettings,
    run: RunSettings,
) -> beam.PCollection[Outcome]:
    """Converts a PCollection of batches of references, and writes each split's Examples.

    Args:
        batches: PCollection[ReferenceBatch].
        plans: PCollection[Plan] of exactly one element.
        settings: what the dataset is.
        run: where and how this run works.

    Returns:
        PCollection[Outcome] of exactly one element.
    """
    plans = plans | "ClaimOutput" >> beam.Map(_claim, run).with_output_types(Plan)
    plan, cutoffs, labels = (
        AsSingleton(plans),
        AsSingleton(plans | "Cutoffs" >> beam.Map(attrgetter("selection"))),
        AsSingleton(plans | "Labels" >> beam.Map(attrgetter("label_map"))),
    )
    return (
        batches
        | "TakePlanned" >> beam.FlatMap(_take, plan).with_output_types(ReferenceBatch)
        | compose.AssignSplits(settings, cutoffs)
        | compose.ReadImages(settings, labels)
        | compose.ReencodeImages(settings)
        | compose.BuildExamples(settings, labels)
        | compose.SplitExamples(settings)
        | compose.WriteExamples(settings, staging_folder(run.output, run.run_id), settings.shards.count or 1)
        | "PublishFiles" >> beam.Map(publish_files, plan, settings, run).with_output_types(Outcome)
    )


def _claim(plan: Plan, run: RunSettings) -> Plan:
    """The plan; if it is to convert, the output is claimed, and was empty."""
    PROGRESS.planned = plan.summary.references + plan.summary.rejected.total()
    PROGRESS.enter("converting")
    if plan.action == "convert":
        claim_output(run.output, run.run_id, run.run_id)
        if problem := find_others(run.output, run.run_id):
            return replace(plan, action="refuse", sentence=problem)
    return plan


def _take(batch: ReferenceBatch, plan: Plan) -> Iterator[ReferenceBatch]:
    """The batch, unless the plan is to fail."""
    if plan.action == "convert":
        yield batch


def publish_files(tally: compose.Tally, plan: Plan, settings: DatasetSettings, run: RunSettings) -> Outcome:
    """Moves the files that Beam wrote to the output if nothing is lost, and writes the outcome file.

    What users can fix, and a sum that does not add up, becomes a failed outcome: then nothing is left in the output.
    """
    PROGRESS.enter("publishing")
    try:
        outcome = _publish(tally, plan, settings, run)
    except (LedgerError, ValueError) as error:
        outcome = Outcome("failed", str(error), FAILED)
    except OSError as error:
        outcome = Outcome("failed", explain_output_error(error, run.output), FAILED)
    with suppress(OSError):  # the run has ended; the next one names what is there
        remove_staging(run.output, run.run_id, run.run_id)
    return write_outcome(replace(outcome, notes=(*plan.notes, *outcome.notes)), plan, run)


def _publish(tally: compose.Tally, plan: Plan, settings: DatasetSettings, run: RunSettings) -> Outcome:
    if problem := plan.sentence or tally.find_problem():
        return Outcome("refused" if plan.action == "refuse" else "failed", problem, FAILED)
    total = ShardReport("", 0, 0, RowTotals(), AnnotationTotals(), digest=f"{tally.digest:064x}")
    finished = FinishedShards(reports=[total], splits=tally.splits, annotations=tally.annotations)
    ledger, shards = balance_ledger(plan.summary, finished), name_shards(tally.files, settings)
    marker = build_marker(plan, shards, ledger, settings, finished, DuplicateCounts(SameBytes(), None))
    numbers = {key: value for key, value in marker.numbers().items() if key != "duplicates"}
    such = {reason: example.text for reason, example in tally.rejected_such.items()}
    if problem := find_excess(finished, plan, ledger, settings, such):
        return Outcome("failed", problem, TOO_MANY_REJECTED, numbers=numbers)
    check_names(marker)
    staging, count = staging_folder(run.output, run.run_id), settings.shards.count or 1
    moves = {f"{each.report.split}-{each.report.index:05d}-of-{count:05d}.tfrecord": each.name for each in shards}
    storage.write_file(
        storage.join(staging, LABELS), plan.label_map.as_text(ExampleLayout(settings).convention.label_lines).encode()
    )
    _move(staging, moves | {LABELS: LABELS}, run)
    sentence = f"{format_count(ledger.written, settings.unit)} {'is' if ledger.written == 1 else 'are'} in {run.output}"
    losses = tuple(list_losses(finished, plan.summary, settings))
    return Outcome("written", sentence, DONE, numbers=numbers, notes=losses)


def _move(staging: str, moves: Mapping[str, str], run: RunSettings) -> None:
    """Gives files in staging their names in the output; all of them, or none."""
    paths = {storage.join(staging, source): storage.join(run.output, target) for source, target in moves.items()}
    is_first = set(storage.folder_names(staging)).issuperset(moves)  # else a runner repeats this step: it was empty
    if is_first and (problem := find_others(run.output, run.run_id)):
        raise ValueError(problem)
    try:
        move_files(paths.items())
    except OSError:
        storage.remove_files(paths.values())
        raise


def find_others(output: str, run_id: str = "") -> str:
    """Why Beam may not write into an output that is not empty, in a sentence; the empty string if it may.

    Args:
        output: the folder.
        run_id: the run whose staging folder may be there.
    """
    names = [name for name in storage.folder_names(output) if name != f"{STAGING_PREFIX}{run_id}"]
    others = [name for name in names if not name.startswith(".outcome-")]
    what = f"--writer=beam writes to an empty folder only, and {output} holds {show_names(others, 3)}"
    unfinished = any(name.startswith(STAGING_PREFIX) for name in others)
    remedy = "delete unfinished work with --discard" if unfinished else "choose another output"
    return f"{what}: {remedy}" if others else ""
