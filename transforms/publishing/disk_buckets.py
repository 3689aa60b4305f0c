"""Rows that wait to be looked at by groups: put away by group in a temporary file, and read back a group at a time."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import orjson

from recordmill.transforms.publishing.temporary_file import TemporaryFile

IN_MEMORY = 32 * 2**20
"""Bytes of rows that wait in memory."""


class DiskBuckets:
    """JSON values by the number of their group.

    Args:
        in_memory: bytes that are kept in memory before they are put away.
    """

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._in_memory = in_memory
        self._waiting: defaultdict[int, bytearray] = defaultdict(bytearray)
        self._bytes = 0
        self._places: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        self._file = TemporaryFile()

    def add(self, group: int, value: Any) -> None:
        """Puts one away.

        Raises:
            TemporaryFileError: there is no room for it on this machine.
        """
        line = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
        self._waiting[group] += line
        self._bytes += len(line)
        if self._bytes > self._in_memory:
            self._put_waiting_away()

    def groups(self) -> list[int]:
        """The numbers of all groups, ascending."""
        return sorted({*self._places, *self._waiting})

    def read(self, group: int) -> Iterator[Any]:
        """The values of one group, in the order in which they came."""
        for offset, length in self._places.get(group, ()):
            yield from map(orjson.loads, self._file.read(offset, length).splitlines())
        yield from map(orjson.loads, self._waiting.get(group, b"").splitlines())

    def _put_waiting_away(self) -> None:
        for group, lines in self._waiting.items():
            self._places[group].append((self._file.append(lines), len(lines)))
        self._waiting.clear()
        self._bytes = 0
