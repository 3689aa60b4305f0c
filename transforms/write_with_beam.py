"""WriteWithBeam: `--writer=beam` converts what is planned image by image, and writes with Beam's `WriteToTFRecord`.

Beam writes into a staging folder. The files are read back, and get their names in the output only if they hold what was
listed and not rejected. There is no marker, so that no run resumes another one.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import attrgetter

import apache_beam as beam
from apache_beam.pvalue import AsSingleton

from recordmill import storage
from recordmill.schemas.dataset.file_names import LABELS, STAGING_PREFIX
from recordmill.schemas.dataset.json_values import as_json, to_json
from recordmill.schemas.dataset.marker import DuplicateCounts, SameBytes
from recordmill.schemas.dataset.shard_report import FinishedShards, ShardReport
from recordmill.schemas.dataset.totals import AnnotationTotals, RowTotals
from recordmill.schemas.formatting import format_count, show_names
from recordmill.schemas.outcome import DONE, FAILED, TOO_MANY_REJECTED, Outcome
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.example_layout import ExampleLayout
from recordmill.storage.dataset_files import staging_folder
from recordmill.storage.many_files import check_targets, force_to_disk, move_files
from recordmill.storage.output_errors import explain_output_error
from recordmill.transforms.compose import (
    AssignSplits,
    BuildExamples,
    ReadImages,
    ReencodeImages,
    SplitExamples,
    WriteExamples,
    written_name,
)
from recordmill.transforms.planning.output_lock import claim_output, remove_staging
from recordmill.transforms.planning.plan import Plan
from recordmill.transforms.publish_dataset import find_excess, list_losses
from recordmill.transforms.publishing.ledger import LedgerError, balance_ledger
from recordmill.transforms.publishing.marker import build_marker, check_names, name_shards
from recordmill.transforms.run_settings import RunSettings
from recordmill.transforms.shards.progress import PROGRESS
from recordmill.transforms.tally import Tally


@dataclass
class WriteWithBeam(beam.PTransform):
    """Converts a PCollection of batches of references, and writes each split's Examples.

    Attributes:
        settings: what the dataset is.
        run: where and how this run works.
        plans: a PCollection of one `Plan`.
    """

    settings: DatasetSettings
    run: RunSettings
    plans: "beam.PCollection[Plan]"

    def expand(self, batches: beam.PCollection[ReferenceBatch]) -> beam.PCollection[Outcome]:
        """PCollection[ReferenceBatch] -> PCollection[Outcome] of exactly one element."""
        settings, run = self.settings, self.run
        plans = self.plans | "ClaimOutput" >> beam.Map(_claim, run).with_output_types(Plan)
        plan, cutoffs, labels = (
            AsSingleton(plans),
            AsSingleton(plans | "Cutoffs" >> beam.Map(attrgetter("selection"))),
            AsSingleton(plans | "Labels" >> beam.Map(attrgetter("label_map"))),
        )
        return (
            batches
            | "TakePlanned" >> beam.FlatMap(_take, plan).with_output_types(ReferenceBatch)
            | AssignSplits(settings, cutoffs)
            | ReadImages(settings, labels)
            | ReencodeImages(settings)
            | BuildExamples(settings, labels)
            | SplitExamples(settings)
            | WriteExamples(settings, staging_folder(run.output, run.run_id))
            | "Publish" >> beam.Map(publish_written, plan, settings, run).with_output_types(Outcome)
        )


def _claim(plan: Plan, run: RunSettings) -> Plan:
    """The plan; if it is to convert, the output is claimed, and was empty."""
    if plan.action == "convert":
        claim_output(run.output, run.run_id, run.run_id)
        if problem := find_others(run.output, run.run_id):
            plan = replace(plan, action="refuse", sentence=problem)
    PROGRESS.planned = plan.summary.references + plan.summary.rejected.total()
    PROGRESS.enter("converting")
    return plan


def _take(batch: ReferenceBatch, plan: Plan) -> Iterator[ReferenceBatch]:
    """The batch, unless the plan is to fail."""
    if plan.action == "convert":
        yield batch


def publish_written(tally: Tally, plan: Plan, settings: DatasetSettings, run: RunSettings) -> Outcome:
    """Moves the files that Beam wrote to the output if nothing is lost, and writes the outcome file.

    What users can fix, and a sum that does not add up, becomes a failed outcome: then nothing is left in the output.
    """
    PROGRESS.enter("publishing")
    try:
        outcome = _publish(tally, plan, settings, run)
    except (LedgerError, ValueError) as error:
        outcome = Outcome("failed", str(error), FAILED, notes=tuple(plan.notes))
    except OSError as error:
        outcome = Outcome("failed", explain_output_error(error, run.output), FAILED, notes=tuple(plan.notes))
    with suppress(OSError):  # the run has ended; the next one names what is there
        remove_staging(run.output, run.run_id, run.run_id)
    outcome = replace(outcome, notes=(*run.notes, *plan.run_notes, *outcome.notes))
    storage.write_file(run.outcome_file, as_json({**to_json(outcome), "run_id": run.run_id}))
    return outcome


def _publish(tally: Tally, plan: Plan, settings: DatasetSettings, run: RunSettings) -> Outcome:
    if problem := plan.sentence or min(tally.problems, default=""):
        return Outcome("refused" if plan.action == "refuse" else "failed", problem, FAILED, notes=tuple(plan.notes))
    total = ShardReport("", 0, 0, RowTotals(), AnnotationTotals(), digest=f"{tally.digest:064x}")
    finished = FinishedShards(reports=[total], splits=tally.splits, annotations=tally.annotations)
    ledger = balance_ledger(plan.summary, finished)
    if loss := tally.find_loss():
        raise LedgerError(loss)
    shards = name_shards(tally.files, settings)
    marker = build_marker(plan, shards, ledger, settings, finished, DuplicateCounts(SameBytes(), None))
    numbers = {key: value for key, value in marker.numbers().items() if key != "duplicates"}
    such = {reason: example.text for reason, example in tally.rejected_such.items()}
    if problem := find_excess(finished, plan, ledger, settings, such):
        return Outcome("failed", problem, TOO_MANY_REJECTED, numbers=numbers, notes=tuple(plan.notes))
    check_names(marker)
    count = settings.shards.count or 0
    moves = {written_name(each.report.split, each.report.index, count): each.name for each in shards}
    _move(moves, plan.label_map.as_text(ExampleLayout(settings).convention.label_lines), run)
    sentence = f"{format_count(ledger.written, settings.unit)} {'is' if ledger.written == 1 else 'are'} in {run.output}"
    return Outcome(
        "written", sentence, DONE, numbers=numbers, notes=(*plan.notes, *list_losses(finished, plan.summary, settings))
    )


def _move(moves: Mapping[str, str], labels: str, run: RunSettings) -> None:
    """Gives files in staging their names in the output; all of them, or none."""
    staging = staging_folder(run.output, run.run_id)
    paths = {storage.join(staging, source): storage.join(run.output, target) for source, target in moves.items()}
    if set(storage.folder_names(staging)).issuperset(moves):  # else a runner repeats this step: it was empty
        if problem := find_others(run.output, run.run_id):
            raise ValueError(problem)
        check_targets(paths.values())
        force_to_disk(paths)
    try:
        move_files(paths.items())
        storage.write_file(storage.join(run.output, LABELS), labels.encode())
        force_to_disk([run.output])
    except OSError:
        storage.remove_files(paths.values())
        raise


def find_others(output: str, run_id: str = "") -> str:
    """Why Beam may not write into an output that is not empty, in a sentence; the empty string if it may.

    Args:
        output: the folder.
        run_id: the run whose staging folder may be there.
    """
    names = storage.folder_names(output)
    others = [name for name in names if name != f"{STAGING_PREFIX}{run_id}" and not name.startswith(".outcome-")]
    if not others:
        return ""
    unfinished = any(name.startswith(STAGING_PREFIX) for name in others)
    remedy = ", or delete unfinished work with --discard" if unfinished else ""
    what = f"--writer=beam writes to an empty folder only, and {output} holds {show_names(others, 3)}"
    return f"{what}: choose another output{remedy}"
