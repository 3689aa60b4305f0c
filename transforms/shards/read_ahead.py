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

BATCH_BYTES = 2**18
BATCH_ITEMS = 16

RESULT_BYTES = 2**22
"""The bytes of results after which a call leaves the rest of its batch: small files may be large
images."""


def take_first(results: Iterable[Result], size_of: Callable[[Result], int]) -> list[Result]:
    """Returns the first results, until they have `RESULT_BYTES` together."""
    taken, size = list[Result](), 0
    for result in results:
        taken.append(result)
        size += size_of(result)
        if size >= RESULT_BYTES:
            break
    return taken


class ReadAhead:
    """A pool of threads that maps a function over items ahead of the consumer.

    Several consumers may share it.

    Reading and decoding release the interpreter's lock, so threads use all processors: two of them
    decoded and encoded 1.14 times as fast as two processes of plain Pillow.
    """

    def __init__(
        self, threads: int, batch_items: int = BATCH_ITEMS, batch_bytes: int = BATCH_BYTES
    ) -> None:
        self._threads = threads
        self._most = (batch_items, batch_bytes)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="recordmill")

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        size_of: Callable[[Item], int],
        size_of_result: Callable[[Result], int],
    ) -> Generator[Result, None, None]:
        """Yields the function's results in the order of the items; see `map_batches`."""
        return self.map_batches(
            lambda some: take_first(map(function, some), size_of_result),
            items,
            size_of,
            size_of_result,
        )

    def map_batches(
        self,
        function: Callable[[Sequence[Item]], Sequence[Result]],
        items: Iterable[Item],
        size_of: Callable[[Item], int],
        size_of_result: Callable[[Result], int],
    ) -> Generator[Result, None, None]:
        """Yields the results in the order of the items.

        Of a batch of items, each call handles the first one or more.

        New items are begun while those in progress and the waiting results together are within
        `WINDOW_BYTES`. The size of a result is known only when it exists, so results may exceed
        that by those of one call in each thread. What a call leaves is done when its turn has come.
        If the function raises, the error is raised here and the rest is dropped.
        """
        waiting: deque[_Batch[Item, Result]] = deque()

        def work(batch: _Batch[Item, Result]) -> Sequence[Result]:
            results = function(batch.items)
            batch.size = sum(map(size_of_result, results))
            return results

        def finish(batch: _Batch[Item, Result]) -> Iterator[Result]:
            results = batch.future.result()
            while batch.items:
                yield from results
                del batch.items[: len(results)]
                results = function(batch.items) if batch.items else ()

        try:
            for batch in _batches(items, size_of, *self._most):
                while waiting and not self._has_room(waiting, batch.size):
                    yield from finish(waiting.popleft())
                batch.future = self._pool.submit(work, batch)
                waiting.append(batch)
            while waiting:
                yield from finish(waiting.popleft())
        finally:
            for batch in waiting:
                batch.future.cancel()

    def _has_room(self, waiting: "deque[_Batch[Item, Result]]", size: int) -> bool:
        return (
            len(waiting) <= 2 * self._threads
            and sum(batch.size for batch in waiting) + size <= WINDOW_BYTES
        )

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown(cancel_futures=True)


@cache
def decoding_limit(threads: int) -> threading.BoundedSemaphore:
    """Returns a semaphore that limits decoding to `threads`, for all bundles of a process."""
    return threading.BoundedSemaphore(threads)


@cache
def pool_for(threads: int, is_local: bool) -> ReadAhead:
    """Returns the threads that read files, more of them if they wait for a network.

    All bundles of a process share them.
    """
    if is_local:
        return ReadAhead(threads)
    return ReadAhead(REMOTE_READERS, batch_items=1)


@dataclass(slots=True, eq=False)
class _Batch(Generic[Item, Result]):
    """A batch of items.

    `size` is the number of their bytes or, when they are done, of the bytes of the results.
    """

    items: list[Item] = field(default_factory=list)
    size: int = 0
    future: Future[Sequence[Result]] = field(default_factory=Future)


def _batches(
    items: Iterable[Item], size_of: Callable[[Item], int], most_items: int, most_bytes: int
) -> Iterator[_Batch[Item, Any]]:
    """Batches small items.

    Handing one item over to a thread costs about as much as decoding a thumbnail.
    """
    batch = _Batch[Item, Any]()
    for item in items:
        batch.items.append(item)
        batch.size += size_of(item)
        if batch.size >= most_bytes or len(batch.items) >= most_items:
            yield batch
            batch = _Batch()
    if batch.items:
        yield batch
