"""The interface of object stores."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Protocol, TypeVar

from apache_beam.io.filesystem import FileMetadata

R = TypeVar("R")

CONNECTIONS = 128
"""Concurrent requests of one process to one store."""

BLOCK_BYTES = 8 * 2**20
"""The size of the blocks that a stream reads or writes, and holds in memory."""

_WAITERS = 16  # threads for requests with little content


class Store(Protocol):
    """An object store.

    Every method raises FileNotFoundError if the object or its bucket does not exist, PermissionError if access is
    denied or credentials are missing, and another OSError if the store still fails after the client's retries.
    """

    def read(self, uri: str, offset: int, length: int) -> bytes:
        """Reads a range in one request; -1 reads to the end; returns nothing if it begins after the end."""

    def describe(self, uri: str) -> FileMetadata | None:
        """Size and time of one object; None if it does not exist."""

    def list_below(self, prefix: str) -> Iterator[FileMetadata]:
        """Every object whose URL has this prefix, page by page."""

    def names(self, prefix: str) -> Iterator[str]:
        """The next part of each URL with this prefix, up to and including a slash; deeper names are not listed."""

    def write(self, uri: str, content: bytes | Iterable[bytes]) -> None:
        """Writes an object, whole or not at all, replacing any other."""

    def open_to_write(self, uri: str) -> BinaryIO:
        """A stream that becomes an object only when it is closed; holds about a block in memory."""

    def move(self, source: str, target: str) -> None:
        """Copies an object of any size within the store, then deletes the source; an interruption leaves both."""

    def delete(self, uris: list[str]) -> None:
        """Deletes those of the objects that exist."""


def split_uri(uri: str) -> tuple[str, str]:
    """Bucket and object of a URL."""
    bucket, _, name = uri.partition("://")[2].partition("/")
    return bucket, name


def system_error(status: int | None, why: str, uri: str) -> OSError:
    """The OSError that corresponds to a store's HTTP status."""
    code = {404: errno.ENOENT, 401: errno.EACCES, 403: errno.EACCES}.get(status or 0, errno.EIO)
    return OSError(code, why if code == errno.EIO else os.strerror(code), uri)


def in_parallel(function: Callable[[Any], R], items: Iterable[Any]) -> list[R]:
    """Calls a function for each item, in threads; raises the first error and skips the rest."""
    with ThreadPoolExecutor(_WAITERS, thread_name_prefix="recordmill-store") as pool:
        return list(pool.map(function, items))
