"""The verifier's child processes, which verify shards. Decoding has crashed image libraries before.

Each verifies one shard at a time. It is started at its first one, and replaced if it dies. It
imports neither Beam nor TensorFlow and starts in a fraction of a second.
"""

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from queue import SimpleQueue
from typing import Any, Self

from recordmill.reading.dataset import StoredShard
from recordmill.reading.example import Expectations
from recordmill.reading.verify_shard import Level, ShardCheck, verify_shard
from recordmill.schemas.pillow_warnings import ignore_pillow_warnings
from recordmill.schemas.python_process import python_command, python_environment


class ChildDiedError(Exception):
    """The process ended before it answered; the message is its exit code."""


class ChildProcess:
    """One process that runs `serve_shards`, for one thread at a time. It is not started yet."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None

    def ask(self, *arguments: Any) -> Iterator[Any]:
        """Yields the answers about a shard: numbers of records, and finally its `ShardCheck`.

        Raises:
            ChildDiedError: the process has ended; the next question starts another one.
        """
        if self._pipe is None:
            self._pipe, theirs = Pipe()
            self._child = subprocess.Popen(
                python_command(serve_shards, theirs.fileno()),
                env=python_environment(),
                pass_fds=[theirs.fileno()],
                stdout=subprocess.DEVNULL,
            )
            theirs.close()
        try:
            self._pipe.send(arguments)
            while True:
                yield self._pipe.recv()
        except (EOFError, OSError):  # `recv` raises OSError if an answer ends early
            raise ChildDiedError(self.close()) from None

    def close(self) -> int:
        """Ends the process; returns its exit code."""
        if self._pipe is not None:
            self._pipe.close()  # the process ends when it notices
        child, self._child, self._pipe = self._child, None, None
        if child:
            return child.wait()
        return 0


class ShardWorkers:
    """Processes that verify shards for as many threads; use them in a `with` block."""

    def __init__(self, count: int) -> None:
        """Does not start them yet; `count` shards are verified at once."""
        self._children = [ChildProcess() for _ in range(count)]
        self._idle: SimpleQueue[ChildProcess] = SimpleQueue()
        for child in self._children:
            self._idle.put(child)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children:
            child.close()

    def verify(
        self,
        shard: StoredShard,
        expected: Expectations,
        level: Level,
        no_metadata: bool,
        progress: Callable[[int], None],
    ) -> ShardCheck:
        """Verifies a shard like `verify_shard`, in a child process.

        If the process crashes, it is replaced, and the file is reported as `unreadable`.
        """
        check, child = ShardCheck(shard, level), self._idle.get()
        try:
            for answer in child.ask(shard, expected, level, no_metadata):
                if isinstance(answer, ShardCheck):
                    return answer
                check.records += answer
                progress(answer)
        except ChildDiedError as died:
            where = "at its beginning"
            if check.records:
                where = f"after {check.records:,} records"
            check.add(
                "unreadable", f"reading it ended the verifier's process {where} (exit code {died})"
            )
        finally:
            self._idle.put(child)
        return check


def serve_shards(end: int) -> None:
    """Runs in the child: verifies one shard after the other.

    Args:
        end: the file descriptor of its end of the connection.
    """
    # Ctrl-C in a terminal reaches it too: the parent decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ignore_pillow_warnings()
    parent = Connection(end)
    with suppress(EOFError, ConnectionError):
        while True:
            shard, expected, level, no_metadata = parent.recv()
            parent.send(verify_shard(shard, expected, level, no_metadata, parent.send))
