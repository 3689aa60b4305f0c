"""Worker processes: they write shards, or convert images of a shard that this process writes.

They are forked from the launcher before it has threads or clients of a store. Elsewhere they are
new interpreters: a fork of a process with threads may wait forever for a lock that one of them
held. Workers get what they need by pickle, and open their own clients. They end with the launcher,
for whatever reason it ends.
"""

import os
import pickle
import select
import signal
import threading
import time
import traceback
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, NoReturn

from apache_beam.io.filesystems import FileSystems

from recordmill.schemas.dataset.totals import ShardReport
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.pillow_warnings import ignore_pillow_warnings
from recordmill.schemas.python_process import python_command, python_environment
from recordmill.schemas.reference_batch import ShardBatch, ShardBatchCoder
from recordmill.storage.stores.find_store import file_system_options
from recordmill.transforms.planning.progress import Progress
from recordmill.transforms.records.convert_image import ConvertedImage
from recordmill.transforms.shards.read_ahead import ReadAhead, take_first
from recordmill.transforms.shards.shard_files import failed_report
from recordmill.transforms.shards.shard_writer import ShardWriter, WorkerDiedError

RUN_ITEMS, RUN_BYTES = 64, 2**20
"""The most references that a worker converts at once for another process, and the bytes of their
images."""

PROGRESS_ITEMS = 64
"""References after which a worker that writes a shard reports its progress."""

_CODER = ShardBatchCoder()


class Task(NamedTuple):
    """A worker's task with some references of a split.

    Attributes:
        split: the split.
        shard: the shard to write from all of them; None to convert them, in their order.
        batch: the references, encoded: pickling them would take six times as long.
    """

    split: str
    shard: int | None
    batch: bytes


class Advance(NamedTuple):
    """A worker's progress since its last report: images, and seconds of processor time."""

    images: int
    cpu_seconds: float


_processes: list[int] = []
"""The ids of all workers, busy or idle."""

_unused: list[Connection] = []
"""The connections to workers that were forked in advance."""


@contextmanager
def workers_allowed(forks: int, progress: Progress) -> Iterator[None]:
    """Allows this process to have workers within the block; ends them afterwards.

    Args:
        forks: how many to fork at once; 0 if this process is not our own, or has threads or
            clients.
        progress: of the run, which then has the workers' processor time from the system.
    """
    for _ in range(forks if threading.active_count() == 1 else 0):
        _unused.append(_start_worker(fork=True))
    try:
        yield
    finally:
        for process in _processes:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)  # so that its processor time is counted
        _processes.clear()
        _unused.clear()
        progress.cpu_of_workers = 0.0  # the system counts their time now


def _start_worker(fork: bool) -> Connection:
    """Starts a worker, as a fork or in a new interpreter; returns the connection to it."""
    ours, theirs = Pipe()
    with theirs:
        if not fork:
            os.set_inheritable(theirs.fileno(), True)
            command = python_command(serve, theirs.fileno())
            process = os.posix_spawn(command[0], command, python_environment())
        elif not (process := os.fork()):
            ours.close()
            serve(theirs.fileno())
    _processes.append(process)
    return ours


def serve(end: int) -> NoReturn:
    """Does one task after another in a worker until the launcher's end of the connection closes."""
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the launcher decides what an interrupt means
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(2, 1)  # standard output belongs to the launcher's summary
        ignore_pillow_warnings()
        threading.Thread(target=_end_with_launcher, args=(end,), daemon=True).start()
        _work_for(Connection(end))
    finally:
        os._exit(1)


def _end_with_launcher(end: int) -> NoReturn:
    """Ends this process as soon as the other end of a connection is closed, even during a task."""
    poll = select.poll()
    poll.register(end, 0)  # only for a hang-up
    poll.poll()
    os._exit(0)


def _work_for(launcher: Connection) -> None:
    done, counted = 0, 0.0

    def count(things: int) -> None:
        nonlocal done
        done += things
        if done >= PROGRESS_ITEMS:
            report_progress()

    def report_progress() -> None:
        nonlocal done, counted
        launcher.send(Advance(done, (now := time.process_time()) - counted))
        done, counted = 0, now

    try:
        options, writer = launcher.recv()
        FileSystems.set_options(options)
        writer.count_done = count
        while True:
            answer = _do_task(launcher.recv(), writer)
            report_progress()
            launcher.send(answer)
    except (EOFError, ConnectionError):  # the launcher has closed its end
        return
    except Exception as error:  # noqa: BLE001  # it is raised in the launcher
        launcher.send(_make_picklable(error))


def _do_task(task: Task, writer: ShardWriter) -> list[ConvertedImage] | ShardReport | Exception:
    """Returns the result of a task, or the error that ended it."""
    batch = _CODER.decode(task.batch)
    try:
        if task.shard is None:
            with closing(writer.convert(batch.sort(), task.split)) as images:
                return take_first(images, ConvertedImage.size)
        return writer.finish(writer.write(task.split, task.shard, batch))
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
        self._start = (file_system_options(), there)
        self._count = count
        self._left = references  # in shards that are not distributed yet
        self._given = 0  # in shards that workers have and did not finish
        self._waiting = 0  # shards that have no worker yet
        self._is_free_here = True
        self._idle = [self._start_worker() for _ in range(count)]
        self._turn = threading.Condition()
        self._writing = ThreadPoolExecutor(count, thread_name_prefix="recordmill-worker")
        self._ahead = ReadAhead(count + 1, RUN_ITEMS, RUN_BYTES)

    def submit(self, split: str, index: int, batch: ShardBatch) -> Future[ShardReport] | None:
        """Gives a shard to a worker, or returns None if this process should write it.

        In that case, this process writes it with the workers' help, so that all end together.

        The future raises what the worker raises.
        """
        with self._turn:
            share = (self._given + self._left) / (self._count + 1)
            self._left -= len(batch)
            if self._given + len(batch) > share * self._count or self._waiting > self._count:
                return None
            self._given += len(batch)
            self._waiting += 1
        return self._writing.submit(
            self._write, Task(split, index, _CODER.encode(batch)), len(batch)
        )

    def convert(self, batch: ShardBatch, split: str) -> Generator[ConvertedImage, None, None]:
        """Converts references in order, in this process and in workers.

        A worker helps as soon as it has no shard to write.
        """

        def run(pairs: Sequence[tuple[ImageRef, int]]) -> list[ConvertedImage]:
            some = ShardBatch.of_pairs(pairs)
            with self._borrow(for_shard=False) as worker:
                if worker is None:
                    with closing(self._here.convert(some, split)) as images:
                        return take_first(images, ConvertedImage.size)
                return self._ask(worker, Task(split, None, _CODER.encode(some)))

        yield from self._ahead.map_batches(
            run,
            zip(batch.refs, batch.orders, strict=True),
            lambda pair: pair[0].expected_bytes,
            ConvertedImage.size,
        )

    def close(self) -> None:
        """Ends the workers when they have written their shards."""
        self._writing.shutdown(cancel_futures=True)
        self._ahead.close()
        for worker in self._idle:
            worker.close()

    def _start_worker(self) -> Connection:
        worker = _unused.pop() if _unused else _start_worker(fork=False)
        worker.send(self._start)
        return worker

    def _write(self, task: Task, references: int) -> ShardReport:
        try:
            with self._borrow(for_shard=True) as worker:
                return self._ask(worker, task)
        except WorkerDiedError as error:
            return failed_report(task.split, task.shard or 0, references, str(error))
        finally:
            with self._turn:
                self._given -= references

    @contextmanager
    def _borrow(self, for_shard: bool) -> Iterator[Connection | None]:
        """Waits for an idle worker or, for images, for this process, which is None.

        Shards come first.
        """

        def is_ready() -> bool:
            return (bool(self._idle) and (for_shard or not self._waiting)) or (
                not for_shard and self._is_free_here
            )

        with self._turn:
            self._turn.wait_for(is_ready)
            if self._idle and (for_shard or not self._waiting):
                worker = self._idle.pop()
            else:
                worker = None
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

    def _ask(self, worker: Connection | None, task: Task) -> Any:
        """Lets a worker do a task and returns the result; raises what the worker raised."""
        assert worker is not None
        try:
            worker.send(task)
            while isinstance(answer := worker.recv(), Advance):
                self._here.run.progress.add_done(answer.images, answer.cpu_seconds)
        except (EOFError, OSError):  # the worker has ended, perhaps within an answer
            worker.close()
            raise WorkerDiedError(
                f"a worker process ended before it was done with images of {task.split}: it was "
                "killed, or there was "
                "not enough memory; run the same command again to continue from finished shards, "
                "with fewer --processes"
            ) from None
        if isinstance(answer, Exception):
            raise answer
        return answer
