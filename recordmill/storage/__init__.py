"""Access to files on this machine, on object stores, and on Beam's other file systems.

Renames are not assumed to be atomic, and stores need not have folders: callers order their writes so that a later run
understands the state after each of them. Only this module knows the differences between stores; operations on many
files at once are in `many_files`.
"""

import errno
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

from recordmill.storage.stores.local_file import create_local, force_to_disk, read_local
from recordmill.storage.stores.local_file import parts_kept_open as parts_kept_open

if TYPE_CHECKING:
    from apache_beam.io.filesystem import FileMetadata
    from apache_beam.io.filesystems import FileSystems

    from recordmill.storage.stores.store import Store

_TRIES_TO_REMOVE = 5

_PLAIN = "uncompressed"  # CompressionTypes.UNCOMPRESSED; by default Beam unpacks by extension
_URL = re.compile(r"[a-zA-Z][-a-zA-Z0-9+.]*://.*")  # as Beam's FileSystems.get_scheme


def _beam() -> "type[FileSystems]":
    """Beam's file systems, imported when first used: that takes seconds, and local files need none of it."""
    from apache_beam.io.filesystems import FileSystems

    return FileSystems


def _find_store(path: str) -> "Store | None":
    """The store of a URL, if it has a class here; also imported at its first use."""
    if is_local(path):
        return None
    from recordmill.storage.stores.find_store import find_store

    return find_store(path)


def is_local(path: str) -> bool:
    """Whether a path is a local path, not a URL."""
    return _URL.match(path) is None


def join(folder: str, *names: str) -> str:
    """The path of a file below a folder."""
    return os.path.join(folder, *names) if is_local(folder) else _beam().join(folder, *names)


def read_range(uri: str, offset: int = 0, length: int = -1) -> bytes:
    """Reads `length` bytes from `offset`; -1 reads to the end.

    Raises:
        FileNotFoundError: the file does not exist, on any store.
        PermissionError: it may not be read.
        OSError: it cannot be read (Beam's errors are OSErrors too); stores may raise other errors.
    """
    if is_local(uri):
        return read_local(uri, offset, length)
    if store := _find_store(uri):
        return store.read(uri, offset, length)
    from recordmill.storage.stores.beam import beam_errors_as_systems

    with beam_errors_as_systems(uri), _beam().open(uri, compression_type=_PLAIN) as stream:
        if offset:
            stream.seek(offset)
        data: bytes = stream.read() if length < 0 else stream.read(length)
        return data


def open_to_read(path: str) -> BinaryIO:
    """Opens a file's stored bytes as a stream.

    Raises:
        FileNotFoundError: the file does not exist; some stores raise an error of their own at the first read instead.
        PermissionError: it may not be read.
        OSError: it cannot be opened.
    """
    if is_local(path):
        return open(path, "rb")
    from recordmill.storage.stores.beam import beam_errors_as_systems
    from recordmill.storage.stores.store import open_to_read as open_object

    if store := _find_store(path):
        return open_object(store, path)
    with beam_errors_as_systems(path):
        stream: BinaryIO = _beam().open(path, compression_type=_PLAIN)
        return stream


def open_to_write(path: str) -> BinaryIO:
    """Opens a file for writing as a stream; on object stores it exists only once it is closed."""
    if is_local(path):
        return create_local(path)
    if store := _find_store(path):
        return store.open_to_write(path)
    stream: BinaryIO = _beam().create(path, compression_type=_PLAIN)
    return stream


def exists(path: str) -> bool:
    """Whether there is such a file, or such a folder if the store has folders."""
    if store := _find_store(path):
        return store.describe(path) is not None
    return os.path.exists(path) if is_local(path) else bool(_beam().exists(path))


def make_folder(path: str) -> None:
    """Makes a folder and its parents where they are missing; on stores without folders nothing."""
    if is_local(path):
        os.makedirs(path, exist_ok=True)


def write_file(path: str, content: bytes | Iterable[bytes], temporary: str = "") -> None:
    """Writes a whole file, replacing any other; by temporary name and rename if it could be seen half written.

    After a power cut there is either the complete file or the earlier one.

    Args:
        path: the file.
        content: its content.
        temporary: the temporary name, for a file that is written again after an interruption; by default, one that no
            other writer uses.
    """
    if store := _find_store(path):
        store.write(path, content)
        return
    temporary = temporary or temporary_name(path)
    with open_to_write(temporary) as file:
        for piece in (content,) if isinstance(content, bytes) else content:
            file.write(piece)
    if is_local(temporary):
        force_to_disk(temporary)
    move_file(temporary, path)


def temporary_name(path: str) -> str:
    """A name in the same folder that no other writer uses; hidden from readers that glob."""
    folder, name = os.path.split(os.path.abspath(path)) if is_local(path) else _beam().split(path)
    return join(folder, f".{name}.{uuid.uuid4().hex[:12]}.tmp")


def move_file(source: str, target: str) -> None:
    """Renames a file, replacing any other.

    It is idempotent: on a store that copies and then deletes, an interruption leaves both files, and a missing source
    counts as moved if the target exists.

    Raises:
        FileNotFoundError: neither of them exists.
        OSError: the file cannot be renamed.
    """
    store = _find_store(source)
    try:
        if store:
            store.move(source, target)
        elif is_local(source):  # Beam's errors do not say why
            os.replace(source, target)
        else:
            _beam().rename([source], [target])
    except OSError as error:
        if exists(source):
            raise
        if not exists(target):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source) from error


def remove_files(paths: Iterable[str]) -> None:
    """Deletes those of the files that exist; all must be on one store."""
    ordered = list(paths)
    if ordered and (store := _find_store(ordered[0])):
        store.delete(ordered)
        return
    for path in ordered:
        if is_local(path):  # Beam's delete treats `*` and `[` in a path as a pattern
            with suppress(FileNotFoundError):
                os.unlink(path)
        elif exists(path):
            _beam().delete([_escape(path)])


def remove_folder(path: str) -> None:
    """Deletes a folder and everything below it, if it exists; also files added meanwhile, unless more keep coming."""
    if not is_local(path):
        remove_files([file.path for file in list_below(path)])
        return
    for _ in range(_TRIES_TO_REMOVE):
        if not os.path.isdir(path):
            return
        shutil.rmtree(path, onerror=_tolerate_others)


def _tolerate_others(_: object, path: str, failure: tuple[Any, BaseException, Any]) -> None:
    """Another run of the same plan may be deleting the same folder, or writing into it."""
    error = failure[1]
    if not isinstance(error, OSError) or error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
        raise error


def list_below(folder: str) -> "Iterator[FileMetadata]":
    """Yields every file below a folder of an object store or another of Beam's file systems, at any depth.

    For stores without folders, the listing is read page by page; Beam's public `match` would hold all of it.

    Raises:
        OSError: the listing failed.
    """
    prefix = folder.rstrip("/") + "/"
    if store := _find_store(prefix):
        yield from store.list_below(prefix)
        return
    filesystem = _beam().get_filesystem(prefix)
    if not filesystem.has_dirs():
        from recordmill.storage.stores.beam import list_pages

        yield from list_pages(filesystem, prefix)
        return
    found = filesystem.match([_like(prefix) + "**"])[0].metadata_list
    yield from (file for file in found if file.path.startswith(prefix))


def size_of(path: str) -> int | None:
    """The size of one file in bytes; None if there is no such file."""
    if is_local(path):
        return os.path.getsize(path) if os.path.isfile(path) else None
    file = describe(path)
    return None if file is None else int(file.size_in_bytes)


def describe(path: str) -> "FileMetadata | None":
    """Size and time of one file; None if there is no such file (a folder is not one)."""
    if store := _find_store(path):
        return store.describe(path)
    files = _beam().match([_like(path)])[0].metadata_list
    return next((file for file in files if file.path == path), None)


def _like(path: str) -> str:
    """A pattern that matches a path and few others; Beam's own escape, `[[]`, makes Python warn."""
    return "".join("?" if letter in "*?[" else letter for letter in path)


def _escape(path: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


def folder_names(folder: str) -> list[str]:
    """The names of the files and folders directly in a folder, sorted; none if the folder does not exist."""
    if is_local(folder):
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return sorted({name.rstrip("/") for name in _remote_names(folder)} - {""})


def folder_entries(folder: str, most: int, start: str = "") -> list[str]:
    """The names directly in a folder, those of folders with a trailing slash; none if the folder does not exist.

    Args:
        folder: on any file system.
        most: the maximum number of names listed in a store's folder; on this machine all are listed.
        start: a prefix of the names.

    Raises:
        OSError: the folder may not be listed, or its store does not answer.
    """
    if not is_local(folder):
        return sorted(set(islice(_remote_names(folder, start), most)) - {""})
    if not os.path.isdir(folder):
        return []
    with os.scandir(folder) as entries:
        names = (f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries)
        return sorted(name for name in names if name.startswith(start))


def _remote_names(folder: str, start: str = "") -> Iterator[str]:
    prefix = folder.rstrip("/") + "/"
    if store := _find_store(prefix):
        with suppress(FileNotFoundError):  # the bucket
            yield from (start + name for name in store.names(prefix + start))
        return
    for file in list_below(folder):
        name, slash, _ = file.path[len(prefix) :].partition("/")
        if name.startswith(start):
            yield name + slash
