"""PublishDataset: checks finished shards as a whole and publishes them.

An interrupted publication can be completed.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsIter

from recordmill import storage
from recordmill.schemas.dataset.file_names import (
    LABELS,
    MARKER,
    OUTCOME,
    beam_name,
)
from recordmill.schemas.dataset.json_values import as_json
from recordmill.schemas.dataset.marker import DuplicateCounts, Ledger, Marker, SameBytes
from recordmill.schemas.dataset.outcome import (
    DatasetNumbers,
    FailedNumbers,
    Numbers,
    Outcome,
    OutcomeStatus,
    PlannedNumbers,
)
from recordmill.schemas.dataset.price import ComparedPrice, Price
from recordmill.schemas.dataset.totals import FinishedShards, ImageTotals
from recordmill.schemas.errors import (
    DONE,
    FAILED,
    NOT_AS_EXPECTED,
    TOO_MANY_REJECTED,
)
from recordmill.schemas.formatting import agree, format_count, say_count
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.storage import dataset_files
from recordmill.storage.written_files import WrittenFile, publish_written
from recordmill.transforms.convert_shards import gather_reports
from recordmill.transforms.planning import runs
from recordmill.transforms.planning.earlier_dataset import EarlierDataset, open_earlier
from recordmill.transforms.planning.plan import DatasetPlan
from recordmill.transforms.planning.progress import Progress
from recordmill.transforms.planning.run_plan import RunPlan
from recordmill.transforms.publishing import staged_dataset, verdicts
from recordmill.transforms.publishing.breach_evidence import (
    CheckedDataset,
    list_sidecars,
    show_evidence,
)
from recordmill.transforms.publishing.companions.describe_dataset import (
    describe_dataset,
    note_background,
)
from recordmill.transforms.publishing.companions.run_reports import (
    Reporters,
    add_report,
    draw_card,
    show_failure,
)
from recordmill.transforms.publishing.contract import find_breaches
from recordmill.transforms.publishing.duplicates import (
    Copies,
    FindCopies,
    compare_splits,
    list_duplicates,
)
from recordmill.transforms.publishing.explain_excess import (
    RejectedInRun,
    explain_breaches,
    explain_excesses,
)
from recordmill.transforms.publishing.lost_containers import count_containers
from recordmill.transforms.publishing.rejected_list import (
    RejectedList,
    read_rejected,
    write_rejected,
)
from recordmill.transforms.publishing.remarks import find_remarks, note_idle
from recordmill.transforms.publishing.run_notes import note_damaged, note_renamed, note_reuse


def publish(
    finished: FinishedShards,
    plan: RunPlan,
    settings: DatasetSettings,
    run: runs.RunSettings,
    reporters: Reporters,
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
        reporters: make the report, and the pictures of the data card.
        copies: the images whose bytes occur several times, by shard.
    """
    run.progress.enter("publishing")
    plan = replace(plan, notes=(*plan.notes, *note_damaged(finished)))
    end = _Publication(finished, copies, plan, settings, run, reporters).carry_out()
    outcome = end.outcome
    if (numbers := outcome.dataset) and not run.preview:
        version = numbers.version or plan.decision.version
        folder = plan.decision.at(run.output, version).output
        if settings.report and not (version and storage.is_link(folder)):
            outcome = add_report(outcome, numbers, folder, end.marker, reporters.write_report)
        if version:
            outcome = _make_current(outcome, run.output, version)
            with suppress(OSError):  # the next run deletes it
                runs.remove_staging(folder, plan.dataset.plan_id, run.run_id)
    outcome = replace(outcome, notes=(*run.notes, *plan.notes, *outcome.notes))
    if run.outcome_file is not None:
        content = {**outcome.to_object(), "run_id": run.run_id}
        storage.write_file(run.outcome_file, as_json(content))
    return outcome


def _make_current(outcome: Outcome, output: str, version: str) -> Outcome:
    """Makes the version that is now complete the current one."""
    try:
        pointed = dataset_files.point_to(output, version)
    except OSError as error:
        problem = storage.explain_output_error(error, output)
        message = f"{problem}; {output}/{version} is complete, and not the current version"
        return replace(outcome, status="failed", message=message, exit_code=FAILED)
    if pointed and outcome.status == "kept":
        again = f"{version} is the current version again"
        outcome = replace(outcome, notes=(*outcome.notes, again))
    if outcome.dataset is None:
        return outcome
    return replace(outcome, numbers=replace(outcome.dataset, version=version))


def _add_price(outcome: Outcome, predicted: Price | None, progress: Progress) -> Outcome:
    """Adds what the run was predicted to cost, and if it published a dataset, what it cost."""
    numbers = outcome.numbers
    if predicted is None:
        return outcome
    if isinstance(numbers, PlannedNumbers):
        return replace(outcome, numbers=replace(numbers, price=ComparedPrice(predicted)))
    if outcome.status == "published" and isinstance(numbers, DatasetNumbers):
        measured = progress.price(numbers.input_bytes, numbers.output_bytes)
        price = ComparedPrice(predicted, measured)
        return replace(outcome, numbers=replace(numbers, price=price))
    return outcome


@dataclass(frozen=True, slots=True)
class _End:
    """How a run ends.

    Attributes:
        outcome: its outcome.
        marker: the marker of the dataset that is in place then; None without one.
    """

    outcome: Outcome
    marker: Marker | None = None


@dataclass(frozen=True, slots=True)
class _Publication:
    """The last step of a run; the attributes are described at `publish`."""

    finished: FinishedShards
    copies: Iterable[Copies]
    plan: RunPlan
    settings: DatasetSettings
    run: runs.RunSettings
    reporters: Reporters

    def carry_out(self) -> _End:
        """Carries out the plan, and cleans up.

        Problems that users can fix, and a wrong ledger, fail the outcome.
        """
        plan, run, decision = self.plan, self.run, self.plan.decision
        end = self._try(self._carry_out)
        if end.outcome.exit_code == FAILED and decision.action in ("convert", "finish"):
            # If files were missing, another run may have moved them into place.
            end = self._join_others() or end
        outcome = _add_price(note_idle(end.outcome, self.settings), plan.price, run.progress)
        if decision.action == "convert" and outcome.status == "failed":
            with suppress(OSError):  # the disk may be full
                runs.release_claim(decision.output, decision.staged_as, run.run_id)
                storage.make_folder(decision.staging)
                path = storage.join(decision.staging, OUTCOME)
                storage.write_file(path, as_json(outcome.to_object()))
        if run.writer == "beam":
            runs.release_claims(decision.output, run.run_id)
            outcome = replace(outcome, plan_id="")
        return replace(end, outcome=outcome)

    def _carry_out(self) -> _End:
        self._claim_version()
        if self.plan.decision.action == "convert":
            return self._join_others() or self._publish_converted()
        return self._end_without_converting()

    def _try(self, step: Callable[[], _End]) -> _End:
        """Takes a step; an error that users can fix, and a wrong ledger, fail the outcome."""
        try:
            return step()
        except (verdicts.LedgerError, ValueError) as error:
            return self._fail(str(error))
        except OSError as error:
            return self._fail(storage.explain_output_error(error, self.plan.decision.output))

    def _end(
        self,
        status: OutcomeStatus,
        message: str,
        exit_code: int,
        numbers: Numbers | None = None,
        notes: Iterable[str] = (),
    ) -> _End:
        dataset = self.plan.dataset
        plan_id = self.plan.decision.staged_as
        noted = (*dataset.notes, *notes)
        return _End(Outcome(status, message, exit_code, plan_id, numbers, noted))

    def _fail(self, message: str) -> _End:
        if self.run.writer != "beam":
            message = f"{message}; finished shards are in {self.plan.decision.staging}"
        return self._end("failed", message, FAILED)

    def _claim_version(self) -> None:
        """Claims the version that will become the current one.

        Until then, only this claim keeps others from deleting it.
        """
        dataset, decision, run = self.plan.dataset, self.plan.decision, self.run
        if not decision.version or run.preview:
            return
        if decision.action not in ("convert", "finish", "keep"):
            return
        is_new = decision.action == "convert"
        pointer = None if is_new else dataset_files.find_pointer(run.output)
        if pointer is None or pointer.current != decision.version:
            runs.claim_output(
                decision.output,
                decision.staged_as,
                run.run_id,
                dataset.shard_count,
                dataset.summary.references,
            )

    def _publish_staged(self) -> Marker:
        """Publishes what is complete in staging.

        A claim on a version stays until that is the current one.
        """
        decision = self.plan.decision
        claim = "" if decision.version else self.run.run_id
        return staged_dataset.publish_staged(decision.output, decision.staged_as, claim)

    def _end_without_converting(self) -> _End:
        decision = self.plan.decision
        if decision.action == "preview":
            return self._preview()
        if decision.action == "keep" and decision.found is not None:
            return self._keep(decision.found.marker, decision.sentence)
        if decision.action == "finish":
            marker = self._publish_staged()
            notes = (*marker.notes, *(marker.run.notes or ()))
            numbers, plan_id = DatasetNumbers.of(marker), decision.staged_as
            outcome = Outcome("published", decision.sentence, DONE, plan_id, numbers, notes)
            return _End(outcome, marker)
        if decision.action == "refuse":
            return self._end("refused", decision.sentence, FAILED)
        return self._end("failed", decision.sentence, decision.exit_code)

    def _preview(self) -> _End:
        """Predicts the outcome of a run, with its exit code."""
        plan, settings = self.plan.dataset, self.settings
        ledger, examples = verdicts.predict_ledger(plan.summary, plan.label_map)
        numbers = staged_dataset.preview_numbers(plan, settings)
        containers = count_containers(plan.summary.rejected)
        lost = verdicts.predict_lost_classes(plan.summary, plan.label_map)
        excesses = verdicts.find_excesses(ledger, lost, settings, examples, containers=containers)
        losses = verdicts.predict_losses(plan.summary, settings, plan.label_map)
        if excesses or losses:
            rejected = self._rejected_in_run(ledger.rejected, RejectedList(examples=examples))
            why = explain_excesses(excesses, losses, rejected)
            message = f"this run would fail: {why}"
            return self._end("planned", message, TOO_MANY_REJECTED, numbers)
        notes = [*verdicts.note_lost_labels(ledger, examples, settings.unit)]
        return self._end("planned", self.plan.decision.sentence, DONE, numbers, notes)

    def _publish_converted(self) -> _End:
        """Checks the finished shards and publishes them."""
        finished, dataset = self.finished, self.plan.dataset
        if problem := finished.find_problem():
            return self._fail(problem)
        ledger = verdicts.balance_ledger(dataset.summary, finished)
        ledger = verdicts.count_corrections(ledger, finished, self.run.corrections)
        if failure := self._compare_with_limits(ledger):
            if self.run.writer == "beam":
                return failure
            return self._show_failure(failure, partial(self._describe_staged, ledger))
        losses = note_losses(finished, dataset, self.settings)
        noted = replace(dataset, notes=(*dataset.notes, *losses))
        rest = replace(self, plan=replace(self.plan, dataset=noted))
        return rest._try(partial(rest._publish_checked, ledger))

    def _publish_checked(self, ledger: Ledger) -> _End:
        """Publishes shards that are within the limits."""
        finished, dataset, decision = self.finished, self.plan.dataset, self.plan.decision
        settings, run = self.settings, self.run
        sentence = f"{say_count(ledger.written, settings.unit, 'is')} in {decision.output}"
        if run.writer == "beam":
            numbers = _move_written(finished, ledger, self.plan, settings)
            return self._end("written", sentence, DONE, numbers)
        in_place, notes = self._find_in_place(), list[str]()
        replaced = decision.replaced if decision.version else in_place
        staged = self._describe_staged(ledger)
        if replaced is not None and replaced.marker.plan.id != dataset.plan_id:
            notes += compare_splits(
                replaced.folder, replaced.marker, decision.staging, staged.reports, settings.unit
            )
        marker = staged.marker
        before = self.plan.earlier.against or replaced
        if failure := self._compare_with_contract(marker, before, decision.staging):
            return self._show_failure(failure, lambda: staged)
        old = None if replaced is None else replaced.marker
        notes += [*note_renamed(old, marker), *note_reuse(finished, self.plan)]
        samples, unmade = draw_card(staged, self.reporters.draw_samples)
        notes += unmade
        marker = staged_dataset.stage_dataset(
            staged,
            describe_dataset(staged, samples),
            self.plan,
            run,
            (*self.plan.notes, *notes),
            None if in_place is None else in_place.marker,
        )
        if same := self._keep_same_version(marker):
            return same
        published = self._publish_staged()
        if settings.expect.compares and before is None:
            notes.append("no previous dataset was found: expect compared nothing with one")
        if unused := len(run.exclusions) - len(
            {line for report in staged.reports for line in report.excluded}
        ):
            # Not in the marker.
            notes.append(f"lines of {settings.exclude} that match nothing: {unused:,}")
        notes += verdicts.note_corrections(ledger, settings.corrections)
        end = self._end("published", sentence, DONE, DatasetNumbers.of(published), notes)
        return replace(end, marker=published)

    def _describe_staged(self, ledger: Ledger) -> staged_dataset.StagedDataset:
        """Describes the dataset that the finished shards are."""
        dataset, decision, settings = self.plan.dataset, self.plan.decision, self.settings
        reports = sorted(self.finished.reports, key=attrgetter("place"))
        finds_closest = "images.near_duplicates" in settings.kept_together
        duplicates = list_duplicates(decision.staging, reports, self.copies, finds_closest)
        shards = staged_dataset.name_shards(reports, settings)
        marker = staged_dataset.build_marker(
            dataset, shards, ledger, settings, self.finished, duplicates
        )
        totals = ImageTotals.sum_of(report.images for report in reports)
        remarks = find_remarks(marker, totals, settings, dataset.summary)
        marker = replace(marker, remarks=tuple(remark.text for remark in remarks))
        return staged_dataset.StagedDataset(
            marker,
            settings,
            shards,
            reports,
            decision.staging,
            totals,
            remarks,
            dataset.summary.parts,
        )

    def _show_failure(
        self, end: _End, describe: Callable[[], staged_dataset.StagedDataset]
    ) -> _End:
        """Adds a report of what was converted to a failure, unless the user wants none."""
        if not self.settings.report:
            return end
        shown = show_failure(
            end.outcome, describe, self.plan, self.run, self.reporters.write_report
        )
        return replace(end, outcome=shown)

    def _compare_with_limits(self, ledger: Ledger) -> _End | None:
        """Returns the outcome if the run has rejected or dropped too much, or else None.

        It also writes the list of rejected things.
        """
        finished, plan, settings = self.finished, self.plan.dataset, self.settings
        if self.run.writer == "beam":  # there are no sidecars to list from
            texts = finished.rejected_examples.items()
            listed = RejectedList(examples={reason: each.text for reason, each in texts})
        else:
            staging = self.plan.decision.staging
            listed = write_rejected(finished.reports, staging, self.plan.inputs)
        lost = verdicts.lost_classes(plan.summary, finished.rows.classes, plan.label_map)
        excesses = verdicts.find_excesses(
            ledger,
            lost,
            settings,
            listed.examples,
            verdicts.lost_splits(plan.summary, finished),
            count_containers(plan.summary.rejected),
        )
        losses = verdicts.check_annotations(finished, settings, listed.examples)
        if not excesses and not losses:
            return None
        annotations = verdicts.describe_annotations(plan.summary, finished)
        # The line on stdout stays short.
        numbers = FailedNumbers(ledger, tuple(lost[:5]), annotations or None)
        rejected = self._rejected_in_run(ledger.rejected, listed)
        message = explain_excesses(excesses, losses, rejected)
        return self._end("failed", message, TOO_MANY_REJECTED, numbers)

    def _rejected_in_run(self, counts: Mapping[str, int], listed: RejectedList) -> RejectedInRun:
        return RejectedInRun(
            counts,
            listed,
            self.settings,
            self.run.remedies_page,
            names_inputs="" not in self.plan.inputs,
            excludes=self.run.writer != "beam",
        )

    def _compare_with_contract(
        self, marker: Marker, before: EarlierDataset | None, folder: str
    ) -> _End | None:
        """Returns the outcome of a run whose dataset does not meet `expect`; None if it does.

        Its files are in `folder`.
        """
        containers = count_containers(self.plan.dataset.summary.rejected)
        old = None if before is None else before.marker
        breaches = find_breaches(marker, old, self.settings.expect, containers)
        if not breaches:
            return None
        listed = read_rejected(folder, self.plan.dataset.summary.rejected_examples)
        rejected = self._rejected_in_run(marker.ledger.rejected, listed)
        is_staged = folder == self.plan.decision.staging
        checked = CheckedDataset(
            folder,
            list_sidecars(folder, self.finished.reports if is_staged else marker.shards),
            self.finished.annotations,
            None if before is None else before.folder,
            is_described=self.settings.report or not is_staged,
        )
        evidence = show_evidence(breaches, checked)
        message = explain_breaches(breaches, rejected, evidence)
        return self._end("failed", message, NOT_AS_EXPECTED, FailedNumbers(marker.ledger))

    def _keep_same_version(self, new: Marker) -> _End | None:
        """Keeps the previous version of the same plan if the staged dataset is the same.

        Returns None if they differ, or if there is no previous version.
        """
        decision, run = self.plan.decision, self.run
        plan_id, number = dataset_files.split_version(decision.version) or ("", 1)
        if number == 1:
            return None
        name = dataset_files.version_name(plan_id, number - 1)
        folder = storage.join(run.output, name)
        old = dataset_files.find_marker(folder)
        if old is None or replace(new, run=old.run) != old or dataset_files.find_fault(folder, old):
            return None
        runs.remove_staging(decision.output, plan_id, run.run_id)
        # Else another run of the same plan is at work there.
        if not storage.folder_names(decision.output):
            storage.remove_folder(decision.output)
        sentence = (
            f"{folder} already holds this dataset: converting it again made the same, so no "
            "version was added"
        )
        numbers = replace(DatasetNumbers.of(old), version=name)
        end = self._end("kept", sentence, DONE, numbers)
        return replace(end, marker=old)

    def _find_in_place(self) -> EarlierDataset | None:
        """Returns the dataset in the output.

        Read again if its marker is not the one that was found there.

        Another run of the same plan may have published in the meantime.
        """
        decision = self.plan.decision
        if dataset_files.stamp_marker(decision.output) == decision.stamp:
            return decision.found
        return open_earlier(decision.output)

    def _join_others(self) -> _End | None:
        """Keeps the dataset if another run of the plan has published it meanwhile, or is doing so.

        Otherwise, returns None.

        A dataset that is complete in staging is put in place together with that run: either may do
        any step. The output is read last, because files that are gone from staging are in place by
        then.
        """
        decision = self.plan.decision
        with suppress(OSError, ValueError):  # if it cannot be published, the other run reports that
            if MARKER in storage.folder_names(decision.staging):
                self._publish_staged()
        there, found = self._find_in_place(), decision.found
        if there is None or there.marker.plan.id != decision.staged_as:
            return None
        if found is not None and there.marker.run.id == found.marker.run.id:
            return None
        if dataset_files.find_fault(there.folder, there.marker):
            return None
        sentence = f"in the meantime, another run has put this dataset in {there.folder}"
        return self._keep(there.marker, sentence)

    def _keep(self, marker: Marker, sentence: str) -> _End:
        """Keeps the dataset in the output.

        It deletes what an interrupted clean-up or a second run has left in staging.

        The limits apply as if it had been converted now: they may have changed, and an earlier
        version may be chosen again.
        """
        plan, decision, run = self.plan.dataset, self.plan.decision, self.run
        before = self.plan.earlier.against or decision.replaced
        failure = self._compare_with_contract(marker, before, decision.output)
        containers = count_containers(plan.summary.rejected)
        examples = plan.summary.rejected_examples
        if excesses := verdicts.find_excesses(
            marker.ledger, [], self.settings, examples, containers=containers
        ):
            listed = read_rejected(decision.output, examples)
            rejected = self._rejected_in_run(marker.ledger.rejected, listed)
            message = explain_excesses(excesses, (), rejected)
            failure = self._end("failed", message, TOO_MANY_REJECTED, FailedNumbers(marker.ledger))
        if not run.preview:
            runs.remove_staging(
                decision.output,
                decision.staged_as,
                "" if decision.version and not failure else run.run_id,
            )
        if failure is not None:
            return failure
        end = self._end("kept", sentence, DONE, DatasetNumbers.of(marker))
        return replace(end, marker=marker)


def _move_written(
    finished: FinishedShards, ledger: Ledger, plan: RunPlan, settings: DatasetSettings
) -> DatasetNumbers:
    """Moves the files that Beam wrote into the output, all or none; returns the run's numbers."""
    shards = staged_dataset.name_shards(finished.reports, settings)
    dataset, decision = plan.dataset, plan.decision
    marker = staged_dataset.build_marker(
        dataset, shards, ledger, settings, finished, DuplicateCounts(SameBytes(), None)
    )
    staged_dataset.check_names(marker)
    labels = dataset.label_map.as_text(ExampleLayout(settings).convention.label_lines)
    content = labels.encode()
    storage.write_file(storage.join(decision.staging, LABELS), content)
    files = []
    count = settings.shards.count
    assert count is not None  # --writer=beam needs it
    for each in shards:
        name = beam_name(each.report.split, each.report.index, count)
        entry = each.entry
        files.append(WrittenFile(name, entry.name, entry.bytes, entry.sha256))
    digest = hashlib.sha256(content).hexdigest()
    files.append(WrittenFile(LABELS, LABELS, len(content), digest))
    publish_written(files, decision.staging, decision.output)
    return replace(DatasetNumbers.of(marker), duplicates=None)


def note_losses(
    finished: FinishedShards, plan: DatasetPlan, settings: DatasetSettings
) -> Iterator[str]:
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
            f"{agree(count, 'is')} in no Example"
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
        plan: the `RunPlan`, as a side input.
        reporters: make the report, and the pictures of the data card.
    """

    settings: DatasetSettings
    run: runs.RunSettings
    plan: Any
    reporters: Reporters

    def expand(self, reports: beam.PCollection[Any]) -> beam.PCollection[Outcome]:
        """Turns ShardReports or FinishedShards into exactly one Outcome, in any case."""
        copies: Any = ()
        if self.run.writer != "beam":
            copies = AsIter(reports | FindCopies(self.plan, self.settings))
        gathered = reports | "GatherReports" >> beam.CombineGlobally(gather_reports)
        return gathered | "Publish" >> beam.Map(
            publish,
            self.plan,
            self.settings,
            self.run,
            self.reporters,
            copies,
        )
