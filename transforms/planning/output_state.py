"""Who is at work in an output folder, and what is wrong with its files.

Each run leaves a claim in its plan's staging folder while it is at work, and takes it back.
"""

import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import orjson

from recordmill import storage
from recordmill.schemas.dataset.file_names import CLAIM_PREFIX, FOR_PEOPLE, OUTCOME, STAGING_PREFIX, staging_names
from recordmill.schemas.dataset.marker import Marker
from recordmill.storage.dataset_files import staging_folder
from recordmill.storage.many_files import digest_of, map_each
from recordmill.storage.versions import work_folders

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
    return filter(None, (read_object(storage.join(staging, name)) for name in names))


def read_object(path: str) -> dict[str, Any]:
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
