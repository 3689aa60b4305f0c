"""PublishDataset: checks finished shards as a whole and publishes them.

An interrupted publication can be completed.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsIter

from recordmill import storage
from recordmill.schemas.dataset.file_names import LABELS, OUTCOME, REJECTED, REPORT, beam_name
from recordmill.schemas.dataset.json_values import as_json, to_json
from recordmill.schemas.dataset.marker import DuplicateCounts, Ledger, Marker, SameBytes
from recordmill.schemas.dataset.totals import FinishedShards, ImageTotals
from recordmill.schemas.errors import (
    DONE,
    FAILED,
    NOT_AS_EXPECTED,
    TOO_MANY_REJECTED,
    ComparedPrice,
    Outcome,
    Status,
    as_message,
)
from recordmill.schemas.formatting import format_count, say_count, show_names
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.storage import dataset_files
from recordmill.storage.written_files import WrittenFile, publish_written
from recordmill.transforms.convert_shards import gather_reports
from recordmill.transforms.planning import runs
from recordmill.transforms.planning.plan import Plan
from recordmill.transforms.publishing import staged_dataset, verdicts
from recordmill.transforms.publishing.companions.describe_dataset import (
    describe_dataset,
    note_background,
)
from recordmill.transforms.publishing.duplicates import (
    Copies,
    FindCopies,
    compare_splits,
    list_duplicates,
)
from recordmill.transforms.publishing.lost_containers import count_containers
from recordmill.transforms.publishing.remarks import find_remarks, note_idle
from recordmill.transforms.shards.resources import PROGRESS

WriteReport = Callable[[str], str]
"""Writes the report of the dataset in a folder."""


def publish(
    finished: FinishedShards,
    plan: Plan,
    settings: DatasetSettings,
    run: runs.RunSettings,
    write_report: WriteReport,
    copies: Iterable[Copies],
) -> Outcome:
    """Carries out the plan with the finished shards, and writes the outcome file.

    Problems that users can fix, and a ledger that does not add up, become a failed outcome; other
    errors are raised.

    Args:
        finished: the sum of all shards' reports.
        plan: the plan.
        settings: what the dataset is.
        run: where and how this run works.
        write_report: writes the report of the dataset in a folder.
        copies: the images whose bytes occur several times, by shard.
    """
    PROGRESS.enter("publishing")
    # Notes are added, and in this process the plan may be shared with other steps.
    plan = replace(plan, notes=[*plan.notes], run_notes=[*plan.run_notes])
    outcome = _Publication(finished, copies, plan, settings, run).carry_out()
    if outcome.status in ("published", "kept") and not run.preview:
        version = outcome.numbers.get("version", plan.version)
        folder = plan.at(run.output, version).output
        if settings.report and not (version and storage.is_link(folder)):
            outcome = _add_report(outcome, folder, write_report)
        if version:
            outcome = _make_current(outcome, run.output, version)
            with suppress(OSError):  # the next run deletes it
                runs.remove_staging(folder, plan.plan_id, run.run_id)
    outcome = replace(outcome, notes=(*run.notes, *plan.run_notes, *outcome.notes))
    content = {**to_json(outcome), **as_message(outcome.message), "run_id": run.run_id}
    storage.write_file(run.outcome_file, as_json(content))
    return outcome


def _add_report(outcome: Outcome, folder: str, write_report: WriteReport) -> Outcome:
    """Makes the report of the dataset in place if that is new or has none.

    A failure becomes a note.
    """
    try:
        if outcome.status == "published" or not dataset_files.holds_report(folder):
            write_report(folder)
    except Exception as error:  # noqa: BLE001  # the dataset is complete without it
        problem = (
            storage.explain_output_error(error, folder)
            if isinstance(error, OSError)
            else str(error)
        )
        why = " ".join(problem.split()) or type(error).__name__
        note = f"{REPORT} was not made ({why}): recordmill inspect {folder} --report makes it"
        return replace(outcome, notes=(*outcome.notes, note))
    return replace(outcome, numbers={**outcome.numbers, "report": REPORT})


def _make_current(outcome: Outcome, output: str, version: str) -> Outcome:
    """Makes the version that is now complete the current one."""
    try:
        pointed = dataset_files.point_to(output, version)
    except OSError as error:
        problem = storage.explain_output_error(error, output)
        message = f"{problem}; {output}/{version} is complete, and not the current version"
        return replace(outcome, status="failed", message=message, exit_code=FAILED)
    notes = (
        (f"{version} is the current version again",) if pointed and outcome.status == "kept" else ()
    )
    return replace(
        outcome, numbers={**outcome.numbers, "version": version}, notes=(*outcome.notes, *notes)
    )


@dataclass(frozen=True, slots=True)
class _Publication:
    """The last step of a run; the attributes are described at `publish`."""

    finished: FinishedShards
    copies: Iterable[Copies]
    plan: Plan
    settings: DatasetSettings
    run: runs.RunSettings

    def carry_out(self) -> Outcome:
        """Carries out the plan, and cleans up.

        Problems that users can fix, and a wrong ledger, fail the outcome.
        """
        plan, run = self.plan, self.run
        try:
            self._claim_version()
            if plan.action == "convert":
                plan.run_notes.extend(_note_damaged(self.finished))
                outcome = self._join_others() or self._publish_converted()
            else:
                outcome = self._end_without_converting()
        except (verdicts.LedgerError, ValueError) as error:
            outcome = self._fail(str(error))
        except OSError as error:
            outcome = self._fail(storage.explain_output_error(error, plan.output))
        if outcome.exit_code == FAILED and plan.action in ("convert", "finish"):
            # If files were missing, another run may have moved them into place.
            outcome = self._join_others() or outcome
        outcome = note_idle(outcome, self.settings)
        if plan.price and outcome.status in ("planned", "published"):
            numbers, is_done = outcome.numbers, outcome.status == "published"
            cost = (
                PROGRESS.price(numbers["input_bytes"], numbers["output_bytes"]) if is_done else None
            )
            price = to_json(ComparedPrice(plan.price, cost))
            outcome = replace(outcome, numbers={**numbers, "price": price})
        if plan.action == "convert" and outcome.status == "failed":
            with suppress(OSError):  # the disk may be full
                runs.release_claim(plan.output, plan.plan_id, run.run_id)
                storage.make_folder(plan.staging)
                storage.write_file(storage.join(plan.staging, OUTCOME), as_json(to_json(outcome)))
        if run.writer == "beam":
            runs.release_claims(plan.output, run.run_id)
            return replace(outcome, plan_id="")
        return outcome

    def _end(
        self, status: Status, message: str, exit_code: int, numbers: dict[str, Any] | None = None
    ) -> Outcome:
        return Outcome(
            status, message, exit_code, self.plan.plan_id, numbers or {}, tuple(self.plan.notes)
        )

    def _fail(self, message: str) -> Outcome:
        if self.run.writer != "beam":
            message = f"{message}; finished shards are in {self.plan.staging}"
        return self._end("failed", message, FAILED)

    def _claim_version(self) -> None:
        """Claims the version that will become the current one.

        Until then, only this claim keeps others from deleting it.
        """
        plan, run = self.plan, self.run
        if not plan.version or run.preview or plan.action not in ("convert", "finish", "keep"):
            return
        pointer = dataset_files.find_pointer(run.output)
        if pointer is None or pointer.current != plan.version:
            runs.claim_output(
                plan.output, plan.plan_id, run.run_id, plan.shard_count, plan.summary.references
            )

    def _publish_staged(self) -> Marker:
        """Publishes what is complete in staging.

        A claim on a version stays until that is the current one.
        """
        claim = "" if self.plan.version else self.run.run_id
        return staged_dataset.publish_staged(self.plan.output, self.plan.plan_id, claim)

    def _end_without_converting(self) -> Outcome:
        plan = self.plan
        if plan.action == "preview":
            return self._preview()
        if plan.action == "keep":
            return self._keep(plan.sentence)
        if plan.action == "finish":
            marker = self._publish_staged()
            notes = (*marker.notes, *(marker.run.notes or ()))
            return Outcome("published", plan.sentence, DONE, plan.plan_id, marker.numbers(), notes)
        if plan.action == "refuse":
            return self._end("refused", plan.sentence, FAILED)
        return self._end("failed", plan.sentence, plan.exit_code)

    def _preview(self) -> Outcome:
        """Predicts the outcome of a run, with its exit code."""
        plan, settings = self.plan, self.settings
        ledger, examples = verdicts.predict_ledger(plan.summary, plan.label_map)
        numbers = staged_dataset.preview_numbers(plan, settings)
        containers = count_containers(plan.summary.rejected)
        problem = verdicts.check_limits(ledger, [], settings, examples, containers=containers)
        if not problem and settings.boxes.invalid != "reject":
            problem = verdicts.check_boxes(
                verdicts.predict_boxes(plan.summary, plan.label_map), settings
            )
        if problem:
            return self._end(
                "planned", f"as it stands the run would fail: {problem}", TOO_MANY_REJECTED, numbers
            )
        if unknown := ledger.rejected.get("unknown_label"):
            whose = (
                "whose label is not in labels.classes would be rejected, such as "
                f"{examples['unknown_label']}"
            )
            plan.notes.append(f"{format_count(unknown, settings.unit)} {whose}")
        return self._end("planned", plan.sentence, DONE, numbers)

    def _publish_converted(self) -> Outcome:
        """Checks the finished shards and publishes them."""
        finished, plan, settings, run = self.finished, self.plan, self.settings, self.run
        if problem := finished.find_problem():
            return self._fail(problem)
        ledger = verdicts.balance_ledger(plan.summary, finished)
        if failure := self._compare_with_limits(ledger):
            return failure
        plan.notes.extend(note_losses(finished, plan, settings))
        sentence = f"{say_count(ledger.written, settings.unit, 'is')} in {plan.output}"
        if run.writer == "beam":
            return self._end(
                "written", sentence, DONE, _move_written(finished, ledger, plan, settings)
            )
        reports = sorted(finished.reports, key=attrgetter("place"))
        replaced, notes = dataset_files.find_marker(plan.previous), list[str]()
        finds_closest = "images.near_duplicates" in settings.kept_together
        duplicates = list_duplicates(plan.staging, reports, self.copies, finds_closest)
        if replaced is not None and replaced.plan.id != plan.plan_id:
            notes += compare_splits(plan.previous, replaced, plan.staging, reports, settings.unit)
        shards = staged_dataset.name_shards(reports, settings)
        marker = staged_dataset.build_marker(plan, shards, ledger, settings, finished, duplicates)
        before = dataset_files.find_marker(run.against) if run.against else replaced
        if failure := self._compare_with_contract(marker, before):
            return failure
        totals = ImageTotals.sum_of(report.images for report in reports)
        remarks = find_remarks(marker, totals, settings, plan.summary)
        marker = replace(marker, remarks=tuple(remark.text for remark in remarks))
        dataset = staged_dataset.StagedDataset(
            marker, settings, shards, reports, plan.staging, totals, remarks
        )
        notes += [*note_renamed(replaced, marker), *_describe_reuse(finished, plan)]
        staged_dataset.stage_dataset(
            dataset, describe_dataset(dataset), plan, run, (*plan.run_notes, *notes)
        )
        if same := self._keep_same_version():
            return same
        published = self._publish_staged()
        plan.notes.extend(notes)
        if settings.expect.compares and before is None:
            plan.notes.append("no previous dataset was found: expect compared nothing with one")
        if unused := len(run.exclusions) - len(
            {line for report in reports for line in report.excluded}
        ):
            # Not in the marker.
            plan.notes.append(f"lines of {settings.exclude} that fit nothing: {unused:,}")
        return self._end("published", sentence, DONE, published.numbers())

    def _compare_with_limits(self, ledger: Ledger) -> Outcome | None:
        """Returns the outcome if the run has rejected or dropped too much, or else None.

        It also writes the list of rejected things.
        """
        finished, plan, settings = self.finished, self.plan, self.settings
        examples = {reason: each.text for reason, each in finished.rejected_examples.items()}
        examples |= staged_dataset.list_rejected(finished.reports, plan.staging, self.run.inputs)
        lost = verdicts.lost_classes(plan.summary, finished.rows.classes, plan.label_map)
        problem = (
            verdicts.check_limits(
                ledger,
                lost,
                settings,
                examples,
                verdicts.lost_splits(plan.summary, finished),
                count_containers(plan.summary.rejected),
            )
            or verdicts.check_boxes(finished, settings)
            or verdicts.check_labels(
                finished.annotations, settings, examples.get("unknown_label", "")
            )
        )
        if not problem:
            return None
        boxes = verdicts.balance_boxes(plan.summary, finished)
        # The line on stdout stays short.
        numbers = {
            "ledger": to_json(ledger),
            "lost_classes": lost[:5],
        }
        numbers |= {"boxes": boxes} if boxes else {}
        if ledger.rejected and self.run.writer != "beam":
            problem = f"{problem}: {storage.join(plan.staging, REJECTED)} lists what was rejected"
        return self._end("failed", problem, TOO_MANY_REJECTED, numbers)

    def _compare_with_contract(self, marker: Marker, before: Marker | None) -> Outcome | None:
        """The outcome of a run whose dataset does not meet `expect`; None if it does."""
        containers = count_containers(self.plan.summary.rejected)
        if not (
            breaches := verdicts.find_breaches(marker, before, self.settings.expect, containers)
        ):
            return None
        breaches.append("nothing was published: correct the input, or change expect and run again")
        return self._end(
            "failed", "\n".join(breaches), NOT_AS_EXPECTED, {"ledger": to_json(marker.ledger)}
        )

    def _keep_same_version(self) -> Outcome | None:
        """Keeps the previous version of the same plan if the staged dataset is the same.

        Returns None if they differ, or if there is no previous version.
        """
        plan, run = self.plan, self.run
        plan_id, number = dataset_files.split_version(plan.version) or ("", 1)
        if number == 1:
            return None
        name = dataset_files.version_name(plan_id, number - 1)
        folder = storage.join(run.output, name)
        old, (new, _) = (
            dataset_files.find_marker(folder),
            staged_dataset.read_pending(plan.output, plan.plan_id),
        )
        if old is None or replace(new, run=old.run) != old or dataset_files.find_fault(folder, old):
            return None
        runs.remove_staging(plan.output, plan.plan_id, run.run_id)
        # Else another run of the same plan is at work there.
        if not storage.folder_names(plan.output):
            storage.remove_folder(plan.output)
        sentence = (
            f"{folder} already holds this dataset: converting it again made the same, so no "
            "version was added"
        )
        return self._end("kept", sentence, DONE, {**old.numbers(), "version": name})

    def _join_others(self) -> Outcome | None:
        """Keeps the dataset if another run of the plan has published it meanwhile, or is doing so.

        Otherwise, returns None.

        A dataset that is complete in staging is put in place together with that run: either may do
        any step. The output is read last, because files that are gone from staging are in place by
        then.
        """
        plan = self.plan
        with suppress(OSError, ValueError):  # if it cannot be published, the other run reports that
            self._publish_staged()
        marker = dataset_files.find_marker(plan.output)
        if marker is None or marker.plan.id != plan.plan_id or marker.run.id == plan.found_run:
            return None
        if dataset_files.find_fault(plan.output, marker):
            return None
        return self._keep(f"in the meantime, another run has put this dataset in {plan.output}")

    def _keep(self, sentence: str) -> Outcome:
        """Keeps the dataset in the output.

        It deletes what an interrupted clean-up or a second run has left in staging.

        The limits apply as if it had been converted now: they may have changed, and an earlier
        version may be chosen again.
        """
        plan, run = self.plan, self.run
        marker = dataset_files.read_marker(plan.output)
        before = dataset_files.find_marker(run.against or plan.previous)
        failure = self._compare_with_contract(marker, before)
        containers, examples = (
            count_containers(plan.summary.rejected),
            plan.summary.rejected_examples,
        )
        if problem := verdicts.check_limits(
            marker.ledger, [], self.settings, examples, containers=containers
        ):
            failure = self._end(
                "failed", problem, TOO_MANY_REJECTED, {"ledger": to_json(marker.ledger)}
            )
        if not run.preview:
            runs.remove_staging(
                plan.output, plan.plan_id, "" if plan.version and not failure else run.run_id
            )
        return failure or self._end("kept", sentence, DONE, marker.numbers())


def _move_written(
    finished: FinishedShards, ledger: Ledger, plan: Plan, settings: DatasetSettings
) -> dict[str, Any]:
    """Moves the files that Beam wrote into the output, all or none; returns the run's numbers."""
    shards = staged_dataset.name_shards(finished.reports, settings)
    marker = staged_dataset.build_marker(
        plan, shards, ledger, settings, finished, DuplicateCounts(SameBytes(), None)
    )
    staged_dataset.check_names(marker)
    labels = plan.label_map.as_text(ExampleLayout(settings).convention.label_lines)
    content = labels.encode()
    storage.write_file(storage.join(plan.staging, LABELS), content)
    files = []
    count = settings.shards.count
    assert count is not None  # --writer=beam needs it
    for each in shards:
        name = beam_name(each.report.split, each.report.index, count)
        entry = each.entry
        files.append(WrittenFile(name, entry.name, entry.bytes, entry.sha256))
    digest = hashlib.sha256(content).hexdigest()
    files.append(WrittenFile(LABELS, LABELS, len(content), digest))
    publish_written(files, plan.staging, plan.output)
    return {key: value for key, value in marker.numbers().items() if key != "duplicates"}


def _note_damaged(finished: FinishedShards) -> Iterator[str]:
    """Yields a note if workers found files of earlier datasets missing or damaged."""
    files = {path for report in finished.reports for path in report.damaged}
    if files:
        what = (
            f"{show_names(sorted(files), 3)} {'is' if len(files) == 1 else 'are'} missing or "
            "damaged"
        )
        yield f"{what}: images that would be copied from there are read again"


def _describe_reuse(finished: FinishedShards, plan: Plan) -> Iterator[str]:
    """Notes on shards and images from earlier runs and datasets."""
    reports, records = finished.reports, format_count(finished.rows.records, "record")
    if resumed := sum(report.reused for report in reports):
        yield f"{resumed} of {len(reports)} shards had been finished by an earlier run"
    if plan.reuse:
        images = sum(report.images_reused for report in reports)
        yield f"the images of {images:,} of {records} were taken from earlier datasets"
    if disputed := sum(report.images_disputed for report in reports):
        what = f"the datasets to reuse disagree on {format_count(disputed, 'image')}"
        yield f"{what}: the first one that fits was used"


def note_renamed(old: Marker | None, new: Marker) -> Iterator[str]:
    """Yields a note if `cuts: fixed` renames shards.

    The reason is that there are more ranges of hashes, or that others are empty.
    """
    plans = [each.plan for each in (old, new) if each is not None]
    is_fixed = all(plan.settings_in_use["shards"].get("cuts") == "fixed" for plan in plans)
    if is_fixed and len({plan.recipe["cuts"] for plan in plans}) > 1:
        yield (
            "shards have other names than before: there are more ranges of hashes, or others are "
            "empty"
        )


def note_losses(finished: FinishedShards, plan: Plan, settings: DatasetSettings) -> Iterator[str]:
    """Yields notes on losses, and on a class with the id 0.

    Losses are listed splits that are now empty, and labels in no Example.
    """
    fate = "rejected or left out" if finished.rows.left_out else "rejected"
    for name in verdicts.lost_splits(plan.summary, finished):
        yield f"split {name} is empty: its {settings.unit}s were {fate}"
    layout = ExampleLayout(settings)
    if count := verdicts.lost_labels(finished, plan.summary, layout.fields):
        what = (
            f"{format_count(count, 'label')} of images with several "
            f"{'is' if count == 1 else 'are'} in no Example"
        )
        where = f"the convention ({layout.convention.title}) stores one"
        yield f"{what}: {where}, a mapping with the field label_texts all of them"
    yield from note_background(
        plan.label_map.ids, finished.rows.class_counts, layout.convention.label_map_file
    )


@dataclass
class PublishDataset(beam.PTransform):
    """Publishes the shards of a PCollection of reports, or the files that `--writer=beam` wrote.

    Attributes:
        settings: what the dataset is.
        run: where and how this run works.
        plan: the `Plan`, as a side input.
        write_report: writes the report of the dataset in a folder.
    """

    settings: DatasetSettings
    run: runs.RunSettings
    plan: Any
    write_report: WriteReport

    def expand(self, reports: beam.PCollection[Any]) -> beam.PCollection[Outcome]:
        """Turns ShardReports or FinishedShards into exactly one Outcome, in any case."""
        copies = () if self.run.writer == "beam" else AsIter(reports | FindCopies(self.plan))
        gathered = reports | "GatherReports" >> beam.CombineGlobally(gather_reports)
        return gathered | "Publish" >> beam.Map(
            publish, self.plan, self.settings, self.run, self.write_report, copies
        )
