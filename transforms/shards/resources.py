"""What this process may use, also in a container: processors and memory."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

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
    """Returns the number of processes to convert images.

    One per processor, as far as memory allows.
    """
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
