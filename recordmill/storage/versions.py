"""Versions: complete datasets in folders of their own below an output, and the pointer to the current one."""

import re

import orjson

from recordmill import storage
from recordmill.schemas.dataset.file_names import MARKER
from recordmill.schemas.dataset.json_values import MisfitError, as_json, from_json, to_json
from recordmill.schemas.dataset.marker import MARKER_FORMAT, Pointer
from recordmill.storage.many_files import force_to_disk

_NAME = re.compile(r"([0-9a-f]{16})(?:-([1-9][0-9]{0,8}))?")
_MOST_BYTES = 1_000
"""Size of the largest pointer; markers are larger."""


def version_name(plan_id: str, number: int) -> str:
    """The name of the folder of a plan's first, second, ... version: the plan's id, with a number from 2."""
    return plan_id if number == 1 else f"{plan_id}-{number}"


def split_version(name: str) -> tuple[str, int] | None:
    """Plan and number of the version whose folder has this name; None for other names."""
    found = _NAME.fullmatch(name)
    return (found[1], int(found[2] or 1)) if found else None


def version_names(output: str) -> list[str]:
    """The names of the folders of an output's versions, complete or not; those of a plan in the order of their numbers.

    Raises:
        OSError: the output cannot be listed.
    """
    return [version_name(*each) for each in sorted(filter(None, map(split_version, storage.folder_names(output))))]


def work_folders(output: str) -> list[str]:
    """The folders in which runs work: the output itself, and those of its versions.

    Raises:
        OSError: the output cannot be listed.
    """
    return [output, *(storage.join(output, name) for name in version_names(output))]


def find_pointer(output: str) -> Pointer | None:
    """The pointer of a folder with versions; None if there is none.

    Raises:
        OSError: it cannot be read.
    """
    try:
        content = storage.read_range(storage.join(output, MARKER), 0, _MOST_BYTES)
        pointer = from_json(Pointer, orjson.loads(content))
    except (FileNotFoundError, NotADirectoryError, MisfitError, orjson.JSONDecodeError):
        return None
    return pointer if pointer.format == MARKER_FORMAT and split_version(pointer.current) else None


def current_folder(folder: str) -> str:
    """The folder of the dataset that a user names: that of the current version if there are versions.

    Raises:
        OSError: the pointer cannot be read.
    """
    pointer = find_pointer(folder)
    return storage.join(folder, pointer.current) if pointer else folder


def point_to(output: str, name: str) -> bool:
    """Makes a complete version the current one, in one step; returns False if it is already.

    Raises:
        OSError: the pointer cannot be written.
    """
    old = find_pointer(output)
    if old and old.current == name:
        return False
    pointer = Pointer(current=name, previous=old.current if old else None)
    # Written in the version's folder, so that an interruption leaves no stray temporary file in the output.
    temporary = storage.join(output, name, f".{MARKER}.tmp")
    storage.write_file(storage.join(output, MARKER), as_json(to_json(pointer)), temporary)
    force_to_disk([output])
    return True
