"""Verifies shards in processes: most of the time is spent in the interpreter, which runs one thread at a time."""

import pickle
from collections.abc import Callable

from recordmill.reading.expectations import Expectations
from recordmill.reading.shard import Shard
from recordmill.reading.verify.child_process import ChildDiedError, ChildProcesses, serve_answers
from recordmill.reading.verify.verify_shard import Level, ShardCheck, verify_shard


class ShardWorkers(ChildProcesses):
    """Processes that verify shards, each started at its first use; use them in a `with` block."""

    def __init__(self, count: int) -> None:
        """Does not start them yet; `count` shards are verified at once."""
        super().__init__(f"{__name__}:serve()", count)

    def verify(self, shard: Shard, expected: Expectations, level: Level, progress: Callable[[int], None]) -> ShardCheck:
        """As `verify_shard`, without pixels; call it from as many threads as there are processes.

        A process that crashes is replaced, and its file is reported as `unreadable`.
        """
        check = ShardCheck(shard, level)
        try:
            with self.borrow() as worker:
                for answer in map(pickle.loads, worker.ask(pickle.dumps((shard, expected, level)))):
                    if isinstance(answer, ShardCheck):
                        return answer
                    progress(answer)
        except ChildDiedError as died:
            check.add("unreadable", f"reading it ended the verifier's process (exit code {died})")
        return check


def serve() -> None:
    """Runs in the process: answers each shard with numbers of records on the way, and what was found at last."""
    serve_answers(_verify)


def _verify(question: bytes, answer: Callable[[bytes], None]) -> None:
    shard, expected, level = pickle.loads(question)
    check = verify_shard(shard, expected, level, progress=lambda records: answer(pickle.dumps(records)))
    answer(pickle.dumps(check))
