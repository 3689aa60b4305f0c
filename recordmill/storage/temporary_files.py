"""Keeps rows that do not fit into memory in unnamed files on this machine."""

import sqlite3
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class TemporaryFileError(ValueError):
    """A temporary file cannot be written; the sentence says why, and what to do."""


@contextmanager
def _explain_errors() -> Iterator[None]:
    """Raises `TemporaryFileError` if the block cannot write its temporary file.

    The cause is a lack of room or permission.
    """
    try:
        yield
    except sqlite3.Error as error:
        why = f"temporary files cannot be written ({error}): set TMPDIR to a folder with more room"
        raise TemporaryFileError(why) from error


class SortedRows:
    """Any number of rows, sorted by key.

    SQLite moves them to a file beyond its cache of two megabytes.
    """

    def __init__(self) -> None:
        self._database = sqlite3.connect("")
        weakref.finalize(self, self._database.close)
        self._database.execute("CREATE TABLE row (key TEXT, value BLOB)")

    def add(self, rows: Iterable[tuple[str, bytes]]) -> None:
        """Adds rows, each with its key.

        Raises:
            TemporaryFileError: there is no room for them.
        """
        with _explain_errors():
            self._database.executemany("INSERT INTO row VALUES (?, ?)", rows)

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """All rows by key, and those with the same key in the order in which they were added."""
        with _explain_errors():
            yield from self._database.execute("SELECT key, value FROM row ORDER BY key, rowid")
