"""What this process may use, also in a container, and has used: processors, memory, progress.

Progress is for the bar of a launcher that runs the work itself; the ledger's counts come out of the
pipeline.
"""

import math
import os
import resource
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from recordmill.schemas.dataset.price import Price
from recordmill.schemas.settings.dataset import DatasetSettings

PROCESS_BYTES = 300 * 10**6
"""Memory to reserve for each further process: for the process itself, and ordinary photographs in
progress."""

CGROUPS = Path("/sys/fs/cgroup")
SYSTEM = Path("/proc")

_FIRST: dict[str, tuple[str, ...]] = {
    "cpu": ("cpu.cfs_quota_us", "cpu.cfs_period_us"),
    "memory": ("memory.limit_in_bytes",),
}
_SECOND: dict[str, tuple[str, ...]] = {"cpu": ("cpu.max",), "memory": ("memory.max",)}
"""Files with the limits of control groups, versions 1 and 2. (Their current usage would include
cached files.)"""


def available_processors() -> int:
    """Returns the number of processors that this process may run on.

    If the quota of its control group is lower, returns that.
    """
    if hasattr(os, "sched_getaffinity"):
        most = len(os.sched_getaffinity(0))
    else:
        most = os.cpu_count() or 1
    quotas = [quota / period for quota, period in _limits("cpu") if quota > 0 and period > 0]
    return max(1, math.ceil(min([most, *quotas])))


def default_processes() -> int:
    """The number of processes to convert images: one per processor, as far as memory allows."""
    free = [limit for (limit,) in _limits("memory")]
    with suppress(OSError):
        lines = (SYSTEM / "meminfo").read_text().splitlines()
        free += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return max(1, min([available_processors(), *(1 + each // PROCESS_BYTES for each in free)]))


def fewest_for_processes(settings: DatasetSettings) -> int:
    """Returns the number of references below which further processes do not pay off.

    They would take as long to start as they save.
    """
    if settings.decodes_nothing:
        return 4_000
    return 1_000


def _limits(controller: str) -> Iterator[list[int]]:
    """Yields the numbers of each limit that a controller sets for this process.

    It sets a limit for the process's group, or for a parent of it.
    """
    with suppress(OSError):
        for line in (SYSTEM / "self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if controllers:
                files, root = _FIRST, CGROUPS / controller
            else:
                files, root = _SECOND, CGROUPS
            if controllers and controller not in controllers.split(","):
                continue
            below = Path(group.lstrip("/"))
            # In a container, the group's own path may not be visible, and its limits are at the
            # top.
            for each in (below, *below.parents):
                with suppress(OSError, ValueError):  # "max" means that there is no limit
                    texts = [(root / each / name).read_text() for name in files[controller]]
                    yield [*map(int, " ".join(texts).split())]


@dataclass
class Progress:
    """Counters that worker threads add to and a launcher's thread reads.

    Attributes:
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

    listed: int = 0
    planned: int = 0
    done: int = 0
    stage: str = "listing"
    unit: str = "image"
    entered: dict[str, float] = field(default_factory=dict)
    cpu_before: float = 0.0
    cpu_of_workers: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def reset(self, unit: str = "image", alone: bool = False) -> None:
        """Starts again, as a process may run several pipelines.

        If `alone`, the process's processor time so far is this run's.
        """
        with self._lock:
            self.cpu_before = 0.0 if alone else _cpu_seconds()
            self.listed = self.planned = self.done = 0
            self.cpu_of_workers = 0.0
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
        """Processor time of the run so far: of this process and its workers."""
        return _cpu_seconds() - self.cpu_before + self.cpu_of_workers

    def price(self, bytes_read: int, bytes_written: int) -> Price | None:
        """What the run has cost so far; None if this process did not do all of it."""
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


PROGRESS = Progress()
"""This process's progress."""


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def peak_memory() -> int:
    """The peak memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )
