"""Child processes that answer one question at a time, each started at its first question and replaced if it dies.

They import neither Beam nor TensorFlow and start in a fraction of a second. Questions and answers are bytes.
"""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from queue import SimpleQueue
from typing import Self

_ROOT = Path(__file__).parents[3]


class ChildDiedError(Exception):
    """The process ended before it answered; the message is its exit code."""


class ChildProcess:
    """One process, for one thread at a time."""

    def __init__(self, serve: str) -> None:
        """Does not start the child yet.

        Args:
            serve: `module:call`, where the called function calls `serve_answers`.
        """
        module, call = serve.split(":")
        name = call.partition("(")[0]
        self._program = f"import sys; sys.path.insert(0, {str(_ROOT)!r}); from {module} import {name}; {call}"
        self._child: subprocess.Popen[bytes] | None = None
        self._pipe, _ = Pipe()

    def ask(self, question: bytes) -> Iterator[bytes]:
        """Yields the answers to a question; the caller stops after the last.

        Raises:
            ChildDiedError: the process has ended; the next question starts another one.
        """
        if self._child is None:
            self._pipe, theirs = Pipe()
            command = [sys.executable, "-P", "-c", self._program, str(theirs.fileno())]
            self._child = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdout=subprocess.DEVNULL)
            theirs.close()
        try:
            self._pipe.send_bytes(question)
            while True:
                yield self._pipe.recv_bytes()
        except (EOFError, OSError):  # `recv_bytes` raises OSError if an answer ends early
            raise ChildDiedError(self.close()) from None

    def close(self) -> int:
        """Ends the process; returns its exit code."""
        self._pipe.close()  # the process ends when it notices
        child, self._child = self._child, None
        return child.wait() if child else 0


class ChildProcesses:
    """Processes that run the same code, for as many threads; use them in a `with` block."""

    def __init__(self, serve: str, count: int) -> None:
        """Does not start them yet; see `ChildProcess`."""
        self._children = [ChildProcess(serve) for _ in range(count)]
        self._idle: SimpleQueue[ChildProcess] = SimpleQueue()
        for child in self._children:
            self._idle.put(child)

    @contextmanager
    def borrow(self) -> Iterator[ChildProcess]:
        """Lends one of the processes to this thread."""
        child = self._idle.get()
        try:
            yield child
        finally:
            self._idle.put(child)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children:
            child.close()


def serve_answers(reply: Callable[[bytes, Callable[[bytes], None]], None]) -> None:
    """Runs in the child: calls `reply(question, answer)` for each question; `reply` may call `answer` several times."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches it too: the parent decides
    parent = Connection(int(sys.argv[1]))
    with suppress(EOFError, ConnectionError):
        while True:
            reply(parent.recv_bytes(), parent.send_bytes)
