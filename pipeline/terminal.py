"""What people see: lines, a progress bar on a terminal, a table at the end. All of it on stderr."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from pipeline.job import Job
from schemas.outcome import Outcome
from transforms import progress

SECONDS_BETWEEN_LINES = 10.0
"""How often progress is told where there is no terminal."""


class Terminal:
    """Tells a person, or a log, what a run does."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, highlight=False, soft_wrap=True)

    def say(self, text: str) -> None:
        """One line."""
        self._console.print(text, markup=False)

    @contextmanager
    def watch(self, work: progress.Progress) -> Iterator[None]:
        """Shows progress while the block runs: a live bar on a terminal, a line now and then elsewhere."""
        done = threading.Event()
        show = self._show_bar if self._console.is_terminal else self._write_lines
        thread = threading.Thread(target=show, args=(work, done), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join(timeout=2)

    def _show_bar(self, work: progress.Progress, done: threading.Event) -> None:
        columns = (
            TextColumn("{task.description:<10}"),
            BarColumn(),
            MofNCompleteColumn(),
            TaskProgressColumn(show_speed=True),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self._console, transient=True) as bar:
            task = bar.add_task(work.stage, total=None, rate="")
            started = 0.0
            while not done.wait(0.1):
                started = started or (time.monotonic() if work.planned else 0.0)
                bar.update(
                    task,
                    description=work.stage,
                    total=work.planned or None,
                    completed=work.done if work.planned else work.listed,
                    rate=_rate(work.done, started),
                )

    def _write_lines(self, work: progress.Progress, done: threading.Event) -> None:
        started = time.monotonic()
        while not done.wait(SECONDS_BETWEEN_LINES):
            if not work.planned:
                self.say(f"{work.stage}: {work.listed:,} files found")
                continue
            left = (work.planned - work.done) * (time.monotonic() - started) / max(work.done, 1)
            of = f"{work.done:,} of {work.planned:,} images"
            self.say(f"{work.stage}: {of}, {_rate(work.done, started)}, about {left:,.0f} s left")

    def tell(self, outcome: Outcome, job: Job | None) -> None:
        """How a run ended: notes, a table of splits, a table of what was not written, and one sentence."""
        for note in outcome.notes:
            self.say(f"note: {note}")
        numbers = outcome.numbers
        if numbers.get("splits"):
            self._console.print(_table_of_splits(numbers, planned=outcome.status == "planned"))
        if numbers.get("ledger"):
            for line in _ledger_lines(numbers, job):
                self.say(line)
        for line in outcome.sentence.splitlines():
            self.say(line if outcome.exit_code == 0 else f"error: {line}")


def _rate(done: int, started: float) -> str:
    seconds = time.monotonic() - started
    return f"{done / seconds:,.0f} images/s" if started and seconds > 0.5 else ""


def _table_of_splits(numbers: Mapping[str, Any], planned: bool) -> Table:
    about = "about " if planned else ""
    table = Table("split", box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for title in ("images", "shards", "bytes"):
        table.add_column(title, justify="right")
    for name, split in numbers["splits"].items():
        table.add_row(name, f"{split['images']:,}", f"{split['shards']:,}", about + show_bytes(split["bytes"]))
    return table


def _ledger_lines(numbers: Mapping[str, Any], job: Job | None) -> Iterator[str]:
    ledger = numbers["ledger"]
    parts = [f"{ledger['written']:,} written"] if "written" in ledger else []
    parts += [
        f"{sum(ledger[kind].values()):,} {kind.replace('_', ' ')}{_by_reason(ledger[kind])}"
        for kind in ("rejected", "ignored", "left_out")
        if ledger[kind]
    ]
    yield f"{ledger['listed']:,} listed = " + " + ".join(parts or ["nothing"])
    if changes := numbers.get("changes"):
        yield "changed: " + ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in changes.items())
    if numbers.get("output_bytes"):
        before, after = numbers["input_bytes"], numbers["output_bytes"]
        yield f"{show_bytes(before)} of images became {show_bytes(after)} of TFRecords ({after / max(before, 1):.2f}x)"


def _by_reason(counts: Mapping[str, int]) -> str:
    return " (" + ", ".join(f"{count:,} {reason}" for reason, count in counts.items()) + ")"


def show_bytes(count: float) -> str:
    """A size for people, in units of 1024: `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"
