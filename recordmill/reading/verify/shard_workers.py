"""Verifies shards in processes: most of the time is spent in the interpreter, which runs one thread at a time."""

import pickle
from collections.abc import Callable
from queue import SimpleQueue

from recordmill.reading.expectations import Expectations
from recordmill.reading.shard import Shard
from recordmill.reading.verify.child_process import ChildDiedError, ChildProcess, answer, questions
from recordmill.reading.verify.verify_shard import Level, ShardCheck, verify_shard


class ShardWorkers:
    """Processes that verify shards, each started at its first use; use them in a `with` block."""

    def __init__(self, count: int) -> None:
        """Does not start them yet.

        Args:
            count: number of shards verified at once.
        """
        self._workers = [ChildProcess(f"{__name__}:serve()") for _ in range(count)]
        self._idle: SimpleQueue[ChildProcess] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)

    def verify(self, shard: Shard, expected: Expectations, level: Level, progress: Callable[[int], None]) -> ShardCheck:
        """As `verify_shard`, without pixels; call it from as many threads as there are processes.

        A process that crashes is replaced, and its file is reported as `unreadable`.
        """
        worker = self._idle.get()
        try:
            for content in worker.ask(pickle.dumps((shard, expected, level))):
                if isinstance(check := pickle.loads(content), ShardCheck):
                    return check
                progress(check)
        except ChildDiedError as died:
            check = ShardCheck(shard, level)
            check.add("unreadable", f"reading it ended the verifier's process (exit code {died})")
        finally:
            self._idle.put(worker)
        return check

    def __enter__(self) -> "ShardWorkers":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.close()


def serve() -> None:
    """The process: answers each shard with numbers of records on the way, and what was found at last."""
    for question in questions():
        shard, expected, level = pickle.loads(question)
        check = verify_shard(shard, expected, level, progress=lambda records: answer(pickle.dumps(records)))
        answer(pickle.dumps(check))
