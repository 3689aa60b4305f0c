"""PublishDataset: finished shards become a dataset, all at once, or nothing changes."""

import errno
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from schemas.outcome import DONE, FAILED, TOO_MANY_REJECTED, Outcome
from schemas.shard_report import ShardReport
from transforms import storage
from transforms.dataset_settings import DatasetSettings
from transforms.ledger import balance_ledger, check_limits, lost_classes
from transforms.marker import build_marker, name_shards, numbers_of, preview_numbers
from transforms.output_state import MARKER, read_marker
from transforms.plan import Plan
from transforms.progress import PROGRESS
from transforms.run_settings import RunSettings
from transforms.shard_files import staging_folder
from transforms.switch_dataset import as_json, list_rejected, stage_dataset, switch_dataset

_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}


def publish(reports: list[ShardReport], plan: Plan, settings: DatasetSettings, run: RunSettings) -> Outcome:
    """Does what the plan says with the finished shards, and writes the outcome file.

    Raises:
        LedgerError: the ledger does not add up.
    """
    PROGRESS.stage = "publishing"
    try:
        outcome = _publish(reports, plan, settings, run)
    except OSError as error:
        if error.errno not in _DISK_ERRORS and not _finished_meanwhile(plan, run):
            raise
        why = f"the output {run.output} cannot be written: {(error.strerror or str(error)).lower()}"
        sentence = f"{why}; finished shards are in {_kept(plan, run)}"
        outcome = Outcome("failed", sentence, FAILED, plan.plan_id, notes=tuple(plan.notes))
    if outcome.exit_code == FAILED and plan.action == "convert" and _finished_meanwhile(plan, run):
        sentence = f"another run has meanwhile put this dataset in {run.output}"
        outcome = Outcome("kept", sentence, DONE, plan.plan_id, numbers_of(read_marker(run.output)))
    if outcome.status == "failed" and plan.action == "convert":
        staging = staging_folder(run.output, plan.plan_id)
        with suppress(OSError):  # the disk may be full
            storage.make_folder(staging)
            storage.write_file(storage.join(staging, "outcome.json"), as_json(outcome.as_dict()))
    storage.write_file(run.outcome_file, as_json({**outcome.as_dict(), "run_id": run.run_id}))
    return outcome


def _publish(reports: list[ShardReport], plan: Plan, settings: DatasetSettings, run: RunSettings) -> Outcome:
    if plan.action == "refuse" or plan.action == "fail":
        status = "refused" if plan.action == "refuse" else "failed"
        return Outcome(status, plan.sentence, plan.exit_code, plan.plan_id, notes=tuple(plan.notes))  # type: ignore[arg-type]
    if plan.action == "preview":
        return Outcome("planned", plan.sentence, DONE, plan.plan_id, preview_numbers(plan), tuple(plan.notes))
    if plan.action == "keep":
        if not run.preview:  # an earlier run may have been cut cleaning up
            storage.remove_folder(staging_folder(run.output, plan.plan_id))
        return Outcome("kept", plan.sentence, DONE, plan.plan_id, numbers_of(read_marker(run.output)))
    if plan.action == "finish":
        marker = switch_dataset(run.output, plan.plan_id)
        return Outcome("published", plan.sentence, DONE, plan.plan_id, numbers_of(marker), tuple(marker["notes"]))
    problems = sorted(report.problem for report in reports if report.problem)
    if problems:
        sentence = f"{problems[0]}; finished shards are in {_kept(plan, run)}"
        return Outcome("failed", sentence, FAILED, plan.plan_id, notes=tuple(plan.notes))
    ledger = balance_ledger(plan.summary, reports)
    lost = lost_classes(plan.summary, reports, plan.label_map)
    list_rejected(reports, plan, run)
    if problem := check_limits(ledger, lost, settings.max_rejected):
        numbers = {"ledger": ledger.as_dict(), "lost_classes": lost[:5]}  # stdout's line stays short
        sentence = f"{problem}: rejected.jsonl and the finished shards are in {_kept(plan, run)}"
        return Outcome("failed", sentence, TOO_MANY_REJECTED, plan.plan_id, numbers, tuple(plan.notes))
    shards = name_shards(reports, settings)
    marker = build_marker(plan, shards, ledger, settings, reports)
    stage_dataset(marker, shards, plan, run)
    switch_dataset(run.output, plan.plan_id)
    sentence = f"{ledger.written:,} images are in {run.output}"
    return Outcome("published", sentence, DONE, plan.plan_id, numbers_of(marker), tuple(plan.notes))


def _finished_meanwhile(plan: Plan, run: RunSettings) -> bool:
    """Whether another run of the same plan has published, and taken the staging that both used away."""
    marker = storage.join(run.output, MARKER)
    staging = storage.join(staging_folder(run.output, plan.plan_id), MARKER)
    return (
        storage.exists(marker) and not storage.exists(staging) and read_marker(run.output)["plan"]["id"] == plan.plan_id
    )


def _kept(plan: Plan, run: RunSettings) -> str:
    return f"{staging_folder(run.output, plan.plan_id)} (--discard deletes it)"


@dataclass
class PublishDataset(beam.PTransform):
    """Publishes the shards of a PCollection of reports.

    Attributes:
        settings: what the dataset is.
        run: where and how this run works.
        plan: the `Plan`, as a side input.
    """

    settings: DatasetSettings
    run: RunSettings
    plan: Any

    def expand(self, reports: beam.PCollection[ShardReport]) -> beam.PCollection[Outcome]:
        """PCollection[ShardReport] -> PCollection[Outcome] of exactly one element, whatever happened before."""
        return (
            reports
            | "GatherReports" >> beam.combiners.ToList()
            | "Publish" >> beam.Map(publish, self.plan, self.settings, self.run).with_output_types(Outcome)
        )
