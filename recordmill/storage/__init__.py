"""Access to files on this machine, on object stores, and on Beam's other file systems.

Renames are not assumed to be atomic, and stores need not have folders: callers order their writes
so that a later run understands the state after any of them. Only this module knows the differences
between stores.
"""

import errno
import hashlib
import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from recordmill.storage.regular_files import NotAFileError as NotAFileError
from recordmill.storage.regular_files import open_regular
from recordmill.storage.stores.store import in_parallel
from recordmill.storage.stores.store import open_object as open_object

if TYPE_CHECKING:
    from apache_beam.io.filesystem import FileMetadata

    from recordmill.storage.stores.store import Store

R = TypeVar("R")

_TRIES_TO_REMOVE = 5

MOST_LINE_BYTES = 2**26
"""The length of the longest line of a dataset's files of lines."""

_CANNOT_FORCE = frozenset({errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EROFS})
"""Error codes of file systems on which nothing needs to be forced."""

_BUFFER_BYTES = 32 * 2**10  # thumbnails are written ten at a time, and photographs are not copied

_URL = re.compile(r"[a-zA-Z][-a-zA-Z0-9+.]*://.*")  # as Beam's FileSystems.get_scheme


def _find_store(path: str) -> "Store":
    """Returns the store of a URL.

    It is imported when first used: Beam takes seconds, and local files do not need it.
    """
    from recordmill.storage.stores.find_store import find_store

    return find_store(path)


def is_local(path: str) -> bool:
    """Returns whether a path is a local path, not a URL."""
    # The first test takes a quarter of the time.
    return "://" not in path or _URL.match(path) is None


def join(folder: str, *names: str) -> str:
    """Returns the path of a file below a folder."""
    if is_local(folder):
        return os.path.join(folder, *names)
    return "/".join((folder.rstrip("/"), *names))


def read_range(uri: str, offset: int = 0, length: int = -1) -> bytes:
    """Reads `length` bytes from `offset`; -1 reads to the end.

    Local files are read by system calls; Beam's `open` takes four times as long (43 instead of 10
    us for 100 KB).

    Raises:
        FileNotFoundError: the file does not exist, on any store.
        PermissionError: it may not be read.
        NotAFileError: it is a pipe, a device or a socket.
        OSError: it cannot be read (Beam's errors are OSErrors too); stores may raise other errors.
    """
    if not is_local(uri):
        return _find_store(uri).read(uri, offset, length)
    file = open_regular(uri)
    try:
        return read_open(file, offset, length)
    finally:
        os.close(file)


def read_whole(path: str, most: int) -> bytes:
    """Reads a whole file of at most `most` bytes; the size of objects is not checked.

    Raises:
        NotAFileError: it is larger, or it is a pipe, a device or a socket.
        OSError: as for `read_range`.
    """
    if not is_local(path):
        return read_range(path)
    file = open_regular(path)
    try:
        if (size := os.fstat(file).st_size) > most:
            raise NotAFileError(
                errno.EFBIG, f"it has {size:,} bytes, and {most:,} are the most", path
            )
        return read_open(file, 0, most)
    finally:
        os.close(file)


def read_lines(path: str) -> Iterator[bytes]:
    """Yields the lines of a file, each with its line break.

    Raises:
        NotAFileError: a line is too long, or it is a pipe, a device or a socket.
        OSError: as for `open_to_read`.
    """
    with open_to_read(path) as file:
        while line := file.readline(MOST_LINE_BYTES):
            if len(line) == MOST_LINE_BYTES:
                raise NotAFileError(
                    errno.EFBIG, f"a line of it has {MOST_LINE_BYTES:,} bytes or more", path
                )
            yield line


def read_open(file: int, offset: int, length: int) -> bytes:
    """Reads a range of an open local file, without moving its position; -1 reads to the end."""
    rest = max(os.fstat(file).st_size - offset, 0)
    length = rest if length < 0 else min(length, rest)
    data = os.pread(file, length, offset)
    while len(data) < length and (more := os.pread(file, length - len(data), offset + len(data))):
        data += more  # network file systems may return less
    return data


def open_to_read(path: str) -> BinaryIO:
    """Opens a file's stored bytes as a stream.

    Raises:
        FileNotFoundError: the file does not exist; a store raises this at the first read.
        PermissionError: it may not be read.
        NotAFileError: it is a pipe, a device or a socket.
        OSError: it cannot be opened.
    """
    if is_local(path):
        return open(path, "rb", opener=lambda name, _: open_regular(name))
    return open_object(_find_store(path), path)


def open_to_write(path: str) -> BinaryIO:
    """Opens a file for writing as a stream, and makes its folder.

    On object stores, the file exists only once it is closed.
    """
    if not is_local(path):
        return _find_store(path).open_to_write(path)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    return open(path, "wb", _BUFFER_BYTES)


def exists(path: str) -> bool:
    """Returns whether a file exists; on this machine, also whether a folder does."""
    if is_local(path):
        return os.path.exists(path)
    return _find_store(path).describe(path) is not None


def make_folder(path: str) -> None:
    """Makes a folder and its parents if they are missing; does nothing on stores."""
    if is_local(path):
        os.makedirs(path, exist_ok=True)


def write_file(path: str, content: bytes | Iterable[bytes], temporary: str = "") -> None:
    """Writes a whole file, replacing any other.

    It is written under a temporary name first if it could be seen half written. After a power cut
    there is either the complete file or the earlier one.

    Args:
        path: the file.
        content: its content.
        temporary: the temporary path, if writing again after an interruption should replace it; by
            default, one that no other writer uses.
    """
    if not is_local(path) and (store := _find_store(path)).is_atomic:
        store.write(path, content)
        return
    if temporary and is_local(temporary) and _is_special(temporary):
        os.unlink(temporary)  # a link would be written through, and a pipe would block
    temporary = temporary or temporary_name(path)
    with open_to_write(temporary) as file:
        file.writelines((content,) if isinstance(content, bytes) else content)
    force_to_disk([temporary])
    move_file(temporary, path)


def temporary_name(path: str) -> str:
    """Returns a name in the same folder that no other writer uses.

    Hidden from readers that glob.
    """
    folder, name = os.path.split(os.path.abspath(path) if is_local(path) else path)
    return join(folder, f".{name}.{uuid.uuid4().hex[:12]}.tmp")


def move_file(source: str, target: str) -> None:
    """Renames a file, replacing any other.

    It is idempotent: on a store that copies and then deletes, an interruption leaves both files,
    and a missing source counts as moved if the target exists.

    Raises:
        FileNotFoundError: neither of them exists.
        OSError: the file cannot be renamed.
    """
    try:
        if is_local(source):
            os.replace(source, target)
        else:
            _find_store(source).move(source, target)
    except OSError as error:
        if exists(source):
            raise
        if not exists(target):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source) from error


def remove_files(paths: Iterable[str]) -> None:
    """Deletes files, if they exist; all must be on one store."""
    ordered = list(paths)
    if ordered and not is_local(ordered[0]):
        _find_store(ordered[0]).delete(ordered)
        return
    for path in ordered:
        with suppress(FileNotFoundError):
            os.unlink(path)


def is_link(path: str) -> bool:
    """Returns whether a path of this machine is a symbolic link, to whatever."""
    return is_local(path) and os.path.islink(path)


def _is_special(path: str) -> bool:
    """Returns whether there is something else than a file or a folder under this very name."""
    with suppress(OSError):
        mode = os.lstat(path).st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return False


def remove_folder(path: str) -> None:
    """Deletes a folder and everything below it, if it exists; of a link, only the link.

    Files that are added meanwhile are deleted, too, unless more keep coming.
    """
    if not is_local(path):
        remove_files([file.path for file in list_below(path)])
        return
    if is_link(path):
        remove_files([path])
        return
    for _ in range(_TRIES_TO_REMOVE):
        if not os.path.isdir(path):
            return
        shutil.rmtree(path, onerror=_tolerate_others)


def _tolerate_others(_: object, path: str, failure: tuple[Any, BaseException, Any]) -> None:
    """Ignores errors because another run of the same plan deletes the folder or writes into it."""
    error = failure[1]
    if not isinstance(error, OSError) or error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
        raise error


def list_below(folder: str, start: str = "") -> "Iterator[FileMetadata]":
    """Yields every file below a folder of a store or another Beam file system, at any depth.

    The listing of a store without folders is read page by page. Paths below the folder that come
    before `start` may be left out.

    Raises:
        OSError: the listing failed.
    """
    prefix = folder.rstrip("/") + "/"
    yield from _find_store(prefix).list_below(prefix, start)


def starts_anywhere(folder: str) -> bool:
    """Returns whether `list_below` leaves out the paths before its `start`."""
    return _find_store(folder).starts_anywhere


def size_of(path: str) -> int | None:
    """Returns the size of one file in bytes; None if there is no such file."""
    if is_local(path):
        if os.path.isfile(path):
            return os.path.getsize(path)
        return None
    file = describe(path)
    if file is None:
        return None
    return int(file.size_in_bytes)


def describe(path: str) -> "FileMetadata | None":
    """Returns size and time of one file; None if there is no such file (a folder is not one)."""
    return _find_store(path).describe(path)


def folder_names(folder: str) -> list[str]:
    """Returns the names of the files and folders directly in a folder, sorted.

    There are none if the folder does not exist.
    """
    return sorted({name.rstrip("/") for name in folder_entries(folder)})


def folder_entries(folder: str, most: int | None = None, start: str = "") -> list[str]:
    """Returns the names directly in a folder, with a trailing slash for folders.

    There are none if the folder does not exist.

    Args:
        folder: on any file system.
        most: the maximum number of names listed in a store's folder, None for all; on this machine
            all are listed.
        start: a prefix of the names.

    Raises:
        OSError: the folder may not be listed, or its store does not answer.
    """
    if not is_local(folder):
        prefix = folder.rstrip("/") + "/" + start
        with suppress(FileNotFoundError):  # no such bucket
            return sorted(
                {start + name for name in islice(_find_store(prefix).names(prefix), most)} - {""}
            )
    if not os.path.isdir(folder):
        return []
    with os.scandir(folder) as entries:
        names = (f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries)
        return sorted(name for name in names if name.startswith(start))


def move_files(pairs: Iterable[tuple[str, str]]) -> None:
    """Renames files as `move_file` does; stops at an error."""
    targets = dict(pairs)
    map_each(lambda source: move_file(source, targets[source]), targets)


def keep_file(path: str, sha256: str, target: str) -> bool:
    """Hard-links (or, on a store, copies) a file whose digest matches.

    On this machine, the second name is a hard link, and a file of that name is replaced in one
    step, or stays. On a store, it is the store's copy, and there is none if this fails. The digest
    is computed under the new name, since the original may change meanwhile.

    Returns:
        False if the file is missing or damaged, or if the file system or store does not support
        links or copies.
    """
    is_here = is_local(target)
    other = temporary_name(target) if is_here else target
    try:
        if is_here:
            os.link(path, other)
        else:
            _find_store(target).copy(path, other)
        is_whole = hash_file(other) == sha256
        if is_whole and is_here:
            os.replace(other, target)
    except OSError:
        is_whole = False
    if is_here or not is_whole:
        remove_files([other])  # `os.replace` keeps it if both are links to one file already
    return is_whole


def force_to_disk(paths: Iterable[str]) -> None:
    """Waits until files, and the names in folders, are on this machine's disk.

    Object stores need no such call. A renamed file survives a power cut if it was forced before it
    was renamed, and its folder after that (fsync(2)).

    Raises:
        OSError: one does not exist, or could not be written: only now do some full or broken disks
            report an error.
    """
    for path in filter(is_local, paths):
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        except OSError as error:
            if error.errno not in _CANNOT_FORCE:
                raise
        finally:
            os.close(file)


def check_targets(paths: Iterable[str]) -> None:
    """Checks that files can be renamed to these paths.

    Paths on stores are not checked: stores have no folders.

    Raises:
        OSError: the path is a folder, its parent folder is missing or cannot be written, or the
            name is too long.
    """
    folders = set()
    for path in filter(is_local, paths):
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(os.lstat(path).st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        folders.add(os.path.dirname(path) or ".")
    for folder in sorted(folders):
        if not os.path.isdir(folder):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)


def hash_file(path: str) -> str:
    """Returns the SHA-256 of a file in hex; it is read piece by piece.

    Raises:
        OSError: it does not exist, or cannot be read.
    """
    with open_to_read(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # it can `readinto`


def map_each(function: Callable[[str], R], paths: Iterable[str]) -> list[R]:
    """Calls a function for each path: one by one on this machine, concurrently on a store."""
    ordered = list(paths)
    if all(map(is_local, ordered)):
        return list(map(function, ordered))
    return in_parallel(function, ordered)


_NAME_ERRORS = frozenset({errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG})
_USER_ERRORS = _NAME_ERRORS | {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOENT,
}


def explain_output_error(error: OSError, output: str) -> str:
    """Says in one sentence why an output cannot be written.

    Raises:
        OSError: the error itself, if it is an outage or a bug: the runner may try again.
    """
    if error.errno not in _USER_ERRORS and not is_local(output):
        raise error
    return describe_output_error(error, output)


def describe_output_error(error: OSError, output: str) -> str:
    """Says in one sentence why an output cannot be written, whatever the error."""
    if error.errno in _NAME_ERRORS:
        name = error.filename2 or error.filename
    else:
        name = None
    where = f" ({name})" if name else ""
    why = " ".join((error.strerror or str(error)).split()).lower()
    return f"the output {output} cannot be written: {why}{where}"
