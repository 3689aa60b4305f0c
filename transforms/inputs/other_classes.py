"""Folders that may be classes, or patients, next to a table that says which class an image has."""

import posixpath
from collections.abc import Collection
from dataclasses import dataclass

from recordmill.transforms.inputs.folder_sketch import FolderSketch
from recordmill.transforms.inputs.unlikely_classes import (
    NO_CLASS,
    SELDOM_CLASS,
    are_unlikely_classes,
    explain_unlikely,
    says_nothing,
)


@dataclass(frozen=True, slots=True)
class OtherClasses:
    """Folders of images whose names say something, although a table was recognized.

    Attributes:
        folders: their paths below the input.
        tables: the tables that are read, by their paths below the input.
        flags: the flags that choose the tables.
        are_inputs_named: whether keys of images begin with the name of an input.
        may_be_classes: whether the folders may be classes, not patients or the like.
    """

    folders: frozenset[str]
    tables: tuple[str, ...]
    flags: tuple[str, ...] = ()
    are_inputs_named: bool = False
    may_be_classes: bool = True

    def folder_of(self, key: str) -> str | None:
        """Returns the folder of an image if it is one of these."""
        path = key.partition("/")[2] if self.are_inputs_named else key
        folder = posixpath.dirname(path)
        return folder if folder in self.folders else None


def find_folders_next_to_tables(sketch: FolderSketch) -> frozenset[str]:
    """Returns the folders of images that may be classes, or are patients or parts.

    None if they have one name, or are splits.
    """
    folders = {
        path: posixpath.basename(path)
        for path, names in (*sketch.names.items(), *sketch.deeper.items())
        if names.images and _may_be_class(posixpath.basename(path))
    }
    names = sorted(set(folders.values()))
    if len(names) < 2 or (are_unlikely_classes(names) and not explain_unlikely(names)):
        return frozenset()
    return frozenset(folders)


def may_be_classes(folders: Collection[str]) -> bool:
    """Returns whether folders may be classes, not patients, parts or dates; given by path."""
    return explain_unlikely({posixpath.basename(folder) for folder in folders}) is None


def _may_be_class(folder: str) -> bool:
    is_none = NO_CLASS.fullmatch(folder.lower()) or SELDOM_CLASS.fullmatch(folder.lower())
    return bool(folder) and not is_none and not says_nothing(folder)
