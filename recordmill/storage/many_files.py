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


def keep_file(path: str, sha256: str, target: str) -> bool:
    """Adds a second name for a file with this digest: a hard link on this machine, elsewhere the store's copy.

    On this machine, a file of that name is replaced in one step, or stays. On a store, there is none if this fails. The
    digest is computed under the new name, since the original may change meanwhile.

    Returns:
        False if the file is missing or damaged, or if the file system or store does not support links or copies.
    """
    is_here = storage.is_local(target)
    other = storage.temporary_name(target) if is_here else target
    try:
        storage.link_or_copy(path, other)
        is_whole = digest_of(other) == sha256
        if is_whole and is_here:
            os.replace(other, target)
    except OSError:
        is_whole = False
    if is_here or not is_whole:
        storage.remove_files([other])  # `os.replace` keeps it if both are links to one file already
    return is_whole


def force_to_disk(paths: Iterable[str]) -> None:
    """Waits until files, and the names in folders, are on this machine's disk; object stores need no such call.

    Raises:
        OSError: one of them does not exist, or could not be written.
    """
    for path in filter(storage.is_local, paths):
        local_file.force_to_disk(path)


def check_targets(paths: Iterable[str]) -> None:
    """Checks that files can be renamed to these paths; stores, which have no folders, are not checked.

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
