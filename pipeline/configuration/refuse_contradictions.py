"""Refuses folders that cannot be classes, because of what is in them."""

import posixpath
import shlex
from collections import Counter
from collections.abc import Sequence

from recordmill.pipeline.configuration.config import flags_of
from recordmill.schemas.errors import UsageError
from recordmill.transforms.inputs.folder_sketch import FolderSketch, likely_splits, split_of
from recordmill.transforms.inputs.sources.class_folders import NO_CLASS, says_nothing
from recordmill.transforms.inputs.unclaimed_files import role_of
from recordmill.transforms.inputs.unlikely_classes import (
    are_hex_digits,
    are_numbered,
    are_unlikely_classes,
)

MOST_SHOWN = 4


def refuse_wrapper(sketch: FolderSketch, place: str) -> None:
    """Refuses a single folder around class folders, which would be the only class.

    Raises:
        UsageError: there is one; the text has the commands that may be meant.
    """
    folders = [each for each in sketch.top.folders if sketch.holds_images(each)]
    if len(folders) != 1 or sketch.top.images or sketch.at(folders[0]).images:
        return
    whole = folders[0]
    below = [
        each
        for each in sketch.at(whole).folders
        if sketch.holds_images(posixpath.join(whole, each)) and not NO_CLASS.fullmatch(each.lower())
    ]
    if len(below) < 2:
        return
    what = f"{place}: {whole} is around all folders of images, such as {below[0]}"
    where = f"use --input {shlex.quote(f'{place}/{whole}')}"
    if says_nothing(whole) or are_unlikely_classes([whole]):
        if _has_files_around(sketch, whole):
            return  # the plan names all of them, and advises the same
        raise UsageError(f"{what}: {where}")
    flags = flags_of({"source": {"class_from": "first_folder"}})
    raise UsageError(
        f"{what}: if those are the classes, {where}; if all images are of the class {whole}, "
        f"add {flags}"
    )


def _has_files_around(sketch: FolderSketch, folder: str) -> bool:
    """Whether files outside a folder may carry labels or boxes, so that a recognized run stops.

    Tables do not count, since they may be read, or be known to hold no labels.
    """
    roles = [
        role_of(path, head)
        for path, head in sketch.heads.items()
        if not path.startswith(f"{folder}/")
    ]
    return any(each.may_carry and each.role != "table" for each in roles)


def refuse_contradictions(sketch: FolderSketch, place: str) -> None:
    """Refuses class folders that all hold the same folders, or are named after digits of hashes.

    Args:
        sketch: the input, whose folders would be classes.
        place: the input's path.

    Raises:
        UsageError: the folders are not classes; the text has the commands that may be meant.
    """
    folders = [each for each in sketch.top.folders if sketch.holds_images(each)]
    if likely_splits(folders):  # the listing asks for these
        return
    unlabeled = flags_of({"source": {"class_from": "none"}})
    if are_hex_digits(folders):
        raise UsageError(
            f"{place}: {_show(folders)} are digits of the images' hashes, not classes: to "
            f"convert the images without labels, add {unlabeled}"
        )
    below = _find_same_below(sketch, folders)
    if not below:
        return
    what = f"{place}: {_show(folders)} all hold the folders {_show(below)}"
    if all(map(split_of, below)):
        first = folders[0]
        has_classes = any(
            not NO_CLASS.fullmatch(each.lower())
            for split in below
            for each in _names_in(sketch, posixpath.join(first, split))
        )
        whole = f"--input {shlex.quote(f'{place}/{first}')}"
        alone = f"to convert {first} alone, use {whole}; " if has_classes else ""
        raise UsageError(
            f"{what}, which are splits: {alone}to convert all of them with their splits, put the "
            f"splits' folders around the others, as in {below[0]}/{first}"
        )
    ways = []
    if not are_unlikely_classes(below) and set(below) != set(folders):
        flags = flags_of({"source": {"class_from": "last_folder"}})
        ways.append(f"if the classes are {_show(below)}, add {flags}")
    if not are_unlikely_classes(folders) and not are_numbered(folders):
        flags = flags_of({"source": {"class_from": "first_folder"}})
        ways.append(f"if the classes are {_show(folders)}, add {flags}")
    ways.append(f"to convert the images without labels, add {unlabeled}")
    raise UsageError(f"{what}, so it is not clear what the classes are: {'; '.join(ways)}")


def _names_in(sketch: FolderSketch, folder: str) -> tuple[str, ...]:
    return (sketch.names.get(folder) or sketch.deeper.get(folder) or sketch.at("\0")).folders


def _find_same_below(sketch: FolderSketch, folders: Sequence[str]) -> list[str]:
    """The folders of images that all these folders hold; empty unless that says something."""
    inner = {
        folder: frozenset(
            each
            for each in _names_in(sketch, folder)
            if sketch.holds_images(posixpath.join(folder, each))
        )
        for folder in folders
        if folder in sketch.names or folder in sketch.deeper
    }
    if len(inner) < 2 or any(
        (sketch.names.get(folder) or sketch.deeper[folder]).images for folder in inner
    ):
        return []
    ((usual, count),) = Counter(inner.values()).most_common(1)
    if 3 * count < 2 * len(inner) or count < 2 or not all(each <= usual for each in inner.values()):
        return []
    below = sorted(usual)
    if below and all(map(split_of, below)):
        return below
    is_ordinary = are_numbered(below) and not are_unlikely_classes(folders)
    return [] if len(below) < 2 or is_ordinary else below


def _show(names: Sequence[str]) -> str:
    more = len(names) - MOST_SHOWN
    return ", ".join(names[:MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
