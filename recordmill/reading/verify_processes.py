"""The verifier's child processes. They verify shards, or decode images, which has crashed image libraries before.

Each answers one question at a time. It is started at its first question, and replaced if it dies. It imports neither
Beam nor TensorFlow and starts in a fraction of a second. Questions and answers are bytes.
"""

import hashlib
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from queue import SimpleQueue
from typing import Self

import orjson

from recordmill.reading.dataset import Shard
from recordmill.reading.example import Expectations, ParsedExample, find_image
from recordmill.reading.verify_shard import Level, ShardCheck, verify_shard
from recordmill.schemas.rejection import Rejected

_ROOT = Path(__file__).parents[2]


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


class ShardWorkers(ChildProcesses):
    """Processes that verify shards, each started at its first use; use them in a `with` block."""

    def __init__(self, count: int) -> None:
        """Does not start them yet; `count` shards are verified at once."""
        super().__init__(f"{__name__}:serve_shards()", count)

    def verify(self, shard: Shard, expected: Expectations, level: Level, progress: Callable[[int], None]) -> ShardCheck:
        """Like `verify_shard`, without checking images; call it from as many threads as there are processes.

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


def serve_shards() -> None:
    """Runs in the child: answers each shard with numbers of records as progress, and finally its `ShardCheck`."""

    def verify(question: bytes, answer: Callable[[bytes], None]) -> None:
        shard, expected, level = pickle.loads(question)
        check = verify_shard(shard, expected, level, progress=lambda records: answer(pickle.dumps(records)))
        answer(pickle.dumps(check))

    serve_answers(verify)


_SIZES = (("image/height", "image/width"), ("height", "width"), ("image_height", "image_width"))
_DIGEST = "image/key/sha256"
_HEX = re.compile(rb"[0-9a-f]{64}")


class ImageDecoders(ChildProcesses):
    """Processes that decode images, each started at its first use; use them in a `with` block."""

    def __init__(self, max_pixels: int, count: int) -> None:
        """Does not start them yet; images of more than `max_pixels` pixels are not decoded."""
        super().__init__(f"{__name__}:serve_images({max_pixels})", count)


def check_pixels(expected: Expectations, decoders: ImageDecoders, example: ParsedExample) -> tuple[str, str]:
    """The kind and the text of the problem with a record's image; two empty strings if there is none."""
    key, image = find_image(example, expected)
    if not key:
        return "", ""
    digest = example.values(_DIGEST) or ()
    is_digest = len(digest) == 1 and isinstance(digest[0], bytes) and _HEX.fullmatch(digest[0])
    if is_digest and hashlib.sha256(image).hexdigest().encode() != digest[0]:
        return "sha256", f"the image's sha256 differs from {_DIGEST}"
    try:
        with decoders.borrow() as decoder:
            height, width, problem = orjson.loads(next(decoder.ask(image)))
    except ChildDiedError as died:
        problem = f"decoding it ended the decoder's process (exit code {died})"
    if problem:
        return "pixels", problem
    for height_key, width_key in _SIZES:
        sides = [*(example.values(height_key) or ()), *(example.values(width_key) or ())]
        if len(sides) == 2 and sides != [height, width]:
            return "pixels", f"the image has {width} x {height} pixels and the record says {sides[1]} x {sides[0]}"
    return "", ""


def serve_images(max_pixels: int) -> None:
    """Runs in the child: answers each image with its height, its width, and the reason if it cannot be decoded."""
    # Imported here: the processes that verify shards do without Pillow.
    from recordmill.imaging import ImageSettings, find_missing_decoder, prepare_image
    from recordmill.schemas.settings.images import FORMATS, OPTIONAL_FORMATS

    formats = tuple(name for name in (*FORMATS, *OPTIONAL_FORMATS) if not find_missing_decoder([name]))
    settings = ImageSettings(formats=formats, reencode="never", max_bytes=2**31, max_pixels=max_pixels)

    def decode(image: bytes, answer: Callable[[bytes], None]) -> None:
        try:
            prepared = prepare_image(image, settings)
            answer(orjson.dumps((prepared.height, prepared.width, "")))
        except Rejected as bad:
            answer(orjson.dumps((0, 0, f"the image cannot be decoded: {bad}"[:1000])))

    serve_answers(decode)
