"""How many records have been read, while they are."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

if TYPE_CHECKING:
    from recordmill.reading.dataset import Dataset


@contextmanager
def record_progress(console: Console, what: str, dataset: "Dataset") -> Iterator[Callable[[int], None]]:
    """A live bar on a terminal, nothing elsewhere; gives what is to be called with numbers of records.

    Args:
        console: where.
        what: is being done, in a word.
        dataset: whose records are read; says how many there are, if it can.
    """
    if not console.is_terminal:
        yield lambda records: None
        return
    counts = [shard.records for shard in dataset.shards]
    total = None if None in counts else sum(count or 0 for count in counts)
    with Progress(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("records"),
        console=console,
        transient=True,
    ) as bar:
        task = bar.add_task("", total=total)
        yield lambda records: bar.advance(task, records)
