"""Work done ahead of its consumer, in threads, in order, within bounds; and the threads that read and decode."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar
from weakref import WeakValueDictionary

from recordmill import storage

Item = TypeVar("Item")
Result = TypeVar("Result")

WINDOW_BYTES = 32 * 2**20
"""Bytes of images that may be read and not yet written."""

REMOTE_READERS = 128
"""Images under way at once where each read waits for a network; decoding stays bounded by `threads`."""

BATCH_BYTES = 2**20
BATCH_ITEMS = 16


class ReadAhead:
    """A pool of threads that maps a function over items ahead of the consumer; consumers may share it.

    The function's reading and decoding release the interpreter's lock, so that threads use all processors: decoding
    and encoding with two of them gave 1.14 times what two processes of plain Pillow gave.
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
        """Yields the results in the order of the items; the function gives those of the first one or more of a run.

        New items are begun while those under way and the results that wait are within `WINDOW_BYTES`. How large a
        result becomes is known when it is there: no more than `WINDOW_BYTES` and the results of one call in each thread
        are ever held. What the function raises is raised here; the rest is then dropped.
        """
        batches = _batches(items, size_of, self._batch_items)
        held = _Held()
        waiting: deque[_Batch[Item, Result]] = deque()

        def run(batch: _Batch[Item, Result], at_least_one: bool = False) -> None:
            batch.future = self._pool.submit(_work, batch, function, size_of_result, held, at_least_one)

        try:
            upcoming = next(batches, None)
            while waiting or upcoming:
                while upcoming and self._has_room(waiting, upcoming, held):
                    waiting.append(_Batch(deque(upcoming[0]), upcoming[1]))
                    run(waiting[-1])
                    upcoming = next(batches, None)
                first = waiting[0]
                first.future.result()
                while first.results:
                    size = size_of_result(first.results[0])
                    yield first.results.popleft()
                    held.add(-size)
                if not first.items:
                    waiting.popleft()
                for batch in waiting:
                    if batch.has_stopped() and (batch is waiting[0] or held.has_room()):
                        run(batch, at_least_one=batch is waiting[0])
        finally:
            for batch in waiting:
                batch.future.cancel()

    def _has_room(
        self, waiting: "deque[_Batch[Item, Result]]", upcoming: "tuple[list[Item], int]", held: "_Held"
    ) -> bool:
        under_way = held.bytes + sum(batch.size for batch in waiting if batch.items)
        return not waiting or (len(waiting) <= 2 * self._threads and under_way + upcoming[1] <= WINDOW_BYTES)

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown(cancel_futures=True)


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


class _Held:
    """How many bytes of results are there and not consumed."""

    def __init__(self) -> None:
        self.bytes = 0
        self._lock = threading.Lock()

    def add(self, size: int) -> None:
        with self._lock:
            self.bytes += size

    def has_room(self) -> bool:
        return self.bytes < WINDOW_BYTES


@dataclass(slots=True, eq=False)
class _Batch(Generic[Item, Result]):
    """Items of `size` bytes in total, and the results of those that are done."""

    items: deque[Item]
    size: int
    results: deque[Result] = field(default_factory=deque)
    future: Future[None] = field(default_factory=Future)

    def has_stopped(self) -> bool:
        """Whether there was no room for all of its results."""
        return bool(self.items) and self.future.done() and self.future.exception() is None


def _work(
    batch: _Batch[Item, Result],
    function: Callable[[Sequence[Item]], Sequence[Result]],
    size_of_result: Callable[[Result], int],
    held: _Held,
    at_least_one: bool,
) -> None:
    """Does a batch's items while there is room; stops rather than waits, so that no pool can be blocked."""
    while batch.items and (at_least_one or held.has_room()):
        for result in function(batch.items):
            held.add(size_of_result(result))
            batch.results.append(result)
            batch.items.popleft()
        at_least_one = False


def _batches(items: Iterable[Item], size_of: Callable[[Item], int], most: int) -> Iterator[tuple[list[Item], int]]:
    """Small items travel together: handing one over to a thread costs about what decoding a thumbnail does."""
    batch: list[Item] = []
    total = 0
    for item in items:
        batch.append(item)
        total += size_of(item)
        if total >= BATCH_BYTES or len(batch) >= most:
            yield batch, total
            batch, total = [], 0
    if batch:
        yield batch, total
