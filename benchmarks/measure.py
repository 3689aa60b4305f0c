"""The functions that the benchmarks share.

They run a command and measure it whole, call contenders in alternation, and handle options and
results.
"""

import argparse
import json
import math
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import psutil
from rich.console import Console

from benchmarks import frames, photographs

ROOT = Path(__file__).resolve().parent.parent
PIPELINE = (
    f"{shlex.quote(sys.executable)} -m pipeline.run --runner=DirectRunner --config "
    "configs/class_folders.yaml"
)
SAMPLE_EVERY = 0.02  # seconds between two looks at the processes

console = Console(stderr=True, log_path=False)
T = TypeVar("T")


class BenchmarkError(Exception):
    """A contender failed, or did not do the whole job: its time means nothing."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a command, from before its process starts until it has ended.

    Attributes:
        seconds: wall time.
        cpu_seconds: user and system time of the process and of all descendants that were waited
            for; if samples of the process tree add up to more, they count, since some programs do
            not wait for their workers.
        peak_rss: the largest sum of resident bytes over the whole process tree; shared pages count
            once per process.
        others: processors that the rest of the machine kept busy meanwhile; much more than 0 spoils
            the timing.
        summary: the last line of standard output if that is a JSON object, else empty.
        records: records read back from the output; 0 for a command without output.
        size: bytes of the output's record files.
    """

    seconds: float
    cpu_seconds: float
    peak_rss: int
    others: float
    summary: Mapping[str, Any]
    records: int = 0
    size: int = 0

    @property
    def working(self) -> float | None:
        """Seconds without start-up by the command's own account, if it gives one."""
        seconds = self.summary.get("seconds")
        own = (
            seconds.get("converting")
            if isinstance(seconds, dict)
            else self.summary.get("seconds_working")
        )
        return float(own) if isinstance(own, int | float) else None


def run(command: Sequence[str]) -> Run:
    """Runs a command in the repository's root and measures it.

    Raises:
        BenchmarkError: if it fails; with the end of what it said.
    """
    os.sync()  # pages that the previous contender left to write are not this one's cost
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        busy, started = _busy(), time.perf_counter()
        # Compiled modules are kept, as on a user's machine: a container may ask Python not to.
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
        )
        tree = _Tree(process.pid)
        tree.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds, busy = time.perf_counter() - started, _busy() - busy
        process.returncode = os.waitstatus_to_exitcode(status)
        tree.stop()
        stdout.seek(0)
        stderr.seek(0)
        if process.returncode:
            said = stderr.read().decode(errors="replace")[-2000:]
            raise BenchmarkError(f"exit code {process.returncode}: {shlex.join(command)}\n{said}")
        cpu_seconds = max(usage.ru_utime + usage.ru_stime, sum(tree.cpu_seconds.values()))
        others = max(0.0, busy - cpu_seconds) / seconds
        return Run(seconds, cpu_seconds, tree.peak, others, last_object(stdout.read()))


def convert(command: Sequence[str], photographs: Path, count: int, work: Path) -> Run:
    """Runs a converter (`--input` and `--output` are appended) and reads its records back.

    Raises:
        BenchmarkError: if it fails, or its files do not hold `count` records.
    """
    output = work / "output"
    shutil.rmtree(output, ignore_errors=True)
    try:
        measured = run([*command, "--input", str(photographs), "--output", str(output)])
        records, size = frames.count(output)
    except frames.Damaged as damage:
        raise BenchmarkError(f"{shlex.join(command)}: {damage}") from damage
    finally:
        shutil.rmtree(output, ignore_errors=True)
    if records != count:
        raise BenchmarkError(f"{records} records for {count} photographs: {shlex.join(command)}")
    return replace(measured, records=records, size=size)


def last_object(output: bytes) -> Mapping[str, Any]:
    """Returns the last line as a JSON object, or an empty one if it is something else."""
    lines = output.strip().splitlines()
    try:
        value = json.loads(lines[-1])
    except (IndexError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def alternate(contenders: Mapping[str, Callable[[], T]], pairs: int) -> dict[str, list[T]]:
    """Calls each contender once per round, in reverse order every other round.

    Returns each one's results by round.
    """
    results: dict[str, list[T]] = {name: [] for name in contenders}
    for number in range(pairs):
        order = list(contenders)[:: 1 if number % 2 == 0 else -1]
        for name in order:
            results[name].append(contenders[name]())
            console.log(f"pair {number + 1} of {pairs}: {name}")
    return results


def spread(values: Iterable[float]) -> dict[str, float]:
    """Returns the smallest, the median and the largest value.

    NaN counts only if there is nothing else.
    """
    every = list(values)
    ordered = sorted(value for value in every if not math.isnan(value)) or every
    return {
        "min": round(ordered[0], 4),
        "median": round(statistics.median(ordered), 4),
        "max": round(ordered[-1], 4),
    }


def machine() -> dict[str, Any]:
    """Says what the figures depend on and a reader may compare: no names."""
    return {
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.system(),
    }


def load() -> float:
    """Returns how many processes wanted a processor over the last minute.

    More than there are processors spoil absolute times.
    """
    return round(os.getloadavg()[0], 1)


def options(description: str | None) -> argparse.ArgumentParser:
    """Returns a parser of the options that all benchmarks take."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=photographs.DEFAULT_WORK,
        help="folder for input and output (%(default)s)",
    )
    parser.add_argument(
        "--photographs", type=Path, metavar="DIR", help="your own JPEGs instead of synthetic ones"
    )
    parser.add_argument(
        "--pipeline",
        type=shlex.split,
        default=shlex.split(PIPELINE),
        metavar="COMMAND",
        help="what to measure; --input and --output are appended (our DirectRunner, class folders)",
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    return parser


def finish(result: Mapping[str, Any], missed: Sequence[str], check: bool) -> NoReturn:
    """Prints the result as one line of JSON on stdout, names the missed targets, and exits."""
    print(json.dumps(result), flush=True)
    for target in missed:
        console.print(f"[red]missed:[/] {target}")
    sys.exit(1 if check and missed else 0)


class _Tree(threading.Thread):
    """A thread that samples a process and its descendants.

    It samples their summed resident memory, and the processor time of each.
    """

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self.cpu_seconds: dict[psutil.Process, float] = {}
        self._root = psutil.Process(pid)
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(SAMPLE_EVERY):
            try:
                tree = [self._root, *self._root.children(recursive=True)]
            except psutil.NoSuchProcess:
                return
            self.peak = max(self.peak, sum(map(self._look_at, tree)))

    def stop(self) -> None:
        self._ended.set()
        self.join()

    def _look_at(self, process: psutil.Process) -> int:
        try:
            with process.oneshot():
                times = process.cpu_times()
                self.cpu_seconds[process] = times.user + times.system
                return int(process.memory_info().rss)
        except psutil.NoSuchProcess:
            return 0


def _busy() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.system)
