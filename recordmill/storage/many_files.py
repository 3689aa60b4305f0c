"""Operations on many files: one by one on this machine, concurrently on stores that are reached over a network."""

import errno
import hashlib
import os
import stat
from collections.abc import Iterable

from recordmill import storage
from recordmill.storage.stores import local_file

_PIECE_BYTES = 2**20


def move_files(pairs: Iterable[tuple[str, str]]) -> None:
    """Renames files as `storage.move_file` does; stops at an error."""
    ordered = list(pairs)
    if all(storage.is_local(source) for source, _ in ordered):
        for pair in ordered:
            storage.move_file(*pair)
        return
    from recordmill.storage.stores.store import in_parallel

    in_parallel(lambda pair: storage.move_file(*pair), ordered)


def force_to_disk(paths: Iterable[str]) -> None:
    """Waits until files, and the names in folders, are on this machine's disk; object stores need no such call.

    Raises:
        OSError: one of them does not exist, or could not be written.
    """
    for path in filter(storage.is_local, paths):
        local_file.force_to_disk(path)


def sizes_of(paths: Iterable[str]) -> list[int | None]:
    """The size of each file in bytes, in their order; None if there is no such file."""
    ordered = list(paths)
    if all(storage.is_local(path) for path in ordered):
        return [storage.size_of(path) for path in ordered]
    from recordmill.storage.stores.store import in_parallel

    return in_parallel(storage.size_of, ordered)


def check_targets(paths: Iterable[str]) -> None:
    """Makes sure that files can be renamed to these paths; stores, which have no folders, are not asked.

    Raises:
        OSError: the path is a folder, its parent folder is missing or cannot be written, or the name is too long.
    """
    folders = set()
    for path in filter(storage.is_local, paths):
        try:
            is_folder = stat.S_ISDIR(os.lstat(path).st_mode)
        except FileNotFoundError:
            is_folder = False
        if is_folder:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        folders.add(os.path.dirname(path) or ".")
    for folder in sorted(folders):
        if not os.path.isdir(folder):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)


def digests_of(paths: Iterable[str]) -> list[str]:
    """The SHA-256 of each file in hex, in their order; files are read piece by piece.

    Raises:
        OSError: one of them does not exist, or cannot be read.
    """
    ordered = list(paths)
    if all(storage.is_local(path) for path in ordered):
        return [_digest_of(path) for path in ordered]
    from recordmill.storage.stores.store import in_parallel

    return in_parallel(_digest_of, ordered)


def _digest_of(path: str) -> str:
    digest = hashlib.sha256()
    with storage.open_to_read(path) as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()
