"""What went wrong with a dataset, for the page: rejected files, duplicates, and odd objects."""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recordmill import storage
from recordmill.reading.dataset import Dataset
from recordmill.schemas.dataset.file_names import DUPLICATES, REJECTED
from recordmill.schemas.dataset.json_values import from_json
from recordmill.schemas.dataset.side_files import DuplicateGroup, DuplicateKind, RejectedFile
from recordmill.schemas.rejection import ACCEPTED_BY, explain_reason

MOST_OF_REASON = 200
"""The most rejected files of a reason."""

MOST_GROUPS = 200
"""The most groups of duplicates of a kind."""

MOST_DROPPED = 200
"""The most images whose dropped objects are shown."""

MOST_READ = 2_000
"""The most records that are read to find the smallest and the largest objects."""

MOST_EXTREMES = 10
"""The most objects at either end."""


@dataclass(frozen=True, slots=True)
class RejectedGroup:
    """The files that were rejected for one reason.

    Attributes:
        reason: the reason, in a word.
        meaning: what it means; None if another version of Recordmill knew it.
        flag: what would accept them; None if nothing would.
        count: their number.
        files: the first ones.
    """

    reason: str
    meaning: str | None
    flag: str | None
    count: int
    files: Sequence[RejectedFile]


@dataclass(frozen=True, slots=True)
class ShownDuplicate:
    """One image of a group of duplicates.

    Attributes:
        key: its key.
        split: its split.
        class_name: its class; None if it has none.
        image: its number; None if it is not in the dataset any more.
    """

    key: str
    split: str
    class_name: str | None
    image: int | None


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """A group of duplicates.

    Attributes:
        kind: as in `DuplicateGroup`.
        distance: as in `DuplicateGroup`.
        images: its first images.
    """

    kind: DuplicateKind
    distance: int | None
    images: Sequence[ShownDuplicate]


@dataclass(frozen=True, slots=True)
class ShownDropped:
    """An object that is in no record.

    Attributes:
        image: the number of its image.
        key: the key of its image.
        class_name: its class, or the class's number if it has no name.
        place: its place among those of its kind in the image, from 1.
        color: the color of its class, as `#rrggbb`.
        sides: left, top, right and bottom, in fractions of the stored image; None if that is not
            known.
    """

    image: int
    key: str
    class_name: str
    place: int
    color: str
    sides: Sequence[float] | None


@dataclass(frozen=True, slots=True)
class DroppedGroup:
    """The objects that were dropped for one reason.

    Attributes:
        what: what these annotations are called, in the plural.
        reason: the reason, in a word.
        objects: the first ones.
    """

    what: str
    reason: str
    objects: Sequence[ShownDropped]


@dataclass(frozen=True, slots=True)
class Findings:
    """What went wrong.

    Attributes:
        rejected: by reason.
        duplicates: groups of images with the same bytes, pairs that look alike, and the closest
            pair; those across splits first.
        bare: the number of images without objects; None if images can have none.
        dropped: the number of images with dropped objects.
        dropped_objects: dropped objects of the first of these images, by reason.
    """

    rejected: Sequence[RejectedGroup]
    duplicates: Sequence[ShownGroup]
    bare: int | None
    dropped: int
    dropped_objects: Sequence[DroppedGroup] = ()


@dataclass(frozen=True, slots=True)
class ObjectSize:
    """An object and its size.

    Attributes:
        image: the number of its image.
        share: the share of its image that it covers.
    """

    image: int
    share: float


@dataclass(frozen=True, slots=True)
class ObjectSizes:
    """The smallest and the largest objects of a class.

    Attributes:
        read: the number of images that were searched.
        images: the number of images with the class.
        smallest: the smallest first.
        largest: the largest first.
    """

    read: int
    images: int
    smallest: Sequence[ObjectSize]
    largest: Sequence[ObjectSize]


def _read_list(dataset: Dataset, name: str) -> Iterator[dict[str, Any]]:
    """Yields the lines of a list; none if files or an unfinished run have no such list."""
    if dataset.marker_or_none or storage.exists(storage.join(dataset.folder, name)):
        yield from dataset.lines(name)


def gather_rejected(dataset: Dataset) -> list[RejectedGroup]:
    """Returns the rejected files of a dataset by reason, the most frequent reason first.

    Raises:
        OSError: the list cannot be read.
        ValueError: a line is damaged.
    """
    counts: dict[str, int] = {}
    files: dict[str, list[RejectedFile]] = {}
    for line in _read_list(dataset, REJECTED):
        reason = str(line["reason"])
        counts[reason] = counts.get(reason, 0) + 1
        if counts[reason] <= MOST_OF_REASON:
            files.setdefault(reason, []).append(from_json(RejectedFile, line))
    return [
        RejectedGroup(
            reason,
            explain_reason("rejected", reason),
            ACCEPTED_BY.get(reason),
            counts[reason],
            files[reason],
        )
        for reason in sorted(counts, key=lambda each: -counts[each])
    ]


def gather_duplicates(
    dataset: Dataset, find_image: Callable[[str, str], int | None]
) -> list[ShownGroup]:
    """Returns groups of duplicates, of each kind those in several splits first.

    Args:
        dataset: the dataset.
        find_image: returns the number of the image in a split with a key.

    Raises:
        OSError: the list cannot be read.
        ValueError: a line is damaged.
    """
    groups: dict[str, list[DuplicateGroup]] = {}
    for line in _read_list(dataset, DUPLICATES):
        group = from_json(DuplicateGroup, line)
        groups.setdefault(group.kind, []).append(group)
    shown = []
    for of_kind in groups.values():
        of_kind.sort(key=lambda group: -len(group.splits))
        shown += [_show_group(group, find_image) for group in of_kind[:MOST_GROUPS]]
    return shown


def _show_group(group: DuplicateGroup, find_image: Callable[[str, str], int | None]) -> ShownGroup:
    images = [
        ShownDuplicate(each.key, each.split, each.class_name, find_image(each.split, each.key))
        for each in group.images
    ]
    return ShownGroup(group.kind, group.distance, images)


def find_extremes(
    sizes: Iterator[tuple[int, Mapping[str, Sequence[float]]]], class_name: str, images: int
) -> ObjectSizes:
    """Returns the smallest and the largest objects of a class.

    Args:
        sizes: of each image that is searched, its number, and the shares that its objects cover by
            class.
        class_name: the class.
        images: the number of images with the class.
    """
    found, read = list[ObjectSize](), 0
    for image, shares in sizes:
        read += 1
        found += [ObjectSize(image, share) for share in shares.get(class_name, ())]
    smallest = heapq.nsmallest(MOST_EXTREMES, found, key=lambda each: each.share)
    largest = heapq.nlargest(MOST_EXTREMES, found, key=lambda each: each.share)
    return ObjectSizes(read, images, smallest, largest)
