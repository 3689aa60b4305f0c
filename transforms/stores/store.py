"""What is asked of an object store, whichever it is.

Beam's file systems make a client for every call (85 ms of CPU on S3, a new connection on GCS), ask for an object's size
before they read it, and read 16 MiB where a range is asked for. Here one client serves a process, and a range is one
request. Stores without a class here are used through Beam.
"""

import errno
import io
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol, TypeVar

from apache_beam.io.filesystem import FileMetadata
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

R = TypeVar("R")

CONNECTIONS = 128
"""Requests under way at once, in one process, to one store."""

BLOCK_BYTES = 8 * 2**20
"""What a stream reads or writes at a time, and holds in memory."""

_WAITERS = 16  # threads for requests of which each carries next to nothing


class Store(Protocol):
    """An object store.

    Every method raises FileNotFoundError where the object or its bucket is not there, PermissionError where access is
    denied or credentials are missing, and another OSError where the store is out of order after the client's retries.
    """

    def read(self, uri: str, offset: int, length: int) -> bytes:
        """Reads a range in one request; -1 for all that follows; nothing where it begins behind the end."""

    def describe(self, uri: str) -> FileMetadata | None:
        """Size and time of one object; None where it is not there."""

    def list_below(self, prefix: str) -> Iterator[FileMetadata]:
        """Every object whose URL begins so, page by page."""

    def names(self, prefix: str) -> Iterator[str]:
        """The next part of each URL that begins so, up to a slash, without listing what lies behind the slash."""

    def write(self, uri: str, content: bytes | Iterable[bytes]) -> None:
        """Writes an object, whole or not at all, over whatever is there."""

    def open_to_write(self, uri: str) -> BinaryIO:
        """A stream that becomes an object when it is closed, and not before; holds about a block in memory."""

    def move(self, source: str, target: str) -> None:
        """Copies within the store, whatever the size, then deletes the source; a cut in between leaves both."""

    def delete(self, uris: list[str]) -> None:
        """Deletes those of the objects that are there."""


_stores: dict[str, tuple[object, Store]] = {}
_lock = threading.Lock()


def find_store(uri: str) -> Store | None:
    """This process's store for a URL; None where Beam's file systems are to be used."""
    scheme = FileSystems.get_scheme(uri)
    if scheme not in ("gs", "s3"):
        return None
    options = FileSystems._pipeline_options
    with _lock:
        if scheme not in _stores or _stores[scheme][0] is not options:
            made = _make_store(scheme, options or PipelineOptions([]))
            if made is None:
                return None
            _stores[scheme] = (options, made)
        return _stores[scheme][1]


def _make_store(scheme: str, options: PipelineOptions) -> Store | None:
    try:
        if scheme == "gs":
            from transforms.stores.google_store import GoogleStore as Kind
        else:
            from transforms.stores.amazon_store import AmazonStore as Kind  # type: ignore[assignment]
    except ImportError:  # Beam says which of its extras is missing
        return None
    return Kind(options)


def split_uri(uri: str) -> tuple[str, str]:
    """Bucket and object of a URL."""
    bucket, _, name = uri.partition("://")[2].partition("/")
    return bucket, name


def system_error(status: int | None, why: str, uri: str) -> OSError:
    """The system's error for what a store answered with a status of HTTP."""
    code = {404: errno.ENOENT, 401: errno.EACCES, 403: errno.EACCES}.get(status or 0, errno.EIO)
    return OSError(code, why if code == errno.EIO else os.strerror(code), uri)


_HTTP_CODES = {404: FileNotFoundError, 403: PermissionError}


@contextmanager
def beam_errors_as_systems(path: str) -> Iterator[None]:
    """Raises what Beam lets through of a store's own errors for a missing or a forbidden object as the system's."""
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


def in_parallel(function: Callable[[Any], R], items: Iterable[Any]) -> list[R]:
    """A function of each item, in threads that wait for a network; raises the first error, the rest undone."""
    with ThreadPoolExecutor(_WAITERS, thread_name_prefix="recordmill-store") as pool:
        return list(pool.map(function, items))


def open_to_read(store: Store, uri: str) -> BinaryIO:
    """An object as a stream; a request a block, the first when it is read."""
    return io.BufferedReader(_RangeReader(store, uri), BLOCK_BYTES)


class _RangeReader(io.RawIOBase):
    """Reads an object from wherever it is asked to."""

    def __init__(self, store: Store, uri: str) -> None:
        super().__init__()
        self._store = store
        self._uri = uri
        self._at = 0
        self._end: int | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_END:
            found = self._store.describe(self._uri)
            if found is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._uri)
            self._end = int(found.size_in_bytes)
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at}.get(whence, self._end or 0)
        self._at = max(start + offset, 0)
        return self._at

    def tell(self) -> int:
        return self._at

    def readall(self) -> bytes:
        if self._end is not None and self._at >= self._end:
            return b""
        data = self._store.read(self._uri, self._at, -1)
        self._at = self._end = self._at + len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        if self._end is not None and self._at >= self._end:
            return 0
        data = self._store.read(self._uri, self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        if len(data) < len(buffer):
            self._end = self._at
        return len(data)
