"""Finds the image that an annotation file means but spells otherwise, if only one can be meant."""

import ntpath
import os
import posixpath
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from recordmill import storage
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.image_suffixes import IMAGE_ENDINGS, without_image_ending
from recordmill.transforms.inputs.named_files import locate

_OF_TEXT = (".txt", ".xml", ".json", ".csv", ".yaml", ".yml", ".md", ".cache")
"""Extensions of files that are next to images and are none."""


def plain_name(name: str) -> str:
    """Returns a name without what programs change in it: Unicode's form, URL's escapes, case."""
    if "%" in name:
        decoded = unquote(name, errors="replace")
        name = name if "\ufffd" in decoded else decoded
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


@dataclass(frozen=True, slots=True)
class FolderNames:
    """The names of the files in a folder.

    Attributes:
        by_stem: the names by what is before their extension, as the folder spells it.
        by_plain_stem: these stems by their plain names.
        by_plain_name: whole names by their plain names.
    """

    by_stem: Mapping[str, tuple[str, ...]]
    by_plain_stem: Mapping[str, tuple[str, ...]]
    by_plain_name: Mapping[str, tuple[str, ...]]

    def find_stem(self, stem: str) -> str | None:
        """Returns the only other spelling of a stem; None if there is none, or several."""
        return _find_only(self.by_plain_stem.get(plain_name(stem), ()))

    def find_pair(self, stem: str, others: "FolderNames") -> str | None:
        """Returns how others spell one of these stems; None if either side has several of them."""
        if self.find_stem(stem) is None:
            return None
        return others.find_stem(stem)

    def find_name(self, name: str) -> str | None:
        """Returns the only other spelling of a whole name; None if there is none, or several."""
        return _find_only(self.by_plain_name.get(plain_name(name), ()))

    def images(self, stem: str) -> tuple[str, ...]:
        """Returns the images with exactly this stem."""
        return tuple(
            name for name in self.by_stem.get(stem, ()) if name.lower().endswith(IMAGE_ENDINGS)
        )


def _find_only(names: Collection[str]) -> str | None:
    """Returns the only one of some names; None if there is none, or several."""
    return next(iter(names)) if len(names) == 1 else None


def names_in(folder: str, are_texts: bool = False) -> FolderNames:
    """Returns the names of a folder's images, or of its text files, from memory if it is unchanged.

    There are none if the folder does not exist, or may not be listed.

    Args:
        folder: on any file system.
        are_texts: whether the files that end with `.txt` are wanted. Otherwise, all others are that
            may be images.
    """
    version = ""
    if storage.is_local(folder):
        try:
            version = str(os.stat(folder).st_mtime_ns)
        except OSError:
            return FolderNames({}, {}, {})
    return _read_names(folder, version, are_texts)


@lru_cache(maxsize=64)
def _read_names(folder: str, version: str, are_texts: bool) -> FolderNames:
    by_stem: defaultdict[str, list[str]] = defaultdict(list)
    by_plain_stem: defaultdict[str, list[str]] = defaultdict(list)
    by_plain_name: defaultdict[str, list[str]] = defaultdict(list)
    try:
        entries = storage.folder_entries(folder)
    except OSError:  # the listing reports it
        entries = []
    for name in entries:
        is_text = name.lower().endswith(".txt" if are_texts else _OF_TEXT)
        if name.endswith("/") or is_text != are_texts:
            continue
        stem = posixpath.splitext(name)[0]
        by_stem[stem].append(name)
        by_plain_name[plain_name(name)].append(name)
    for stem in by_stem:
        by_plain_stem[plain_name(stem)].append(stem)
    tables = by_stem, by_plain_stem, by_plain_name
    return FolderNames(*map(_freeze, tables))


def _freeze(table: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    return {key: tuple(names) for key, names in table.items()}


def find_other_place(root: str, folder: str, name: str) -> str | None:
    """Returns where the image is that a file of annotations names, if it is not where it should be.

    The path may have a folder more, or be one of another machine; or the name may have another
    extension, or another spelling.

    Args:
        root: the input.
        folder: the folder of the images below the root.
        name: the image's name or path in the annotations, with slashes or backslashes.

    Returns:
        The path below the root; None if there is no such image, or several may be meant.
    """
    places = _places(folder, _split_path(name))
    for search in (_with_same_names, _with_other_endings, _with_other_spellings):
        if found := {place for place in search(root, places) if _exists(root, place)}:
            return _find_only(found)
    return None


def _split_path(name: str) -> list[str]:
    """Returns the parts of a path of any system, without a drive, `.` and `..`; none of a URL."""
    if "://" in name:
        return []
    path = ntpath.splitdrive(name)[1].replace("\\", "/")
    return [part for part in path.split("/") if part not in ("", ".", "..")]


def _with_same_names(root: str, places: Iterable[str]) -> Iterable[str]:
    """Returns the places themselves."""
    return places


def _with_other_endings(root: str, places: Iterable[str]) -> Iterator[str]:
    """Yields the images at these places with any extension."""
    for place in places:
        above, name = posixpath.split(place)
        images = names_in(f"{root}/{above}".rstrip("/"))
        for image in images.images(without_image_ending(name)):
            yield posixpath.join(above, image)


def _with_other_spellings(root: str, places: Iterable[str]) -> Iterator[str]:
    """Yields the images whose names differ only by Unicode's form, URL's escapes or case."""
    for place in places:
        above, name = posixpath.split(place)
        images = names_in(f"{root}/{above}".rstrip("/"))
        may_be_stem = without_image_ending(name) == name
        if found := images.find_name(name):
            yield posixpath.join(above, found)
        elif may_be_stem and (found := images.find_stem(name)):
            yield from (posixpath.join(above, image) for image in images.images(found))


def _places(folder: str, parts: list[str]) -> list[str]:
    """Returns the path, its ends, and its begin without the folders between that and the name."""
    ends = ["/".join(parts[at:]) for at in range(len(parts))]
    begins = ["/".join((*parts[:at], parts[-1])) for at in range(1, len(parts) - 1)]
    return list(dict.fromkeys(posixpath.join(folder, each) for each in (*ends, *begins)))


def _exists(root: str, below: str) -> bool:
    """Returns whether there is a file at a path below the root, which is not a link out of it."""
    try:
        uri, size, _ = locate(root, below)
        return size >= 0 or storage.size_of(uri) is not None
    except (Rejected, PermissionError):
        return False
