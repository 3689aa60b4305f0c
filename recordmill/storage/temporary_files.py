"""Rows that do not fit into memory, in unnamed files on this machine."""

import sqlite3
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class TemporaryFileError(ValueError):
    """A temporary file cannot be written; the sentence says why, and what to do."""


@contextmanager
def _explained() -> Iterator[None]:
    """Raises `TemporaryFileError` if the block has no room for its temporary file, or no right to write it."""
    try:
        yield
    except sqlite3.Error as error:
        why = str(error).lower()
        raise TemporaryFileError(
            f"temporary files cannot be written ({why}): set TMPDIR to a folder with more room"
        ) from error


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
        with _explained():
            self._database.executemany("INSERT INTO row VALUES (?, ?)", rows)

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """All rows by key, and those of one key in the order in which they were added."""
        with _explained():
            yield from self._database.execute("SELECT key, value FROM row ORDER BY key, rowid")
