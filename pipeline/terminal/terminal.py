"""Output for people on stderr: lines, a progress bar on a terminal, and a table at the end."""

import io
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from recordmill.pipeline.terminal.printable import printable
from recordmill.schemas.formatting import format_count
from recordmill.schemas.outcome import Outcome
from recordmill.transforms.shards import progress

if TYPE_CHECKING:
    from recordmill.reading.dataset import Dataset

SECONDS_BETWEEN_LINES = 10.0
"""How often progress is reported without a terminal."""


class Terminal:
    """Reports to a person, or a log, what a run does."""

    def __init__(self, stream: TextIO | None) -> None:
        """Reports to a stream; without one, reports nothing."""
        self.muted = stream is None
        stream = stream or io.StringIO()
        width = None if stream.isatty() else 200  # in a log, tables are not wrapped
        self._console = Console(file=stream, highlight=False, emoji=False, soft_wrap=True, width=width)

    def say(self, text: str) -> None:
        """Prints one line; file names in it cannot control the terminal."""
        self._console.print("\n".join(map(printable, text.split("\n"))), markup=False)

    @contextmanager
    def watch(self, work: progress.Progress) -> Iterator[None]:
        """Shows progress while the block runs: a live bar on a terminal, otherwise occasional lines."""
        done = threading.Event()
        thread = threading.Thread(target=self._show, args=(work, done), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join(timeout=2)

    def _show(self, work: progress.Progress, done: threading.Event) -> None:
        live, started = self._console.is_terminal, time.monotonic()
        columns = (TextColumn("{task.description:<10}"), BarColumn(), TextColumn("{task.fields[count]}"))
        with Progress(*columns, TimeRemainingColumn(), console=self._console, transient=True, disable=not live) as bar:
            task = bar.add_task(work.stage, total=None, count="")
            while not done.wait(0.1 if live else SECONDS_BETWEEN_LINES):
                began = work.entered.get("converting" if work.planned else "listing", started)
                seconds = time.monotonic() - began
                count = _count(work, seconds)
                bar.update(task, description=work.stage, total=work.planned or None, completed=work.done, count=count)
                left = (work.planned - work.done) * seconds / work.done if work.done else 0.0
                if not live:
                    self.say(f"{work.stage}: {count}" + (f", about {left:,.0f} s left" if left else ""))

    def tell(self, outcome: Outcome, output: str) -> None:
        """Prints how a run ended: notes, a table of splits, what happened to everything listed, and one sentence.

        Args:
            outcome: how it ended.
            output: the dataset's folder.
        """
        for note in outcome.notes:
            self.say(f"note: {note}")
        if outcome.numbers:
            # Imported here, since Beam comes with it: wrong flags have no numbers, and need not wait for it.
            from recordmill.pipeline.terminal.summary_table import summary_tables

            for table in summary_tables(outcome, output):
                self._console.print()
                with self._console.capture() as drawn:
                    self._console.print(table)
                for line in drawn.get().splitlines():  # columns are padded with spaces
                    self._console.out(line.rstrip(), highlight=False)
            self._console.print()
        for line in outcome.sentence.splitlines():
            self.say(line if outcome.exit_code == 0 else f"error: {line}")


@contextmanager
def record_progress(console: Console, what: str, dataset: "Dataset") -> Iterator[Callable[[int], None]]:
    """A live bar on a terminal, otherwise nothing; yields a function to be called with numbers of records.

    Args:
        console: the console.
        what: the activity, in a word.
        dataset: the dataset whose records are read.
    """
    counts = [shard.records for shard in dataset.shards]
    total = None if None in counts else sum(count or 0 for count in counts)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("records"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total)
        yield lambda records: bar.advance(task, records)


def plain_table(*titles: str, right: Collection[str] = ()) -> Table:
    """A table without lines; the columns whose titles are in `right` hold numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for title in titles:
        table.add_column(title, justify="right" if title in right else "left", overflow="fold")
    return table


def _count(work: progress.Progress, seconds: float) -> str:
    """How much has been found or done in this time, and how fast."""
    if not work.planned:
        return f"{format_count(work.listed, 'file')} found" + _rate(work.listed, "file", seconds)
    share = f"{work.done:,}/{work.planned:,} {work.unit}s ({work.done / work.planned:.0%})"
    return share + _rate(work.done, work.unit, seconds)


def _rate(number: int, thing: str, seconds: float) -> str:
    """Begins with a comma; empty if it is too early to say."""
    if not number or seconds < 0.5:
        return ""
    rate = number / seconds
    if rate < 1:
        return f", {1 / rate:,.1f} s/{thing}"
    return f", {rate:,.{1 if rate < 10 else 0}f} {thing}s/s"
