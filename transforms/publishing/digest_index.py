"""Which contents a dataset holds more than once, among any number of images: a bounded part of them is in memory."""

import os
import tempfile
import weakref
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from recordmill.transforms.publishing.temporary_rows import writing_temporary_files

Digests = NDArray[np.uint64]

IN_MEMORY = 4_000_000
"""Digests that are kept in memory, 8 bytes each; more go to an unnamed temporary file on this machine."""

_RANGE = 4  # times `IN_MEMORY`: the digests that are sorted at once


class DigestIndex:
    """The first 64 bits of the SHA-256 of each image.

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
        with writing_temporary_files():
            self._file.seek(0, os.SEEK_END)
            self._file.write(digests.tobytes())
            self._file.flush()
        self._count += len(digests)

    def in_order(self) -> Digests:
        """All of them in memory, in the order in which they were added."""
        return np.concatenate([np.zeros(0, np.uint64), *self._parts()])

    def repeated(self) -> Digests:
        """Those that are there at least twice, each once, ascending."""
        found = [np.zeros(0, np.uint64)]
        ranges = 1 + self._count // (_RANGE * self._in_memory)
        bounds = [2**64 * number // ranges for number in range(ranges + 1)]
        for first, end in pairwise(bounds):  # one range at a time, so that memory stays bounded
            last = end - 1
            digests = np.concatenate([found[0], *(part[(first <= part) & (part <= last)] for part in self._parts())])
            digests.sort()
            found.append(np.unique(digests[1:][digests[1:] == digests[:-1]]))
        return np.concatenate(found)

    def _parts(self) -> Iterator[Digests]:
        self._file.seek(0)
        while data := self._file.read(8 * self._in_memory):
            yield np.frombuffer(data, np.uint64)
