"""Class folders with images that a table does not name: the folders or the table may be meant."""

import posixpath
from collections import Counter
from collections.abc import Sequence

import orjson

from recordmill.schemas.formatting import show_first
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.transforms.inputs.other_classes import OtherClasses
from recordmill.transforms.inputs.patterns import escape_glob
from recordmill.transforms.planning.explain_unclaimed import as_command
from recordmill.transforms.planning.summary import Summary

_SHOWN = 3


def explain_unnamed(
    summary: Summary, settings: DatasetSettings, others: OtherClasses, command: Sequence[str] = ()
) -> str | None:
    """Says why a recognized run stops: a table names some of the images in class folders.

    Folders are classes if a class of the table is called so, or if the table names some of the
    images in one of them. Folders of other images may be next to them.

    Args:
        summary: what was listed.
        settings: what the dataset is.
        others: the folders, and the tables.
        command: the arguments of the command that started the run; empty if Python code did.

    Returns:
        A sentence with a command for each meaning; None if nothing is unclear.
    """
    left = +summary.unnamed_in_folders
    named = +summary.named_in_folders
    if not others.may_be_classes:
        return _explain_few(left, named, settings, others, command)
    classes = {label.lower() for label in summary.labels if label}
    are_classes = [
        folder
        for folder in sorted(left)
        if folder in named or posixpath.basename(folder).lower() in classes or len(classes) == 1
    ]
    if not are_classes:
        return None
    tables = show_first(others.tables, _SHOWN)
    total = left.total() + named.total()
    counts = f"{named.total():,} of {total:,}" if named else f"none of {total:,}"
    as_classes = [*command, *_ignore_tables(settings, others)]
    return (
        f"the input may be meant in 2 ways: {tables} names {counts} images in folders that may be "
        f"classes, such as {are_classes[0]}: to convert only what the table names: "
        f"{as_command([*command, *others.flags], command)}; to take the folders for classes, "
        f"without the table: {as_command(as_classes, command)}"
    )


def _explain_few(
    left: Counter[str],
    named: Counter[str],
    settings: DatasetSettings,
    others: OtherClasses,
    command: Sequence[str],
) -> str | None:
    """Says that a table names less than half of the images in folders of patients or the like."""
    total = left.total() + named.total()
    if not named or 2 * named.total() >= total:
        return None
    tables = show_first(others.tables, _SHOWN)
    unlabeled = [*command, *_ignore_tables(settings, others), "--set", "source.class_from=none"]
    return (
        f"{tables} names {named.total():,} of {total:,} images in folders such as {min(left)}: to "
        f"convert only what the table names: {as_command([*command, *others.flags], command)}; to "
        f"convert all images without labels: {as_command(unlabeled, command)}"
    )


def _ignore_tables(settings: DatasetSettings, others: OtherClasses) -> list[str]:
    """Returns the flags that leave out the tables."""
    ignored = [*settings.ignore, *(f"/{escape_glob(path)}" for path in others.tables)]
    return ["--set", f"ignore={orjson.dumps(ignored).decode()}"]
