"""Files, wherever Beam's file systems find them: read a range, write by temporary name and rename, list, remove.

No rename is assumed atomic and no store is assumed to have folders: callers order their writes so that every prefix
of them is a state that a later run understands.
"""

import errno
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from apache_beam.io.filesystem import FileMetadata
    from apache_beam.io.filesystems import FileSystems

_PLAIN = "uncompressed"  # CompressionTypes.UNCOMPRESSED; by default Beam unpacks by extension
_URL = re.compile(r"[a-zA-Z][-a-zA-Z0-9+.]*://.*")  # as Beam's FileSystems.get_scheme

_HTTP_CODES = {404: FileNotFoundError, 403: PermissionError}


def _beam() -> "type[FileSystems]":
    """Beam's file systems, imported at their first use: that takes seconds, and local files are read without."""
    from apache_beam.io.filesystems import FileSystems

    return FileSystems


def is_local(path: str) -> bool:
    """Whether a path is one of this machine's file system, not a URL."""
    return _URL.match(path) is None


def join(folder: str, *names: str) -> str:
    """The path of a file below a folder."""
    return _beam().join(folder, *names)


def read_range(uri: str, offset: int = 0, length: int = -1) -> bytes:
    """Reads `length` bytes from `offset` on; -1 for all that follow.

    Raises:
        FileNotFoundError: the file is not there, on whatever store.
        PermissionError: it may not be read.
        OSError: it cannot be read (Beam's own errors are OSErrors too); stores may raise errors of their own.
    """
    if is_local(uri):
        return _read_local(uri, offset, length)
    with _systems_errors(uri), _beam().open(uri, compression_type=_PLAIN) as stream:
        if offset:
            stream.seek(offset)
        data: bytes = stream.read() if length < 0 else stream.read(length)
        return data


def _read_local(path: str, offset: int, length: int) -> bytes:
    """Reads by system calls; Beam's open costs four times as much (43 against 10 us for a 100 KB file)."""
    file = os.open(path, os.O_RDONLY)
    try:
        missing = max(os.fstat(file).st_size - offset, 0) if length < 0 else length
        pieces = [os.pread(file, missing, offset)]
        while pieces[-1] and (missing := missing - len(pieces[-1])):  # networks' file systems may give less
            offset += len(pieces[-1])
            pieces.append(os.pread(file, missing, offset))
    finally:
        os.close(file)
    return b"".join(filter(None, pieces))  # a single piece is not copied


def open_to_read(path: str) -> BinaryIO:
    """Opens a file's stored bytes as a stream.

    Raises:
        FileNotFoundError: the file is not there; some stores find out at the first read, with an error of their own.
        PermissionError: it may not be read.
        OSError: it cannot be opened.
    """
    with _systems_errors(path):
        stream: BinaryIO = _beam().open(path, compression_type=_PLAIN)
        return stream


@contextmanager
def _systems_errors(path: str) -> Iterator[None]:
    """Raises a store's own error for a missing or a forbidden object as the system's."""
    try:
        yield
    except Exception as error:  # Google's and Amazon's are no OSErrors, and their packages may not be installed
        details = getattr(error, "exception_details", None)  # of a BeamIOError, by path
        for cause in (error, error.__cause__, *(details.values() if isinstance(details, dict) else ())):
            kind = _system_error(cause)
            if kind is not None:
                code = errno.ENOENT if kind is FileNotFoundError else errno.EACCES
                raise OSError(code, os.strerror(code), path) from error
        raise


def _system_error(error: Any) -> type[OSError] | None:
    for kind in _HTTP_CODES.values():
        if isinstance(error, kind):
            return kind
    code = getattr(error, "code", None)
    return _HTTP_CODES.get(code) if isinstance(code, int) else None


def open_to_write(path: str) -> BinaryIO:
    """Opens a file to be written as a stream; it is there when closed, on some stores not before."""
    stream: BinaryIO = _beam().create(path, compression_type=_PLAIN)
    return stream


def exists(path: str) -> bool:
    """Whether there is such a file or folder."""
    return bool(_beam().exists(path))


def make_folder(path: str) -> None:
    """Makes a folder and its parents where they are missing; on stores without folders nothing."""
    if is_local(path):
        os.makedirs(path, exist_ok=True)


def write_file(path: str, content: bytes | Iterable[bytes]) -> None:
    """Writes a whole file, piece by piece, under a temporary name beside it, then renames it over whatever is there."""
    temporary = temporary_name(path)
    with open_to_write(temporary) as file:
        for piece in (content,) if isinstance(content, bytes) else content:
            file.write(piece)
    move_file(temporary, path)


def temporary_name(path: str) -> str:
    """A name beside `path` that no other writer uses; hidden from readers that glob."""
    folder, name = _beam().split(path)
    return join(folder, f".{name}.{uuid.uuid4().hex[:12]}.tmp")


def move_file(source: str, target: str) -> None:
    """Renames a file over whatever is there.

    Doing it twice is doing it once: where a store copies and then deletes, a cut in between leaves both files, and a
    source already gone counts as moved if the target is there.

    Raises:
        FileNotFoundError: neither of them is there.
        OSError: the file cannot be renamed.
    """
    try:
        _beam().rename([source], [target])
    except OSError as error:
        if exists(source):
            raise
        if not exists(target):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source) from error


def remove_files(paths: Iterable[str]) -> None:
    """Deletes those of the files that are there."""
    for path in paths:
        if is_local(path):  # Beam's delete takes `*` and `[` in a path for a pattern
            with suppress(FileNotFoundError):
                os.unlink(path)
        elif exists(path):
            _beam().delete([_escape(path)])


def remove_folder(path: str) -> None:
    """Deletes a folder and all below it, if it is there."""
    if is_local(path):
        if os.path.isdir(path):
            shutil.rmtree(path, onerror=_tolerate_missing)
        return
    remove_files([file.path for file in list_below(path)])


def _tolerate_missing(_: object, path: str, failure: tuple[Any, BaseException, Any]) -> None:
    """Another run of the same plan may be deleting the same folder."""
    if not isinstance(failure[1], FileNotFoundError):
        raise failure[1]


def list_below(folder: str) -> "Iterator[FileMetadata]":
    """Every file below a folder of an object store or another of Beam's file systems, at any depth.

    Where the store has no folders the listing is read page by page: Beam's public `match` would hold all of it.

    Raises:
        OSError: the listing failed.
    """
    prefix = folder.rstrip("/") + "/"
    filesystem = _beam().get_filesystem(prefix)
    if not filesystem.has_dirs():
        yield from filesystem._list(prefix)
        return
    found = filesystem.match([_like(prefix) + "**"])[0].metadata_list
    yield from (file for file in found if file.path.startswith(prefix))


def size_of(path: str) -> int | None:
    """Bytes of one file; None where there is no such file."""
    if is_local(path):
        return os.path.getsize(path) if os.path.isfile(path) else None
    file = describe(path)
    return None if file is None else int(file.size_in_bytes)


def describe(path: str) -> "FileMetadata | None":
    """Size and time of one file; None where there is no such file (a folder is none)."""
    files = _beam().match([_like(path)])[0].metadata_list
    return next((file for file in files if file.path == path), None)


def _like(path: str) -> str:
    """A pattern that a path matches, and few others do; Beam's own escape, `[[]`, makes Python warn."""
    return "".join("?" if letter in "*?[" else letter for letter in path)


def _escape(path: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


def folder_names(folder: str) -> list[str]:
    """The names directly in a folder, files and folders, sorted; none where the folder is not there."""
    if is_local(folder):
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    prefix = folder.rstrip("/") + "/"
    return sorted({file.path[len(prefix) :].partition("/")[0] for file in list_below(folder)})
