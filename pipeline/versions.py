"""`recordmill versions PATH`: lists the versions of a dataset.

It also goes back to one of them, and deletes others.
"""

import argparse
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from recordmill import storage
from recordmill.pipeline.command import reader_parser, run_reader
from recordmill.pipeline.configuration.options import Parser, positive
from recordmill.pipeline.configuration.preflight import parse_path
from recordmill.pipeline.terminal import make_console, plain_table
from recordmill.schemas.dataset.file_names import MARKER, staging_names
from recordmill.schemas.dataset.marker import Marker, Pointer
from recordmill.schemas.errors import LoadError, UsageError
from recordmill.schemas.formatting import format_size, printable
from recordmill.storage.dataset_files import (
    current_folder,
    find_fault,
    find_pointer,
    point_to,
    read_versions,
)
from recordmill.transforms.planning.runs import find_busy

EPILOG = """\
examples:
  the versions that are there:
    %(prog)s nightly
  go back to the one before, and make readers use it:
    %(prog)s nightly --rollback
  delete all but two:
    %(prog)s nightly --keep 2

exit codes: 0 done   1 failed   2 wrong usage   130 interrupted
"""


def main(argv: Sequence[str] | None = None, prog: str = "python -m pipeline.versions") -> int:
    """Does what the flags say, then lists the versions that are left.

    Args:
        argv: the flags; by default, those of the process.
        prog: what the user typed before them.

    Returns:
        The exit code.
    """
    return run_reader(make_parser(prog), argv, _work)


def make_parser(prog: str) -> Parser:
    """Returns the parser of this command."""
    description = (
        "Lists the versions of a dataset; never deletes the current one. Only runs with "
        "--versions make some."
    )
    parser = reader_parser(prog, description, "the output with the versions", EPILOG)
    only = parser.add_mutually_exclusive_group()
    parser.add_flag("--use", only, metavar="VERSION", help="make this version the current one")
    parser.add_flag(
        "--rollback",
        only,
        action="store_true",
        help="go back to the version that was current before",
    )
    parser.add_flag(
        "--drop", only, action="append", metavar="VERSION", help="delete a version; repeatable"
    )
    keep = "delete all but N versions: the current one, and the latest others"
    parser.add_flag("--keep", only, type=positive, metavar="N", help=keep)
    return parser


def _work(flags: argparse.Namespace) -> dict[str, Any]:
    output = parse_path(flags.path)
    versions = read_versions(output)
    pointer = find_pointer(output)
    if pointer is None and not versions:
        raise LoadError(f"{output} has no versions: only runs with --versions make some")
    current = pointer.current if pointer else ""
    if pointer is None and (flags.rollback or flags.drop or flags.keep):
        # Raises if the pointer is damaged: refuse to guess the current version.
        current_folder(output)
    if chosen := _choose(flags, output, pointer, versions):
        point_to(output, chosen)
        current = chosen
    for name in _find_unwanted(flags, output, versions, current):
        folder = storage.join(output, name)
        if not storage.is_link(folder):  # of a link, only the link is deleted
            # The marker first: if interrupted, half a dataset does not look complete.
            storage.remove_files([storage.join(folder, MARKER)])
        storage.remove_folder(folder)
        del versions[name]
    listed = [
        {
            "version": name,
            "current": name == current,
            "complete": marker is not None,
            **_describe(marker),
        }
        for name, marker in versions.items()
    ]
    make_console(soft_wrap=False, quiet=flags.quiet).print(_table(listed))
    line = {"path": output, "current": current or None, "versions": listed}
    try:
        current_folder(output)
    except LoadError as error:
        make_console(quiet=flags.quiet).print(Text(f"note: {printable(str(error))}"))
        return {**line, "notes": [str(error)]}
    return line


def _choose(
    flags: argparse.Namespace,
    output: str,
    pointer: Pointer | None,
    versions: Mapping[str, Marker | None],
) -> str | None:
    """Returns the version to make current; None to keep the current one."""
    if flags.rollback and not (pointer and pointer.previous):
        raise UsageError("--rollback: no other version was current before: name one with --use")
    if flags.rollback and pointer:
        chosen: str | None = pointer.previous
    else:
        chosen = flags.use
    if chosen is None:
        return None
    if (marker := versions.get(chosen)) is None:
        raise UsageError(
            f"{output} has no complete version {chosen}: choose one that is listed without the flag"
        )
    folder = storage.join(output, chosen)
    if fault := find_fault(folder, marker):
        raise LoadError(
            f"{folder} {fault}, against its {MARKER}: choose another version with --use"
        )
    return chosen


def _find_unwanted(
    flags: argparse.Namespace, output: str, versions: Mapping[str, Marker | None], current: str
) -> Iterator[str]:
    """Yields the unused versions to delete.

    Deleting takes long, so each is checked again just before it is yielded.
    """
    if flags.keep and versions.get(current) is None:
        raise UsageError(
            f"--keep: none of the complete versions of {output} is current: choose one with --use "
            "first"
        )
    others = [name for name, marker in versions.items() if marker and name != current]
    unwanted = list(
        dict.fromkeys(
            flags.drop or (others[: max(len(others) - flags.keep + 1, 0)] if flags.keep else ())
        )
    )
    for name in unwanted:
        _check_unused(output, name, versions, current, elsewhere=not flags.drop)
    for name in unwanted:
        _check_unused(output, name, versions, current, elsewhere=not flags.drop)
        # Read after the claims: a run replaces it before it releases its claim.
        pointer = find_pointer(output)
        if (pointer.current if pointer else "") != current:
            raise LoadError(
                f"a run has changed the current version of {output}: run this command again"
            )
        yield name


def _check_unused(
    output: str, name: str, versions: Collection[str], current: str, elsewhere: bool
) -> None:
    folder = storage.join(output, name)
    if name not in versions:
        raise UsageError(
            f"{output} has no version {name}: choose one that is listed without --drop"
        )
    if name == current:
        raise UsageError(f"{name} is the current version: choose another one first, with --use")
    if busy := find_busy(folder, staging_names(storage.folder_names(folder)), elsewhere):
        raise LoadError(busy)


def _describe(marker: Marker | None) -> dict[str, Any]:
    if marker is None:
        return {}
    size = sum(split.bytes for split in marker.splits.values())
    return {"finished": marker.run.finished, "records": marker.ledger.written, "bytes": size}


def _table(listed: Sequence[Mapping[str, Any]]) -> Table:
    table = plain_table("version", "finished", "records", "bytes", "", right=("records", "bytes"))
    for each in listed:
        if not each["complete"]:
            table.add_row(each["version"], "", "", "", "unfinished")
            continue
        records, size = f"{each['records']:,}", format_size(each["bytes"])
        table.add_row(
            each["version"], each["finished"], records, size, "current" if each["current"] else ""
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
