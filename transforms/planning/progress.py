"""The progress of a run, for the bar of a launcher that runs the work itself.

The ledger's counts come out of the pipeline.
"""

import os
import resource
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from recordmill.schemas.dataset.price import Price


@dataclass
class Progress:
    """Counters that worker threads add to and a launcher's thread reads.

    It belongs to one run. A copy that was pickled is the same object in the same process, and an
    empty one elsewhere.

    Attributes:
        name: identifies it.
        listed: things found so far.
        planned: things to convert, once that is known.
        done: things written, rejected, or found finished so far.
        stage: the current work, in a word.
        unit: what is counted: image, file or row.
        entered: when each stage began, by a monotonic clock; empty unless this process runs the
            work from the start.
        cpu_before: processor time of this process that belongs to other work.
        cpu_of_workers: processor time that worker processes have reported and the system does not
            count yet.
    """

    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    listed: int = 0
    planned: int = 0
    done: int = 0
    stage: str = "listing"
    unit: str = "image"
    entered: dict[str, float] = field(default_factory=dict)
    cpu_before: float = 0.0
    cpu_of_workers: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        _HERE[self.name] = self

    def __reduce__(self) -> tuple[Callable[[str], "Progress"], tuple[str]]:
        return progress_of, (self.name,)

    def begin(self, unit: str = "image", alone: bool = False) -> None:
        """Begins with the listing, in a process that does all the work.

        If `alone`, the process's processor time so far is this run's.
        """
        with self._lock:
            if not alone:
                self.cpu_before = _cpu_seconds()
            self.stage, self.unit = "listing", unit
            self.entered = {"listing": time.monotonic()}

    def enter(self, stage: str) -> None:
        """Begins another stage."""
        with self._lock:
            self.stage = stage
            if self.entered:
                self.entered[stage] = time.monotonic()

    def seconds(self) -> dict[str, float]:
        """Returns how long each stage took, the last one until now.

        The result is empty if this process did not do all of them.
        """
        with self._lock:
            ends = [*list(self.entered.values())[1:], time.monotonic()]
            return {
                name: end - began
                for (name, began), end in zip(self.entered.items(), ends, strict=False)
            }

    def cpu_seconds(self) -> float:
        """Returns processor time of the run so far: of this process and its workers."""
        return _cpu_seconds() - self.cpu_before + self.cpu_of_workers

    def price(self, bytes_read: int, bytes_written: int) -> Price | None:
        """Returns what the run has cost so far; None if this process did not do all of it."""
        if not (seconds := self.seconds()):
            return None
        return Price(
            cpu_seconds=round(self.cpu_seconds(), 2),
            memory=peak_memory(),
            bytes_read=bytes_read,
            bytes_written=bytes_written,
            minutes=round(sum(seconds.values()) / 60, 2),
        )

    def add_done(self, things: int, cpu_seconds: float = 0.0) -> None:
        """Counts things that are done, and processor time.

        `cpu_seconds` is that of a worker process since its last report.
        """
        with self._lock:
            self.done += things
            self.cpu_of_workers += cpu_seconds

    def add_listed(self, things: int) -> None:
        """Counts things found."""
        with self._lock:
            self.listed += things


_HERE: WeakValueDictionary[str, Progress] = WeakValueDictionary()
"""The progress of the runs in this process, by name."""


def progress_of(name: str) -> Progress:
    """Returns the progress of that name in this process."""
    return _HERE.get(name) or Progress(name)


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def peak_memory() -> int:
    """Returns the peak memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )
