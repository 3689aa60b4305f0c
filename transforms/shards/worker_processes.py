"""Worker processes: they write shards, or convert images of a shard that this process writes.

A server forks them. The server is itself forked from the launcher, before the launcher has threads or clients of a
store. Elsewhere it is a new interpreter: a fork of a process with threads may wait forever for a lock that one of them
held. Workers get what they need by pickle, and open their own clients. If the launcher ends for any reason, the server
ends itself and the workers.
"""

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import BufferedRWPair, FileIO
from operator import attrgetter
from typing import Any, NoReturn

from apache_beam.io.filesystems import FileSystems

from recordmill.schemas.dataset.totals import ShardReport
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch, ReferenceBatchCoder
from recordmill.transforms.records.convert_image import ConvertedImage
from recordmill.transforms.shards.read_ahead import ReadAhead
from recordmill.transforms.shards.resources import PROGRESS
from recordmill.transforms.shards.shard_files import failed_report
from recordmill.transforms.shards.shard_writer import ShardWriter, WorkerDiedError, order_references

RUN_ITEMS = 64
"""The most references that a worker converts at once for another process."""

PROGRESS_ITEMS = 64
"""References after which a worker that writes a shard reports its progress."""

_CODER = ReferenceBatchCoder(ReferenceBatch)


@dataclass(frozen=True, slots=True)
class Task:
    """A worker's task with some references of a split.

    Attributes:
        split: the split.
        index: the shard to write from all of them; None to convert them, in their order.
        refs: the references, encoded: pickling them would take six times as long.
    """

    split: str
    index: int | None
    refs: bytes


@dataclass(frozen=True, slots=True)
class Advance:
    """A worker's progress since its last report: images, and seconds of processor time."""

    images: int
    cpu_seconds: float


class ForkServer:
    """Forks workers on request; started with the first of them, or at once if it is forked from this process."""

    def __init__(self, fork: bool) -> None:
        self._control: socket.socket | None = None
        if fork and threading.active_count() == 1:
            self._start(fork=True)

    def start_worker(self) -> BufferedRWPair:
        """Starts a worker; it ends when the stream to it is closed."""
        if self._control is None:
            self._start(fork=False)
        assert self._control is not None
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [b"."], [theirs.fileno()])
        return _open_stream(ours.detach())

    def close(self) -> None:
        """Ends the server and all of its workers."""
        if self._control is not None:
            self._control.close()
            self._wait()
            PROGRESS.cpu_of_workers = 0.0  # the system counts their time now

    def _start(self, fork: bool) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            if not fork:
                serving = f"from {__name__} import serve; serve({theirs.fileno()})"
                command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {serving}"]
                server = subprocess.Popen(command, pass_fds=[theirs.fileno()], start_new_session=True)
                self._wait: Callable[[], object] = server.wait
            elif pid := os.fork():
                self._wait = partial(os.waitpid, pid, 0)
            else:
                self._control.close()
                os.setsid()
                serve(theirs.detach())


def _open_stream(end: int) -> BufferedRWPair:
    """Opens an end of a socket for both directions.

    Records are pickled to it and read from it without a copy of the whole message, in half the time (at both ends
    together 85 instead of 150 us for a photograph's record).
    """
    os.set_blocking(end, True)  # Beam sets a default timeout for sockets when it looks for Google's credentials
    return BufferedRWPair(FileIO(end, "rb"), FileIO(end, "wb", closefd=False))


def _send(stream: BufferedRWPair, message: object) -> None:
    pickle.dump(message, stream)
    stream.flush()


_servers: list[ForkServer] = []


@contextmanager
def workers_allowed(fork: bool) -> Iterator[None]:
    """Allows this process to have workers within the block; ends them afterwards.

    Args:
        fork: whether this process may be forked: it is our own, and has no clients.
    """
    _servers.append(ForkServer(fork))
    try:
        yield
    finally:
        _servers.pop().close()


def serve(control: int) -> NoReturn:
    """Runs in the server: forks a worker for each socket that arrives, until the launcher closes its end."""
    workers = []
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the launcher decides what an interrupt means
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(2, 1)  # standard output belongs to the launcher's summary
        with socket.socket(fileno=control) as launcher:
            launcher.settimeout(None)
            while sockets := socket.recv_fds(launcher, 1, 1)[1]:
                if not (worker := os.fork()):
                    launcher.close()
                    _run_worker(_open_stream(sockets[0]))
                os.close(sockets[0])
                workers.append(worker)
        for worker in workers:  # most have ended, but their ids are not reused before they are waited for
            os.kill(worker, signal.SIGKILL)
            os.waitpid(worker, 0)  # so that its processor time is counted
    finally:
        os._exit(0)


def _run_worker(launcher: BufferedRWPair) -> NoReturn:
    """Runs in a worker: does one task after another."""
    done, counted = 0, 0.0

    def count(things: int) -> None:
        nonlocal done
        done += things
        if done >= PROGRESS_ITEMS:
            report_progress()

    def report_progress() -> None:
        nonlocal done, counted
        _send(launcher, Advance(done, (now := time.process_time()) - counted))
        done, counted = 0, now

    try:
        options, writer = pickle.load(launcher)
        FileSystems.set_options(options)
        writer.count_done = count
        while True:
            answer = _do_task(pickle.load(launcher), writer)
            report_progress()
            _send(launcher, answer)
    except (EOFError, ConnectionError):  # the launcher has closed its end
        os._exit(0)
    except Exception as error:  # noqa: BLE001  # it is raised in the launcher
        _send(launcher, _make_picklable(error))
    finally:
        os._exit(1)


def _do_task(task: Task, writer: ShardWriter) -> list[ConvertedImage] | ShardReport | Exception:
    """Returns the result of a task, or the error that ended it."""
    batch = _CODER.decode(task.refs)
    refs = [*batch.refs, *batch.notices]
    try:
        if task.index is None:
            return writer.convert_run(order_references(refs, writer.settings.seed), task.split)
        return writer.finish(writer.write(task.split, task.index, refs))
    except Exception as error:  # noqa: BLE001  # it is raised in the launcher
        return _make_picklable(error)


def _make_picklable(error: Exception) -> Exception:
    """Replaces an error that cannot be pickled; adds a note of where it was raised."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001  # its class cannot be made again from its arguments
        error = RuntimeError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__)
    error.add_note("".join(["in a worker process:\n", *traceback.format_exception(error)]))
    return error


class WorkerProcesses:
    """Workers that share the shards of a plan with this process."""

    def __init__(self, here: ShardWriter, there: ShardWriter, count: int, references: int) -> None:
        """Starts the workers.

        Args:
            here: writes shards in this process.
            there: writes shards in each worker.
            count: the number of workers.
            references: the number of references in all shards.
        """
        self._here = here
        self._start = (FileSystems._pipeline_options, there)
        self._count = count
        self._left = references  # in shards that are not distributed yet
        self._given = 0  # in shards that workers have and did not finish
        self._waiting = 0  # shards that have no worker yet
        self._is_free_here = True
        self._idle = [self._start_worker() for _ in range(count)]
        self._turn = threading.Condition()
        self._writing = ThreadPoolExecutor(count, thread_name_prefix="recordmill-worker")
        self._ahead = ReadAhead(count + 1, RUN_ITEMS)

    def submit(self, split: str, index: int, refs: list[ImageRef]) -> Future[ShardReport] | None:
        """Gives a shard to a worker; None if this process should write it with the workers' help, so all end together.

        The future raises what the worker raises.
        """
        with self._turn:
            share = (self._given + self._left) / (self._count + 1)
            self._left -= len(refs)
            if self._given + len(refs) > share * self._count or self._waiting > self._count:
                return None
            self._given += len(refs)
            self._waiting += 1
        return self._writing.submit(self._write, Task(split, index, _encode(refs)), len(refs))

    def convert(self, refs: Sequence[ImageRef], split: str) -> Generator[ConvertedImage, None, None]:
        """Converts references in order, in this process, and in workers as soon as one has no shard to write."""

        def run(some: Sequence[ImageRef]) -> list[ConvertedImage]:
            with self._borrow(for_shard=False) as worker:
                if worker is None:
                    return self._here.convert_run(some, split)
                return self._ask(worker, Task(split, None, _encode(some)))

        at = 0
        while at < len(refs) and (self._waiting or not self._idle):
            yield from self._here.convert(refs[at : at + RUN_ITEMS], split)
            at += RUN_ITEMS
        yield from self._ahead.map_runs(run, refs[at:], attrgetter("expected_bytes"), ConvertedImage.size)

    def close(self) -> None:
        """Ends the workers when they have written their shards."""
        self._writing.shutdown(cancel_futures=True)
        self._ahead.close()
        for worker in self._idle:
            worker.close()

    def _start_worker(self) -> BufferedRWPair:
        worker = _servers[-1].start_worker()
        _send(worker, self._start)
        return worker

    def _write(self, task: Task, references: int) -> ShardReport:
        try:
            with self._borrow(for_shard=True) as worker:
                return self._ask(worker, task)
        except WorkerDiedError as error:
            return failed_report(task.split, task.index or 0, references, str(error))
        finally:
            with self._turn:
                self._given -= references

    @contextmanager
    def _borrow(self, for_shard: bool) -> Iterator[BufferedRWPair | None]:
        """Waits for an idle worker or, for images, until this process (None) is free; shards come first."""

        def is_ready() -> bool:
            return (bool(self._idle) and (for_shard or not self._waiting)) or (not for_shard and self._is_free_here)

        with self._turn:
            self._turn.wait_for(is_ready)
            worker = self._idle.pop() if self._idle and (for_shard or not self._waiting) else None
            self._waiting -= for_shard
            self._is_free_here &= worker is not None
        try:
            yield worker
        except WorkerDiedError:
            worker = self._start_worker()
            raise
        finally:
            with self._turn:
                if worker is None:
                    self._is_free_here = True
                else:
                    self._idle.append(worker)
                self._turn.notify_all()

    def _ask(self, worker: BufferedRWPair | None, task: Task) -> Any:
        """Lets a worker do a task and returns the result; raises what the worker raised."""
        assert worker is not None
        try:
            _send(worker, task)
            while isinstance(answer := pickle.load(worker), Advance):
                PROGRESS.add_done(answer.images, answer.cpu_seconds)
        except (EOFError, OSError, pickle.UnpicklingError):  # the worker has ended, perhaps within an answer
            with suppress(OSError):  # closing flushes a task that may not have been sent
                worker.close()
            what = f"shard {task.split}-{task.index:05d}" if task.index is not None else f"images of {task.split}"
            why = "a worker process ended before it was done with"
            raise WorkerDiedError(
                f"{why} {what}: it was killed, or there was not enough memory; run the same command again to continue "
                "from finished shards, with fewer --processes"
            ) from None
        if isinstance(answer, Exception):
            raise answer
        return answer


def _encode(refs: Sequence[ImageRef]) -> bytes:
    return _CODER.encode(ReferenceBatch.of(refs))
