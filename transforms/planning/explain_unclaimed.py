"""Files that no source claims: why they stop a recognized run, or what to know about them."""

import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence

import orjson

from recordmill.schemas.formatting import format_count, show_names
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.transforms.inputs.file_roles import CARRIERS
from recordmill.transforms.inputs.unclaimed_files import Unclaimed

_SHOWN = 4
"""Kinds of files that a sentence names."""


def explain_unclaimed(
    unclaimed: Sequence[Unclaimed], settings: DatasetSettings, command: Sequence[str] = ()
) -> str | None:
    """Says why a recognized run stops: files that may carry labels would be lost.

    Args:
        unclaimed: the files, of all inputs.
        settings: what the dataset is.
        command: the arguments of the command that started the run; empty if Python code did.

    Returns:
        A sentence with the command that leaves out exactly these files; None if there are none.
    """
    if not unclaimed:
        return None
    shown = [_show(each) for each in unclaimed[:_SHOWN]]
    rest = sum(each.count for each in unclaimed[_SHOWN:])
    more = [f"{format_count(rest, 'other file')}"] if rest else []
    is_one = sum(each.count for each in unclaimed) == 1
    what = "a file that may carry" if is_one else "files that may carry"
    return (
        f"{unclaimed[0].place} holds {what} labels, boxes, masks or splits, and the recognized "
        f"layout, {settings.source.kind}, does not read {'it' if is_one else 'them'}: "
        f"{', '.join((*shown, *more))}; {_advise(unclaimed, settings, command)}"
    )


def _show(each: Unclaimed) -> str:
    title = each.role.title or CARRIERS[each.role.role]
    if each.count == 1:
        return f"{each.paths[0]} ({title})"
    return f"{each.count:,} {CARRIERS[each.role.role]} such as {each.paths[0]}" + (
        f" ({each.role.title})" if each.role.title else ""
    )


def _advise(
    unclaimed: Sequence[Unclaimed], settings: DatasetSettings, command: Sequence[str]
) -> str:
    """The command that leaves the files out and keeps everything else."""
    folders = {(each.place, each.image_folder) for each in unclaimed}
    place, folder = next(iter(folders))
    are_classes = settings.source.labels_from_folders and not settings.splits.from_folders
    inputs = [at for at, part in enumerate(command) if part == "--input"]
    if len(folders) == 1 and folder and are_classes and len(inputs) < 2:
        # With the files ignored, this folder around everything would become the only class.
        inner = list(command) or ["--input", place]
        at = inputs[0] + 1 if inputs else 1
        inner[at] = f"{inner[at].rstrip('/')}/{folder}"
        return f"to convert the images in {folder} without that: {as_command(inner, command)}"
    if all(each.patterns for each in unclaimed):
        patterns = dict.fromkeys(name for each in unclaimed for name in each.patterns)
        value = orjson.dumps([*settings.ignore, *patterns]).decode()
        flags = [*command, "--set", f"ignore={value}"]
        return f"to convert without exactly that: {as_command(flags, command)}"
    return "move that out of the input, or name it in ignore"


def as_command(flags: Sequence[str], command: Sequence[str]) -> str:
    """Flags as a command for a shell; alone, if no command is known to add them to."""
    return f"{'recordmill run' if command else 'add'} {shlex.join(flags)}"


def describe_unclaimed(unclaimed: Sequence[Unclaimed]) -> Iterator[str]:
    """Yields a sentence on the files of each role that may carry labels and were not read."""
    by_role: defaultdict[str, list[Unclaimed]] = defaultdict(list)
    for each in unclaimed:
        by_role[CARRIERS[each.role.role]].append(each)
    for what, found in sorted(by_role.items()):
        count = sum(each.count for each in found)
        such = show_names([each.paths[0] for each in found])
        yield f"Not read, and may carry labels: {what} ({count:,}), such as {such}."
