"""`recordmill inspect PATH`: shows the content of a dataset, or of any TFRecord file."""

import argparse
import hashlib
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from recordmill.imaging.acceptance import sniff
from recordmill.pipeline.command import reader_parser, run_reader
from recordmill.pipeline.configuration.options import Parser, write_json
from recordmill.pipeline.terminal import make_console, plain_table, record_progress
from recordmill.reading import inspect_dataset
from recordmill.reading.dataset import FORGED, Dataset, open_dataset
from recordmill.reading.example import parse_intact
from recordmill.reading.follow_run import follow_run
from recordmill.reading.split_index import write_indexes
from recordmill.schemas.dataset.file_names import REPORT
from recordmill.schemas.dataset.side_files import row_to_json
from recordmill.schemas.errors import LoadError, UsageError
from recordmill.schemas.formatting import format_count, format_size, printable

SECONDS_BETWEEN_LOOKS = 2.0
"""How often `--follow` lists the folder of a run."""

EPILOG = (
    "examples:\n"
    "  what a dataset contains:\n"
    "    %(prog)s dataset\n"
    "  its first record of the split train, and the image in it as a file:\n"
    "    %(prog)s dataset --record train:0 --extract first\n"
    "  what happened to one file:\n"
    "    %(prog)s dataset --where photos/cat/0001.jpg\n\n"
    "exit codes: 0 done   1 it cannot be opened, or there is no such record   2 wrong usage   "
    "130 interrupted"
)


def main(argv: Sequence[str] | None = None, prog: str = "python -m pipeline.inspect") -> int:
    """Shows a dataset, or some of its records.

    Args:
        argv: the flags; by default, those of the process.
        prog: what the user typed before them.

    Returns:
        The exit code.
    """
    return run_reader(make_parser(prog), argv, _inspect)


def make_parser(prog: str) -> Parser:
    """Returns the parser of this command."""
    description = (
        "Shows the content of a dataset, or of any TFRecord file or folder of TFRecords, plain "
        "or gzip."
    )
    parser = reader_parser(prog, description, "a folder, a file or a pattern", EPILOG)
    shown = parser.add_mutually_exclusive_group()
    record = "show one record, numbered from 0 within split or file, or its key"
    parser.add_flag("--record", shown, metavar="SPLIT:NUMBER|KEY", help=record)
    parser.add_flag(
        "--where",
        shown,
        metavar="FILE",
        help="show the records that came from a file, by its name or bytes",
    )
    parser.add_flag(
        "--report",
        shown,
        action="store_true",
        help="make report.html of a dataset again, and show nothing",
    )
    parser.add_flag(
        "--follow",
        shown,
        action="store_true",
        help="show how far the run that writes PATH is, until it ends",
    )
    parser.add_flag(
        "--index", shown, metavar="DIR", help="write index files for DALI and PyTorch to a folder"
    )
    parser.add_argument(
        "--extract", metavar="DIR", help="write images to a new folder: those shown, otherwise all"
    )
    return parser


def _inspect(flags: argparse.Namespace) -> dict[str, Any]:
    if flags.extract is not None and (flags.report or flags.follow or flags.index is not None):
        raise UsageError("--extract writes images: leave out --report, --follow and --index")
    console = make_console(soft_wrap=False, quiet=flags.quiet)
    if flags.follow:
        return _follow(console, flags)
    if flags.report:
        return _make_report(console, flags.path)
    dataset = open_dataset(flags.path)
    if flags.index is not None:
        paths = write_indexes(dataset, flags.index)
        console.print(
            Text(f"{format_count(len(paths), 'index')} written to {printable(flags.index)}")
        )
        return {"path": dataset.folder, "indexes": paths}
    if {flags.record, flags.where, flags.extract} == {None}:
        return _show(console, dataset)
    return _show_records(console, dataset, flags)


def _follow(console: Console, flags: argparse.Namespace) -> dict[str, Any]:
    """Reports a run's progress, on stderr and as lines of JSON, until its dataset is complete."""
    for progress in follow_run(flags.path, partial(time.sleep, SECONDS_BETWEEN_LOOKS)):
        console.print(Text(str(progress)))
        write_json(json.dumps({"status": "running", **asdict(progress)}), flags.json)
    console.print(Text(f"the dataset in {printable(flags.path)} is complete"))
    return {"path": flags.path, "status": "complete"}


def _make_report(console: Console, path: str) -> dict[str, Any]:
    """Writes the report of the dataset in a folder."""
    from recordmill.reading.report.write_report import write_report

    try:
        page = write_report(path)
    except LoadError:
        raise
    except FORGED as error:
        raise LoadError(
            f"{path} is damaged ({error}): recordmill verify lists the damage"
        ) from None
    console.print(Text(f"the report is {printable(page)}"))
    return {"path": path, "report": REPORT}


def _show(console: Console, dataset: Dataset) -> dict[str, Any]:
    """Shows a dataset and its first record."""
    with record_progress(console, "looking", dataset) as progress:
        summary = inspect_dataset.summarize_dataset(dataset, progress)
    for part in summary_view(summary):
        console.print()
        console.print(part)
    if summary.scanned and any(split.damages for split in summary.splits.values()):
        console.print(
            Text("note: the dataset is damaged: recordmill verify lists the damage", style="yellow")
        )
    first = next(
        (found for found in inspect_dataset.read_records(dataset) if parse_intact(found.data)), None
    )
    console.print()
    if first is not None:
        console.print(record_view(first))
        console.print()
    return {**summary.as_dict(), "first_record": record_as_dict(first) if first else None}


def _show_records(console: Console, dataset: Dataset, flags: argparse.Namespace) -> dict[str, Any]:
    """Shows the selected records, and extracts their images on request."""
    chosen: list[inspect_dataset.FoundRecord] | None = None
    if numbered := re.fullmatch(r"(?:(.*):)?([0-9]{1,18})", flags.record or ""):
        chosen = [
            inspect_dataset.read_record(
                dataset, numbered[1] or next(iter(dataset.splits)), int(numbered[2])
            )
        ]
    elif flags.record is not None:
        chosen = inspect_dataset.find_key(dataset, flags.record)
    elif flags.where is not None:
        chosen = inspect_dataset.find_source(dataset, flags.where)
    for found in chosen or ():
        console.print()
        console.print(record_view(found))
    console.print()
    answer: dict[str, Any] = {
        "path": dataset.folder,
        "records": [record_as_dict(found) for found in chosen or ()],
    }
    if flags.extract is not None:
        count = inspect_dataset.extract_images(dataset, flags.extract, chosen)
        console.print(Text(f"{format_count(count, 'image')} written to {printable(flags.extract)}"))
        answer["extracted"] = count
    return answer


def record_as_dict(found: inspect_dataset.FoundRecord) -> dict[str, Any]:
    """Returns one record as plain JSON values.

    Text as text, other bytes as their length and sha256.
    """
    return {
        "split": found.shard.split,
        "number": found.number,
        "shard": found.shard.name,
        "record": found.place,
        "offset": found.offset,
        "bytes": len(found.data),
        "source": row_to_json(found.row) if found.row else None,
        "features": {
            key: {"kind": kind, "values": [*map(_as_json, values)]}
            for key, (kind, values) in found.values().items()
        },
    }


def _as_json(value: bytes | int | float) -> Any:
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"bytes": len(value), "sha256": hashlib.sha256(value).hexdigest()}


_BAR = 24  # cells of the longest bar
_MOST_LABELS = 20
_KINDS = {
    "recordmill": "a dataset of Recordmill",
    "tfds": "a dataset described by dataset_info.json",
    "files": "TFRecord files without a description",
}


def summary_view(summary: inspect_dataset.Inspection) -> Iterator[RenderableType]:
    """Yields the content of a dataset: splits, features, labels."""
    dataset = summary.dataset
    convention = ""
    if dataset.marker_or_none:
        convention = f", convention {dataset.marker.convention}"
    yield Text.assemble(
        (printable(dataset.folder), "bold"), f"  {_KINDS[dataset.kind]}{printable(convention)}"
    )
    if dataset.marker_or_none:
        yield Text.assemble("fingerprint ", (printable(dataset.marker.fingerprint.dataset), "dim"))
    yield _splits(summary)
    yield _features(summary)
    if any(split.labels for split in summary.splits.values()):
        yield _labels(summary)


def _splits(summary: inspect_dataset.Inspection) -> Table:
    numbers = ("files", "records", "bytes", "damaged")
    table = plain_table("split", *numbers, right=numbers)
    for name, split in summary.splits.items():
        damages = Text(f"{split.damages:,}", style="bold red" if split.damages else "green")
        row = (printable(name), f"{split.files:,}", f"{split.records:,}", format_size(split.bytes))
        table.add_row(*row, damages if summary.scanned else "-")
    return table


def _features(summary: inspect_dataset.Inspection) -> Table:
    table = plain_table("feature", "kind", "shape", "records", "meaning", right=("records",))
    for key, feature in summary.features.items():
        if feature.records is None:
            records = "-"
        else:
            records = f"{feature.records:,}"
        meaning = Text(printable(feature.meaning), style="dim")
        table.add_row(
            Text(printable(key), style="cyan"), feature.kind, Text(feature.shape), records, meaning
        )
    return table


def _labels(summary: inspect_dataset.Inspection) -> RenderableType:
    """Records by label and split, with a bar for the total, in the order of the ids."""
    names, counts = (
        [printable(name) for name in summary.splits],
        [split.labels for split in summary.splits.values()],
    )
    totals: Counter[str] = sum(map(Counter, counts), Counter())
    ids = summary.dataset.labels
    order = sorted(totals, key=lambda label: (ids.get(label, 2**63), len(label), label))
    longest = max(totals.values())
    table = plain_table("id", "label", *names, "", right=("id", *names))
    for label in order[:_MOST_LABELS]:
        bar = Text("\u2501" * max(1, round(totals[label] / longest * _BAR)), style="blue")
        by_split = (f"{labels.get(label, 0):,}" for labels in counts)
        table.add_row(str(ids.get(label, "-")), Text(printable(label)), *by_split, bar)
    if len(order) > _MOST_LABELS:
        rest = f"and {len(order) - _MOST_LABELS:,} further labels (--json shows all)"
        return Group(table, Text(rest, style="dim"))
    return table


def record_view(found: inspect_dataset.FoundRecord) -> RenderableType:
    """Returns one record: its position, its source, and its values."""
    where = (
        f"record {found.place:,} of {found.shard.name}, {len(found.data):,} bytes, frame at byte "
        f"{found.offset:,}"
    )
    head = Text.assemble(
        (f"{printable(found.shard.split)}:{found.number}", "bold"), f"  {printable(where)}"
    )
    lines: list[RenderableType] = [head]
    if found.row:
        changes = ", ".join(found.row.changes).replace("_", " ") or "untouched"
        lines.append(Text(f"from {printable(found.row.key)}, {found.row.bytes:,} bytes, {changes}"))
    table = plain_table("feature", "kind", "value")
    for key, (kind, values) in found.values().items():
        table.add_row(Text(printable(key), style="cyan"), kind, Text(show_values(values)))
    return Group(*lines, table)


def show_values(values: list[Any], most: int = 8) -> str:
    """Returns a feature's values in one line.

    Text is shown as text, an image as its format and size, and other bytes as the first few.
    """
    shown = [_show_value(value) for value in values[:most]]
    if len(values) > most:
        more = [f"... {len(values):,} values"]
    else:
        more = []
    if values:
        return ", ".join([*shown, *more])
    return "no value"


def _show_value(value: bytes | int | float) -> str:
    if not isinstance(value, bytes):
        if isinstance(value, float):
            return f"{value:.6g}"
        return str(value)
    image_format = sniff(value) if len(value) > 32 else None
    if image_format:
        return f"{image_format}, {len(value):,} bytes"
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return f"{value[:8].hex(' ')} ..., {len(value):,} bytes"
    if len(text) <= 100:
        return printable(text)
    return f"{printable(text[:100])}... {len(text):,} characters"


if __name__ == "__main__":
    sys.exit(main())
