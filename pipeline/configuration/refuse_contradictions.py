"""Refuses folders that cannot be classes, because of what is in them."""

import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Sequence

from recordmill.pipeline.configuration.config import flags_of
from recordmill.schemas.errors import UsageError
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Names, likely_splits, split_of
from recordmill.transforms.inputs.unclaimed_files import role_of
from recordmill.transforms.inputs.unlikely_classes import (
    NO_CLASS,
    are_numbered,
    are_unlikely_classes,
    explain_unlikely,
    says_nothing,
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


def refuse_contradictions(sketch: FolderSketch, place: str, archive: str = "") -> None:
    """Refuses folders that are named like parts or dates, or that all hold the same folders.

    Args:
        sketch: the input, or the contents of an archive, whose folders would be classes.
        place: the input's path.
        archive: the archive's name; empty if the folders are in none.

    Raises:
        UsageError: the folders are not classes; the text has the commands that may be meant.
    """
    where = f"{place}/{archive}" if archive else place
    for split in sketch.split_folders or ("",):
        folders = [
            each
            for each in _names_in(sketch, split).folders
            if sketch.holds_images(posixpath.join(split, each))
        ]
        if not split and likely_splits(folders):  # the listing asks for these
            continue
        what = explain_unlikely(folders)
        are_hashes = what is not None and "hashes" in what
        below = _find_same_below(sketch, split, folders)
        if below and not are_hashes:
            raise UsageError(_explain_same(sketch, where, archive, (split, folders, below)))
        if what:
            paths = [posixpath.join(split, each) for each in folders]
            below = sorted({each for path in paths for each in _names_in(sketch, path).folders})
            ways = _offer_classes([] if are_hashes else below)
            raise UsageError(f"{where}: {_show(paths)} are {what}, not classes: {'; '.join(ways)}")


def _offer_classes(below: Sequence[str]) -> list[str]:
    """The ways to take the last folders for classes, if they may be, or to do without."""
    ways = []
    if len(below) > 1 and not are_unlikely_classes(below) and not explain_unlikely(below):
        flags = flags_of({"source": {"class_from": "last_folder"}})
        ways.append(f"if the classes are {_show(below)}, add {flags}")
    flags = flags_of({"source": {"class_from": "none"}})
    return [*ways, f"to convert the images without labels, add {flags}"]


def _explain_same(
    sketch: FolderSketch, where: str, archive: str, found: tuple[str, list[str], list[str]]
) -> str:
    """Says what folders that all hold the same folders may mean, with flags."""
    split, folders, below = found
    shown = _show([posixpath.join(split, each) for each in folders])
    what = f"{where}: {shown} all hold the folders {_show(below)}"
    if not split and all(map(split_of, below)):
        ways = _explain_inner_splits(sketch, where, archive, folders, below)
        return f"{what}, which are splits: {'; '.join(ways)}"
    *ways, last = _offer_classes([] if set(below) == set(folders) else below)
    if not are_unlikely_classes(folders) and not are_numbered(folders):
        flags = flags_of({"source": {"class_from": "first_folder"}})
        ways.append(f"if the classes are {_show(folders)}, add {flags}")
    ways.append(last)
    return f"{what}, so it is not clear what the classes are: {'; '.join(ways)}"


def _explain_inner_splits(
    sketch: FolderSketch, where: str, archive: str, folders: Sequence[str], below: Sequence[str]
) -> list[str]:
    """The ways to convert folders that all hold the same splits."""
    inner = {
        each
        for folder in folders
        for split in below
        for each in _names_in(sketch, posixpath.join(folder, split)).folders
        if not NO_CLASS.fullmatch(each.lower())
    }
    splits = {"from_source": {each: split_of(each) for each in below}}
    pattern = f"/(?P<split>{'|'.join(map(re.escape, below))})/"
    ways = []
    if inner and not archive:
        whole = f"--input {shlex.quote(f'{where}/{folders[0]}')}"
        ways.append(f"to convert {folders[0]} alone, use {whole}")
    for class_from, names in (("last_folder", sorted(inner)), ("first_folder", list(folders))):
        if names and not are_unlikely_classes(names):
            source = {"class_from": class_from, "split": pattern}
            flags = flags_of({"source": source, "splits": splits})
            ways.append(f"if the classes are {_show(names)}, add {flags}")
    flags = flags_of({"source": {"class_from": "none", "split": pattern}, "splits": splits})
    return [*ways, f"to convert the images without labels, add {flags}"]


def _names_in(sketch: FolderSketch, folder: str) -> Names:
    return sketch.names.get(folder) or sketch.deeper.get(folder) or Names()


def _find_same_below(sketch: FolderSketch, above: str, folders: Sequence[str]) -> list[str]:
    """The folders of images that all these folders hold; empty unless that says something."""
    paths = [posixpath.join(above, folder) for folder in folders]
    inner = {
        path: frozenset(
            each
            for each in _names_in(sketch, path).folders
            if sketch.holds_images(posixpath.join(path, each))
        )
        for path in paths
        if path in sketch.names or path in sketch.deeper
    }
    if len(inner) < 2 or any(_names_in(sketch, path).images for path in inner):
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
