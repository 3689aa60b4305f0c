"""The threads of a process that read and decode."""

import threading
from typing import ClassVar
from weakref import WeakValueDictionary

from recordmill import storage
from recordmill.transforms.shards.read_ahead import ReadAhead

REMOTE_READERS = 128
"""Images under way at once where each read waits for a network; decoding stays bounded by `threads`."""


class DecodePool:
    """The threads that read and decode, and the turns at decoding: one set for all bundles of a process.

    The threads end when nothing refers to the pool any more.

    Attributes:
        decoding: entered to decode, by as many at once as there are `threads`.
    """

    _shared: ClassVar[WeakValueDictionary[int, "DecodePool"]] = WeakValueDictionary()
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, threads: int) -> None:
        self.decoding = threading.BoundedSemaphore(threads)
        self._threads = threads
        self._pools: dict[bool, ReadAhead] = {}

    @classmethod
    def of(cls, threads: int) -> "DecodePool":
        """This process's pool for this number of threads."""
        with cls._lock:
            return cls._shared.setdefault(threads, cls(threads))

    def pool_for(self, uri: str) -> ReadAhead:
        """The pool that reads a file: more threads where they wait for a network, begun when first asked for."""
        local = storage.is_local(uri)
        with self._lock:
            if local not in self._pools:
                self._pools[local] = ReadAhead(self._threads) if local else ReadAhead(REMOTE_READERS, batch_items=1)
            return self._pools[local]
