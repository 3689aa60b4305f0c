"""Operations on many files: one by one on this machine, concurrently on stores that are reached over a network."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

from recordmill import storage
from recordmill.storage.stores import local_file
from recordmill.storage.stores.store import in_parallel

R = TypeVar("R")


def move_files(pairs: Iterable[tuple[str, str]]) -> None:
    """Renames files as `storage.move_file` does; stops at an error."""
    targets = dict(pairs)
    map_each(lambda source: storage.move_file(source, targets[source]), targets)


def link_file(path: str, sha256: str, target: str) -> bool:
    """Replaces a file of this machine by a hard link to another file of this digest, in one step.

    Returns:
        Whether it did: the other file may be missing or damaged, or the file system may have no links to it.
    """
    temporary = storage.temporary_name(target)
    try:
        os.link(path, temporary)
        if is_whole := digest_of(temporary) == sha256:
            os.replace(temporary, target)
    except OSError:
        is_whole = False
    storage.remove_files([temporary])  # which is still there if both were links to one file already
    return is_whole


def force_to_disk(paths: Iterable[str]) -> None:
    """Waits until files, and the names in folders, are on this machine's disk; object stores need no such call.

    Raises:
        OSError: one of them does not exist, or could not be written.
    """
    for path in filter(storage.is_local, paths):
        local_file.force_to_disk(path)


def check_targets(paths: Iterable[str]) -> None:
    """Makes sure that files can be renamed to these paths; stores, which have no folders, are not asked.

    Raises:
        OSError: the path is a folder, its parent folder is missing or cannot be written, or the name is too long.
    """
    folders = set()
    for path in filter(storage.is_local, paths):
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(os.lstat(path).st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        folders.add(os.path.dirname(path) or ".")
    for folder in sorted(folders):
        if not os.path.isdir(folder):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)


def digest_of(path: str) -> str:
    """The SHA-256 of a file in hex; it is read piece by piece.

    Raises:
        OSError: it does not exist, or cannot be read.
    """
    with storage.open_to_read(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # it can `readinto`


def map_each(function: Callable[[str], R], paths: Iterable[str]) -> list[R]:
    """Calls a function for each path: one by one for files on this machine, concurrently on a store."""
    ordered = list(paths)
    if all(map(storage.is_local, ordered)):
        return list(map(function, ordered))
    return in_parallel(function, ordered)
