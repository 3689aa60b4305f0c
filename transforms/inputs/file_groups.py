"""Files of one kind in an input: the first of them, their places, and patterns that name them all.

Groups are gathered while an input is listed, in parts that can be merged; their size is bounded.
"""

import re
from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, Self

from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.inputs.file_roles import suffix_of
from recordmill.transforms.inputs.patterns import escape_glob

MOST_KEPT = 64
"""Files of a group that are kept."""

MOST_PLACES = 1_000
"""Places of a group, or of claimed files, that are kept."""

FEW = 8
"""Files that are named one by one if they are in several folders, even if patterns would do."""

FEW_OF_A_FOLDER = 3
"""The same if they are in one folder."""

_MOST_PATTERNS = 64

_TELLING = re.compile(
    "list|train|val|test|split|anno|label|class|gt|truth|box|mask|seg|target|meta|caption|attr|"
    "landmark|index|names",
    re.IGNORECASE,
)


def tells_of_all(path: str) -> bool:
    """Returns whether a file's name tells that it is about many images, as `train.txt` does."""
    return _TELLING.search(path.rpartition("/")[2]) is not None and not has_digit(path)


def has_digit(path: str) -> bool:
    """Tells if a file's name has a digit, as most files about single images have."""
    return any(map(str.isdigit, path.rpartition("/")[2]))


class FilePlace(NamedTuple):
    """Where a file is, and what its name ends with.

    Attributes:
        folder: its folder below the input; empty: the input itself.
        ending: the end of its name from its last dot on; empty: there is no dot but the first.
    """

    folder: str
    ending: str

    @classmethod
    def of(cls, path: str) -> Self:
        """Returns the place of a file."""
        folder, _, name = path.rpartition("/")
        stem, dot, ending = name.rpartition(".")
        return cls(folder, f".{ending}" if dot and stem else "")

    @property
    def first_folder(self) -> str:
        """The first folder of the path; empty: the file is in the input itself."""
        return self.folder.partition("/")[0]


def first_folder_of(path: str) -> str:
    """Returns the first folder of a file's path; empty: the file is in the input itself."""
    return path[: max(path.find("/"), 0)]


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A file whose role is to be found.

    Attributes:
        rank: the highest folders come first, and in these the names that tell of labels.
        path: its path below the input, or in an archive.
        uri: the file, or the archive.
        file: a reference to it.
    """

    rank: int
    path: str
    uri: str
    file: ImageRef = field(compare=False)

    @classmethod
    def of(cls, path: str, file: ImageRef) -> Self:
        """Returns the file at a path to which there is a reference."""
        is_ordinary = _TELLING.search(path.rpartition("/")[2]) is None
        return cls(2 * path.count("/") + is_ordinary, path, file.uri, file)


@dataclass(slots=True)
class FileGroup:
    """Files of one kind, or those of a part of an input; parts can be merged.

    Attributes:
        count: how many there are.
        kept: the first of them.
        places: where they are; at most `MOST_PLACES`.
        has_more_places: whether there are more.
    """

    count: int = 0
    kept: list[Candidate] = field(default_factory=list)
    places: set[FilePlace] = field(default_factory=set)
    has_more_places: bool = False

    def add(self, path: str, file: ImageRef) -> None:
        """Adds a file at a path below the input."""
        self.count += 1
        self._keep(Candidate.of(path, file))
        self._add_place(FilePlace.of(path))

    def merge(self, other: Self) -> None:
        """Adds the files of another part."""
        self.count += other.count
        for each in other.kept:
            self._keep(each)
        for place in sorted(other.places):
            self._add_place(place)
        self.has_more_places = self.has_more_places or other.has_more_places

    def _keep(self, candidate: Candidate) -> None:
        if len(self.kept) < MOST_KEPT or candidate < self.kept[-1]:
            insort(self.kept, candidate)
            del self.kept[MOST_KEPT:]

    def _add_place(self, place: FilePlace) -> None:
        if place in self.places or len(self.places) < MOST_PLACES:
            self.places.add(place)
        else:
            self.has_more_places = True


@dataclass(slots=True)
class ClaimedFiles:
    """Files that a source claims.

    Attributes:
        first_folders: their first folders, as `FilePlace.first_folder`.
        endings: the ends of the names of those that are not images.
        by_place: the first of those that are not images, at most one more than `FEW` of a place.
    """

    first_folders: set[str] = field(default_factory=set)
    endings: set[str] = field(default_factory=set)
    by_place: dict[FilePlace, set[str]] = field(default_factory=dict)
    has_more_places: bool = False

    def add(self, path: str) -> None:
        """Adds a file that is not named like an image."""
        place = FilePlace.of(path)
        self.first_folders.add(place.first_folder)
        self.endings.add(place.ending)
        self._add(place, (path,))

    def merge(self, other: Self) -> None:
        """Adds the files of another part."""
        self.first_folders |= other.first_folders
        self.endings |= other.endings
        self.has_more_places = self.has_more_places or other.has_more_places
        for place, paths in other.by_place.items():
            self._add(place, sorted(paths))

    def _add(self, place: FilePlace, paths: Sequence[str]) -> None:
        if place not in self.by_place and len(self.by_place) >= MOST_PLACES:
            self.has_more_places = True
            return
        known = self.by_place.setdefault(place, set())
        known.update(paths[: FEW + 1 - len(known)])

    @property
    def folders(self) -> set[str]:
        """The folders of those that are not images."""
        return {place.folder for place in self.by_place}


_MOST_SUFFIXES = 200


@dataclass(slots=True)
class UnreadFiles:
    """Files that no source claims, by extension; of an input or of its archives.

    Attributes:
        by_suffix: the files by their extensions; the empty text stands for all others.
        claimed: the other ones.
    """

    by_suffix: dict[str, FileGroup] = field(default_factory=dict)
    claimed: ClaimedFiles = field(default_factory=ClaimedFiles)

    def add(self, path: str, file: ImageRef) -> None:
        """Adds a file at a path below the input, or in an archive."""
        suffix = suffix_of(path) or ""
        if suffix not in self.by_suffix and len(self.by_suffix) >= _MOST_SUFFIXES:
            suffix = ""
        self.by_suffix.setdefault(suffix, FileGroup()).add(path, file)

    def merge(self, other: Self) -> None:
        """Adds the files of another part."""
        for suffix, group in other.by_suffix.items():
            self.by_suffix.setdefault(suffix, FileGroup()).merge(group)
        self.claimed.merge(other.claimed)

    @property
    def candidates(self) -> list[Candidate]:
        """The files that are kept, the highest first."""
        return sorted(chain.from_iterable(group.kept for group in self.by_suffix.values()))


def patterns_of_all(
    group: FileGroup, paths: Sequence[str], claimed: ClaimedFiles, has_images: bool = False
) -> list[str]:
    """Returns patterns for `ignore` that match all files of a group, and none that a source claims.

    They may leave out further files that no source claims. Empty if there are none.

    Args:
        group: the files.
        paths: those of them to leave out, if all are known.
        claimed: the other files.
        has_images: whether some files of the group are images, so that it must not be left out as a
            whole.
    """
    listed = [f"/{escape_glob(path)}" for path in paths]
    are_listed = group.count == len(group.kept)
    is_one_place = len(group.places) == 1 and len(paths) == group.count > FEW_OF_A_FOLDER
    if are_listed and len(listed) <= FEW:
        found = _by_place(group, claimed) if is_one_place and not has_images else []
        return found if len(found) == 1 else listed
    if not has_images and not group.has_more_places:
        for found in (
            _by_ending(group, claimed),
            _by_first_folder(group, claimed),
            _by_place(group, claimed),
            _by_depth(group, claimed),
        ):
            if 0 < len(found) <= _MOST_PATTERNS:
                return found
    return listed if are_listed else []


def _by_ending(group: FileGroup, claimed: ClaimedFiles) -> list[str]:
    endings = sorted({place.ending for place in group.places})
    names_folders = any(folder.endswith(tuple(endings)) for folder in claimed.first_folders)
    if "" in endings or not claimed.endings.isdisjoint(endings) or names_folders:
        return []
    return [f"*{escape_glob(ending)}" for ending in endings]


def _by_first_folder(group: FileGroup, claimed: ClaimedFiles) -> list[str]:
    folders = {place.first_folder for place in group.places}
    if not folders.isdisjoint({"", *claimed.first_folders}):
        return []
    return [f"/{escape_glob(f'{folder}/')}" for folder in sorted(folders)]


def _by_place(group: FileGroup, claimed: ClaimedFiles) -> list[str]:
    """Patterns for the files of each place, and exceptions for the few that are claimed there."""
    if claimed.has_more_places:
        return []
    found: list[str] = []
    for place in sorted(group.places):
        known = claimed.by_place.get(place, set())
        if len(known) > FEW:
            return []
        folder = f"/{escape_glob(place.folder)}" if place.folder else ""
        found += _in_folder(folder, place.ending)
        found += [f"!/{escape_glob(path)}" for path in sorted(known)]
    return found


def _by_depth(group: FileGroup, claimed: ClaimedFiles) -> list[str]:
    """Returns patterns for files without an extension, whose folders are as deep as these."""
    is_bare = {place.ending for place in group.places} == {""}
    if not is_bare or "" in claimed.endings:
        return []
    # A deeper pattern comes later, since exceptions of a higher one may name folders with a dot.
    depths = sorted({place.folder.count("/") + bool(place.folder) for place in group.places})
    return [*chain.from_iterable(_in_folder("/*" * depth, "") for depth in depths)]


def _in_folder(folder: str, ending: str) -> Iterator[str]:
    yield f"{folder}/*{escape_glob(ending)}"
    if not ending:  # but not folders, and not names with an extension
        yield f"!{folder}/*/"
        yield f"!{folder}/*.*"
