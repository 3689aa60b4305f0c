"""Class folders with images that a table does not name: the folders or the table may be meant."""

import posixpath
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
    ignored = [*settings.ignore, *(f"/{escape_glob(path)}" for path in others.tables)]
    as_classes = [*command, "--set", f"ignore={orjson.dumps(ignored).decode()}"]
    return (
        f"the input may be meant in 2 ways: {tables} names {counts} images in folders that may be "
        f"classes, such as {are_classes[0]}: to convert only what the table names: "
        f"{as_command([*command, *others.flags], command)}; to take the folders for classes, "
        f"without the table: {as_command(as_classes, command)}"
    )
