"""Output for people on stderr: lines, a progress bar on a terminal, and tables at the end."""

import io
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.dataset.marker import AnnotationEntry, Ledger, LookAlikes, SameBytes
from recordmill.schemas.dataset.outcome import (
    DatasetNumbers,
    FailedNumbers,
    Numbers,
    Outcome,
    OutcomeStatus,
    PlannedLedger,
    PlannedNumbers,
)
from recordmill.schemas.dataset.price import ComparedPrice
from recordmill.schemas.formatting import escape_controls, format_count, format_size, printable
from recordmill.transforms.planning import progress

if TYPE_CHECKING:
    from recordmill.reading.dataset import Dataset

SECONDS_BETWEEN_LINES = 10.0
"""How often progress is reported without a terminal."""


class _SafeConsole(Console):
    """A console in which no text from data can control the terminal."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Renders what is printed; in texts, control characters are escaped."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield segment._replace(text=escape_controls(segment.text))


class Terminal:
    """Reports on a run, to a person or a log."""

    def __init__(self, stream: TextIO | None) -> None:
        """Reports to a stream; without one, reports nothing."""
        self.muted = stream is None
        self._console = make_console(stream or io.StringIO())

    def say(self, text: str) -> None:
        """Prints one line; file names in it cannot control the terminal."""
        self._console.print("\n".join(map(printable, text.split("\n"))))

    @contextmanager
    def watch(self, work: progress.Progress) -> Iterator[None]:
        """Shows progress while the block runs.

        It is a live bar on a terminal. Otherwise, it is occasional lines, and none while nothing
        changes.
        """
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
        columns = (
            TextColumn("{task.description:<10}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
        )
        wait = SECONDS_BETWEEN_LINES
        if live:
            wait = 0.1
        with Progress(
            *columns, TimeRemainingColumn(), console=self._console, transient=True, disable=not live
        ) as bar:
            task = bar.add_task(work.stage, total=None, count="")
            said = None
            while not done.wait(wait):
                began = work.entered.get("converting" if work.planned else "listing", started)
                seconds = time.monotonic() - began
                count = _count(work, seconds)
                bar.update(
                    task,
                    description=work.stage,
                    total=work.planned or None,
                    completed=work.done,
                    count=count,
                )
                new = (work.stage, work.listed, work.planned, work.done)
                if not live and new != said:
                    self.say(_progress_line(work, count, seconds))
                    said = new

    def report_outcome(self, outcome: Outcome, output: str) -> None:
        """Prints how a run ended.

        It prints notes, a table of splits, what happened to everything listed, and one sentence.

        Args:
            outcome: how it ended.
            output: the dataset's folder.
        """
        for note in outcome.notes:
            self.say(f"note: {note}")
        if outcome.numbers is not None:
            for table in summary_tables(outcome, output):
                self._console.print()
                with self._console.capture() as drawn:
                    self._console.print(table)
                for line in drawn.get().splitlines():  # columns are padded with spaces
                    self._console.print(Text.from_ansi(line.rstrip()))
            self._console.print()
        if outcome.exit_code:
            self.report_errors(outcome)
        else:
            self.say(outcome.message)

    def report_errors(self, outcome: Outcome) -> None:
        """Prints why a run failed; nothing after one that ended well."""
        if outcome.exit_code:
            for line in outcome.message.splitlines():
                self.say(f"error: {line}")


def make_console(
    stream: TextIO | None = None, soft_wrap: bool = True, quiet: bool = False
) -> Console:
    """Returns a console that prints text as it is, to stderr or another stream.

    In a log, tables are not wrapped.

    Args:
        stream: where it prints; by default, stderr.
        soft_wrap: whether the terminal, not the console, breaks long lines.
        quiet: whether it prints nothing.
    """
    stream = stream or sys.stderr
    width = None if stream.isatty() else 200
    return _SafeConsole(
        file=stream,
        width=width,
        highlight=False,
        emoji=False,
        markup=False,
        soft_wrap=soft_wrap,
        quiet=quiet,
    )


@contextmanager
def record_progress(
    console: Console, what: str, dataset: "Dataset"
) -> Iterator[Callable[[int], None]]:
    """Shows a live bar on a terminal, and nothing otherwise.

    Yields a function to be called with numbers of records.

    Args:
        console: the console.
        what: the activity, in a word.
        dataset: the dataset whose records are read.
    """
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("records"))
    with Progress(
        *columns, console=console, transient=True, disable=console.quiet or not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=dataset.count([*dataset.splits]) if dataset.splits else 0)
        yield lambda records: bar.advance(task, records)


def plain_table(*titles: str, right: Collection[str] = ()) -> Table:
    """Returns a table without lines; the columns whose titles are in `right` hold numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for title in titles:
        table.add_column(title, justify="right" if title in right else "left", overflow="fold")
    return table


def _count(work: progress.Progress, seconds: float) -> str:
    """Returns the number of files found, or of images done, and the rate."""
    if work.planned:
        done, thing = work.done, work.unit
    else:
        done, thing = work.listed, "file"
    text = f"{format_count(done, thing)} found"
    if work.planned:
        text = f"{done:,}/{work.planned:,} {thing}s ({done / work.planned:.0%})"
    rate = done / max(seconds, 0.5)
    if not done:
        return text
    digits = 0 if rate >= 10 else 2
    return f"{text}, {rate:,.{digits}f} {thing}s/s"


def _progress_line(work: progress.Progress, count: str, seconds: float) -> str:
    """Returns how far the work is, and how long the rest takes at this rate, if that is known."""
    line = f"{work.stage}: {count}"
    if not work.done or work.planned == work.done:
        return line
    left = (work.planned - work.done) * seconds / work.done
    return f"{line}, about {left:,.0f} s left"


def summary_tables(outcome: Outcome, output: str) -> Iterator[Table]:
    """Yields an outcome's numbers as tables.

    The tables have images, shards and bytes by split, and then what happened to everything listed.
    """
    numbers = outcome.numbers
    if numbers is None:
        return
    if isinstance(numbers, DatasetNumbers | PlannedNumbers) and numbers.splits:
        yield _table_of_splits(numbers)
    facts = Table.grid(padding=(0, 3, 0, 0))
    for title, text in _facts(outcome.status, numbers, output):
        if text:
            facts.add_row(Text(title, style="bold"), Text(text))
    yield facts


def _table_of_splits(numbers: DatasetNumbers | PlannedNumbers) -> Table:
    about = ""
    if isinstance(numbers, PlannedNumbers):
        about = "about "
    counted = (f"{numbers.unit}s", "shards", "bytes")
    table = plain_table("split", *counted, right=counted)
    splits = numbers.splits
    for name, split in splits.items():
        table.add_row(
            name,
            f"{split.images:,}",
            f"{split.shards:,}",
            about + format_size(split.bytes),
        )
    size = sum(split.bytes for split in splits.values())
    table.add_row(
        "total",
        f"{sum(split.images for split in splits.values()):,}",
        f"{sum(split.shards for split in splits.values()):,}",
        about + format_size(size),
        style="dim",
        end_section=True,
    )
    return table


def _facts(
    status: OutcomeStatus, numbers: Numbers, output: str
) -> Iterator[tuple[str, str | None]]:
    """Yields titles and texts; the text is None or empty if there is nothing to say."""
    if isinstance(numbers, FailedNumbers):
        yield from _describe_ledger(numbers.ledger, f"{numbers.ledger.written:,} written")
        yield from _describe_annotations(numbers.annotations)
        return
    if isinstance(numbers, PlannedNumbers):
        planned = sum(split.images for split in numbers.splits.values())
        yield from _describe_ledger(numbers.ledger, f"{planned:,} to convert")
    else:
        yield from _describe_ledger(numbers.ledger, f"{numbers.ledger.written:,} written")
    if named := numbers.named:
        images, files = format_count(named.images, "image"), format_count(named.files, "file")
        yield "found", f"{images} named by {files}"
    if numbers.classes:
        yield "classes", f"{numbers.classes:,}"
    if isinstance(numbers, DatasetNumbers):
        yield from _describe_records(numbers)
    if numbers.price:
        yield "price", _show_prices(numbers.price)
    if isinstance(numbers, DatasetNumbers):
        yield "worth a look", "\n".join(numbers.remarks)
        if status in ("published", "kept"):
            yield from _name_files(numbers, output)


def _describe_records(numbers: DatasetNumbers) -> Iterator[tuple[str, str | None]]:
    yield from _describe_annotations(numbers.annotations)
    yield "changed", _counted(numbers.changes)
    yield "duplicates", _describe_duplicates(numbers)
    before, after = numbers.input_bytes, numbers.output_bytes
    if after:
        yield (
            "bytes",
            f"{format_size(after)} of TFRecords from {format_size(before)} of {numbers.unit}s "
            f"({100 * after / max(before, 1):,.0f}%)",
        )


def _describe_annotations(
    annotations: Mapping[str, AnnotationEntry] | None,
) -> Iterator[tuple[str, str | None]]:
    for kind, entry in (annotations or {}).items():
        counts = {"listed": entry.listed, "written": entry.written, **entry.dropped}
        counts.update(entry.noted or {})
        yield kind, _counted({name: each for name, each in sorted(counts.items()) if each})


def _name_files(numbers: DatasetNumbers, output: str) -> Iterator[tuple[str, str]]:
    if numbers.version:
        output = f"{output}/{numbers.version}"
    listed = ""
    if numbers.ledger.rejected:
        listed = ", rejected.jsonl"
    if numbers.report:
        yield "report", f"{output}/{numbers.report}"
    yield (
        "also written",
        f"{output}/recordmill.json (metadata), README.md (data card), labels.txt, config.yaml, "
        f"sidecars/{listed}",
    )


def _show_prices(price: ComparedPrice) -> str:
    """Returns what a run costs.

    The numbers of `Price`, as predicted and, where known, as measured.
    """
    predicted = to_json(price.predicted)
    if price.measured is None:
        return ", ".join(
            f"{_words(key)}: about {_show_price(key, value)}" for key, value in predicted.items()
        )
    return ", ".join(
        f"{_words(key)}: about {_show_price(key, predicted[key])} "
        f"({_show_price(key, value)} measured)"
        for key, value in to_json(price.measured).items()
    )


def _show_price(key: str, value: float) -> str:
    if key in ("cpu_seconds", "minutes"):
        return f"{value:,.2f}"
    return format_size(value)


def _describe_ledger(ledger: Ledger | PlannedLedger, done: str) -> Iterator[tuple[str, str]]:
    """Yields the sum of everything listed, then counts by reason.

    Args:
        ledger: what happened, or will happen, to everything listed.
        done: the number of records, in words.
    """
    fates = {
        "rejected": ledger.rejected,
        "ignored": ledger.ignored,
        "left out": ledger.left_out,
    }
    parts = [f"{sum(counts.values()):,} {fate}" for fate, counts in fates.items() if counts]
    yield "listed", f"{ledger.listed:,} = {' + '.join([done, *parts])}"
    for fate, counts in fates.items():
        if counts:
            yield fate, _counted(counts)


def _describe_duplicates(numbers: DatasetNumbers) -> str | None:
    """Returns a line on the duplicates, or None if there are none."""
    if numbers.duplicates is None:
        return None
    same, alike = numbers.duplicates.same_bytes, numbers.duplicates.look_alike
    parts = []
    if same.groups:
        count = format_count(same.groups, f"repeated {numbers.unit}")
        annotated = ""
        if same.conflicting_annotations:
            annotated = f", {same.conflicting_annotations:,} with other annotations"
        parts.append(f"{count} ({_show_crossing(same)}{annotated})")
    if alike and alike.pairs:
        least = "" if alike.complete else "at least "
        count = format_count(alike.pairs, "near-duplicate pair")
        parts.append(f"{least}{count} ({_show_crossing(alike)})")
    if parts:
        return "; ".join(parts) + ": see duplicates.jsonl"
    return None


def _show_crossing(found: SameBytes | LookAlikes) -> str:
    return f"{found.across_splits:,} in several splits, {found.conflicting:,} in several classes"


def _counted(counts: Mapping[str, int] | None) -> str:
    return ", ".join(f"{_words(name)}: {count:,}" for name, count in (counts or {}).items())


def _words(code: str) -> str:
    return code.replace("_", " ")
