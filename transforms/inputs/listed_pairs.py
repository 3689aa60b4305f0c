"""Pairs of images in a whole listing: the names are gathered while an input is listed.

Recognition has seen a part of the folders only, and not what is in archives.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Self

import orjson

from recordmill import storage
from recordmill.schemas.image_ref import ImageRef, Notice
from recordmill.schemas.rejection import Rejected
from recordmill.storage.packed_files import read_image
from recordmill.transforms.inputs.archive_samples import suggest_mask_part
from recordmill.transforms.inputs.found_pairs import Pairs
from recordmill.transforms.inputs.image_looks import Appearance, Looker, look_at_image
from recordmill.transforms.inputs.pair_names import (
    AGREEMENT,
    is_domain,
    parts_of,
    sample_names,
    split_word_of,
)
from recordmill.transforms.inputs.pairs import find_pairs, patterns_of
from recordmill.transforms.inputs.patterns import escape_glob
from recordmill.transforms.inputs.suggest_pairs import suggest_pairs
from recordmill.transforms.inputs.unlikely_classes import NO_CLASS
from recordmill.transforms.inputs.views import find_views

MOST_BYTES = 2**25
"""Larger images are not read."""

MOST_NAMES = 2**20
"""Names that are kept of an input; of a larger one, some of each folder."""

FEWEST_OF_A_FOLDER = 32

MOST_MEMBERS = 2**16
"""Members of archives that can be looked at."""

MOST_READ = 512
MOST_READ_ON_STORE = 8
"""Images that are read: of an input, or of all inputs on stores."""

_SHOWN = 4
"""Folders that a sentence names."""

NUMBERS_IN_NAMES = "numbers_in_names"
"""What is noted of names that are several numbers."""

_NUMBERS = re.compile(r"(?!(?:19|20)[0-9]{2}[_-])[0-9]{1,4}(?:[_-][0-9]+){2,}\b")

_PHOTOGRAPH = Appearance(3, 256)


def make_looker(root: str, most_on_store: int) -> Looker:
    """Looks at images below a root; on a store at a few only, which are not JPEGs."""
    requests = iter(range(most_on_store))

    def look(path: str) -> Appearance | None:
        uri = f"{root}/{path}"
        is_local = storage.is_local(uri)
        try:
            if is_local and os.path.getsize(uri) > MOST_BYTES:
                return None
            if not is_local and path.lower().endswith((".jpg", ".jpeg")):
                return _PHOTOGRAPH
            if not is_local and next(requests, None) is None:
                return None
            return look_at_image(storage.read_range(uri, 0, MOST_BYTES))
        except (OSError, ValueError):
            return None

    return look


@dataclass(slots=True)
class ListedImages:
    """The images of an input, or of a part of it; parts can be merged.

    Attributes:
        names: the names in each folder, by path below the input; an archive is a folder, too.
        count: how many names there are.
        most: the most names that are kept of a folder.
        archives: the archives.
        members: references to the first members of archives, by path.
    """

    names: dict[str, list[str]] = field(default_factory=dict)
    count: int = 0
    most: int = 2**14
    archives: set[str] = field(default_factory=set)
    members: dict[str, ImageRef] = field(default_factory=dict)

    def add(self, path: str) -> None:
        """Adds an image, by its path below the input."""
        folder, _, name = path.rpartition("/")
        names = self.names.get(folder)
        if names is None:
            names = self.names[folder] = []
        names.append(name)
        self.count += 1
        if self.count > MOST_NAMES:
            self._thin()

    def add_member(self, archive: str, file: ImageRef, member: ImageRef) -> None:
        """Adds an image in an archive.

        Args:
            archive: the archive's path below the input.
            file: a reference to it.
            member: a reference to the image, whose key begins with that of the archive.
        """
        path = f"{archive}{member.key[len(file.key) :]}"
        self.archives.add(archive)
        if len(self.members) < MOST_MEMBERS:
            self.members[path] = member
        self.add(path)

    def merge(self, other: Self) -> None:
        """Adds the images of another part of the same input."""
        for folder, names in other.names.items():
            self.names.setdefault(folder, []).extend(names)
        self.count += other.count
        self.archives |= other.archives
        self.members |= other.members
        if self.count > MOST_NAMES:
            self._thin()

    def _thin(self) -> None:
        """Keeps fewer names of each folder, and whole pairs of them."""
        while self.count > MOST_NAMES // 2 and self.most > FEWEST_OF_A_FOLDER:
            self.most //= 2
            self.names = {
                folder: sample_names(names, self.most) for folder, names in self.names.items()
            }
            self.count = sum(map(len, self.names.values()))
        while self.count > MOST_NAMES:
            self.count -= len(self.names.popitem()[1])

    @property
    def are_numbers(self) -> bool:
        """Whether most names are several numbers, and no dates: `25_1_2_2017`, as in UTKFace."""
        names = list(chain.from_iterable(self.names.values()))
        numbers = sum(_NUMBERS.match(name) is not None for name in names)
        return len(names) > 1 and numbers >= AGREEMENT * len(names)

    def find_second_images(
        self, whole: ImageRef, inputs: int = 1, with_views: bool = False
    ) -> Iterator[Notice]:
        """Yields a notice of the second images of pairs, if there are any.

        Args:
            whole: a reference to the whole input.
            inputs: how many inputs share the requests to a store.
            with_views: whether names that differ in the same few endings are those of pairs.
        """
        folders = {folder: sorted(self.names[folder]) for folder in sorted(self.names)}
        pairs = find_pairs(folders, self._make_looker(whole.uri, inputs))
        if pairs is None and with_views:
            pairs = find_views(folders)
        if pairs:
            sides = [(pairs.left_out, pairs.kept)]
            if pairs.left_out and (pairs.is_even or pairs.are_sides):
                sides.append((pairs.kept, pairs.left_out))
            ways = [_leave_out(pairs, *side, self.archives) for side in sides]
            for kept, patterns in pairs.choices:
                chosen = replace(pairs, patterns=patterns)
                if way := _leave_out(chosen, (), (), self.archives):
                    ways.append((kept, way[1]))
            if self.archives:
                both = suggest_mask_part(pairs.patterns)
            else:
                both = suggest_pairs(pairs, folders)
            found = SecondImages(
                pairs.why,
                pairs.count,
                tuple(filter(None, ways)),
                may_be_single=pairs.may_be_single,
                both=orjson.dumps(both).decode() if both else None,
            )
            yield found.as_notice(whole)

    def _make_looker(self, root: str, inputs: int) -> Looker:
        """Looks at images of the input, also in archives."""
        on_store = MOST_READ_ON_STORE // inputs
        look_at_file = make_looker(root, on_store)
        left = iter(range(MOST_READ if storage.is_local(root) else on_store))

        def look(path: str) -> Appearance | None:
            if next(left, None) is None:
                return None
            if path not in self.members:
                return None if self.archives else look_at_file(path)
            try:
                return look_at_image(read_image(self.members[path], MOST_BYTES))
            except (OSError, ValueError, Rejected):
                return None

        return look


@dataclass(frozen=True, slots=True, order=True)
class SecondImages:
    """Second images of pairs, which would be taken for images of their own.

    Attributes:
        why: what looks like pairs: the end of a sentence.
        count: how many there are.
        ways: the ways to leave one side out: which folders are kept, and settings as JSON.
        place: the input.
        may_be_single: whether all images may be of things of their own.
        both: the settings that store second images with their images, as JSON; None: none would.
    """

    why: str
    count: int
    ways: tuple[tuple[str, str], ...]
    place: str = ""
    may_be_single: bool = False
    both: str | None = None

    def as_notice(self, whole: ImageRef) -> Notice:
        """Returns a notice that carries it through Beam."""
        features = orjson.dumps([self.ways, self.may_be_single, self.both]).decode()
        return whole.replace(features=features).notice(
            "second_images", "second_images", self.why, self.count
        )

    @classmethod
    def of_notice(cls, notice: Notice) -> Self:
        """Returns what a notice carries."""
        listed, may_be_single, both = orjson.loads(notice.features)
        ways = tuple((kept, settings) for kept, settings in listed)
        return cls(notice.detail, notice.count, ways, notice.uri, may_be_single, both)


def _leave_out(
    pairs: Pairs, left_out: Sequence[str], kept: Sequence[str], archives: Collection[str]
) -> tuple[str, str] | None:
    """Returns the folders that are kept, and settings that leave the others out.

    Returns None: there are none.
    """
    shown = ", ".join(kept[:_SHOWN]) + (", ..." if len(kept) > _SHOWN else "")
    if archives:
        settings = _leave_out_members(pairs, left_out, kept, archives)
    else:
        settings = _leave_out_files(pairs, left_out, kept)
    if not settings:
        return None
    return shown, orjson.dumps(settings).decode()


def _leave_out_files(pairs: Pairs, left_out: Sequence[str], kept: Sequence[str]) -> dict[str, Any]:
    """Returns the settings that leave out images in folders; empty if there are none."""
    patterns = list(pairs.patterns)
    if left_out:
        patterns = patterns_of(left_out, kept)
    if not patterns:
        return {}
    settings: dict[str, Any] = {"ignore": patterns}
    if pairs.class_from:
        settings["source"] = {"class_from": pairs.class_from}
    return settings


def _leave_out_members(
    pairs: Pairs, left_out: Sequence[str], kept: Sequence[str], archives: Collection[str]
) -> dict[str, Any]:
    """Returns the settings that leave out members or whole archives; empty if there are none.

    Patterns of members hold for all archives.
    """
    if not left_out:
        begins = [f"/{escape_glob(archive)}/" for archive in archives]
        inner = {_without_begin(pattern, begins) for pattern in pairs.patterns}
        if not inner:
            return {}
        read = _read_members(sorted(inner))
        if pairs.class_from:
            read["source"] |= {"class_from": pairs.class_from}
        return read
    left = [_divide(path, archives) for path in left_out]
    others = [_divide(path, archives) for path in kept]
    in_use = {archive for archive, _ in others}
    whole = sorted({archive for archive, _ in left} - in_use)
    drawn = sorted({folder for archive, folder in left if archive in in_use})
    photos = sorted({folder for _, folder in others})
    if set(drawn) & set(photos) or "" in drawn:
        return {}
    settings: dict[str, Any] = {}
    if drawn:
        settings = _read_members(patterns_of(drawn, photos))
        settings["source"] |= _label_members(photos)
        settings |= _split_members(photos, settings["source"])
    if whole:
        settings["ignore"] = [f"/{escape_glob(archive)}" for archive in whole]
        if not drawn and (label := _label_members(photos)):
            settings["source"] = label
    return settings


def _without_begin(pattern: str, begins: Iterable[str]) -> str:
    begin = next(filter(pattern.startswith, begins), "/")
    if not pattern.startswith("/"):
        return pattern
    return f"/{pattern.removeprefix(begin)}"


def _divide(path: str, archives: Collection[str]) -> tuple[str, str]:
    """Returns an archive's path, and a folder in it."""
    at = len(path)
    while at > 0 and path[:at] not in archives:
        at = path.rfind("/", 0, at)
    return path[:at], path[at + 1 :]


def _read_members(left_out: Sequence[str]) -> dict[str, Any]:
    """Returns the setting that reads all members but those that match these patterns."""
    patterns = ["*"]
    for each in left_out:
        if each.startswith("/") and each.endswith("/"):
            patterns.append(f"!{each}**")
        elif each.endswith("/"):
            patterns.append(f"!**/{each}**")
        else:
            patterns.append(f"!{each}")
    return {"source": {"members": patterns}}


def _label_members(kept: Sequence[str]) -> dict[str, Any]:
    """The setting for classes, if the first folders that are kept, or the only one, name none."""
    firsts = {path.partition("/")[0] for path in kept}
    if len(kept) == 1:
        return {"class_from": "none"}
    if not all(NO_CLASS.fullmatch(first.lower()) or is_domain(first) for first in firsts):
        return {}
    parts = {*chain.from_iterable(path.split("/")[1:] for path in kept)}
    has_classes = any(not NO_CLASS.fullmatch(part.lower()) for part in parts)
    return {"class_from": "last_folder" if has_classes else "none"}


def _split_members(kept: Sequence[str], source: dict[str, Any]) -> dict[str, Any]:
    """Adds the setting that finds splits in the folders that are kept; returns that about words."""
    words = {part: word for part in sorted(parts_of(kept)) if (word := split_word_of(part))}
    if not words or any(words.keys().isdisjoint(path.split("/")) for path in kept):
        return {}
    source["split"] = f"/(?P<split>{'|'.join(map(re.escape, words))})/"
    return {"splits": {"from_source": words}}
