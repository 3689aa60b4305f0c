"""Files, wherever Beam's file systems find them: read a range, write by temporary name and rename, list, remove.

No rename is assumed atomic and no store is assumed to have folders: callers order their writes so that every prefix
of them is a state that a later run understands.
"""

import errno
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileMetadata
from apache_beam.io.filesystems import FileSystems

_PLAIN = CompressionTypes.UNCOMPRESSED  # by default Beam unpacks by extension


def is_local(path: str) -> bool:
    """Whether a path is one of this machine's file system, not a URL."""
    return FileSystems.get_scheme(path) is None


def join(folder: str, *names: str) -> str:
    """The path of a file below a folder."""
    return FileSystems.join(folder, *names)


def read_range(uri: str, offset: int = 0, length: int = -1) -> bytes:
    """Reads `length` bytes from `offset` on; -1 for all that follow.

    Raises:
        OSError: the file is not there or cannot be read (Beam's own errors are OSErrors too).
    """
    if is_local(uri):  # Beam's open costs four times the system's (43 against 11 us for a 100 KB file)
        with open(uri, "rb", buffering=0) as file:
            if offset:
                file.seek(offset)
            return file.readall() if length < 0 else file.read(length) or b""
    with FileSystems.open(uri, compression_type=_PLAIN) as stream:
        if offset:
            stream.seek(offset)
        data: bytes = stream.read() if length < 0 else stream.read(length)
        return data


def open_to_read(path: str) -> BinaryIO:
    """Opens a file's stored bytes as a stream."""
    stream: BinaryIO = FileSystems.open(path, compression_type=_PLAIN)
    return stream


def open_to_write(path: str) -> BinaryIO:
    """Opens a file to be written as a stream; it is there when closed, on some stores not before."""
    stream: BinaryIO = FileSystems.create(path, compression_type=_PLAIN)
    return stream


def exists(path: str) -> bool:
    """Whether there is such a file or folder."""
    return bool(FileSystems.exists(path))


def make_folder(path: str) -> None:
    """Makes a folder and its parents where they are missing; on stores without folders nothing."""
    if is_local(path):
        os.makedirs(path, exist_ok=True)


def write_file(path: str, content: bytes) -> None:
    """Writes a whole file under a temporary name beside it, then renames it over whatever is there."""
    temporary = temporary_name(path)
    with open_to_write(temporary) as file:
        file.write(content)
    move_file(temporary, path)


def temporary_name(path: str) -> str:
    """A name beside `path` that no other writer uses; hidden from readers that glob."""
    folder, name = FileSystems.split(path)
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
        FileSystems.rename([source], [target])
    except (BeamIOError, OSError) as error:
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
            FileSystems.delete([_escape(path)])


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


def list_below(folder: str) -> Iterator[FileMetadata]:
    """Every file below a folder of an object store or another of Beam's file systems, at any depth.

    Where the store has no folders the listing is read page by page: Beam's public `match` would hold all of it.

    Raises:
        OSError: the listing failed.
    """
    prefix = folder.rstrip("/") + "/"
    filesystem = FileSystems.get_filesystem(prefix)
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


def describe(path: str) -> FileMetadata | None:
    """Size and time of one file; None where there is no such file (a folder is none)."""
    files = FileSystems.match([_like(path)])[0].metadata_list
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
