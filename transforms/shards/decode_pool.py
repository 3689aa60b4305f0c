"""The threads of a process that read and decode."""

import threading
from typing import ClassVar

from recordmill import storage
from recordmill.transforms.shards.read_ahead import ReadAhead

REMOTE_READERS = 128
"""Images under way at once where each read waits for a network; decoding stays bounded by `threads`."""


class DecodePool:
    """The threads that read and decode, and the turns at decoding: one set for all bundles of a process.

    Attributes:
        decoding: entered to decode, by as many at once as there are `threads`.
    """

    _shared: ClassVar[dict[int, "DecodePool"]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, threads: int) -> None:
        self.decoding = threading.BoundedSemaphore(threads)
        self._threads = threads
        self._pools: dict[bool, ReadAhead] = {}
        self._users = 0

    @classmethod
    def acquire(cls, threads: int) -> "DecodePool":
        """This process's readers for this number of threads; release them after use."""
        with cls._lock:
            readers = cls._shared.setdefault(threads, cls(threads))
            readers._users += 1
            return readers

    def release(self) -> None:
        """Ends the threads unless they are in use elsewhere."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            del self._shared[self._threads]
        for pool in self._pools.values():
            pool.close()

    def pool_for(self, uri: str) -> ReadAhead:
        """The pool that reads a file: more threads where they wait for a network, begun when first asked for."""
        local = storage.is_local(uri)
        with self._lock:
            if local not in self._pools:
                self._pools[local] = ReadAhead(self._threads) if local else ReadAhead(REMOTE_READERS, batch_items=1)
            return self._pools[local]
