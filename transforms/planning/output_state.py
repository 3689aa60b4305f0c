"""What an output folder holds, and what a run with a certain plan may do there.

Each run leaves a claim in its plan's staging folder while it is at work, and takes it back.
"""

import os
import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from recordmill import storage
from recordmill.schemas.dataset.file_names import (
    CLAIM_PREFIX,
    COMPANIONS,
    FOR_PEOPLE,
    MARKER,
    OUTCOME,
    RESERVED,
    STAGING_PREFIX,
    staging_names,
)
from recordmill.schemas.dataset.json_values import differences
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.errors import LoadError
from recordmill.schemas.formatting import format_count
from recordmill.schemas.outcome import DONE, NOT_AS_EXPECTED, TOO_MANY_REJECTED
from recordmill.schemas.rejection import MAY_HEAL
from recordmill.storage.dataset_files import DamagedMarkerError, read_marker, staging_folder
from recordmill.storage.many_files import digest_of, map_each
from recordmill.storage.record_reader import looks_like_shard
from recordmill.storage.versions import current_folder, split_version, work_folders
from recordmill.transforms.planning.plan import Action

_MOST_TRIES = 10


def claim_output(output: str, plan_id: str, run_id: str, shards: int = 0, references: int = 0) -> None:
    """Leaves a run's claim in its plan's staging folder, and removes the report of the plan's last failed run.

    Each run first leaves its claim and then looks for others: of two plans that start at once at least one sees the
    other. The claim says how many shards and references there are, for those who follow the run.

    Raises:
        OSError: the claim cannot be written.
    """
    staging = staging_folder(output, plan_id)
    since, process = datetime.now(UTC).isoformat(timespec="seconds"), os.getpid()
    claim = {"plan": plan_id, "run": run_id, "host": socket.gethostname(), "process": process, "since": since}
    content = orjson.dumps({**claim, "shards": shards, "references": references, "born": _birth_of(process)})
    for tries_left in reversed(range(_MOST_TRIES)):
        try:
            storage.make_folder(staging)
            storage.write_file(_claim_path(staging, run_id), content)
            break
        except FileNotFoundError:  # a run of the same plan has just published, and deletes the folder
            if not tries_left:
                raise
    storage.remove_files([storage.join(staging, OUTCOME)])


def release_claim(output: str, plan_id: str, run_id: str) -> None:
    """Takes a run's claim back, and the staging folder with it where nothing else is in there.

    Raises:
        OSError: it cannot be deleted.
    """
    staging = staging_folder(output, plan_id)
    storage.remove_files([_claim_path(staging, run_id)])
    if not storage.folder_names(staging):
        storage.remove_folder(staging)


def release_claims(output: str, run_id: str) -> None:
    """Takes a run's claim back whatever its plan is: what a run leaves that ends without its last step.

    What `--writer=beam` has written, in a folder that is named after the run, is deleted: no run resumes it.
    """
    with suppress(OSError):  # the run has failed already, and a claim of a process that is gone counts for nothing
        storage.remove_folder(staging_folder(output, run_id))
        for folder in work_folders(output):
            for name in staging_names(storage.folder_names(folder)):
                release_claim(folder, name.removeprefix(STAGING_PREFIX), run_id)


def remove_staging(output: str, plan_id: str, run_id: str) -> None:
    """Takes a run's claim back and deletes the staging folder, unless another run of this machine is at work there.

    Of two runs that end at once, at least one finds no other and deletes it.

    Raises:
        OSError: it cannot be deleted.
    """
    staging = staging_folder(output, plan_id)
    storage.remove_files([_claim_path(staging, run_id)])
    if not any(map(_is_at_work, _read_claims(staging))):
        storage.remove_folder(staging)


def find_busy(output: str, stagings: Iterable[str], elsewhere: bool = False) -> str:
    """The sentence that tells of a run at work in one of an output's staging folders; empty where none is found.

    A run takes its claim back when it ends. Only for this machine's processes is it known whether
    they are still there.

    Args:
        output: the folder.
        stagings: the names of staging folders in it.
        elsewhere: whether the claim of another machine counts; its process cannot be checked.
    """
    for name in stagings:
        for claim in _read_claims(storage.join(output, name)):
            since = f"since {claim.get('since')}"
            if _is_at_work(claim):
                return (
                    f"{output} is being written by another run ({name}, process {claim['process']} {since}): "
                    f"wait for it, or choose another output (if that process is not a run of Recordmill, delete {name})"
                )
            if elsewhere and (host := claim.get("host")) and host != socket.gethostname():
                return (
                    f"{output} may be in use by a run on {host} ({name}, {since}): "
                    "wait for it, or choose another output; if that run has ended, delete its work with --discard"
                )
    return ""


def _claim_path(staging: str, run_id: str) -> str:
    return storage.join(staging, f"{CLAIM_PREFIX}-{run_id}.json")


def _read_claims(staging: str) -> Iterator[dict[str, Any]]:
    """The claims in a staging folder; those that cannot be read are left out."""
    names = (name for name in storage.folder_names(staging) if name.startswith(CLAIM_PREFIX))
    return filter(None, (_read_json(storage.join(staging, name)) for name in names))


def _read_json(path: str) -> dict[str, Any]:
    """The object in a file; an empty one where there is none."""
    with suppress(FileNotFoundError, orjson.JSONDecodeError):
        value: Any = orjson.loads(storage.read_range(path))
        return value if isinstance(value, dict) else {}
    return {}


def _is_at_work(claim: dict[str, Any]) -> bool:
    """Whether the process of a claim is one of this machine's, and still there."""
    process = claim.get("process")
    if claim.get("host") != socket.gethostname() or not isinstance(process, int):
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        pass
    born, stated = _birth_of(process), claim.get("born")
    return not (born and stated) or born == stated  # else the number is another process's by now


def _birth_of(process: int) -> str:
    """When a process began, in ticks of this machine's clock; the empty string where the system does not say."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]  # proc(5): the name, in brackets, may hold anything
    except OSError:
        return ""


_DERIVED = ("cuts", "feature_schema", "file_names", "format_names", "label_ids", "label_offset", "split_order")
"""Parts of a recipe that follow from others: they are named as differences only where nothing else differs."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """The staging folder of another plan.

    Attributes:
        name: the folder's.
        complete: whether a dataset is complete there: its switch was cut, and half of it may be in the output.
        shards: how many finished shards are there.
        worthless: why no run will resume from them, in a few words; empty where one may.
    """

    name: str
    complete: bool = False
    shards: int = 0
    worthless: str = ""


@dataclass(frozen=True, slots=True)
class OutputState:
    """What was found.

    Attributes:
        output: the folder.
        names: files and folders in it.
        marker: the finished dataset's marker; None where there is none, or none that can be read.
        pending: whether a dataset is complete in this plan's staging: its switch was cut.
        busy: the sentence that tells of a run of another plan that is at work there, or may be; empty where none is.
        leftovers: what runs of other plans have left there.
        file_names: of each split, the name that this plan's shard would have if it were the only one, with one record.
    """

    output: str
    names: list[str] = field(default_factory=list)
    marker: Marker | None = None
    pending: bool = False
    busy: str = ""
    leftovers: tuple[Leftover, ...] = ()
    file_names: Sequence[str] = ()

    @property
    def cut(self) -> tuple[Leftover, ...]:
        """The complete datasets of other plans whose publishing was cut."""
        return tuple(each for each in self.leftovers if each.complete)


def read_output(output: str, plan_id: str, file_names: Sequence[str] = ()) -> OutputState:
    """Looks at an output folder until nothing changes meanwhile: half of another run's switch is not a state.

    The folder is listed again only where the names in it matter. `file_names` are those of `OutputState`.
    """
    while True:
        names = storage.folder_names(output)
        with suppress(FileNotFoundError):  # the marker, which another run is replacing
            state = _look(output, plan_id, names, file_names)
            names_matter = state.leftovers or _find_strangers(state)
            if state.pending or state.busy or not names_matter or storage.folder_names(output) == names:
                return state


def _look(output: str, plan_id: str, names: list[str], file_names: Sequence[str]) -> OutputState:
    others = [name for name in staging_names(names) if name != f"{STAGING_PREFIX}{plan_id}"]
    pending = storage.exists(storage.join(staging_folder(output, plan_id), MARKER))
    busy = find_busy(output, others, elsewhere=True)
    marker = None
    try:
        marker = read_marker(output)  # not by the names: a switch may have ended since
    except DamagedMarkerError:
        names = sorted({*names, MARKER})  # its name without its contents is what `decide_action` refuses
    except FileNotFoundError:
        if MARKER in names:
            raise
    leftovers = tuple(_describe_leftover(output, name, marker) for name in others)
    return OutputState(output, names, marker, pending, busy, leftovers, file_names)


def _describe_leftover(output: str, name: str, marker: Marker | None) -> Leftover:
    staging = storage.join(output, name)
    names = storage.folder_names(staging)
    done = [each for each in names if each.endswith(".done.json")]
    if marker and staging == staging_folder(output, marker.plan.id):
        return Leftover(name, worthless="its dataset was in place already")
    if MARKER in names:
        return Leftover(name, complete=True)
    why = {TOO_MANY_REJECTED: "it had failed by what it rejected", NOT_AS_EXPECTED: "it was not as expect says"}
    if worthless := why.get(_read_json(storage.join(staging, OUTCOME)).get("exit_code", DONE)):
        return Leftover(name, worthless=worthless)
    if not any(_read_json(storage.join(staging, each)).get("report", {}).get("records") for each in done):
        return Leftover(name, worthless="it had finished no shard")
    return Leftover(name, shards=len(done))


def find_other_use(output: str) -> str:
    """Why an output cannot have versions; the empty string if it can.

    Raises:
        OSError: it cannot be read.
    """
    names = storage.folder_names(output)
    strangers = [*staging_names(names), *_find_strangers(OutputState(output, names))]
    try:
        current = current_folder(output)
    except LoadError as error:
        return str(error)
    if strangers and current == output:
        what = "a dataset" if MARKER in strangers else strangers[0]
        return f"{output} holds {what} that is not in a version: choose another output, or remove --versions"
    return ""


def find_fault(output: str, marker: Marker) -> str:
    """What is wrong with the files that a marker lists, in a few words; the empty string if nothing is.

    Shards are compared by size, and other files by SHA-256, unless people may edit them.
    """
    expected: dict[str, int | str | None] = {shard.name: shard.bytes for shard in marker.shards}
    expected |= {shard.sidecar: shard.sidecar_sha256 or None for shard in marker.shards}
    digests = marker.run.digests or {}
    expected |= {name: None if name in FOR_PEOPLE else digests.get(name) for name in marker.files}

    def check(name: str) -> str:
        path, wanted = storage.join(output, name), expected[name]
        try:
            if isinstance(wanted, str):
                return f"holds {name} with another sha256" if digest_of(path) != wanted else ""
        except FileNotFoundError:
            return f"lacks {name}"
        if (size := storage.size_of(path)) is None:
            return f"lacks {name}"
        return f"holds {name} with {size:,} bytes instead of {wanted:,}" if wanted not in (None, size) else ""

    return next(filter(None, map_each(check, expected)), "")


def decide_action(state: OutputState, plan_id: str, recipe: dict[str, Any], overwrite: bool) -> tuple[Action, str]:
    """What a run may do, and the sentence that says why where it is not `convert`.

    A dataset of the same plan is kept. One of another plan is refused with the differences, unless it is to be
    overwritten. Where a run of another plan is at work everything is refused. What such a run has left does not
    matter; a dataset whose publishing was interrupted is published before, so that it is one of another plan.
    """
    output = state.output
    if state.busy:
        return "refuse", state.busy
    if state.cut:
        if overwrite:
            return "convert", ""
        return "refuse", (
            f"{output} holds {state.cut[0].name}, a complete dataset of another configuration or input whose "
            "publishing was cut: a run puts it in place first; choose another output, or replace it with --overwrite"
        )
    if state.pending:
        return "finish", "an earlier run was interrupted while publishing: its dataset is now in place"
    if (marker := state.marker) is None or (overwrite and marker.plan.id != plan_id):
        return decide_to_convert(state)
    if marker.plan.id != plan_id:
        changed = differences(marker.plan.recipe, recipe)
        changed = [each for each in changed if not each.startswith(_DERIVED)] or changed
        advice = "choose another output, or replace it with --overwrite"
        return "refuse", f"{output} holds another dataset ({', '.join(changed)}): {advice}"
    fault = find_fault(output, marker)
    unread = {reason: count for reason, count in marker.ledger.rejected.items() if reason in MAY_HEAL}
    if overwrite and (fault or unread):
        return decide_to_convert(state)
    if fault:
        return "refuse", f"{output} {fault}, against its {MARKER}: run again with --overwrite to rebuild it"
    if unread:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in unread.items())
        missing = f"without the files that could not be read then ({reasons}): --overwrite tries them again"
        return "keep", f"{output} already holds this dataset, {missing}"
    return "keep", f"{output} already holds this dataset: nothing to do"


def make_room(state: OutputState) -> list[str]:
    """Deletes what runs of other plans have left and no run will resume from; a note on each, and on what stays.

    Raises:
        OSError: it cannot be deleted.
    """
    notes = []
    for each in state.leftovers:
        if each.worthless:
            storage.remove_folder(storage.join(state.output, each.name))
            notes.append(f"deleted {each.name}, which another run had left: {each.worthless}")
        else:
            shards = format_count(each.shards, "finished shard")
            what = f"{state.output}/{each.name} stays, with {shards} of another configuration or input"
            notes.append(f"{what}: the command that started it resumes from there, --discard deletes it")
    return notes


def decide_to_convert(state: OutputState) -> tuple[Action, str]:
    """`convert`, unless the output holds a file that publishing might replace, or that readers would mix in."""
    if state.marker is None and any(map(split_version, state.names)):
        return "refuse", f"{state.output} has versions: add --versions, or choose another output"
    if state.marker is None and MARKER in state.names:
        return "refuse", f"{state.output}/{MARKER} cannot be read: choose another output, or delete that folder"
    if not (names := _find_strangers(state)):
        return "convert", ""
    what = f"{names[0]}, which belongs to no finished dataset"
    return "refuse", f"{state.output} holds {what}: move it away, or choose another output"


def _find_strangers(state: OutputState) -> list[str]:
    """The names that this plan's shards may get and the dataset there does not have; without one, any dataset's too.

    How many shards and records there will be is not known yet, so that each number stands for all of them.
    """
    shards = "|".join(re.sub(r"(\\ )*\d+", r" *[\\da-fA-F,_]+", re.escape(name)) for name in state.file_names)
    fitting = {name for name in state.names if re.fullmatch(shards, name) or name in COMPANIONS}
    if state.marker is not None:
        return sorted(fitting - {*RESERVED, *state.marker.files, *(shard.name for shard in state.marker.shards)})
    ours = RESERVED | fitting
    return [name for name in state.names if looks_like_shard(name) or name.endswith("labels.txt") or name in ours]
