"""What does not fit into memory: digests and rows, in unnamed files on this machine."""

import os
import sqlite3
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Digests = NDArray[np.uint64]

IN_MEMORY = 4_000_000
"""Digests that are kept in memory, 8 bytes each; more go to an unnamed temporary file on this machine."""

_RANGE = 4  # times `IN_MEMORY`: the digests that are sorted at once


class TemporaryFileError(ValueError):
    """A temporary file cannot be written; the sentence says why, and what to do."""


@contextmanager
def _explained(kind: type[Exception]) -> Iterator[None]:
    """Raises `TemporaryFileError` if the block has no room for its temporary file, or no right to write it.

    Args:
        kind: how the file's own errors look; errors of other kinds, such as those of a source of rows, pass unchanged.
    """
    try:
        yield
    except kind as error:
        why = (getattr(error, "strerror", "") or str(error)).lower()
        raise TemporaryFileError(
            f"temporary files cannot be written ({why}): set TMPDIR to a folder with more room"
        ) from error


class DigestIndex:
    """Numbers of 64 bits, such as the first of each image's SHA-256, in any number: a bounded part is in memory.

    Args:
        in_memory: digests that are kept in memory.
    """

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._in_memory = in_memory
        self._count = 0
        self._file = tempfile.SpooledTemporaryFile(8 * in_memory)  # noqa: SIM115  # closed with this object
        weakref.finalize(self, self._file.close)

    def __len__(self) -> int:
        return self._count

    def add(self, digests: Digests) -> None:
        """Adds some.

        Raises:
            TemporaryFileError: there is no room for them on this machine.
        """
        with _explained(OSError):
            self._file.seek(0, os.SEEK_END)
            self._file.write(digests.tobytes())
            self._file.flush()
        self._count += len(digests)

    def in_order(self) -> Digests:
        """All of them in memory, in the order in which they were added."""
        return np.concatenate([np.zeros(0, np.uint64), *self.parts()])

    def repeated(self) -> Digests:
        """Those that are there at least twice, each once, ascending."""
        found = [np.zeros(0, np.uint64)]
        ranges = 1 + self._count // (_RANGE * self._in_memory)
        bounds = [2**64 * number // ranges for number in range(ranges + 1)]
        for first, end in pairwise(bounds):  # one range at a time, so that memory stays bounded
            last = end - 1
            digests = np.concatenate([found[0], *(part[(first <= part) & (part <= last)] for part in self.parts())])
            digests.sort()
            found.append(np.unique(digests[1:][digests[1:] == digests[:-1]]))
        return np.concatenate(found)

    def parts(self) -> Iterator[Digests]:
        """All of them, some at a time, in the order in which they were added."""
        self._file.seek(0)
        while data := self._file.read(8 * self._in_memory):
            yield np.frombuffer(data, np.uint64)


class SortedRows:
    """Rows by their key, in any number: SQLite moves to a file what exceeds its cache of two megabytes."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("")
        weakref.finalize(self, self._database.close)
        self._database.execute("CREATE TABLE row (key TEXT, value BLOB)")

    def add(self, rows: Iterable[tuple[str, bytes]]) -> None:
        """Adds rows, each with its key.

        Raises:
            TemporaryFileError: there is no room for them.
        """
        with _explained(sqlite3.Error):
            self._database.executemany("INSERT INTO row VALUES (?, ?)", rows)

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """All rows by key, and those of one key in the order in which they were added."""
        with _explained(sqlite3.Error):
            yield from self._database.execute("SELECT key, value FROM row ORDER BY key, rowid")
