"""`python -m pipeline.inspect PATH`: shows the content of a dataset, or of any TFRecord file."""

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from recordmill.pipeline.configuration.options import Parser, UsageError, add_json_switch, wants_json
from recordmill.pipeline.terminal.inspect_tables import record_view, summary_view
from recordmill.pipeline.terminal.printable import printable
from recordmill.pipeline.terminal.terminal import fail, record_progress
from recordmill.reading.dataset import Dataset, open_dataset
from recordmill.reading.example import DamagedExampleError
from recordmill.reading.inspect.extract_images import ExtractError, extract_images
from recordmill.reading.inspect.find_record import FoundRecord, NoRecordError, find_source, read_record, read_records
from recordmill.reading.inspect.summarize_dataset import summarize_dataset
from recordmill.reading.load_error import LoadError
from recordmill.reading.sidecar_rows import FORGED
from recordmill.schemas.dataset.file_names import REPORT
from recordmill.schemas.dataset.sidecar_row import row_to_json
from recordmill.schemas.formatting import format_count
from recordmill.schemas.outcome import DONE, FAILED, INTERRUPTED, WRONG_USAGE

EXAMPLES = """\
examples:
  its content, and its first record:
    %(prog)s dataset
  one record and its source; the record of a source file:
    %(prog)s dataset --record train:1234
    %(prog)s dataset --where photos/cat/0001.jpg
  ten images as files:
    %(prog)s dataset --extract images --limit 10
  its report.html, made again:
    %(prog)s dataset --report

exit codes:
  0 done   1 it cannot be opened, or there is no such record   2 wrong usage   130 interrupted
"""


def main(argv: Sequence[str] | None = None, prog: str = "python -m pipeline.inspect") -> int:
    """Shows a dataset, or records of it.

    Args:
        argv: the flags; by default, those of the process.
        prog: what the user typed before them.

    Returns:
        The exit code.
    """
    as_json = wants_json(None, sys.stdout)
    width = None if sys.stderr.isatty() else 200  # in a log, lines are rarely wrapped
    console = Console(file=sys.stderr, width=width, highlight=False, emoji=False, markup=False)
    path = ""
    try:
        flags = _parse(argv, prog)
        path, as_json = flags.path, wants_json(flags.json, sys.stdout)
        if flags.report:
            answer = _make_report(console, path)
        elif {flags.record, flags.where, flags.extract} == {None}:
            answer = _show(console, open_dataset(path), flags)
        else:
            answer = _show_records(console, open_dataset(path), flags)
    except UsageError as error:
        return fail(str(error), WRONG_USAGE, as_json)
    except (LoadError, NoRecordError, ExtractError, DamagedExampleError) as error:
        return fail(str(error), FAILED, as_json)
    except OSError as error:
        return fail(f"{error.filename or path}: {(error.strerror or str(error)).lower()}", FAILED, as_json)
    except KeyboardInterrupt:
        return fail("interrupted", INTERRUPTED, as_json)
    if as_json:
        sys.stdout.write(json.dumps(answer) + "\n")
    return DONE


def _parse(argv: Sequence[str] | None, prog: str) -> argparse.Namespace:
    parser = Parser(
        prog=prog,
        description="Shows the content of a dataset, or of any TFRecord file or folder of TFRecords, plain or gzip.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("path", metavar="PATH", help="a folder, a file or a pattern, on any of Beam's file systems")
    parser.add_argument(
        "--record", metavar="SPLIT:NUMBER", help="show one record, numbered from 0 within split or file"
    )
    parser.add_argument("--where", metavar="FILE", help="show the records that came from a file, by its name or bytes")
    parser.add_argument("--extract", metavar="DIR", help="write images to a new folder: those shown, otherwise all")
    parser.add_argument("--limit", type=int, metavar="N", help="extract at most N images")
    parser.add_argument("--report", action="store_true", help="make report.html of a dataset again, and show nothing")
    parser.add_argument("--no_report", dest="report", action="store_false", help=argparse.SUPPRESS)
    parser.add_argument("--scan", action="store_true", help="read every record, even of a dataset with a description")
    parser.add_argument("--no_scan", dest="scan", action="store_false", help=argparse.SUPPRESS)
    parser.add_argument("--labels", type=int, default=20, metavar="N", help="labels shown (default: 20)")
    add_json_switch(parser)
    flags = parser.parse_args(argv)
    if flags.record is not None:
        match = re.fullmatch(r"(?:(.*):)?([0-9]{1,18})", flags.record)
        if not match:
            raise UsageError(f"--record is {flags.record!r}: write a split and a number, such as train:1234")
        flags.record = (match[1], int(match[2]))
    if flags.record is not None and flags.where is not None:
        raise UsageError("--record and --where both choose records: give one of them")
    if flags.report and {flags.record, flags.where, flags.extract} != {None}:
        raise UsageError("--report makes a page of the whole dataset: leave out --record, --where and --extract")
    if flags.limit is not None and flags.limit < 1:
        raise UsageError(f"--limit is {flags.limit}: give 1 or more")
    return flags


def _make_report(console: Console, path: str) -> dict[str, Any]:
    """Writes the report of the dataset in a folder."""
    from recordmill.reading.report.write_report import write_report

    try:
        page = write_report(path)
    except (LoadError, DamagedExampleError):
        raise
    except FORGED as error:
        raise LoadError(f"{path} is damaged ({error}): recordmill verify lists the damage") from None
    console.print(Text(f"the report is {printable(page)}"))
    return {"path": path, "report": REPORT}


def _show(console: Console, dataset: Dataset, flags: argparse.Namespace) -> dict[str, Any]:
    """The dataset, and its first record."""
    with record_progress(console, "looking", dataset) as progress:
        summary = summarize_dataset(dataset, flags.scan, progress)
    for part in summary_view(summary, flags.labels):
        console.print()
        console.print(part)
    for name in summary.unreadable:
        console.print(Text(f"note: {printable(name)} cannot be read", style="yellow"))
    if summary.scanned and any(split.damages for split in summary.splits.values()):
        console.print(Text("note: the dataset is damaged: recordmill verify lists the damage", style="yellow"))
    first = next((found for found in read_records(dataset) if found.is_example()), None)
    console.print()
    if first is not None:
        console.print(record_view(first, dataset))
        console.print()
    return {**summary.as_dict(), "first_record": record_as_dict(first) if first else None}


def _show_records(console: Console, dataset: Dataset, flags: argparse.Namespace) -> dict[str, Any]:
    """Shows the selected records, and extracts their images on request."""
    chosen: list[FoundRecord] | None = None
    if flags.record is not None:
        split, number = flags.record
        chosen = [read_record(dataset, next(iter(dataset.splits)) if split is None else split, number)]
    elif flags.where is not None:
        chosen = find_source(dataset, flags.where)
    for found in chosen or ():
        console.print()
        console.print(record_view(found, dataset))
    console.print()
    answer: dict[str, Any] = {"path": dataset.folder, "records": [record_as_dict(found) for found in chosen or ()]}
    if flags.extract is not None:
        count = extract_images(dataset, flags.extract, chosen, flags.limit)
        images = format_count(count, "image")
        console.print(Text(f"{images} {'is' if count == 1 else 'are'} in {printable(flags.extract)}"))
        answer["extracted"] = count
    return answer


def record_as_dict(found: FoundRecord) -> dict[str, Any]:
    """One record as plain JSON values: text as text, other bytes by their number and their sha256."""
    return {
        "split": found.shard.split,
        "number": found.number,
        "shard": found.shard.name,
        "record": found.place,
        "offset": found.offset,
        "bytes": len(found.data),
        "source": row_to_json(found.row) if found.row else None,
        "features": {
            key: {"kind": kind, "values": [_as_json(value) for value in values]}
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


if __name__ == "__main__":
    sys.exit(main())
