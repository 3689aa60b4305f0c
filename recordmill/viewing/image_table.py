"""The values of images by which a viewer selects and sorts them, as columns in memory.

A row takes some 90 bytes and its key, so that millions fit.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recordmill.schemas.errors import UsageError
from recordmill.schemas.settings.images import CHANGES
from recordmill.viewing.selection import SORTABLE, Matches

NO_CLASS = ""
"""The class of an image without one."""

NO_CLASSES = (NO_CLASS,)

UNKNOWN_NUMBER = -1
"""Stands for a number that is not known."""

AT_ONCE = 2**11
"""The most images that are packed at once: as Python's objects, they take a kilobyte each.

With more, the garbage collector looks at them again and again, for a third of the whole time."""

MOST_KEY_BYTES = 64
"""Keys are sorted in an array unless one has this many bytes."""

_DIGEST_BYTES = 32

_NO_DIGEST = "00" * _DIGEST_BYTES

_CHANGES = {name: 1 << bit for bit, name in enumerate(CHANGES)}


@dataclass(slots=True)
class ImageFacts:
    """The values of one image.

    Attributes:
        key: the path of its source; for other people's records, the file name in the record, or the
            record's number.
        classes: the names of its classes, of one or of several objects.
        objects: the number of its objects; `UNKNOWN_NUMBER` if it can have none.
        dropped: the number of its objects that are in no record.
        width: of the stored image, in pixels, or `UNKNOWN_NUMBER`.
        height: of the stored image, in pixels, or `UNKNOWN_NUMBER`.
        changes: what was changed, by names from `CHANGES`; others are left out.
        offset: the first byte of its frame in the unpacked file.
        length: bytes of its record.
        sha256: hex digest of its source; empty if it is not known.
        shard: the place of its file in the dataset.
    """

    key: str
    classes: Sequence[str] = ()
    objects: int = UNKNOWN_NUMBER
    dropped: int = 0
    width: int = UNKNOWN_NUMBER
    height: int = UNKNOWN_NUMBER
    changes: Sequence[str] = ()
    offset: int = 0
    length: int = 0
    sha256: str = ""
    shard: int = 0


@dataclass(slots=True)
class NumberedNames:
    """Names by number, in the order in which they were met."""

    names: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """Returns the number of a name, which is added if it is new."""
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = len(self.names)
            self.names.append(name)
        return found

    def number_all(self, names: Iterable[str]) -> tuple[int, ...]:
        """Returns the numbers of the different names, in their order."""
        return tuple(dict.fromkeys(map(self.number, names)))


_TYPES: dict[str, Any] = {
    "shard": np.int32,
    "objects": np.int32,
    "dropped": np.int32,
    "width": np.int32,
    "height": np.int32,
    "changes": np.uint32,
    "offset": np.int64,
    "bytes": np.int64,
}


@dataclass(slots=True, eq=False)
class ImageBlock:
    """The values of some images, in the order of a dataset's records; nothing in it changes.

    Attributes:
        classes: the names of classes by number; those of further images may be among them.
        keys: the keys in UTF-8, each followed by a zero byte.
        key_ends: where each of these ends, after the zero byte.
        class_numbers: the different classes of each image, one image after the other.
        class_ends: where the classes of each image end.
        numbers: columns of integers by name: `shard` is the place of the image's file in the
            dataset, and `changes` a bit for each.
        digests: of the sources, 32 bytes each; zeros if they are not known.
    """

    classes: NumberedNames
    keys: bytes
    key_ends: NDArray[np.int64]
    class_numbers: NDArray[np.int32]
    class_ends: NDArray[np.int64]
    numbers: dict[str, NDArray[Any]]
    digests: bytes

    def __len__(self) -> int:
        return len(self.key_ends)

    def facts(self, number: int) -> ImageFacts:
        """Returns the values of the image with this number, counted from 0."""
        value = {name: int(column[number]) for name, column in self.numbers.items()}
        names = [self.classes.names[each] for each in self._classes_at(number)]
        return ImageFacts(
            self.key(number),
            [name for name in names if name != NO_CLASS],
            value["objects"],
            value["dropped"],
            value["width"],
            value["height"],
            [name for name, bit in _CHANGES.items() if value["changes"] & bit],
            value["offset"],
            value["bytes"],
            self.sha256(number) or "",
            value["shard"],
        )

    def key(self, number: int) -> str:
        """Returns the key of the image with this number."""
        begin = int(self.key_ends[number - 1]) if number else 0
        return self.keys[begin : int(self.key_ends[number]) - 1].decode("utf-8", "replace")

    def find_key(self, key: str, first: int, end: int) -> int | None:
        """Returns the number of the image with a key, from `first` and before `end`, if any has."""
        begin = int(self.key_ends[first - 1]) if first else 0
        wanted = key.encode("utf-8", "replace") + b"\0"
        at = self.keys.find(wanted, begin)
        while at > 0 and self.keys[at - 1]:  # the end of a longer key
            at = self.keys.find(wanted, at + 1)
        number = int(np.searchsorted(self.key_ends, at, "right"))
        if at < 0 or number >= end:
            return None
        return number

    def sha256(self, number: int) -> str | None:
        """Returns the hex digest of an image's source; None if it is not known."""
        digest = self.digests[number * _DIGEST_BYTES : (number + 1) * _DIGEST_BYTES]
        if any(digest):
            return digest.hex()
        return None

    def _classes_at(self, number: int) -> NDArray[np.int32]:
        begin = int(self.class_ends[number - 1]) if number else 0
        return self.class_numbers[begin : int(self.class_ends[number])]

    def match_class(self, name: str) -> Matches:
        """Returns the images that have this class."""
        matched = np.zeros(len(self), np.bool_)
        if name in self.classes.names:
            places = np.flatnonzero(self.class_numbers == self.classes.number(name))
            matched[np.searchsorted(self.class_ends, places, "right")] = True
        return matched

    def count_classes(self, selected: Matches) -> NDArray[np.int64]:
        """Returns the number of selected images that have each class, by the class's number."""
        per_image = np.diff(self.class_ends, prepend=0)
        chosen = np.repeat(selected, per_image)
        return np.bincount(self.class_numbers[chosen], minlength=len(self.classes.names))

    def match_change(self, name: str) -> Matches:
        """Returns the images on which this was changed; `nothing` if nothing was."""
        changes = self.numbers["changes"]
        if name == UNCHANGED:
            unchanged: Matches = changes == 0
            return unchanged
        changed: Matches = changes & np.uint32(_CHANGES[name]) > 0
        return changed

    def match_text(self, text: str) -> Matches:
        """Returns the images whose key has this part; capitals from A to Z equal small letters."""
        matched, wanted = np.zeros(len(self), np.bool_), text.encode("utf-8", "replace").lower()
        if not wanted or b"\0" in wanted:
            return matched
        keys, places = self.keys.lower(), list[int]()
        at = keys.find(wanted)
        while at >= 0:
            places.append(at)
            at = keys.find(wanted, at + len(wanted))
        matched[np.searchsorted(self.key_ends, np.array(places, np.int64), "right")] = True
        return matched

    def values(self, name: str) -> NDArray[Any]:
        """Returns what images are sorted by; see `SORTABLE`. `UNKNOWN_NUMBER` if it is unknown."""
        if name not in ("pixels", "bytes_per_pixel"):
            return self.numbers[name]
        pixels: NDArray[Any] = self.numbers["width"].astype(np.int64) * self.numbers["height"]
        pixels[self.numbers["width"] < 0] = UNKNOWN_NUMBER
        if name == "pixels":
            return pixels
        with np.errstate(divide="ignore"):
            share: NDArray[Any] = self.numbers["bytes"] / pixels
        return share

    def list_keys(self) -> list[bytes]:
        """Returns all keys in UTF-8."""
        return self.keys.split(b"\0")[:-1]


UNCHANGED = "nothing"
"""The change of an image that was not changed."""


def pack_images(classes: NumberedNames, images: Iterable[ImageFacts]) -> Iterator[ImageBlock]:
    """Packs images, at most `AT_ONCE` in a table.

    Args:
        classes: the names of classes so far; further ones are added.
        images: in the order of the dataset's records.
    """
    rest = iter(images)
    while some := list(islice(rest, AT_ONCE)):
        yield _pack(classes, some)


def _pack(classes: NumberedNames, images: Sequence[ImageFacts]) -> ImageBlock:
    keys = [each.key.encode("utf-8", "replace").replace(b"\0", b"\x01") + b"\0" for each in images]
    # Most images have one of a few lists of classes, and one of a few lists of changes.
    number_all, pack_changes = cache(classes.number_all), cache(_pack_changes)
    numbers = [number_all(tuple(each.classes or NO_CLASSES)) for each in images]
    columns: dict[str, Iterable[int]] = {
        "shard": [each.shard for each in images],
        "objects": [each.objects for each in images],
        "dropped": [each.dropped for each in images],
        "width": [each.width for each in images],
        "height": [each.height for each in images],
        "changes": [pack_changes(tuple(each.changes)) for each in images],
        "offset": [each.offset for each in images],
        "bytes": [each.length for each in images],
    }
    return ImageBlock(
        classes,
        b"".join(keys),
        np.cumsum([len(key) for key in keys], dtype=np.int64),
        np.array([*chain.from_iterable(numbers)], np.int32),
        np.cumsum([len(each) for each in numbers], dtype=np.int64),
        {name: np.array(column, _TYPES[name]) for name, column in columns.items()},
        _join_digests([each.sha256 or _NO_DIGEST for each in images]),
    )


def _join_digests(digests: Sequence[str]) -> bytes:
    """Returns digests in hex as bytes.

    Raises:
        ValueError: one is none, or is too short or too long.
    """
    joined = bytes.fromhex("".join(digests))
    if len(joined) != len(digests) * _DIGEST_BYTES:
        raise ValueError(f"a sha256 does not have {2 * _DIGEST_BYTES} digits")
    return joined


def _pack_changes(names: Iterable[str]) -> int:
    return sum(_CHANGES.get(name, 0) for name in names)


class ImageTable:
    """The images of a dataset, block by block: one thread adds some, and any may read them.

    Blocks are not joined: for a moment, that would take twice the memory.
    """

    def __init__(self) -> None:
        self.classes = NumberedNames()
        self._blocks: list[ImageBlock] = []
        self._starts = [0]

    def __len__(self) -> int:
        return self._starts[-1]

    def add(self, block: ImageBlock) -> None:
        """Adds the next images."""
        self._blocks.append(block)
        self._starts.append(len(self) + len(block))  # last: now its images can be found

    def _find(self, number: int) -> tuple[ImageBlock, int]:
        place = bisect_right(self._starts, number) - 1
        return self._blocks[place], number - self._starts[place]

    def facts(self, number: int) -> ImageFacts | None:
        """Returns the values of an image; None if it has not been read yet."""
        if not 0 <= number < len(self):
            return None
        block, place = self._find(number)
        return block.facts(place)

    def key(self, number: int) -> str:
        """Returns the key of an image that has been read."""
        block, place = self._find(number)
        return block.key(place)

    def sha256(self, number: int) -> str | None:
        """Returns the hex digest of the source of an image that has been read, if it is known."""
        block, place = self._find(number)
        return block.sha256(place)

    def classes_of(self, number: int) -> list[str]:
        """Returns the classes of an image that has been read."""
        block, place = self._find(number)
        return list(block.facts(place).classes)

    def find_key(self, key: str, first: int, end: int) -> int | None:
        """Returns the number of the image with a key, from `first` and before `end`, if any has."""
        for start, block in zip(self._starts, self._blocks, strict=False):
            if start < end and start + len(block) > first:
                place = block.find_key(key, max(first - start, 0), end - start)
                if place is not None:
                    return start + place
        return None

    def match_class(self, name: str) -> Matches:
        """Returns the images that have this class."""
        return self._match(lambda block: block.match_class(name))

    def match_change(self, name: str) -> Matches:
        """Returns the images on which this was changed; `nothing` if nothing was."""
        return self._match(lambda block: block.match_change(name))

    def match_text(self, text: str) -> Matches:
        """Returns the images whose key has this part; capitals from A to Z equal small letters."""
        return self._match(lambda block: block.match_text(text))

    def _match(self, match: Callable[[ImageBlock], Matches]) -> Matches:
        return np.concatenate([np.empty(0, np.bool_), *map(match, self._blocks)])

    def column(self, name: str) -> NDArray[Any]:
        """Returns the integers of all images that have this name; see `ImageBlock.numbers`."""
        return np.concatenate(
            [np.empty(0, _TYPES[name]), *(block.numbers[name] for block in self._blocks)]
        )

    def count_classes(self, selected: Matches) -> NDArray[np.int64]:
        """Returns the number of selected images that have each class, by the class's number."""
        counts = np.zeros(len(self.classes.names), np.int64)
        for start, block in zip(self._starts, self._blocks, strict=False):
            counts += block.count_classes(selected[start : start + len(block)])
        return counts

    def order(self, by: str) -> NDArray[np.int64]:
        """Returns the numbers of all images, sorted by a name of `SORTABLE`.

        Equal ones keep the dataset's order; unknown values come first. A `-` before the name
        reverses the order; an empty name leaves it.

        Raises:
            UsageError: nothing can be sorted by that.
        """
        name = by.removeprefix("-")
        if not by or not len(self):
            return np.arange(len(self))
        if name not in SORTABLE:
            raise UsageError(f"images cannot be sorted by {by!r:.40}: {', '.join(SORTABLE)} can be")
        if name == "key":
            order = self._order_by_key()
        else:
            values = np.concatenate([block.values(name) for block in self._blocks])
            order = np.argsort(values, kind="stable")
        if by.startswith("-"):
            return order[::-1]
        return order

    def _order_by_key(self) -> NDArray[np.int64]:
        """Sorts images by their keys: in an array, unless a key is long."""
        keys = [np.array(block.list_keys(), f"S{MOST_KEY_BYTES}") for block in self._blocks]
        longest = max(int(np.char.str_len(each).max()) for each in keys)
        if longest < MOST_KEY_BYTES:
            joined = np.concatenate([each.astype(f"S{longest}") for each in keys])
            return np.argsort(joined, kind="stable")
        whole = [*chain.from_iterable(block.list_keys() for block in self._blocks)]
        return np.array(sorted(range(len(whole)), key=whole.__getitem__), np.int64)
