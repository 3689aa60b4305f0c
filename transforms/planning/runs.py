"""Runs: where and how one works, and which are at work in an output folder.

Each run keeps a claim in its plan's staging folder while it is at work.
"""

import errno
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

import orjson

from recordmill import storage
from recordmill.schemas.corrections import Corrections
from recordmill.schemas.dataset.file_names import (
    CLAIM_PREFIX,
    OUTCOME,
    REPORT,
    STAGING_PREFIX,
    UNPUBLISHED,
    staging_names,
)
from recordmill.schemas.pages import find_page
from recordmill.schemas.rejection import Exclusions
from recordmill.storage.dataset_files import (
    read_object,
    split_version,
    staging_folder,
    work_folders,
)
from recordmill.storage.written_files import take_back
from recordmill.transforms.inputs.other_classes import OtherClasses
from recordmill.transforms.planning.progress import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Where and how a run works.

    Only `exclusions` and `corrections` change any byte of the dataset.

    Attributes:
        run_id: identifies the run.
        output: the output folder; with versions, datasets have folders of their own below it.
        outcome_file: where the job writes how it ended; None: nowhere.
        inputs: folders by input name (empty for the only input, without a name); empty if they are
            known only when the run begins.
        reuses: whether images of earlier datasets may be stored again.
        exclusions: the contents of the file in `exclude`; the plan id includes its digest.
        corrections: the contents of the file in `corrections`, in the same way.
        versions: whether the dataset has a folder of its own below the output.
        overwrite: whether another dataset in the output may be replaced.
        update: whether this run updates the dataset in the output, so that work which an earlier
            run has left there for another input is deleted.
        preview: whether only to plan.
        is_recognized: whether the input's files decided the settings. A file that may carry labels
            and that no source claims stops such a run, and so do second images.
        other_classes: folders that may be classes, if a table of images was recognized.
        command: the arguments of the command that started the run, for advice; empty if it was
            Python code.
        left_by_user: reasons for ignoring files that the user's own settings give, not the
            recognized ones.
        names_convention: whether the user or the layout names a convention: only then may it be one
            without a place for annotations.
        writer: what writes the files: `recordmill`, or Beam's `WriteToTFRecord` (`beam`).
        threads: images decoded at once in one process; 0 for one per processor.
        processes: the number of processes that convert images, including this one.
        fewest_for_processes: with fewer references, this process converts all of them.
        gives_processes: whether `processes` is the user's number.
        notes: messages for the user from before the job.
        facts: other values for the marker's `run` part: runner, versions, start.
        remedies_page: the page on rejected images, on the machine that started the run.
        progress: how far the run is, if this process does the work.
    """

    run_id: str
    output: str
    outcome_file: str | None
    inputs: Mapping[str, str] = field(default_factory=dict)
    reuses: bool = False
    exclusions: Exclusions = field(default_factory=Exclusions)
    corrections: Corrections = field(default_factory=Corrections)
    versions: bool = False
    overwrite: bool = False
    update: bool = False
    preview: bool = False
    is_recognized: bool = False
    other_classes: OtherClasses | None = None
    command: tuple[str, ...] = ()
    left_by_user: frozenset[str] = frozenset()
    names_convention: bool = True
    writer: Literal["recordmill", "beam"] = "recordmill"
    threads: int = 0
    processes: int = 1
    fewest_for_processes: int = 0
    gives_processes: bool = False
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    remedies_page: str = field(default_factory=partial(find_page, "fix_rejected.md"))
    progress: Progress = field(default_factory=Progress, compare=False, repr=False)

    def processes_for(self, shards: int) -> int:
        """Returns the number of processes that convert the images of a number of shards.

        A user's number is at most that of the shards: more would only take memory.
        """
        return min(self.processes, max(1, shards)) if self.gives_processes else self.processes


def claim_output(
    output: str, plan_id: str, run_id: str, shards: int = 0, references: int = 0
) -> None:
    """Writes a run's claim to its plan's staging folder.

    It also removes the outcome of the plan's last failed run.

    A run writes its claim before it looks for others: of two plans that start at once, at least one
    sees the other. The claim says how many shards and references there are, for commands that
    follow the run.

    Raises:
        OSError: the claim cannot be written.
    """
    if _is_linked_version(output):
        raise OSError(errno.EPERM, "it is a link to another folder", output)
    staging = staging_folder(output, plan_id)
    since, process = datetime.now(UTC).isoformat(timespec="seconds"), os.getpid()
    claim = {
        "plan": plan_id,
        "run": run_id,
        "host": socket.gethostname(),
        "process": process,
        "since": since,
    }
    content = orjson.dumps(
        {**claim, "shards": shards, "references": references, "born": _start_time_of(process)}
    )
    for tries_left in reversed(range(10)):
        try:
            storage.make_folder(staging)
            storage.write_file(_claim_path(staging, run_id), content)
            break
        except FileNotFoundError:
            # A run of the same plan has just published, and deletes the folder.
            if not tries_left:
                raise
    # What an earlier run has left for people who look at its failure.
    storage.remove_files(storage.join(staging, name) for name in (OUTCOME, UNPUBLISHED, REPORT))


def _is_linked_version(folder: str) -> bool:
    """Returns whether a version was moved elsewhere, and is now a link.

    It can be read, and stays as it is.

    An output may be a link.
    """
    name = os.path.basename(folder.rstrip("/"))
    return split_version(name) is not None and storage.is_link(folder.rstrip("/"))


def release_claim(output: str, plan_id: str, run_id: str) -> None:
    """Deletes a run's claim, and the staging folder if nothing else is in it.

    Raises:
        OSError: it cannot be deleted.
    """
    if _is_linked_version(output):
        return
    staging = staging_folder(output, plan_id)
    storage.remove_files([_claim_path(staging, run_id)])
    if not storage.folder_names(staging):
        storage.remove_folder(staging)


def release_claims(output: str, run_id: str) -> None:
    """Deletes a run's claims, whatever its plan, after it has ended without its last step.

    The files of `--writer=beam`, in a folder named after the run, are deleted, too, and so is what
    it had begun to put in place: no run resumes them.
    """
    # The run has failed already, and claims of processes that are gone do not count.
    with suppress(OSError):
        take_back(staging_folder(output, run_id), output)
        storage.remove_folder(staging_folder(output, run_id))
        for folder in work_folders(output):
            for name in staging_names(storage.folder_names(folder)):
                release_claim(folder, name.removeprefix(STAGING_PREFIX), run_id)


def remove_staging(output: str, plan_id: str, run_id: str) -> None:
    """Deletes a run's claim and the staging folder.

    The folder stays if another run on this machine is at work there.

    Of two runs that end at once, at least one finds no other and deletes the folder.

    Raises:
        OSError: it cannot be deleted.
    """
    if _is_linked_version(output):
        return
    staging = staging_folder(output, plan_id)
    storage.remove_files([_claim_path(staging, run_id)])
    if not any(map(_is_at_work, _read_claims(staging))):
        storage.remove_folder(staging)


def find_busy(output: str, stagings: Iterable[str], elsewhere: bool = False) -> str | None:
    """Returns a sentence on a run at work in an output's staging folders; None if there is none.

    A run deletes its claim when it ends. For processes of this machine, it is also checked whether
    they still exist.

    Args:
        output: the folder.
        stagings: the names of staging folders in it.
        elsewhere: whether claims of other machines count; their processes cannot be checked.
    """
    for name in stagings:
        for claim in _read_claims(storage.join(output, name)):
            host = claim.get("host")
            if _is_at_work(claim) or (elsewhere and host not in (None, socket.gethostname())):
                who = f"{name}, process {claim.get('process')} on {host} since {claim.get('since')}"
                advice = (
                    "wait for it, or choose another output; if that run has ended, use "
                    f"--discard or delete {name}"
                )
                return f"{output} is in use by another run ({who}): {advice}"
    return None


def _claim_path(staging: str, run_id: str) -> str:
    return storage.join(staging, f"{CLAIM_PREFIX}-{run_id}.json")


def _read_claims(staging: str) -> Iterator[dict[str, Any]]:
    """Returns the claims in a staging folder, except for unreadable ones."""
    names = (name for name in storage.folder_names(staging) if name.startswith(CLAIM_PREFIX))
    return filter(None, (read_object(storage.join(staging, name)) for name in names))


def _is_at_work(claim: dict[str, Any]) -> bool:
    """Returns whether the process of a claim is still running on this machine."""
    process = claim.get("process")
    if claim.get("host") != socket.gethostname() or not isinstance(process, int):
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):  # no process has such a number
        return False
    except PermissionError:  # another user's
        pass
    started, claimed = _start_time_of(process), claim.get("born")
    # Otherwise another process has the number now.
    return not (started and claimed) or started == claimed


def _start_time_of(process: int) -> str | None:
    """Returns when a process started, in ticks of this machine's clock.

    Returns None if the system does not say.
    """
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            # proc(5): the name, in brackets, may hold anything.
            return file.read().rpartition(")")[2].split()[19]
    except OSError:
        return None
