"""Reads any part of a packed TFRecord file without unpacking all before it each time."""

import threading
from bisect import bisect_right

from recordmill.storage.tfrecord_file import GzipBytes, StoredFile

MOST_STATES = 32
"""The most places at which unpacking can start again: each takes up to a megabyte."""

FIRST_SPACING = 2**23
"""Unpacked bytes between such places, until there are too many of them."""


class UnpackedBytes:
    """The unpacked bytes of a gzip or ZLIB file, at any offset and for any number of threads.

    The file is unpacked from its start once, as far as it is read. Later reads begin at the last
    place that was kept, which is at most `spacing` bytes before.

    Attributes:
        spacing: unpacked bytes between places that are kept.
    """

    def __init__(self, path: str, most_states: int = MOST_STATES) -> None:
        """Opens a packed file.

        Args:
            path: on any of Beam's file systems.
            most_states: the most places to keep.

        Raises:
            OSError: it cannot be opened.
        """
        self.spacing = FIRST_SPACING
        self._stored = StoredFile(path)
        self._most = most_states
        self._latest = GzipBytes(self._stored)
        self._states = [self._latest.copy_at(0)]
        self._reading = threading.Lock()

    def read(self, offset: int, count: int) -> bytes:
        """Returns the `count` bytes from `offset` on; fewer at the end, or before damage.

        Raises:
            OSError: the file cannot be read.
        """
        with self._reading:
            place = bisect_right(self._states, offset, key=_start_of) - 1
            state = self._states[place]
            if not state.start <= self._latest.start <= offset:
                self._latest = state.copy_at(state.start)
            self._keep_places(offset)
            return bytes(self._latest.read(offset, count)[:count])

    def _keep_places(self, offset: int) -> None:
        """Unpacks up to an offset, and keeps the places on the way that are not kept yet."""
        while (following := self._states[-1].start + self.spacing) <= offset:
            if self._latest.start > following:
                self._latest = self._states[-1].copy_at(self._states[-1].start)
            if not self._latest.read(following, 1):
                return
            self._states.append(self._latest.copy_at(following))
            if len(self._states) > self._most:
                self._states = self._states[::2]
                self.spacing *= 2

    def close(self) -> None:
        """Closes the file."""
        self._stored.__exit__()


def _start_of(state: GzipBytes) -> int:
    return state.start
