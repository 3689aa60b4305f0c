"""ClaimOutput: decides what a plan does in the output, and claims the output if the plan converts.

The decision depends on what the output contains.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

import apache_beam as beam

from recordmill import storage
from recordmill.schemas.dataset.compare_plans import (
    DERIVED,
    explain_version,
    is_superseded,
    list_differences,
)
from recordmill.schemas.dataset.file_names import (
    COMPANIONS,
    MARKER,
    OUTCOME,
    RESERVED,
    STAGING_PREFIX,
    looks_like_shard,
    staging_names,
)
from recordmill.schemas.dataset.marker import PLAN_VERSION, About, Marker, PlanEntry
from recordmill.schemas.errors import NOT_AS_EXPECTED, TOO_MANY_REJECTED, LoadError
from recordmill.schemas.formatting import format_count, show_names
from recordmill.schemas.rejection import TRANSIENT
from recordmill.storage import dataset_files, stored_names
from recordmill.storage.written_files import MOVES, find_moved, take_back
from recordmill.transforms.planning import runs
from recordmill.transforms.planning.plan import Action, Plan
from recordmill.transforms.publishing.staged_dataset import check_replaced, publish_staged
from recordmill.transforms.shards.resources import PROGRESS
from recordmill.transforms.shards.shard_writer import UNSURE_NANOSECONDS


@dataclass(frozen=True, slots=True)
class Leftover:
    """The staging folder of another plan.

    Attributes:
        name: its name.
        complete: whether it holds a complete dataset: its publishing was cut, and half of it may be
            in the output.
        shards: finished shards in it from which a run may resume.
        moved: files in the output that `--writer=beam` had begun to put in place from there.
    """

    name: str
    complete: bool = False
    shards: int = 0
    moved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputState:
    """The contents of an output folder.

    Attributes:
        output: the folder.
        names: files and folders in it.
        marker: the finished dataset's marker; None if it is missing or unreadable.
        pending: whether this plan's staging folder holds a complete dataset, whose publishing was
            cut.
        busy: a sentence saying that a run of another plan is, or may be, working there; empty if
            none is.
        leftovers: what runs of other plans have left.
        file_names: for each split, the name that this plan's shard would have if it were the only
            one, with one record.
        problem: why the marker cannot be read; empty if it can, or is missing.
    """

    output: str
    names: list[str] = field(default_factory=list)
    marker: Marker | None = None
    pending: bool = False
    busy: str = ""
    leftovers: tuple[Leftover, ...] = ()
    file_names: Sequence[str] = ()
    problem: str = ""

    @property
    def cut(self) -> tuple[Leftover, ...]:
        """The complete datasets of other plans whose publishing was cut."""
        return tuple(each for each in self.leftovers if each.complete)


def read_output(output: str, plan_id: str, file_names: Sequence[str] = ()) -> OutputState:
    """Reads an output folder, and reads it again if it changes meanwhile.

    Another run may be halfway through publishing. `file_names` is as in `OutputState`.

    Raises:
        LoadError: a folder in it that runs write is a link.
        OSError: it cannot be read.
    """
    while True:
        names = storage.folder_names(output)
        with suppress(FileNotFoundError):  # the marker, which another run is replacing
            state = _read_state(output, plan_id, names, file_names)
            if state.pending or state.busy or storage.folder_names(output) == names:
                return state


def _read_state(
    output: str, plan_id: str, names: list[str], file_names: Sequence[str]
) -> OutputState:
    stored_names.refuse_links_of(output, names)
    others = [name for name in staging_names(names) if name != f"{STAGING_PREFIX}{plan_id}"]
    pending = storage.exists(storage.join(dataset_files.staging_folder(output, plan_id), MARKER))
    busy = runs.find_busy(output, others, elsewhere=True)
    marker, problem = None, ""
    try:
        # Even if it was not listed: another run may have published since.
        marker = dataset_files.read_marker(output)
    except dataset_files.DamagedMarkerError as error:
        # `decide_action` refuses a marker that is listed but was not read.
        names, problem = sorted({*names, MARKER}), str(error)
    except FileNotFoundError:
        if MARKER in names:
            raise
    leftovers = tuple(_describe_leftover(output, name, marker) for name in others)
    return OutputState(output, names, marker, pending, busy, leftovers, file_names, problem)


def _describe_leftover(output: str, name: str, marker: Marker | None) -> Leftover:
    staging = storage.join(output, name)
    names = storage.folder_names(staging)
    if marker and staging == dataset_files.staging_folder(output, marker.plan.id):
        return Leftover(name)  # its dataset was already in place
    if MARKER in names:
        return Leftover(name, complete=True)
    if MOVES in names:
        return Leftover(name, moved=find_moved(staging, output))
    outcome = dataset_files.read_object(storage.join(staging, OUTCOME))
    if outcome.get("exit_code") in (TOO_MANY_REJECTED, NOT_AS_EXPECTED):
        return Leftover(name)
    notes = (
        dataset_files.read_object(storage.join(staging, each))
        for each in names
        if each.endswith(".done.json")
    )
    # No run of this version of Recordmill has the plan of another version.
    done = [each for each in notes if each.get("plan_version") == PLAN_VERSION]
    reports = (each.get("report") for each in done)
    has_records = any(isinstance(each, dict) and each.get("records") for each in reports)
    return Leftover(name, shards=len(done) if has_records else 0)


def check_versions(output: str) -> None:
    """Makes sure that an output can have versions.

    Raises:
        LoadError: it cannot: its pointer is damaged, or it contains a dataset that is not in a
            version.
        OSError: it cannot be read.
    """
    names = storage.folder_names(output)
    strangers = [*staging_names(names), *_find_strangers(OutputState(output, names))]
    if dataset_files.current_folder(output) == output and strangers:
        what = "a dataset" if MARKER in strangers else strangers[0]
        raise LoadError(
            f"{output} holds {what} that is not in a version: choose another output, or remove "
            "--versions"
        )


def decide_action(state: OutputState, plan: PlanEntry, overwrite: bool) -> tuple[Action, str]:
    """Decides what a run may do, and says why in a sentence unless that is `convert`.

    A dataset of the same plan is kept. A dataset of another plan is refused, with the differences,
    unless `overwrite` is set, or only the plan version makes it another plan. While a run of
    another plan is at work, everything is refused. Leftovers of ended runs do not matter, except
    for a complete dataset: that is put in place first, and then counts as a dataset of another
    plan.
    """
    output = state.output
    if state.busy:
        return "refuse", state.busy
    if state.cut:  # only `--plan` comes here with it
        what = f"{output} holds {state.cut[0].name}, a complete dataset whose publishing was cut"
        return ("convert", "") if overwrite else ("refuse", f"{what}: a run puts it in place first")
    if state.pending:
        return (
            "finish",
            "an earlier run was interrupted while publishing: its dataset is now in place",
        )
    if (marker := state.marker) is None:
        return decide_to_convert(state)
    if marker.plan.id != plan.id:
        if overwrite or is_superseded(marker.plan, plan):
            return decide_to_convert(state)
        changed = list_differences(marker.plan, plan, DERIVED)
        changed = changed or list_differences(marker.plan, plan)
        advice = "choose another output, or replace it with --overwrite"
        return "refuse", f"{output} holds another dataset ({', '.join(changed)}): {advice}"
    fault = dataset_files.find_fault(output, marker)
    if overwrite and fault:
        return decide_to_convert(state)
    if fault:
        return (
            "refuse",
            f"{output} {fault}, against its {MARKER}: run again with --overwrite to rebuild it",
        )
    return "keep", f"{output} already holds this dataset: nothing to do"


def clear_leftovers(state: OutputState, is_update: bool = False) -> list[str]:
    """Deletes the leftovers that no run will resume from.

    Args:
        state: what the output contains.
        is_update: whether this run updates a dataset: then no later run has the input or the
            configuration of an earlier one, and finished shards of other plans are deleted, too.
            Work that a run has claimed meanwhile stays.

    Returns:
        A note on each leftover, deleted or not.

    Raises:
        OSError: a leftover cannot be deleted.
    """
    notes = []
    for each in state.leftovers:
        if runs.find_busy(state.output, [each.name], elsewhere=True):
            continue
        if each.complete or (each.shards and not is_update):
            shards = format_count(each.shards, "finished shard")
            what = (
                f"{state.output}/{each.name} stays, with {shards} of another configuration or input"
            )
            notes.append(
                f"{what}: the command that started it resumes from there, --discard deletes it"
            )
        else:
            staging = storage.join(state.output, each.name)
            if count := take_back(staging, state.output):
                notes.append(
                    f"deleted {format_count(count, 'file')} that a killed run with --writer=beam "
                    "had begun to put in place"
                )
            storage.remove_folder(staging)
            shards = f", with {format_count(each.shards, 'finished shard')}" if each.shards else ""
            notes.append(
                f"deleted {each.name}, which another run had left{shards}: no run will resume from "
                "it"
            )
    return notes


def decide_to_convert(state: OutputState) -> tuple[Action, str]:
    """Returns `convert`, or `refuse` and the reason.

    Converting is refused if the output contains a file that publishing might replace, or that
    readers would take for a shard. It is also refused if the output has versions, or a marker that
    cannot be read.
    """
    if state.marker is None and any(map(dataset_files.split_version, state.names)):
        return "refuse", f"{state.output} has versions: add --versions, or choose another output"
    if state.marker is None and MARKER in state.names:
        problem = state.problem or f"{state.output}/{MARKER} cannot be read"
        return "refuse", f"{problem}: choose another output, or delete that folder"
    if not (names := _find_strangers(state)):
        return "convert", ""
    what = f"{names[0]}, which belongs to no finished dataset"
    return "refuse", f"{state.output} holds {what}: move it away, or choose another output"


def _find_strangers(state: OutputState) -> list[str]:
    """Returns the names in the output that are in the way of this plan's files.

    Those are names that the plan's files may get, except for the files of a dataset there. Without
    a dataset there, the names of any shards count, too. Shards and records are not counted yet, so
    each number in a name stands for any number.
    """
    own = {name for each in state.leftovers for name in each.moved}  # deleted before anything else
    names = [name for name in state.names if name not in own]
    shards = "|".join(
        re.sub(r"(\\ )*\d+", r" *[\\da-fA-F,_]+", re.escape(name)) for name in state.file_names
    )
    fitting = {name for name in names if re.fullmatch(shards, name) or name in COMPANIONS}
    if state.marker is not None:
        return sorted(
            fitting
            - {*RESERVED, *state.marker.files, *(shard.name for shard in state.marker.shards)}
        )
    ours = RESERVED | fitting
    return [
        name
        for name in names
        if looks_like_shard(name) or name.endswith("labels.txt") or name in ours
    ]


def settle_action(plan: Plan, run: runs.RunSettings) -> Plan:
    """Returns the plan with its action; if that is `convert`, the run has claimed the output."""
    plan = replace(plan, output=run.output, previous=run.output)
    if plan.action == "convert":
        # No run resumes what Beam writes, so it is staged under the run's own name.
        plan = _settle_in_output(
            replace(plan, plan_id=run.run_id) if run.writer == "beam" else plan, run
        )
    PROGRESS.planned = plan.summary.references + plan.summary.rejected.total()
    PROGRESS.enter("converting" if plan.action == "convert" else "finishing")
    return plan


def _settle_in_output(plan: Plan, run: runs.RunSettings) -> Plan:
    try:
        if run.versions:
            check_versions(run.output)
            plan = _choose_version(plan, run)
        state, action, sentence = _claim_and_decide(plan, run)
        previous = dataset_files.find_marker(plan.previous) if action == "convert" else None
    except (OSError, LoadError) as error:
        with suppress(OSError):
            runs.release_claim(plan.output, plan.plan_id, run.run_id)
        if isinstance(error, OSError):
            return replace(
                plan, action="fail", sentence=storage.describe_output_error(error, plan.output)
            )
        return replace(plan, action="refuse", sentence=str(error))
    if action == "keep" and state.marker and is_outdated(state.marker, plan):
        why = (
            "files could not be read, or were modified since, or others are ignored, or it has "
            "another description"
        )
        plan.notes.append(f"this dataset may be outdated ({why}): --overwrite rebuilds it")
    if previous is not None:
        plan.run_notes.extend(_note_renumbered(previous.labels, plan.label_map.ids))
        # For `--update` and `--reuse` there is a note already.
        if plan.previous not in run.reuse and is_superseded(previous.plan, plan.entry):
            why = explain_version(previous.plan, plan.entry)
            plan.run_notes.append(f"all records of {plan.previous} are made again: {why}")
    if run.preview and action in ("convert", "finish"):
        replaced = ", in place of the one that is there" if state.marker is not None else ""
        sentence = (
            f"nothing was written; without --plan the dataset would be in {plan.output}{replaced}"
        )
        action = "preview"
    return replace(
        plan,
        action=action,
        sentence=sentence,
        found_run=state.marker.run.id if state.marker else "",
    )


def _choose_version(plan: Plan, run: runs.RunSettings) -> Plan:
    """Returns the plan with the folder of its version.

    That is the last complete version, or a new one to convert the plan again. A complete version is
    never changed, so the same plan may have several. Leftovers of other plans in their versions are
    finished or deleted.
    """
    complete = [(0, "")]
    for name in dataset_files.version_names(run.output):
        plan_id, number = dataset_files.split_version(name) or ("", 0)
        folder = storage.join(run.output, name)
        if plan_id != plan.plan_id:
            is_ours = not run.preview and not storage.is_link(folder)
            plan.run_notes.extend(_tidy(folder, run.update) if is_ours else ())
        elif dataset_files.find_marker(folder) is not None:
            complete.append((number, name))
    number, name = complete[-1]
    plan = replace(plan, previous=dataset_files.current_folder(run.output)).at(run.output, name)
    if not name or _decide(plan, run)[1] == "convert":
        plan = plan.at(run.output, dataset_files.version_name(plan.plan_id, number + 1))
    return plan


def _tidy(folder: str, is_update: bool) -> Iterator[str]:
    """Finishes a version whose publishing was cut, and deletes work that no run will resume.

    Yields notes on both.
    """
    try:
        if not (state := read_output(folder, "")).busy:
            yield from _finish_cut(state)
            yield from clear_leftovers(read_output(folder, ""), is_update)
            if not storage.folder_names(folder):
                storage.remove_folder(folder)
    except (OSError, ValueError) as error:  # other versions work without this one
        yield (
            f"{folder} cannot be finished ({' '.join(str(error).split())}): recordmill versions "
            "--drop deletes it"
        )


def _claim_and_decide(plan: Plan, run: runs.RunSettings) -> tuple[OutputState, Action, str]:
    """Reads the output and decides what to do there; keeps a claim on it if that is `convert`.

    A run that may convert claims the output before reading it: of two that begin at once, at least
    one sees the other. A run that will keep the dataset writes nothing, so it needs no permission
    to write.
    """
    if run.preview:
        return _decide(plan, run)
    marker = dataset_files.find_marker(plan.output)
    claimed = run.overwrite or marker is None or marker.plan.id != plan.plan_id
    if claimed:
        runs.claim_output(
            plan.output, plan.plan_id, run.run_id, plan.shard_count, plan.summary.references
        )
    state, action, sentence = _decide(plan, run)
    # Files of an interrupted publication may be half in the output.
    if state.cut and not state.busy:
        plan.run_notes.extend(_finish_cut(state))
        state, action, sentence = _decide(plan, run)
    if action == "convert" and not claimed:  # the dataset has been deleted meanwhile
        return _claim_and_decide(plan, run)
    if claimed and action in ("convert", "keep"):
        plan.run_notes.extend(clear_leftovers(state, run.update))
    if claimed and action != "convert":
        runs.release_claim(plan.output, plan.plan_id, run.run_id)
    return state, action, sentence


def _finish_cut(state: OutputState) -> Iterator[str]:
    for each in state.cut:
        publish_staged(state.output, each.name.removeprefix(STAGING_PREFIX))
        yield (
            f"{each.name} held a complete dataset, whose publishing had been cut: it is now in "
            "place"
        )


def _decide(plan: Plan, run: runs.RunSettings) -> tuple[OutputState, Action, str]:
    """Reads the output and decides what to do there.

    Raises:
        LoadError: what is there cannot be replaced without touching other files than a dataset's.
        OSError: it cannot be read.
    """
    state = read_output(plan.output, plan.plan_id, plan.recipe["file_names"])
    action, sentence = decide_action(state, plan.entry, run.overwrite)
    if action == "keep" and (marker := state.marker):
        outdated = run.overwrite and is_outdated(marker, plan)
        if outdated or (run.reuse and _may_be_stale(marker, plan)):
            action, sentence = decide_to_convert(state)
    if action == "convert" and state.marker is not None:
        check_replaced(state.output, state.marker)
    return state, action, sentence


def _may_be_stale(marker: Marker, plan: Plan) -> bool:
    """Tells whether a file may have changed unnoticed since the dataset of the same plan was made.

    Such a file has the same modification time as before.
    """
    if marker.run.started is None:
        return False
    started = datetime.fromisoformat(marker.run.started).timestamp()
    return plan.summary.newest > 1_000_000_000 * int(started) - UNSURE_NANOSECONDS


def is_outdated(marker: Marker, plan: Plan) -> bool:
    """Tells whether the dataset of the same plan should be made again.

    It should if files could not be read when it was made, or if something has changed since.
    """
    if not TRANSIENT.isdisjoint(marker.ledger.rejected):
        return True
    found = (marker.run.versions, marker.ledger.ignored, marker.about or About())
    return found != (f"{plan.summary.versions:064x}", plan.summary.ignored, plan.about)


def _note_renumbered(old: Mapping[str, int], new: Mapping[str, int]) -> Iterator[str]:
    """Yields a note if classes get other ids than in the replaced dataset.

    Models may have been trained on that dataset.
    """
    moved = [
        f"{name} {old[name]} -> {new[name]}"
        for name in sorted(old.keys() & new.keys())
        if old[name] != new[name]
    ]
    if moved:
        what = (
            f"{len(moved)} classes have other ids than in the dataset that is replaced "
            f"({show_names(moved, 3)})"
        )
        yield f"{what}: labels.classes fixes them"


@dataclass
class ClaimOutput(beam.PTransform):
    """Decides what each plan does in the output, and claims the output if the plan converts.

    The PCollection of plans has one element.

    Attributes:
        run: where and how this run works.
    """

    run: runs.RunSettings

    def expand(self, plans: beam.PCollection[Plan]) -> beam.PCollection[Plan]:
        """PCollection[Plan] -> PCollection[Plan] of exactly one element."""
        return plans | beam.Map(settle_action, self.run)
