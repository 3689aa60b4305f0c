"""ClaimOutput: decides what a plan does in the output, and claims the output if the plan converts.

The decision depends on what the output contains.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import NamedTuple

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
from recordmill.transforms.planning.earlier_dataset import EarlierDataset, open_earlier
from recordmill.transforms.planning.plan import DatasetPlan
from recordmill.transforms.planning.run_plan import Action, OutputDecision, RunPlan
from recordmill.transforms.publishing.staged_dataset import check_replaced, publish_staged
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
        stamp: the stamp of the marker before it was read, see `dataset_files.stamp_marker`.
        pending: whether this plan's staging folder holds a complete dataset, whose publishing was
            cut.
        busy: a sentence saying that a run of another plan is, or may be, working there; None if
            none is.
        leftovers: what runs of other plans have left.
        file_names: for each split, the name that this plan's shard would have if it were the only
            one, with one record.
        problem: why the marker cannot be read; None if it can, or is missing.
    """

    output: str
    names: list[str] = field(default_factory=list)
    marker: Marker | None = None
    pending: bool = False
    busy: str | None = None
    leftovers: tuple[Leftover, ...] = ()
    file_names: Sequence[str] = ()
    problem: str | None = None
    stamp: str | None = field(default=None, compare=False)

    @property
    def dataset(self) -> EarlierDataset | None:
        """The finished dataset; None without a marker."""
        return None if self.marker is None else EarlierDataset(self.output, self.marker)

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
    stamp = dataset_files.stamp_marker(output)
    marker, problem = None, None
    try:
        # Even if it was not listed: another run may have published since.
        if stamp is not None or MARKER in names:
            marker = dataset_files.read_marker(output)
    except dataset_files.DamagedMarkerError as error:
        # `decide_action` refuses a marker that is listed but was not read.
        names, problem = sorted({*names, MARKER}), str(error)
    except FileNotFoundError:
        if MARKER in names:
            raise
    leftovers = tuple(_describe_leftover(output, name, marker) for name in others)
    return OutputState(output, names, marker, pending, busy, leftovers, file_names, problem, stamp)


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


def find_current(output: str, updated: str = "") -> str:
    """Makes sure that an output can have versions; returns the folder of the current one.

    Args:
        output: the folder.
        updated: the folder of the current version if it is known.

    Returns:
        The folder; the output itself if it has no version yet.

    Raises:
        LoadError: it cannot: its pointer is damaged, or it contains a dataset that is not in a
            version.
        OSError: it cannot be read.
    """
    names = storage.folder_names(output)
    strangers = [*staging_names(names), *_find_strangers(OutputState(output, names))]
    current = updated or dataset_files.current_folder(output)
    if current == output and strangers:
        what = "a dataset" if MARKER in strangers else strangers[0]
        raise LoadError(
            f"{output} holds {what} that is not in a version: choose another output, or remove "
            "--versions"
        )
    return current


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
        what = (
            f"{output} holds {state.cut[0].name}, a complete dataset whose publication was "
            "interrupted"
        )
        return (
            ("convert", "") if overwrite else ("refuse", f"{what}: run without --plan to finish it")
        )
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
    what = f"{names[0]}, which is not part of a Recordmill dataset"
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


def settle_action(plan: RunPlan, run: runs.RunSettings) -> RunPlan:
    """Returns the plan with its decision; if that is to convert, the run has claimed the output."""
    # No run resumes what Beam writes, so it is staged under the run's own name.
    name = run.run_id if run.writer == "beam" else plan.dataset.plan_id
    place = replace(plan.decision, output=run.output, staged_as=name)
    plan = replace(plan, decision=place)
    if place.action == "convert":
        plan = _settle_in_output(plan, run)
    summary = plan.dataset.summary
    run.progress.planned = summary.references + summary.rejected.total()
    run.progress.enter("converting" if plan.decision.action == "convert" else "finishing")
    return plan


def _settle_in_output(plan: RunPlan, run: runs.RunSettings) -> RunPlan:
    place, tidied = plan.decision, tuple[str, ...]()
    try:
        if run.versions:
            place, tidied = _choose_version(plan, run)
        choice, done = _claim_and_decide(plan.dataset, place, run)
    except (OSError, LoadError) as error:
        with suppress(OSError):
            runs.release_claim(place.output, place.staged_as, run.run_id)
        action, sentence = _give_up(error, place.output)
        decision = replace(place, action=action, sentence=sentence)
        return replace(plan, decision=decision, notes=(*plan.notes, *tidied))
    found, action, sentence = choice.found, choice.action, choice.sentence
    replaced = place.replaced if run.versions else found
    notes = [*plan.notes, *tidied, *done]
    if action == "convert" and replaced is not None:
        notes += _note_replaced(replaced, plan)
    if action == "keep" and found is not None and is_outdated(found.marker, plan.dataset):
        notes.append(_OUTDATED)
    if run.preview and action in ("convert", "finish"):
        other = ", in place of the one that is there" if found is not None else ""
        sentence = (
            f"nothing was written; without --plan the dataset would be in {place.output}{other}"
        )
        action = "preview"
    decision = replace(
        place,
        action=action,
        sentence=sentence,
        found=found,
        stamp=choice.stamp,
        replaced=replaced,
    )
    return replace(plan, decision=decision, notes=tuple(notes))


_OUTDATED = (
    "this dataset may be outdated (files could not be read or were modified, other files are "
    "ignored, or its description differs): --overwrite rebuilds it"
)


def _give_up(error: OSError | LoadError, output: str) -> tuple[Action, str]:
    """Returns what a run does that cannot use an output, and why."""
    if isinstance(error, OSError):
        return "fail", storage.describe_output_error(error, output)
    return "refuse", str(error)


def _note_replaced(replaced: EarlierDataset, plan: RunPlan) -> Iterator[str]:
    """Yields notes on what differs from the dataset that is replaced."""
    dataset = plan.dataset
    remedy = "labels.classes fixes them"
    if "ids" in dataset.recipe.get("labels", {}):
        remedy = "they are the source's numbers, which have changed"
    yield from _note_renumbered(replaced.marker.labels, dataset.label_map.ids, remedy)
    # For `--update` and `--reuse` there is a note already.
    old = replaced.marker.plan
    reused = {each.folder for each in plan.earlier.reuse}
    if replaced.folder not in reused and is_superseded(old, dataset.entry):
        why = explain_version(old, dataset.entry)
        yield f"all records of {replaced.folder} are made again: {why}"


def _choose_version(plan: RunPlan, run: runs.RunSettings) -> tuple[OutputDecision, tuple[str, ...]]:
    """Chooses the folder of the plan's version, and finds the dataset that it replaces.

    That is the last complete version, or a new one to convert the plan again. A complete version is
    never changed, so the same plan may have several. Leftovers of other plans in their versions are
    finished or deleted; the notes say which.
    """
    plan_id, notes = plan.decision.staged_as, list[str]()
    updated = ""
    if plan.earlier.updated is not None:
        updated = plan.earlier.updated.folder
    current = find_current(run.output, updated)
    # A complete version is never changed, so those that were opened are still the same.
    opened = {each.folder: each for each in plan.earlier.reuse}
    complete = [(0, "")]
    for name in dataset_files.version_names(run.output):
        of_plan, number = dataset_files.split_version(name) or ("", 0)
        folder = storage.join(run.output, name)
        if of_plan != plan_id:
            is_ours = not run.preview and not storage.is_link(folder)
            notes.extend(_tidy(folder, run.update) if is_ours else ())
        elif folder in opened or dataset_files.find_marker(folder) is not None:
            complete.append((number, name))
    number, name = complete[-1]
    replaced = opened.get(current) or open_earlier(current)
    place = replace(plan.decision, replaced=replaced).at(run.output, name)
    if not name or _decide(plan.dataset, place, run).action == "convert":
        place = place.at(run.output, dataset_files.version_name(plan_id, number + 1))
    return place, tuple(notes)


def _tidy(folder: str, is_update: bool) -> Iterator[str]:
    """Finishes a version whose publishing was cut, and deletes work that no run will resume.

    Yields notes on both.

    Raises:
        StrayNameError: what was cut names other files than a dataset's.
    """
    try:
        names = storage.folder_names(folder)
        if names and not staging_names(names):
            return
        if not (state := read_output(folder, "")).busy:
            yield from _finish_cut(state)
            yield from clear_leftovers(read_output(folder, ""), is_update)
            if not storage.folder_names(folder):
                storage.remove_folder(folder)
    except dataset_files.StrayNameError:  # as in an output without versions
        raise
    except (OSError, ValueError) as error:  # other versions work without this one
        yield (
            f"{folder} cannot be finished ({' '.join(str(error).split())}): recordmill versions "
            "--drop deletes it"
        )


class _Choice(NamedTuple):
    """What a run may do in the output, and why; and what it has found there."""

    action: Action
    sentence: str
    state: OutputState

    @property
    def found(self) -> EarlierDataset | None:
        """The finished dataset there."""
        return self.state.dataset

    @property
    def stamp(self) -> str | None:
        """The stamp of its marker."""
        return self.state.stamp


def _claim_and_decide(
    dataset: DatasetPlan, place: OutputDecision, run: runs.RunSettings
) -> tuple[_Choice, tuple[str, ...]]:
    """Reads the output and decides what to do there; keeps a claim on it if that is `convert`.

    A run that may convert claims the output before reading it: of two that begin at once, at least
    one sees the other. A run that will keep the dataset writes nothing, so it needs no permission
    to write.

    Returns:
        The choice, and notes on what was done in the output.
    """
    if run.preview:
        return _decide(dataset, place, run), ()
    claimed, notes = run.overwrite or not _holds_plan(place), list[str]()
    if claimed:
        runs.claim_output(
            place.output,
            place.staged_as,
            run.run_id,
            dataset.shard_count,
            dataset.summary.references,
        )
    choice = _decide(dataset, place, run)
    # Files of an interrupted publication may be half in the output.
    if choice.state.cut and not choice.state.busy:
        notes += _finish_cut(choice.state)
        choice = _decide(dataset, place, run)
    if choice.action == "convert" and not claimed:  # the dataset has been deleted meanwhile
        choice, more = _claim_and_decide(dataset, place, run)
        return choice, (*notes, *more)
    if claimed and choice.action in ("convert", "keep"):
        notes += clear_leftovers(choice.state, run.update)
    if claimed and choice.action != "convert":
        runs.release_claim(place.output, place.staged_as, run.run_id)
    return choice, tuple(notes)


def _holds_plan(place: OutputDecision) -> bool:
    """Whether the output holds the dataset of the plan, so that a run may not need to claim it."""
    if dataset_files.stamp_marker(place.output) is None:
        return False
    marker = dataset_files.find_marker(place.output)
    return marker is not None and marker.plan.id == place.staged_as


def _finish_cut(state: OutputState) -> Iterator[str]:
    for each in state.cut:
        publish_staged(state.output, each.name.removeprefix(STAGING_PREFIX))
        yield (
            f"{each.name} held a complete dataset, whose publication was interrupted: it is "
            "now in place"
        )


def _decide(dataset: DatasetPlan, place: OutputDecision, run: runs.RunSettings) -> _Choice:
    """Reads the output and decides what to do there.

    Raises:
        LoadError: what is there cannot be replaced without touching other files than a dataset's.
        OSError: it cannot be read.
    """
    state = read_output(place.output, place.staged_as, dataset.recipe["file_names"])
    entry = replace(dataset.entry, id=place.staged_as)
    action, sentence = decide_action(state, entry, run.overwrite)
    if action == "keep" and (marker := state.marker):
        outdated = run.overwrite and is_outdated(marker, dataset)
        if outdated or (run.reuses and _may_be_stale(marker, dataset)):
            action, sentence = decide_to_convert(state)
    if action == "convert" and state.marker is not None:
        check_replaced(state.output, state.marker)
    return _Choice(action, sentence, state)


def _may_be_stale(marker: Marker, plan: DatasetPlan) -> bool:
    """Tells whether a file may have changed unnoticed since the dataset of the same plan was made.

    Such a file has the same modification time as before.
    """
    if marker.run.started is None:
        return False
    started = datetime.fromisoformat(marker.run.started).timestamp()
    return plan.summary.newest > 1_000_000_000 * int(started) - UNSURE_NANOSECONDS


def is_outdated(marker: Marker, plan: DatasetPlan) -> bool:
    """Tells whether the dataset of the same plan should be made again.

    It should if files could not be read when it was made, or if something has changed since.
    """
    dropped = chain.from_iterable(each.dropped for each in marker.annotations.values())
    if not TRANSIENT.isdisjoint((*marker.ledger.rejected, *dropped)):
        return True
    described = marker.about or About(), marker.skeleton or {}
    found = (marker.run.versions, marker.ledger.ignored, *described)
    listed = f"{plan.summary.versions:064x}", plan.summary.ignored
    return found != (*listed, plan.about, plan.skeleton)


def _note_renumbered(old: Mapping[str, int], new: Mapping[str, int], remedy: str) -> Iterator[str]:
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
        yield f"{what}: {remedy}"


@dataclass
class ClaimOutput(beam.PTransform):
    """Decides what each plan does in the output, and claims the output if the plan converts.

    The PCollection of plans has one element.

    Attributes:
        run: where and how this run works.
    """

    run: runs.RunSettings

    def expand(self, plans: beam.PCollection[RunPlan]) -> beam.PCollection[RunPlan]:
        """PCollection[RunPlan] -> PCollection[RunPlan] of exactly one element."""
        return plans | beam.Map(settle_action, self.run)
