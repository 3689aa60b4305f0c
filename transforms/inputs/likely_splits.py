"""Asks whether the first folders of an input are its splits."""

import os
import posixpath
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Literal

import orjson

from recordmill import storage
from recordmill.schemas.image_ref import ImageRef, Notice
from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.schemas.settings.source import ListingSettings, SourceSettings
from recordmill.transforms.inputs.file_roles import FileRole
from recordmill.transforms.inputs.folder_sketch import likely_splits, split_for_word
from recordmill.transforms.inputs.pair_names import AGREEMENT
from recordmill.transforms.inputs.patterns import compile_globs
from recordmill.transforms.inputs.unclaimed_files import Unclaimed


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


def find_split_folder(path: str, folders: Collection[str]) -> str | None:
    """Returns the folder that a path is in and that gives the split.

    Args:
        path: a file below the input.
        folders: the folders of splits: `train`, or `images/train`.
    """
    first, slash, _ = path.partition("/")
    if slash and first in folders:
        return first
    return next((each for each in folders if "/" in each and path.startswith(f"{each}/")), None)


@lru_cache(4096)
def folder_below(root: str, folder: str) -> str | None:
    """Returns the path of a folder below the input; None if it is elsewhere.

    Args:
        root: the input.
        folder: the path or URL of the folder, which may be absolute where that of the input is not.
    """
    if not storage.is_local(root):
        return folder.removeprefix(f"{root}/")
    below = os.path.relpath(folder, root)
    return None if below.startswith("..") else below


@lru_cache(4096)
def name_split_folder(root: str, folder: str) -> str | None:
    """Returns the folder around another that is named like a split: `a/train` of `a/train/b`.

    Args:
        root: the input.
        folder: the path or URL of the folder.
    """
    above = accumulate((folder_below(root, folder) or "").split("/"), posixpath.join)
    return next((each for each in above if split_for_word(posixpath.basename(each))), None)


def ask_about_folders(whole: ImageRef, counts: Mapping[str | None, int]) -> Iterator[Notice]:
    """Yields a notice if files name images in folders of several splits, and give no split.

    Args:
        whole: a reference to the input.
        counts: how many images are in each folder that is named like a split, or in none.
    """
    folders = sorted(each for each in counts if each is not None)
    splits = {split_for_word(posixpath.basename(each)) for each in folders}
    count = sum(counts[each] for each in folders)
    if len(splits) > 1 and count >= AGREEMENT * sum(counts.values()):
        role = FileRole("unsplit")
        yield Unclaimed(role, tuple(folders), count, words=tuple(folders)).as_notice(whole)


def reject_without_split(
    ref: ImageRef, what: Literal["file", "image"], settings: ListingSettings
) -> Notice:
    """Rejects a file or an image outside the folders of splits."""
    known = ", ".join(settings.from_folders)
    detail = f"the {what} is not in one of the split folders {known}"
    return ref.notice("rejected", "no_split", detail)


def may_name_images(source: SourceSettings, path: str) -> bool:
    """Returns whether a file outside the folders of splits may name the images in them."""
    return may_name_any_image(source) and compile_globs(source.files).match_file(path)


def may_name_any_image(source: SourceSettings) -> bool:
    """Returns whether the source reads files that name images anywhere below the input."""
    return source.other_files == "taken_only_by_name" and not source.annotation_endings


def _as_key(name: str) -> str:
    """Returns a name as a key of a mapping in YAML."""
    if re.fullmatch(r"[A-Za-z][\w-]*", name):
        return name
    return orjson.dumps(name).decode()
