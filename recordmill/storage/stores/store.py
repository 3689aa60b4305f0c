"""The interface of object stores."""

import errno
import io
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Protocol, TypeVar

if TYPE_CHECKING:
    from apache_beam.io.filesystem import FileMetadata

R = TypeVar("R")

CONNECTIONS = 128
"""Concurrent requests of one process to one store."""

BLOCK_BYTES = 8 * 2**20
"""The size of the blocks that a stream reads or writes, and holds in memory."""

_WAITERS = 16  # threads for requests with little content


class Store(Protocol):
    """An object store.

    Every method raises FileNotFoundError if the object or its bucket does not exist,
    PermissionError if access is denied or credentials are missing, and another OSError if the store
    still fails after the client's retries.

    Attributes:
        is_atomic: whether an object is there completely or not at all.
        starts_anywhere: whether a listing can start at any name, and leave out those before it.
    """

    is_atomic: ClassVar[bool] = True
    starts_anywhere: ClassVar[bool] = False

    def read(self, uri: str, offset: int, length: int) -> bytes:
        """Reads a range in one request; -1 reads to the end.

        Returns nothing if the range begins after the end.
        """

    def describe(self, uri: str) -> "FileMetadata | None":
        """Returns size and time of one object; None if it does not exist."""

    def list_below(self, prefix: str, start: str = "") -> "Iterator[FileMetadata]":
        """Returns every object whose URL has this prefix, page by page, in the order of names.

        Args:
            prefix: begins with the bucket.
            start: names below the prefix that come before this one may be left out.
        """

    def names(self, prefix: str) -> Iterator[str]:
        """Yields the next part of each URL with this prefix, up to and including a slash.

        Deeper names are not listed.
        """

    def write(self, uri: str, content: bytes | Iterable[bytes]) -> None:
        """Writes an object, replacing any other."""
        with self.open_to_write(uri) as stream:
            stream.writelines((content,) if isinstance(content, bytes) else content)

    def open_to_write(self, uri: str) -> BinaryIO:
        """Returns a stream that becomes an object only when it is closed.

        Holds about a block in memory.
        """

    def copy(self, source: str, target: str) -> None:
        """Copies an object of any size within the store, replacing any other.

        Raises:
            OSError: also if the store does not support copying.
        """
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), source)

    def move(self, source: str, target: str) -> None:
        """Copies an object, then deletes the source; an interruption leaves both."""
        self.copy(source, target)
        self.delete([source])

    def delete(self, uris: list[str]) -> None:
        """Deletes objects, if they exist."""


def split_uri(uri: str) -> tuple[str, str]:
    """Returns bucket and object of a URL."""
    bucket, _, name = uri.partition("://")[2].partition("/")
    return bucket, name


def system_error(status: int | None, why: str, uri: str) -> OSError:
    """Returns the OSError that corresponds to a store's HTTP status."""
    code = {404: errno.ENOENT, 401: errno.EACCES, 403: errno.EACCES}.get(status or 0, errno.EIO)
    return OSError(code, why if code == errno.EIO else os.strerror(code), uri)


PIECE_BYTES = 256 * 2**10
"""How much of a body is read at once: if it breaks off, at most this much is lost."""

TRIES = 6
"""How often one range is asked for, if its body is cut, stalls or is damaged on the way."""

STALL_SECONDS = 15
"""How long a store may send nothing; then the rest of the range is asked for again."""

_PAUSES = (0.1, 0.4, 1.0, 2.0, 4.0)  # seconds before the second try and the next ones


class BrokenBodyError(OSError):
    """A store's answer broke off or was damaged.

    Attributes:
        is_damaged: whether its bytes were wrong, so that none of them may be used.
    """

    def __init__(self, why: str, uri: str, is_damaged: bool = False) -> None:
        super().__init__(errno.EIO, why, uri)
        self.is_damaged = is_damaged


def read_resuming(ask: Callable[[int], Iterable[bytes]], uri: str) -> bytes:
    """Reads a body; asks for its missing part again if it breaks off.

    Args:
        ask: yields the body from the given number of bytes on; raises a BrokenBodyError where it
            breaks off.
        uri: the object.

    Raises:
        OSError: it broke off again and again, or what `ask` raises.
    """
    pieces: list[bytes] = []
    for pause in (*_PAUSES, None):
        try:
            pieces.extend(ask(sum(map(len, pieces))))
            return b"".join(pieces)
        except BrokenBodyError as error:
            if pause is None:
                why = f"{error.strerror} (asked {TRIES} times)"
                raise OSError(errno.EIO, why, uri) from error
            if error.is_damaged:
                pieces.clear()
        time.sleep(pause)
    raise AssertionError("the last try returns or raises")


def in_parallel(function: Callable[[Any], R], items: Iterable[Any]) -> list[R]:
    """Calls a function for each item, in threads; raises the first error and skips the rest."""
    with ThreadPoolExecutor(_WAITERS, thread_name_prefix="recordmill-store") as pool:
        return list(pool.map(function, items))


def open_object(store: Store, uri: str) -> BinaryIO:
    """Opens an object as a stream, with one request per block, the first at the first read."""
    return io.BufferedReader(_RangeReader(store, uri), BLOCK_BYTES)


class _RangeReader(io.RawIOBase):
    """A raw stream with random access to an object."""

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

    def readall(self) -> bytes:
        return self._read_on(-1)

    def readinto(self, buffer: Any) -> int:
        data = self._read_on(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _read_on(self, length: int) -> bytes:
        if self._end is not None and self._at >= self._end:
            return b""
        data = self._store.read(self._uri, self._at, length)
        self._at += len(data)
        if length < 0 or len(data) < length:
            self._end = self._at
        return data
