"""Who is at work in an output folder: each run leaves a claim in its plan's staging folder."""

import os
import socket
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import orjson

from recordmill.transforms.converting.shard_files import STAGING_PREFIX, staging_folder
from recordmill.transforms.files import storage

CLAIM = "claim.json"


def staging_names(names: list[str]) -> list[str]:
    """Those of an output folder's names that are staging folders."""
    return [name for name in names if name.startswith(STAGING_PREFIX)]


def other_stagings(names: list[str], plan_id: str) -> list[str]:
    """Those of an output folder's names that are the staging folders of other plans."""
    return [name for name in staging_names(names) if name != f"{STAGING_PREFIX}{plan_id}"]


def claim_output(output: str, plan_id: str, run_id: str) -> str:
    """Takes an output folder for a plan; the sentence that refuses it, where another plan is found to have done so.

    Each run first leaves its claim and then looks: of two plans that start at once at least one sees the other.
    """
    staging = staging_folder(output, plan_id)
    path = storage.join(staging, CLAIM)
    known = storage.exists(staging) or storage.exists(path)
    storage.make_folder(staging)
    since = datetime.now(UTC).isoformat(timespec="seconds")
    claim = {"plan": plan_id, "run": run_id, "host": socket.gethostname(), "process": os.getpid(), "since": since}
    storage.write_file(path, orjson.dumps(claim))
    others = other_stagings(storage.folder_names(output), plan_id)
    if others and not known:
        storage.remove_folder(staging)
    if not others:
        return ""
    return find_busy(output, others) or (
        f"{output} is being written by another run ({others[0]}): wait for it, or choose another output"
    )


def find_busy(output: str, stagings: Iterable[str]) -> str:
    """The sentence that tells of a run at work in one of an output's staging folders; empty where none is known to be.

    Only of this machine's processes can it be known. A number that meanwhile is another program's counts as at work:
    the sentence says what to do then.
    """
    for name in stagings:
        claim = _read_claim(storage.join(storage.join(output, name), CLAIM))
        process = claim.get("process")
        if claim.get("host") == socket.gethostname() and isinstance(process, int) and _is_there(process):
            return (
                f"{output} is being written by another run ({name}, process {process} since {claim.get('since')}): "
                f"wait for it, or choose another output (if that process is no run of Recordmill, delete {name})"
            )
    return ""


def _read_claim(path: str) -> dict[str, Any]:
    """A claim; empty where there is none, or none that can be read."""
    try:
        claim: Any = orjson.loads(storage.read_range(path))
    except (FileNotFoundError, orjson.JSONDecodeError):
        return {}
    return claim if isinstance(claim, dict) else {}


def _is_there(process: int) -> bool:
    """Whether a process of this machine, and not this one, is there."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True
