"""A second process that writes whole shards, where writing them is mostly the interpreter's own work."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial

from recordmill.schemas.dataset.shard_report import ShardReport
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch, ReferenceBatchCoder
from recordmill.transforms.shards.progress import PROGRESS, Counter

PARENT_IS_LOOKED_FOR = 0.5
"""Seconds between two looks of the process at whether its parent is still there."""

WriteShard = Callable[[str, int, list[ImageRef]], ShardReport]
"""Split, index and references of a shard to its report."""


class SecondProcess:
    """A process forked from this one that writes a shard at a time, and does not outlive it, however that ends.

    A fork has everything that was imported (a new process would take seconds to start), and shares its memory until
    either writes to it. For processes without clients of networks only: those do not survive it.
    """

    def __init__(self, write: WriteShard) -> None:
        """Forks at the first `submit`.

        Args:
            write: what it does with a shard; it has what this refers to as it was at the fork.
        """
        begin = partial(_begin, write, PROGRESS.count_elsewhere(), os.getpid())
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("fork"), initializer=begin)
        self._last: Future[ShardReport] | None = None

    def is_idle(self) -> bool:
        """Whether it would begin with a shard at once."""
        return self._last is None or self._last.done()

    def submit(self, split: str, index: int, refs: list[ImageRef]) -> Future[ShardReport]:
        """Has a shard written. What `write` raises there is raised by the result; so is the process's own end."""
        self._last = self._pool.submit(_write_shard, split, index, _CODER.encode(ReferenceBatch.of(refs)))
        return self._last

    def close(self) -> None:
        """Ends the process when it has written its shard."""
        self._pool.shutdown()


_CODER = ReferenceBatchCoder(ReferenceBatch)

_forked: dict[str, WriteShard] = {}
"""In the forked process: what it was begun with."""


def _begin(write: WriteShard, counter: Counter, parent: int) -> None:
    _forked["write"] = write
    PROGRESS.count_in(counter)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it too, and ends this process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_IS_LOOKED_FOR)
    os._exit(1)


def _write_shard(split: str, index: int, batch: bytes) -> ShardReport:
    # Pickled, references would take six times as long to pass.
    refs = _CODER.decode(batch)
    return _forked["write"](split, index, [*refs.refs, *refs.notices])
