"""A child process that answers one question after the other, started when it is first asked and replaced if it dies.

It imports neither Beam nor TensorFlow and starts in a fraction of a second. Questions and answers are bytes.
"""

import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

_LENGTH = struct.Struct("<Q")
_ROOT = Path(__file__).parents[3]


class ChildDiedError(Exception):
    """The process ended before it answered; the message is its exit code."""


class ChildProcess:
    """One process, for one thread at a time; use it in a `with` block."""

    def __init__(self, serve: str) -> None:
        """Does not start the child yet.

        Args:
            serve: what the process runs, as Python: a call of a function that answers `questions()`.
        """
        module, call = serve.split(":")
        name = call.partition("(")[0]
        self._program = f"import sys; sys.path.insert(0, {str(_ROOT)!r}); from {module} import {name}; {call}"
        self._child: subprocess.Popen[bytes] | None = None

    def ask(self, question: bytes) -> Iterator[bytes]:
        """The answers to a question, as many as are taken of the iterator.

        Raises:
            ChildDiedError: the process has ended; the next question starts another one.
        """
        if self._child is None:
            command = [sys.executable, "-P", "-c", self._program]
            self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        try:
            _send(self._child.stdin, question)
            while (answer := _receive(self._child.stdout)) is not None:
                yield answer
        except BrokenPipeError:
            pass
        raise ChildDiedError(self.close())

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def questions() -> Iterator[bytes]:
    """In the process: the questions, until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches it too: the parent decides
    while (question := _receive(sys.stdin.buffer)) is not None:
        yield question


def answer(content: bytes) -> None:
    """In the process: answers the last question; may be called several times."""
    _send(sys.stdout.buffer, content)


def _send(stream: IO[bytes], content: bytes) -> None:
    stream.write(_LENGTH.pack(len(content)) + content)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    length = _LENGTH.unpack(head)[0]
    content = stream.read(length)
    return content if len(content) == length else None
