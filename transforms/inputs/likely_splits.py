"""Asks whether the first folders of an input are its splits."""

import re
import shlex
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

import orjson

from recordmill.schemas.image_ref import ImageRef, Notice
from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.schemas.settings.source import ListingSettings
from recordmill.transforms.inputs.folder_sketch import likely_splits


@dataclass(frozen=True, slots=True)
class LikelySplits:
    """The folders at the top of an input, which may be splits.

    Attributes:
        folders: their names.
        hold_classes: whether the source takes classes from folders.
        are_classes: whether it would take them from these folders.
    """

    folders: Set[str]
    hold_classes: bool
    are_classes: bool

    def ask(self, whole: ImageRef, name: str, settings: ListingSettings) -> Iterator[Notice]:
        """Yields a notice if the folders are named like splits, and no setting says what they are.

        It is fatal if they could be classes as well.

        Args:
            whole: a reference to the input.
            name: the input's name; empty without one.
            settings: what is known of splits and classes.
        """
        splits = self._find(settings)
        if not splits:
            return
        what = f"the first folders are {', '.join(splits)}, which could be splits"
        mapping = ", ".join(f"{_as_key(folder)}: {split}" for folder, split in splits.items())
        as_splits = f"--set {shlex.quote(f'splits.from_folders={{{mapping}}}')}"
        if self.hold_classes:
            detail = (
                f"{what} or classes: add {as_splits} if they are splits, or list the classes in "
                "labels.classes if they are classes"
            )
            yield whole.notice("fatal", "split_words", detail)
        else:
            detail = f"{what}: add {as_splits} to keep them"
            yield whole.replace(key=name).notice("warning", "split_words", detail)

    def _find(self, settings: ListingSettings) -> Mapping[str, str]:
        """Returns the folders and their splits, if they are named like splits.

        If they name classes, only some of them need such names.
        """
        if settings.from_folders or settings.from_source or settings.classes_known:
            return {}
        if {name.lower() for name in self.folders} <= SPLIT_NAMES.keys():
            return {name: name for name in sorted(self.folders)}
        likely = likely_splits(self.folders)
        if (self.hold_classes and self.are_classes) or len(likely) == len(self.folders):
            return likely
        return {}


def _as_key(name: str) -> str:
    """Returns a name as a key of a mapping in YAML."""
    if re.fullmatch(r"[A-Za-z][\w-]*", name):
        return name
    return orjson.dumps(name).decode()
