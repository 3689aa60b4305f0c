"""Output for people on stderr: lines, a progress bar on a terminal, and tables at the end."""

import io
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from recordmill.schemas.errors import Outcome
from recordmill.schemas.formatting import escape_controls, format_count, format_size, printable
from recordmill.transforms.shards import resources

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
    def watch(self, work: resources.Progress) -> Iterator[None]:
        """Shows progress while the block runs.

        It is a live bar on a terminal, and occasional lines otherwise.
        """
        done = threading.Event()
        thread = threading.Thread(target=self._show, args=(work, done), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join(timeout=2)

    def _show(self, work: resources.Progress, done: threading.Event) -> None:
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
                if not live:
                    self.say(f"{work.stage}: {count}{_time_left(work, seconds)}")

    def report_outcome(self, outcome: Outcome, output: str) -> None:
        """Prints how a run ended.

        It prints notes, a table of splits, what happened to everything listed, and one sentence.

        Args:
            outcome: how it ended.
            output: the dataset's folder.
        """
        for note in outcome.notes:
            self.say(f"note: {note}")
        if outcome.numbers:
            for table in summary_tables(outcome, output):
                self._console.print()
                with self._console.capture() as drawn:
                    self._console.print(table)
                for line in drawn.get().splitlines():  # columns are padded with spaces
                    self._console.print(Text.from_ansi(line.rstrip()))
            self._console.print()
        for line in outcome.message.splitlines():
            self.say(line if outcome.exit_code == 0 else f"error: {line}")


def make_console(stream: TextIO | None = None, soft_wrap: bool = True) -> Console:
    """Returns a console that prints text as it is, to stderr or another stream.

    In a log, tables are not wrapped.
    """
    stream = stream or sys.stderr
    width = None if stream.isatty() else 200
    return _SafeConsole(
        file=stream, width=width, highlight=False, emoji=False, markup=False, soft_wrap=soft_wrap
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
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=dataset.count([*dataset.splits]) if dataset.splits else 0)
        yield lambda records: bar.advance(task, records)


def plain_table(*titles: str, right: Collection[str] = ()) -> Table:
    """A table without lines; the columns whose titles are in `right` hold numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for title in titles:
        table.add_column(title, justify="right" if title in right else "left", overflow="fold")
    return table


def _count(work: resources.Progress, seconds: float) -> str:
    """The number of files found, or of images done, and the rate."""
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


def _time_left(work: resources.Progress, seconds: float) -> str:
    """How long the images that are left take, if the rate stays; empty if it is not known."""
    if not work.done:
        return ""
    left = (work.planned - work.done) * seconds / work.done
    if not left:
        return ""
    return f", about {left:,.0f} s left"


def summary_tables(outcome: Outcome, output: str) -> Iterator[Table]:
    """Yields an outcome's numbers as tables.

    The tables have images, shards and bytes by split, and then what happened to everything listed.
    """
    numbers = outcome.numbers
    if numbers.get("splits"):
        yield _table_of_splits(numbers, "about " if outcome.status == "planned" else "")
    facts = Table.grid(padding=(0, 3, 0, 0))
    for title, text in _facts(outcome, output):
        if text:
            facts.add_row(Text(title, style="bold"), Text(text))
    yield facts


def _table_of_splits(numbers: Mapping[str, Any], about: str) -> Table:
    counted = (f"{numbers['unit']}s", "shards", "bytes")
    table = plain_table("split", *counted, right=counted)
    splits = numbers["splits"]
    for name, split in splits.items():
        table.add_row(
            name,
            f"{split['images']:,}",
            f"{split['shards']:,}",
            about + format_size(split["bytes"]),
        )
    images = sum(split["images"] for split in splits.values())
    shards = sum(split["shards"] for split in splits.values())
    size = sum(split["bytes"] for split in splits.values())
    table.add_row(
        "total",
        f"{images:,}",
        f"{shards:,}",
        about + format_size(size),
        style="dim",
        end_section=True,
    )
    return table


def _facts(outcome: Outcome, output: str) -> Iterator[tuple[str, str]]:
    """Titles and texts; the text is empty if there is nothing to say."""
    numbers = outcome.numbers
    ledger = numbers.get("ledger")
    if ledger:
        yield from _ledger(
            ledger, sum(split["images"] for split in numbers.get("splits", {}).values())
        )
    if named := numbers.get("named"):
        yield (
            "found",
            f"{format_count(named['images'], 'image')} named by "
            f"{format_count(named['files'], 'file')}",
        )
    yield "classes", f"{numbers['classes']:,}" if numbers.get("classes") else ""
    yield "boxes", _counted(numbers.get("boxes") or {})
    yield "changed", _counted(numbers.get("changes", {}))
    yield "duplicates", _duplicates(numbers)
    if numbers.get("output_bytes"):
        before, after = numbers["input_bytes"], numbers["output_bytes"]
        percent = f"{100 * after / max(before, 1):,.0f}%"
        shown = (
            f"{format_size(after)} of TFRecords from {format_size(before)} of {numbers['unit']}s "
            f"({percent})"
        )
        yield "bytes", shown
    yield "price", _price(numbers.get("price", {}))
    yield "worth a look", "\n".join(numbers.get("remarks", ()))
    if outcome.status in ("published", "kept"):
        output = "/".join(filter(None, (output, numbers.get("version"))))
        listed = ""
        if ledger and ledger["rejected"]:
            listed = ", rejected.jsonl"
        if "report" in numbers:
            yield "report", f"{output}/{numbers['report']}"
        yield (
            "also written",
            f"{output}/recordmill.json (metadata), labels.txt, config.yaml, sidecars/{listed}",
        )


def _price(price: Mapping[str, Mapping[str, float]]) -> str:
    """What a run costs: the numbers of `Price`, as predicted and, where known, as measured."""
    predicted, measured = price.get("predicted", {}), price.get("measured", {})
    parts = []
    for key in measured or predicted:
        part = f"{_words(key)}: about {_show_price(key, predicted[key])}"
        if measured:
            part += f" ({_show_price(key, measured[key])} measured)"
        parts.append(part)
    return ", ".join(parts)


def _show_price(key: str, value: float) -> str:
    if key in ("cpu_seconds", "minutes"):
        return f"{value:,.2f}"
    return format_size(value)


def _ledger(ledger: Mapping[str, Any], planned: int) -> Iterator[tuple[str, str]]:
    parts = [f"{ledger['written']:,} written" if "written" in ledger else f"{planned:,} to convert"]
    kinds = [kind for kind in ("rejected", "ignored", "left_out") if ledger[kind]]
    parts += [f"{sum(ledger[kind].values()):,} {kind.replace('_', ' ')}" for kind in kinds]
    yield "listed", f"{ledger['listed']:,} = {' + '.join(parts)}"
    for kind in kinds:
        yield _words(kind), _counted(ledger[kind])


def _duplicates(numbers: Mapping[str, Any]) -> str:
    duplicates, parts = numbers.get("duplicates") or {}, []
    for kind, counted, thing in (
        ("same_bytes", "groups", "repeated"),
        ("look_alike", "pairs", "look-alike"),
    ):
        found = duplicates.get(kind) or {}
        if found.get(counted):
            where = (
                f"{found['across_splits']:,} in several splits, {found['conflicting']:,} in "
                "several classes"
            )
            least = "" if found.get("complete", True) else "at least "
            if counted == "groups":
                what = f"{thing} {numbers['unit']}"
            else:
                what = f"{thing} pair"
            parts.append(f"{least}{format_count(found[counted], what)} ({where})")
    if parts:
        return "; ".join(parts) + ": see duplicates.jsonl"
    return ""


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{_words(name)}: {count:,}" for name, count in counts.items())


def _words(code: str) -> str:
    return code.replace("_", " ")
