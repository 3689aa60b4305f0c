"""Threads that read and decode ahead of the consumer, in order, within bounds of memory."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

WINDOW_BYTES = 32 * 2**20
"""The most bytes of images that are read but not yet written."""

REMOTE_READERS = 128
"""Images read at once if reads wait for a network; decoding is still bounded by `threads`."""

BATCH_BYTES = 2**20
BATCH_ITEMS = 16


class ReadAhead:
    """A pool of threads that maps a function over items ahead of the consumer; several consumers may share it.

    Reading and decoding release the interpreter's lock, so threads use all processors: two of them decoded and encoded
    1.14 times as fast as two processes of plain Pillow.
    """

    def __init__(self, threads: int, batch_items: int = BATCH_ITEMS) -> None:
        self._threads = threads
        self._batch_items = batch_items
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="recordmill")

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        size_of: Callable[[Item], int],
        size_of_result: Callable[[Result], int],
    ) -> Generator[Result, None, None]:
        """Yields the function's results in the order of the items; see `map_runs`."""
        return self.map_runs(lambda run: [function(run[0])], items, size_of, size_of_result)

    def map_runs(
        self,
        function: Callable[[Sequence[Item]], Sequence[Result]],
        items: Iterable[Item],
        size_of: Callable[[Item], int],
        size_of_result: Callable[[Result], int],
    ) -> Generator[Result, None, None]:
        """Yields the results in the order of the items. Of a run of items, each call handles the first one or more.

        New items are begun while those in progress and the waiting results together are within `WINDOW_BYTES`. The size
        of a result is known only when it exists, so results may exceed that by those of one call in each thread. If the
        function raises, the error is raised here and the rest is dropped.
        """
        batches = _batches(items, size_of, self._batch_items)
        work = _Work(function, size_of_result)
        waiting: deque[_Batch[Item, Result]] = deque()

        def run(batch: _Batch[Item, Result], at_least_one: bool = False) -> None:
            batch.future = self._pool.submit(work.do, batch, at_least_one)

        try:
            upcoming = next(batches, None)
            while waiting or upcoming:
                while upcoming and self._has_room(waiting, upcoming, work.held):
                    waiting.append(upcoming)
                    run(upcoming)
                    upcoming = next(batches, None)
                first = waiting[0]
                first.future.result()
                while first.results:
                    size = size_of_result(first.results[0])
                    yield first.results.popleft()
                    work.hold(-size)
                if not first.items:
                    waiting.popleft()
                for batch in waiting:
                    if batch.has_stopped() and (batch is waiting[0] or work.has_room()):
                        run(batch, at_least_one=batch is waiting[0])
        finally:
            for batch in waiting:
                batch.future.cancel()

    def _has_room(self, waiting: "deque[_Batch[Item, Result]]", upcoming: "_Batch[Item, Result]", held: int) -> bool:
        under_way = held + sum(batch.size for batch in waiting if batch.items)
        return not waiting or (len(waiting) <= 2 * self._threads and under_way + upcoming.size <= WINDOW_BYTES)

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown(cancel_futures=True)


@cache
def decoding_limit(threads: int) -> threading.BoundedSemaphore:
    """Entered to decode, by no more than `threads` at once; shared by all bundles of a process."""
    return threading.BoundedSemaphore(threads)


@cache
def pool_for(threads: int, is_local: bool) -> ReadAhead:
    """The threads that read files, more of them if they wait for a network; shared by all bundles of a process."""
    return ReadAhead(threads) if is_local else ReadAhead(REMOTE_READERS, batch_items=1)


@dataclass(slots=True, eq=False)
class _Batch(Generic[Item, Result]):
    """Items of `size` bytes in total, and results of those that are done."""

    items: deque[Item] = field(default_factory=deque)
    size: int = 0
    results: deque[Result] = field(default_factory=deque)
    future: Future[None] = field(default_factory=Future)

    def has_stopped(self) -> bool:
        """Whether its work has stopped because there was no room for more results."""
        return bool(self.items) and self.future.done() and self.future.exception() is None


class _Work(Generic[Item, Result]):
    """A function, and the number of bytes of its results that are not consumed yet."""

    def __init__(
        self, function: Callable[[Sequence[Item]], Sequence[Result]], size_of_result: Callable[[Result], int]
    ) -> None:
        self.held = 0
        self._function, self._size_of_result = function, size_of_result
        self._lock = threading.Lock()

    def hold(self, size: int) -> None:
        with self._lock:
            self.held += size

    def has_room(self) -> bool:
        return self.held < WINDOW_BYTES

    def do(self, batch: _Batch[Item, Result], at_least_one: bool) -> None:
        """Works on a batch's items while there is room; then stops instead of waiting, so it cannot block the pool."""
        while batch.items and (at_least_one or self.has_room()):
            for result in self._function(batch.items):
                self.hold(self._size_of_result(result))
                batch.results.append(result)
                batch.items.popleft()
            at_least_one = False


def _batches(items: Iterable[Item], size_of: Callable[[Item], int], most: int) -> Iterator[_Batch[Item, Any]]:
    """Batches small items: handing one over to a thread costs about as much as decoding a thumbnail."""
    batch = _Batch[Item, Any]()
    for item in items:
        batch.items.append(item)
        batch.size += size_of(item)
        if batch.size >= BATCH_BYTES or len(batch.items) >= most:
            yield batch
            batch = _Batch()
    if batch.items:
        yield batch
