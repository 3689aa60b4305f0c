"""Verifies shards in processes, because most of the time is spent in the interpreter, which runs one thread at a time.

A process imports neither Beam nor TensorFlow and starts in a fraction of a second. Shards and results pass through its
pipes; only the process reads the file.
"""

import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

from recordmill.reading.expectations import Expectations
from recordmill.reading.shard import Shard
from recordmill.reading.verify.verify_shard import Level, ShardCheck, verify_shard

_ROOT = Path(__file__).parents[3]
_PROGRAM = (
    f"import sys; sys.path.insert(0, {str(_ROOT)!r}); "
    "from recordmill.reading.verify.shard_workers import serve; serve()"
)


class ShardWorkers:
    """Processes that verify shards, each started at its first use; use them in a `with` block."""

    def __init__(self, count: int) -> None:
        """Does not start them yet.

        Args:
            count: number of shards verified at once.
        """
        self._workers = [_Worker() for _ in range(count)]
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)

    def verify(self, shard: Shard, expected: Expectations, level: Level, progress: Callable[[int], None]) -> ShardCheck:
        """As `verify_shard`, without pixels; call it from as many threads as there are processes.

        A process that crashes is replaced, and its file is reported as `unreadable`.
        """
        worker = self._idle.get()
        try:
            return worker.verify(shard, expected, level, progress)
        finally:
            self._idle.put(worker)

    def __enter__(self) -> "ShardWorkers":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.close()


class _Worker:
    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def verify(self, shard: Shard, expected: Expectations, level: Level, progress: Callable[[int], None]) -> ShardCheck:
        if self._child is None:
            command = [sys.executable, "-P", "-c", _PROGRAM]
            self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        try:
            self._child.stdin.write(pickle.dumps((shard, expected, level)))
            self._child.stdin.flush()
            while not isinstance(answer := pickle.load(self._child.stdout), ShardCheck):
                progress(answer)
        except (BrokenPipeError, EOFError, pickle.UnpicklingError):
            check = ShardCheck(shard, level)
            check.add("unreadable", f"reading it ended the verifier's process (exit code {self.close()})")
            return check
        return answer

    def close(self) -> int:
        """Ends the process; returns its exit code."""
        child, self._child = self._child, None
        if child is None:
            return 0
        assert child.stdin is not None
        assert child.stdout is not None
        with suppress(BrokenPipeError):  # it may have ended
            child.stdin.close()  # which ends it
        child.stdout.close()
        return child.wait()


def serve() -> None:
    """Runs in the process: answers each shard on standard input, with progress in between, until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches it too: the parent decides
    shards, answers = sys.stdin.buffer, sys.stdout.buffer

    def answer(what: int | ShardCheck) -> None:
        answers.write(pickle.dumps(what))
        answers.flush()

    while True:
        try:
            shard, expected, level = pickle.load(shards)
        except EOFError:
            return
        answer(verify_shard(shard, expected, level, None, answer))
