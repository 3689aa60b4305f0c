"""Puts the files of `--writer=beam` into the output, all or none.

They have no marker that would say whether all of them are there. So a list in the staging folder
names them, with their digests, until all are in place. If a run is killed in between, the next run
takes back what the list names, and starts over. The list may come from someone else: only plain
names are used, and only files with these bytes are deleted.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import orjson

from recordmill import storage
from recordmill.schemas.dataset.json_values import MisfitError, from_json

MOVES = "moves.json"
"""The name of the list in the staging folder."""

_MAX_LIST_BYTES = 256 * 2**20

_FORBIDDEN = frozenset("/\\:\0")
"""Characters that no name of a written file has: they could lead out of the output."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that Beam wrote.

    Attributes:
        source: its name in the staging folder.
        target: its name in the output.
        bytes: its size.
        sha256: its SHA-256, in hex.
    """

    source: str
    target: str
    bytes: int
    sha256: str


def publish_written(files: Sequence[WrittenFile], staging: str, output: str) -> None:
    """Moves files from staging into the output; takes all back if one cannot be moved.

    It may be repeated after an interruption.

    Raises:
        OSError: a file cannot be moved.
    """
    listed = storage.join(staging, MOVES)
    storage.write_file(listed, orjson.dumps([asdict(each) for each in files]))
    storage.force_to_disk([staging])
    moves = {
        storage.join(staging, each.source): storage.join(output, each.target) for each in files
    }
    try:
        storage.move_files(moves.items())
        storage.force_to_disk([output])
        storage.remove_files([listed])
    except OSError:
        storage.remove_files(moves.values())
        raise


def find_moved(staging: str, output: str) -> tuple[str, ...]:
    """Finds files in the output that an interrupted run has moved there from staging.

    Files with other bytes are not among them.
    """
    return tuple(
        each.target
        for each in _read_list(staging)
        if _has_bytes_of(each, storage.join(output, each.target))
    )


def take_back(staging: str, output: str) -> int:
    """Deletes the files that an interrupted run has moved into the output; returns their number.

    Raises:
        OSError: one cannot be read or deleted.
    """
    names = find_moved(staging, output)
    storage.remove_files(storage.join(output, name) for name in names)
    return len(names)


def _read_list(staging: str) -> Iterator[WrittenFile]:
    """Yields the entries of the list, without those whose names could lead out of the output."""
    path = storage.join(staging, MOVES)
    if not 0 < (storage.size_of(path) or 0) <= _MAX_LIST_BYTES:
        return
    try:
        listed = orjson.loads(storage.read_range(path))
        files = [from_json(WrittenFile, each) for each in listed]
    except (FileNotFoundError, orjson.JSONDecodeError, MisfitError, TypeError):
        return
    for each in files:
        if not (_FORBIDDEN & {*each.target} or each.target.startswith(".") or each.target == ""):
            yield each


def _has_bytes_of(file: WrittenFile, path: str) -> bool:
    is_link = storage.is_local(path) and os.path.islink(path)
    try:
        return (
            not is_link
            and storage.size_of(path) == file.bytes
            and storage.hash_file(path) == file.sha256
        )
    except FileNotFoundError:
        return False
