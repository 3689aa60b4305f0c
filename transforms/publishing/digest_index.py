"""Which contents a dataset holds more than once, among any number of images: a bounded part of them is in memory.

A million images are 8 MB; a billion would be 8 GB, and their sorting three times that. So what is more than
`IN_MEMORY` is sorted and put away in an unnamed temporary file on this machine, and looked at by ranges of digests.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from recordmill.transforms.publishing.temporary_file import TemporaryFile

Digests = NDArray[np.uint64]

IN_MEMORY = 4_000_000
"""Digests that wait in memory, 8 bytes each."""

_RANGES = 256
_BOUNDS = np.arange(1, _RANGES, dtype=np.uint64) << np.uint64(56)


class DigestIndex:
    """The first 64 bits of the SHA-256 of each image.

    Args:
        in_memory: digests that are kept in memory.
    """

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._in_memory: float = in_memory
        self._waiting: list[Digests] = []
        self._count = self._put_away = 0
        self._file = TemporaryFile()
        self._edges: list[list[int]] = []  # of each sorted part of the file: where its ranges begin, and its end

    def __len__(self) -> int:
        return self._count

    def add(self, digests: Digests) -> None:
        """Takes in some.

        Raises:
            TemporaryFileError: there is no room for them on this machine.
        """
        self._waiting.append(digests)
        self._count += len(digests)
        if self._count - self._put_away > self._in_memory:
            self._put_waiting_away()

    def keep_order(self) -> None:
        """From now on all are kept in memory, to be read in their order."""
        self._in_memory = math.inf

    def in_order(self) -> Digests:
        """All of them, in the order in which they came.

        Raises:
            ValueError: some were put away, and their order with them.
        """
        if self._put_away:
            raise ValueError(f"the order of {self._put_away:,} digests was not kept")
        return np.concatenate([np.zeros(0, np.uint64), *self._waiting])

    def repeated(self) -> tuple[Digests, NDArray[np.int64]]:
        """The digests that are there at least twice, ascending, and how often each."""
        values, counts = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
        for part in self._ranges():
            found, times = np.unique(part, return_counts=True)
            values.append(found[times > 1])
            counts.append(times[times > 1])
        return np.concatenate(values), np.concatenate(counts)

    def _put_waiting_away(self) -> None:
        digests = np.sort(np.concatenate([np.zeros(0, np.uint64), *self._waiting]))
        edges = [0, *np.searchsorted(digests, _BOUNDS).tolist(), len(digests)]
        self._edges.append([self._put_away + edge for edge in edges])
        self._file.append(digests.tobytes())
        self._put_away += len(digests)
        self._waiting.clear()

    def _ranges(self) -> Iterator[Digests]:
        """All digests in ascending parts."""
        if not self._put_away:
            yield self.in_order()
            return
        self._put_waiting_away()
        for number in range(_RANGES):
            parts = []
            for edges in self._edges:
                data = self._file.read(8 * edges[number], 8 * (edges[number + 1] - edges[number]))
                parts.append(np.frombuffer(data, np.uint64))
            yield np.concatenate(parts)
