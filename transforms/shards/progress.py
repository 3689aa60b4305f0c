"""How far this process has come: for the progress bar of a launcher that runs the work itself.

Only ever shown. What is counted for the ledger comes out of the pipeline.
"""

import threading
import time
from ctypes import c_longlong
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import RawValue

Counter = c_longlong
"""A number in memory that processes share; one of them writes it."""


@dataclass
class Progress:
    """Counters that worker threads add to and a launcher's thread reads.

    Attributes:
        listed: things found so far.
        planned: how many to convert, once that is known.
        done: how many were written or rejected so far, or found finished, in this process and those forked from it.
        stage: what is being done, in a word.
        unit: what is counted: image, file or row.
        entered: when each stage began, by a monotonic clock; empty in a process that does not run the work from its
            beginning on.
    """

    listed: int = 0
    planned: int = 0
    stage: str = "listing"
    unit: str = "image"
    entered: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _done: int = 0
    _elsewhere: list[Counter] = field(default_factory=list)
    _own: Counter | None = None

    @property
    def done(self) -> int:  # noqa: D102  # see Attributes
        with self._lock:
            return self._done + sum(counter.value for counter in self._elsewhere)

    def reset(self, unit: str = "image") -> None:
        """Back to the start, for a process that runs several pipelines."""
        with self._lock:
            self.listed = self.planned = self._done = 0
            self._elsewhere = []
            self.stage, self.unit = "listing", unit
            self.entered = {"listing": time.monotonic()}

    def enter(self, stage: str) -> None:
        """Begins another stage."""
        with self._lock:
            self.stage = stage
            if self.entered:
                self.entered[stage] = time.monotonic()

    def seconds(self) -> dict[str, float]:
        """How long each stage took, the last one until now; empty where this process did not do all of them."""
        with self._lock:
            ends = [*list(self.entered.values())[1:], time.monotonic()]
            return {name: end - began for (name, began), end in zip(self.entered.items(), ends, strict=False)}

    def add_done(self, things: int) -> None:
        """Counts things that are done."""
        if self._own is not None:
            self._own.value += things
            return
        with self._lock:
            self._done += things

    def count_elsewhere(self) -> Counter:
        """What a process that is to be forked from this one counts in, to be given to its `count_in`."""
        counter: Counter = RawValue(c_longlong)
        with self._lock:
            self._elsewhere.append(counter)
        return counter

    def count_in(self, counter: Counter) -> None:
        """In a forked process: counts there what is done, by one thread."""
        self._lock = threading.Lock()  # the thread that held it at the fork is not here
        self._own = counter

    def add_listed(self, things: int) -> None:
        """Counts things found."""
        with self._lock:
            self.listed += things


PROGRESS = Progress()
"""This process's progress."""
