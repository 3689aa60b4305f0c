"""`python -m pipeline.verify PATH`: is a dataset, or any TFRecord file of anybody, whole and what it says it is?"""

import argparse
import json
import sys
import time
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from recordmill.pipeline.options import Parser
from recordmill.pipeline.preflight import UsageError
from recordmill.pipeline.printable import printable
from recordmill.pipeline.record_progress import record_progress
from recordmill.reading.dataset import open_dataset
from recordmill.reading.load_error import LoadError
from recordmill.reading.verify_dataset import Verification, verify_dataset
from recordmill.reading.verify_shard import LEVELS
from recordmill.schemas.outcome import DONE, FAILED, WRONG_USAGE
from recordmill.transforms.files.show_bytes import show_bytes

EXAMPLES = """\
levels, each with all of those before it:
  frames   framing, both checksums, that every record is a tf.train.Example, kinds of features, counts
  files    sizes and digests of all files, sidecars, missing and stale files, class names and ids, images that
           are in several splits; a shard with the sha256 that recordmill.json states needs no look at its frames
  pixels   every image is decoded (in a process of its own) and has the size that its record says

exit codes:
  0 nothing is wrong   1 something is, or the path cannot be opened   2 wrong usage   130 interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Verifies one dataset and tells what is wrong, a line each.

    Args:
        argv: the flags; those of the process where absent.

    Returns:
        The exit code.
    """
    console = Console(file=sys.stderr, highlight=False, emoji=False, markup=False, soft_wrap=True)
    try:
        flags = _parse(argv)
        started = time.monotonic()
        dataset = open_dataset(flags.path)
        with record_progress(console, "verifying", dataset) as progress:
            verification = verify_dataset(dataset, flags.level, flags.threads, progress)
    except UsageError as error:
        return _fail(console, str(error), WRONG_USAGE)
    except LoadError as error:
        return _fail(console, str(error), FAILED)
    except OSError as error:
        return _fail(console, f"{flags.path} cannot be read: {(error.strerror or str(error)).lower()}", FAILED)
    except KeyboardInterrupt:
        return _fail(console, "interrupted", 130)
    seconds = time.monotonic() - started
    _tell(console, verification, seconds)
    code = FAILED if verification.failed else DONE
    if flags.json:
        line = {**verification.as_dict(), "exit_code": code, "seconds": round(seconds, 3)}
        sys.stdout.write(json.dumps(line) + "\n")
    return code


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(
        prog="python -m pipeline.verify",
        description="Verifies a dataset's folder, or any TFRecord file or folder of them, plain or gzip.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("path", metavar="PATH", help="a folder, a file or a pattern, on any of Beam's file systems")
    parser.add_argument("--level", choices=LEVELS, default="files", help="how closely to look (default: files)")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="files at once (default: one a processor)")
    parser.add_argument("--json", action="store_true", help="also write what was found as one line of JSON on stdout")
    parser.add_argument("--no_json", dest="json", action="store_false", help=argparse.SUPPRESS)
    flags = parser.parse_args(argv)
    if flags.threads < 0:
        raise UsageError(f"--threads is {flags.threads}: give 1 or more")
    return flags


def _tell(console: Console, verification: Verification, seconds: float) -> None:
    """Findings, a table of splits, and one sentence."""
    for finding in verification.findings:
        word, style = ("note", "yellow") if finding.is_note else ("damage", "bold red")
        console.print(Text.assemble((f"{word}: ", style), printable(str(finding))))
    console.print()
    console.print(_table(verification))
    console.print()
    rate = f"{seconds:.1f} s, {verification.records / max(seconds, 1e-3):,.0f} records/s"
    looked = f"{verification.records:,} records in {len(verification.checks):,} files, level {verification.level}"
    if verification.failed:
        wrong = "1 thing is wrong" if verification.failed == 1 else f"{verification.failed:,} things are wrong"
        told = Text.assemble((wrong, "bold red"), f": {looked}, {rate}")
    else:
        told = Text.assemble(("nothing is wrong", "bold green"), f": {looked}, {rate}")
    console.print(told)


def _table(verification: Verification) -> Table:
    table = Table("split", box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for title in ("files", "records", "stated", "bytes", "wrong"):
        table.add_column(title, justify="right")
    for split, shards in verification.dataset.splits.items():
        checks = [check for check in verification.checks if check.shard in shards]
        wrong = sum(not finding.is_note for check in checks for finding in check.findings)
        stated = verification.dataset.count(split)
        table.add_row(
            printable(split),
            f"{len(checks):,}",
            f"{sum(check.records for check in checks):,}",
            "-" if stated is None else f"{stated:,}",
            show_bytes(sum(check.bytes for check in checks)),
            Text(f"{wrong:,}", style="bold red" if wrong else "green"),
        )
    return table


def _fail(console: Console, sentence: str, code: int) -> int:
    console.print(Text(f"error: {printable(sentence)}"))
    return code


if __name__ == "__main__":
    sys.exit(main())
