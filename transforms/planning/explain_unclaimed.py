"""Files that no source claims: why they stop a recognized run, or what to know about them."""

import posixpath
import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

import orjson

from recordmill.schemas.formatting import agree, format_count, say_count, show_names
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.transforms.inputs.file_roles import CARRIERS
from recordmill.transforms.inputs.folder_sketch import split_for_word
from recordmill.transforms.inputs.patterns import move_patterns
from recordmill.transforms.inputs.sources.source import ReadsLabelsBeside, ReadsMembers
from recordmill.transforms.inputs.split_words import guess_splits, name_splits
from recordmill.transforms.inputs.unclaimed_files import Unclaimed

_SHOWN = 4
"""Kinds of files that a sentence names."""


def explain_unclaimed(
    unclaimed: Sequence[Unclaimed],
    settings: DatasetSettings,
    command: Sequence[str] = (),
    listed: int | None = None,
) -> str | None:
    """Says why a recognized run stops: files that may carry labels would be lost.

    Args:
        unclaimed: the files, of all inputs.
        settings: what the dataset is.
        command: the arguments of the command that started the run; empty if Python code did.
        listed: how many files and images would be read; None: more than these.

    Returns:
        A sentence with the command that leaves out exactly these files; None if there are none.
    """
    unlabeled = [each for each in unclaimed if each.role.role == "unlabeled"]
    unsplit = [each for each in unclaimed if each.role.role == "unsplit"]
    unclaimed = [each for each in unclaimed if each not in (*unlabeled, *unsplit)]
    if not unclaimed:
        if unlabeled:
            return _explain_unlabeled(unlabeled, settings, command)
        return _explain_unsplit(unsplit, command) if unsplit else None
    shown = [_show(each) for each in unclaimed[:_SHOWN]]
    if rest := sum(each.count for each in unclaimed[_SHOWN:]):
        shown.append(format_count(rest, "other file"))
    count = sum(each.count for each in unclaimed)
    what = "files that may carry"
    if count == 1:
        what = "a file that may carry"
    advice = [_advise_to_export(unclaimed), _advise_to_unpack(unclaimed, settings)]
    are_archives = all(each.role.role == "archive" for each in unclaimed)
    if listed is None or listed > count or not are_archives:  # else nothing would be left
        advice.append(_advise(unclaimed, settings, command))
    return (
        f"{unclaimed[0].place} holds {what} labels, boxes, masks or splits, and the recognized "
        f"layout, {settings.source.kind}, does not read {agree(count, 'it')}: "
        f"{', '.join(shown)}; {'; '.join(filter(None, advice))}"
    )


def _advise_to_export(unclaimed: Sequence[Unclaimed]) -> str | None:
    if all(each.role.role != "annotations" for each in unclaimed):
        return None
    return (
        "to store annotations, export them as COCO, VOC, YOLO, or a CSV with a row for each image "
        "or box"
    )


def _explain_unlabeled(
    unlabeled: Sequence[Unclaimed], settings: DatasetSettings, command: Sequence[str]
) -> str:
    """Says that some samples in archives have no label, while others have."""
    first = unlabeled[0]
    count = format_count(sum(each.count for each in unlabeled), "image")
    source = settings.source
    part = source.label_part if isinstance(source, ReadsLabelsBeside) else ""
    ways = {
        "to leave these images out": part,
        "to convert all images without labels": "",
    }
    advice = [
        f"{what}: {as_command([*command, '--set', f'source.label_part={part}'], command)}"
        for what, part in ways.items()
    ]
    return (
        f"{count} such as {first.place}/{first.paths[0]} have no {first.role.title} with a label "
        f"next to them, as others have: {'; '.join(advice)}"
    )


def _explain_unsplit(unsplit: Sequence[Unclaimed], command: Sequence[str]) -> str:
    """Says that annotation files, or the folders of their images, name splits that are not used."""
    key, path = unsplit[0].role.title, unsplit[0].paths[0]
    same = [each for each in unsplit if each.role.title == key]
    words = sorted(set(chain.from_iterable(each.words for each in same)))
    splits = guess_splits(key, words) or name_splits(words)
    given = f"splits.from_source={orjson.dumps(splits).decode()}"
    keep = ["--set", f"source.split_key={key}", "--set", given]
    if not key:
        splits = {
            word: split for word in words if (split := split_for_word(posixpath.basename(word)))
        }
        keep = ["--set", f"splits.from_folders={orjson.dumps(splits).decode()}"]
    draw = ["--set", "splits.fractions={train: 0.9, test: 0.1}"]
    advice = [
        f"to keep these splits: {as_command([*command, *keep], command)}",
        f"to split the images otherwise: {as_command([*command, *draw], command)}",
    ]
    count = sum(each.count for each in same)
    if not key:
        what = f"the folders {show_names(words)} are named like splits"
        images = format_count(count, "image")
        return f"{what}, and nothing else says which split the {images} in them are in: " + (
            "; ".join(advice)
        )
    are = say_count(count, "image", "is")
    return (
        f"{path} says which split {are} in, by the key {key} ({show_names(words)}): "
        f"{'; '.join(advice)}"
    )


def _advise_to_unpack(unclaimed: Sequence[Unclaimed], settings: DatasetSettings) -> str | None:
    """Says that files such as tables are read next to images in folders, not in archives."""
    if settings.source.kind == "archives":
        return "if they belong to the images, unpack the archives"
    if any(each.role.role == "archive" for each in unclaimed):
        return "to read what is in archives, unpack them"
    return None


def _show(each: Unclaimed) -> str:
    title = each.role.title or CARRIERS[each.role.role]
    if each.count == 1:
        return f"{each.paths[0]} ({title})"
    shown = f"{each.count:,} {CARRIERS[each.role.role]} such as {each.paths[0]}"
    if each.role.title:
        return f"{shown} ({each.role.title})"
    return shown


def _advise(
    unclaimed: Sequence[Unclaimed], settings: DatasetSettings, command: Sequence[str]
) -> str:
    """Returns the command that leaves the files out and keeps everything else."""
    folders = {(each.place, each.image_folder) for each in unclaimed}
    place, folder = next(iter(folders))
    # A user who says which folders are the classes means those of the present input.
    is_chosen = any(word.startswith("source.class_from=") for word in command)
    has_classes = settings.source.labels_from_folders and not settings.splits.from_folders
    are_classes = has_classes and not is_chosen
    inputs = [at for at, part in enumerate(command) if part == "--input"]
    if len(folders) == 1 and folder and are_classes and len(inputs) < 2:
        # With the files ignored, this folder around everything would become the only class.
        inner = list(command) or ["--input", place]
        at = inputs[0] + 1 if inputs else 1
        inner[at] = f"{inner[at].rstrip('/')}/{folder}"
        inner = _set_ignore(inner, move_patterns(settings.ignore, folder))
        return f"to convert the images in {folder} without that: {as_command(inner, command)}"
    if not all(each.patterns for each in unclaimed):
        flags = [*command, "--set", f"source.kind={settings.source.kind}"]
        return f"to convert without it: {as_command(flags, command)}"
    flags = [*command, *_leave_out(unclaimed, settings)]
    return f"to convert without exactly that: {as_command(flags, command)}"


def _set_ignore(command: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Returns the arguments of a command with these patterns in place of those that it gives."""
    value = f"ignore={orjson.dumps(patterns).decode()}"
    flags = _drop_replaced([*command, "--set", value])
    return flags if patterns else flags[:-2]


def _leave_out(unclaimed: Sequence[Unclaimed], settings: DatasetSettings) -> list[str]:
    """Flags that leave out files, and members of archives."""
    ignored: dict[str, None] = {}
    members: dict[str, None] = {}
    for each in unclaimed:
        patterns = members if each.are_members else ignored
        patterns.update(dict.fromkeys(each.patterns))
    flags = []
    if ignored:
        # Exceptions must not take back what the user ignores.
        all_patterns = [*settings.ignore, *ignored]
        if any(name.startswith("!") for name in ignored):
            all_patterns = [*ignored, *settings.ignore]
        value = orjson.dumps(all_patterns).decode()
        flags += ["--set", f"ignore={value}"]
    if members:
        given: Sequence[str] = ("*",)
        if isinstance(settings.source, ReadsMembers) and settings.source.members:
            given = settings.source.members
        value = orjson.dumps([*given, *map(_as_exception, members)]).decode()
        flags += ["--set", f"source.members={value}"]
    return flags


def _as_exception(pattern: str) -> str:
    """Returns a pattern for `ignore` as one for patterns of what is read, after `*`."""
    if pattern.startswith("!"):
        return pattern[1:]
    return f"!{pattern}**" if pattern.endswith("/") else f"!{pattern}"


def as_command(flags: Sequence[str], command: Sequence[str]) -> str:
    """Flags as a command for a shell; alone, if no command is known to add them to."""
    return f"{'recordmill run' if command else 'add'} {shlex.join(_drop_replaced(flags))}"


def _drop_replaced(flags: Sequence[str]) -> list[str]:
    """Returns the flags without those `--set` whose settings a later one gives again."""
    keys = {
        at: value.partition("=")[0]
        for at, (flag, value) in enumerate(pairwise(flags))
        if flag == "--set"
    }
    last = {key: at for at, key in keys.items()}
    replaced = {at for at, key in keys.items() if last[key] != at}
    return [flag for at, flag in enumerate(flags) if not {at, at - 1} & replaced]


def describe_unclaimed(unclaimed: Sequence[Unclaimed]) -> Iterator[str]:
    """Yields a sentence on the files of each role that may carry labels and were not read."""
    by_role: defaultdict[str, list[Unclaimed]] = defaultdict(list)
    for each in unclaimed:
        if each.role.may_carry:
            by_role[CARRIERS[each.role.role]].append(each)
    for what, found in sorted(by_role.items()):
        count = sum(each.count for each in found)
        such = show_names([each.paths[0] for each in found])
        yield f"Not read, and may carry labels: {what} ({count:,}), such as {such}."
