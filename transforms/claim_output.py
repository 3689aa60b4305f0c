"""ClaimOutput: what the output holds decides what a plan does there; a run that converts leaves its claim."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

import apache_beam as beam

from recordmill import storage
from recordmill.schemas.dataset.file_names import STAGING_PREFIX
from recordmill.schemas.dataset.json_values import differences, to_json
from recordmill.schemas.dataset.marker import About, Marker
from recordmill.schemas.formatting import show_names
from recordmill.storage.dataset_files import find_marker
from recordmill.storage.output_errors import describe_output_error
from recordmill.storage.versions import current_folder, split_version, version_name, version_names
from recordmill.transforms.planning.output_state import (
    OutputState,
    claim_output,
    decide_action,
    decide_to_convert,
    find_other_use,
    make_room,
    read_output,
    release_claim,
)
from recordmill.transforms.planning.plan import Action, Plan
from recordmill.transforms.publishing.publish_staged import publish_staged
from recordmill.transforms.run_settings import RunSettings
from recordmill.transforms.shards.progress import PROGRESS
from recordmill.transforms.shards.shard_writer import UNSURE_NANOSECONDS


def settle_action(plan: Plan, run: RunSettings) -> Plan:
    """The plan with what is to be done in the output; if it is to convert, the run has claimed the output."""
    if plan.action == "convert":
        # No run resumes what Beam writes, so that it is staged under the run's own name.
        plan = _look_at_output(replace(plan, plan_id=run.run_id) if run.writer == "beam" else plan, run)
    PROGRESS.planned = plan.summary.references + plan.summary.rejected.total()
    PROGRESS.enter("converting" if plan.action == "convert" else "finishing")
    return plan


def _look_at_output(plan: Plan, run: RunSettings) -> Plan:
    try:
        if run.versions and (why := find_other_use(run.output)):
            return replace(plan, action="refuse", sentence=why)
        plan = _choose_version(plan, run) if run.versions else plan
        run = run.at(plan.version)
        state, action, sentence = _claim_or_look(plan, run)
        previous = find_marker(plan.previous) if run.versions else state.marker
    except (OSError, ValueError) as error:
        with suppress(OSError):
            release_claim(run.output, plan.plan_id, run.run_id)
        if isinstance(error, OSError):
            return replace(plan, action="fail", sentence=describe_output_error(error, run.output))
        what = f"{run.output} holds a dataset whose publishing was cut and cannot be completed"
        advice = "delete it with --discard, or choose another output"
        return replace(plan, action="refuse", sentence=f"{what}: {error}: {advice}")
    if action == "keep" and state.marker and (outdated := _find_outdated(state.marker, plan)):
        plan.notes.append(f"{outdated}: --overwrite rebuilds it")
    if action == "convert" and previous is not None:
        plan.run_notes.extend(_renumbered(previous.labels, plan.label_map.ids))
    if run.preview and action in ("convert", "finish"):
        replaced = ", in place of the one that is there" if state.marker is not None else ""
        sentence = f"nothing was written; without --plan the dataset would be in {run.output}{replaced}"
        action = "preview"
    return replace(plan, action=action, sentence=sentence, found_run=state.marker.run.id if state.marker else "")


def _choose_version(plan: Plan, run: RunSettings) -> Plan:
    """The plan with the folder of its version: of those that are complete the last, unless it is to be made again.

    A complete version is never changed, so the same plan may have several. What runs of other plans have left in their
    versions is finished or deleted.
    """
    complete = [(0, "")]
    for name in version_names(run.output):
        plan_id, number = split_version(name) or ("", 0)
        if plan_id != plan.plan_id:
            plan.run_notes.extend(_tidy(storage.join(run.output, name)) if not run.preview else ())
        elif find_marker(storage.join(run.output, name)) is not None:
            complete.append((number, name))
    number, name = complete[-1]
    if not name or _decide(plan, run.at(name))[1] == "convert":
        name = version_name(plan.plan_id, number + 1)
    return replace(plan, version=name, previous=current_folder(run.output))


def _tidy(folder: str) -> Iterator[str]:
    """Finishes a version whose publishing was cut, and deletes work that no run will resume; a note on each."""
    try:
        if not (state := read_output(folder, "")).busy:
            yield from _finish_cut(state)
            yield from make_room(read_output(folder, ""))
            if not storage.folder_names(folder):
                storage.remove_folder(folder)
    except (OSError, ValueError) as error:  # the other versions do not need it
        yield f"{folder} cannot be finished ({' '.join(str(error).split())}): recordmill versions --drop deletes it"


def _claim_or_look(plan: Plan, run: RunSettings) -> tuple[OutputState, Action, str]:
    """What the output holds, and what may be done there; the output is claimed if that is to convert.

    A run that may convert claims first and looks then: of two that begin at once, at least one sees the other. A run
    that will keep the dataset writes nothing: readers of a published dataset need no right to write.
    """
    if run.preview:
        return _decide(plan, run)
    marker = find_marker(run.output)
    claimed = run.overwrite or marker is None or marker.plan.id != plan.plan_id
    if claimed:
        claim_output(run.output, plan.plan_id, run.run_id, plan.shard_count, plan.summary.references)
    state, action, sentence = _decide(plan, run)
    if state.cut and not state.busy:  # files of an interrupted publication may be half in the output
        plan.run_notes.extend(_finish_cut(state))
        state, action, sentence = _decide(plan, run)
    if action == "convert" and not claimed:  # the dataset has been deleted meanwhile
        return _claim_or_look(plan, run)
    if claimed and action in ("convert", "keep"):
        plan.run_notes.extend(make_room(state))
    if claimed and action != "convert":
        release_claim(run.output, plan.plan_id, run.run_id)
    return state, action, sentence


def _finish_cut(state: OutputState) -> Iterator[str]:
    for each in state.cut:
        publish_staged(state.output, each.name.removeprefix(STAGING_PREFIX))
        yield f"{each.name} held a complete dataset, whose publishing had been cut: it is now in place"


def _decide(plan: Plan, run: RunSettings) -> tuple[OutputState, Action, str]:
    """What the output holds, and what may be done there."""
    state = read_output(run.output, plan.plan_id, plan.recipe["file_names"])
    action, sentence = decide_action(state, plan.plan_id, plan.recipe, run.overwrite)
    if action == "keep" and (marker := state.marker):
        outdated = run.overwrite and _find_outdated(marker, plan)
        if outdated or (run.reuse and _is_unsure(marker, plan)):
            action, sentence = decide_to_convert(state)
    return state, action, sentence


def _is_unsure(marker: Marker, plan: Plan) -> bool:
    """Whether a file may have changed since the dataset of the same plan was made, and kept its modification time."""
    if marker.run.started is None:
        return False
    started = datetime.fromisoformat(marker.run.started).timestamp()
    return plan.summary.newest > 1_000_000_000 * int(started) - UNSURE_NANOSECONDS


def _find_outdated(marker: Marker, plan: Plan) -> str:
    """What has changed since the dataset of the same plan was made; the empty string if nothing has."""
    if marker.run.versions != f"{plan.summary.versions:064x}":
        return "files have other modification times than when this dataset was made"
    changed = differences(to_json(marker.about or About()), to_json(plan.about))
    what = " and ".join(each.partition(":")[0] for each in changed)
    return f"this dataset was made with another {what}" if changed else ""


def _renumbered(old: Mapping[str, int], new: dict[str, int]) -> list[str]:
    """A note where classes of the dataset that is replaced get other ids, which models trained on it know."""
    moved = [f"{name} {old[name]} -> {new[name]}" for name in sorted(old.keys() & new.keys()) if old[name] != new[name]]
    if not moved:
        return []
    what = f"{len(moved)} classes have other ids than in the dataset that is replaced ({show_names(moved, 3)})"
    return [f"{what}: labels.classes fixes them"]


@dataclass
class ClaimOutput(beam.PTransform):
    """Settles what each plan of a PCollection (of one element) does in the output, and claims that to convert.

    Attributes:
        run: where and how this run works.
    """

    run: RunSettings

    def expand(self, plans: beam.PCollection[Plan]) -> beam.PCollection[Plan]:
        """PCollection[Plan] -> PCollection[Plan] of exactly one element."""
        return plans | beam.Map(settle_action, self.run).with_output_types(Plan)
