"""`recordmill verify PATH`: checks a dataset, or any TFRecord file.

It checks that the data are complete and consistent.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from recordmill.pipeline.command import reader_parser, run_reader
from recordmill.pipeline.configuration.options import Parser
from recordmill.pipeline.configuration.preflight import parse_path, read_exclusions
from recordmill.pipeline.terminal import make_console, plain_table, record_progress
from recordmill.reading.dataset import open_dataset
from recordmill.reading.find_excluded import find_excluded
from recordmill.reading.verify_dataset import Verification, verify_dataset
from recordmill.reading.verify_shard import LEVELS
from recordmill.schemas.errors import DONE, FAILED
from recordmill.schemas.formatting import format_count, format_size, printable

EPILOG = """\
examples:
  all files of a dataset:
    %(prog)s dataset
  every image, too:
    %(prog)s dataset --level pixels
  the TFRecords of any program:
    %(prog)s 'dataset/train-*'

levels (each one includes those before it):
  frames   framing, checksums, that every record is a tf.train.Example, kinds of features, counts
  files    sizes and digests of all files, sidecars, missing and stale files, class names, \
images in several splits
  pixels   every image can be decoded (in a separate process) and has the size that its record says

exit codes: 0 no problems found   1 problems found, or it cannot be opened   2 wrong usage   \
130 interrupted
"""


def main(argv: Sequence[str] | None = None, prog: str = "python -m pipeline.verify") -> int:
    """Verifies one dataset and reports each problem in a line.

    Args:
        argv: the flags; by default, those of the process.
        prog: what the user typed before them.

    Returns:
        The exit code.
    """
    return run_reader(make_parser(prog), argv, _verify)


def make_parser(prog: str) -> Parser:
    """Returns the parser of this command."""
    description = "Verifies a dataset, or any TFRecord file or folder of TFRecords, plain or gzip."
    parser = reader_parser(prog, description, "a folder, a file or a pattern", EPILOG)
    absent = (
        "fail if any image listed in FILE (the format of `exclude`) is still in a file below PATH"
    )
    parser.add_argument("--absent", metavar="FILE", help=absent)
    parser.add_argument(
        "--level", choices=LEVELS, default="files", help="what to check (default: files)"
    )
    metadata = (
        "also find metadata in JPEG, PNG and WebP images, such as GPS positions; reads all records"
    )
    parser.add_flag("--no-metadata", action="store_true", help=metadata)
    return parser


def _verify(flags: argparse.Namespace) -> dict[str, Any]:
    started = time.monotonic()
    console = make_console(quiet=flags.quiet)
    exclusions = read_exclusions(flags.absent or "", "--absent")
    dataset = open_dataset(flags.path)
    with record_progress(console, "verifying", dataset) as progress:
        verification = verify_dataset(dataset, flags.level, 0, progress, flags.no_metadata)
    if exclusions:
        found = find_excluded(dataset, exclusions, parse_path(flags.path))
        verification = replace(verification, findings=(*verification.findings, *found))
    seconds = round(time.monotonic() - started, 3)
    _report(console, verification, seconds)
    code = FAILED if verification.failed else DONE
    return {**verification.as_dict(), "exit_code": code, "seconds": seconds}


def _report(console: Console, verification: Verification, seconds: float) -> None:
    """Prints the findings, a table of splits, and one sentence."""
    damages = make_console()  # which are errors, and so are shown with --quiet, too
    for finding in verification.findings:
        if finding.is_note:
            console.print(Text.assemble(("note: ", "yellow"), printable(str(finding))))
        else:
            damages.print(Text.assemble(("damage: ", "bold red"), printable(str(finding))))
    console.print()
    console.print(_table(verification))
    console.print()
    records, files = (
        format_count(verification.records, "record"),
        format_count(len(verification.checks), "file"),
    )
    scope = f"{records} in {files}, level {verification.level}, {seconds:.1f} s"
    wrong = f"{format_count(verification.failed, 'problem')} found"
    if verification.failed:
        verdict = wrong, "bold red"
    else:
        verdict = "no problems found", "bold green"
    console.print(Text.assemble(verdict, f": {scope}"))


def _table(verification: Verification) -> Table:
    numbers = ("files", "records", "bytes")
    table = plain_table("split", *numbers, right=numbers)
    for split, shards in verification.dataset.splits.items():
        checks = [check for check in verification.checks if check.shard in shards]
        records, size = sum(check.records for check in checks), sum(check.bytes for check in checks)
        table.add_row(printable(split), f"{len(checks):,}", f"{records:,}", format_size(size))
    return table


if __name__ == "__main__":
    sys.exit(main())
