"""Images that a dataset holds twice: files of the same bytes, and pairs that look alike; no image is read for it.

The sidecars have every image's SHA-256, and its difference hash where `images.near_duplicates` asks for it. The numbers
of one pass say which images to look for; a second one fetches their rows, which are sorted on disk.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import cast

import numpy as np
import orjson

from recordmill import storage
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.dataset.marker import DuplicateCounts, LookAlikes, SameBytes
from recordmill.schemas.dataset.side_files import Duplicate, DuplicateGroup
from recordmill.schemas.dataset.sidecar_row import SidecarRow, row_from_json, row_to_json
from recordmill.transforms.publishing.digest_index import DigestIndex, Digests
from recordmill.transforms.publishing.near_duplicates import MOST_BITS, find_near_pairs
from recordmill.transforms.publishing.statistics import Sidecar, Statistics, digests_of, read_chunks
from recordmill.transforms.publishing.temporary_rows import SortedRows

MOST_LISTED = 1_000
"""Images of one group that are listed by name; `count` says how many there are."""


@dataclass(frozen=True, slots=True)
class Found:
    """One image of a group or pair."""

    sidecar: Sidecar
    row: SidecarRow


@dataclass(slots=True)
class Group:
    """Images of the same bytes, or a pair that looks alike.

    Attributes:
        images: the first `MOST_LISTED` of them.
        count: how many there are.
        splits: sorted.
        classes: sorted; an image without a class counts as the empty name.
        distance: of a pair, the bits by which the difference hashes differ; None for images of the same bytes.
    """

    images: list[Found]
    count: int
    splits: list[str]
    classes: list[str]
    distance: int | None = None


def list_duplicates(path: str, sidecars: Sequence[Sidecar], statistics: Statistics) -> DuplicateCounts:
    """Writes the list of all duplicates, one line a group, sorted by SHA-256, then one line a pair, closest first.

    Args:
        path: the file to write.
        sidecars: of all shards, in the order in which the statistics were gathered.
        statistics: of the same sidecars.

    Returns:
        The numbers for the marker.

    Raises:
        OSError: a sidecar cannot be read or the file not written.
    """
    temporary = storage.temporary_name(path)
    with storage.open_to_write(temporary) as lines:

        def write(groups: Iterator[Group]) -> SameBytes:
            numbers = SameBytes()
            for group in groups:
                lines.write(_line(group))
                numbers.add(group.count, group.splits, group.classes)
            return numbers

        same, alike = write(find_same_bytes(sidecars, statistics.contents)), None
        if len(statistics.hashes) == len(statistics.contents):  # they were taken
            complete, pairs = find_look_alikes(sidecars, statistics)
            alike = LookAlikes.of(write(pairs), MOST_BITS, complete)
    storage.move_file(temporary, path)
    return DuplicateCounts(same, alike)


def find_same_bytes(sidecars: Sequence[Sidecar], contents: DigestIndex) -> Iterator[Group]:
    """Groups of at least two images with the same SHA-256, sorted by it."""
    rows = SortedRows()
    rows.add(
        (row.sha256, orjson.dumps((number, row_to_json(row))))
        for number, _, row in _fetch(sidecars, contents.repeated())
    )
    for _, same in groupby(rows, key=itemgetter(0)):
        places = (orjson.loads(value) for _, value in same)
        group = _group(Found(sidecars[number], cast("SidecarRow", row_from_json(row))) for number, row in places)
        if group.count > 1:  # the first 64 bits of two digests may be equal by chance
            yield group


def _group(images: Iterable[Found], distance: int | None = None) -> Group:
    group, splits, classes = Group([], 0, [], [], distance), set(), set()
    for group.count, image in enumerate(images, 1):
        if len(group.images) < MOST_LISTED:
            group.images.append(image)
        splits.add(image.sidecar.split)
        classes.add(image.row.class_name or "")
    group.splits, group.classes = sorted(splits), sorted(classes)
    return group


def find_look_alikes(sidecars: Sequence[Sidecar], statistics: Statistics) -> tuple[bool, Iterator[Group]]:
    """Pairs of images of different bytes whose difference hashes are close, and whether these are all there are.

    Of images with the same bytes the first stands for all. Left out are pictures that look like a blank page or a plain
    gradient, whose hashes are all zeros or all ones except for a few bits: they have nothing to be compared by.
    """
    contents, first = np.unique(statistics.contents.in_order(), return_index=True)
    hashes = statistics.hashes[first]
    ones = np.bitwise_count(hashes)
    telling = (ones > MOST_BITS) & (ones < 64 - MOST_BITS)
    contents = contents[telling]
    near = find_near_pairs(hashes[telling])

    def pairs() -> Iterator[Group]:
        wanted = contents[np.unique(near.pairs)]
        images: dict[int, Found] = {}
        for number, place, row in _fetch(sidecars, wanted):
            images.setdefault(int(wanted[place]), Found(sidecars[number], row))
        for (one, other), distance in zip(near.pairs.tolist(), near.distances.tolist(), strict=True):
            yield _group((images[int(contents[place])] for place in (one, other)), distance)

    return near.complete, pairs()


def _fetch(sidecars: Sequence[Sidecar], wanted: Digests) -> Iterator[tuple[int, int, SidecarRow]]:
    """The images whose digests begin with one of these, ascending ones: sidecar's place, digest's place, row.

    They come in the sidecars' order.
    """
    if not len(wanted):
        return
    for number, sidecar in enumerate(sidecars):
        for rows in read_chunks(sidecar.path):
            written = [row for row in rows if isinstance(row, SidecarRow)]
            digests = digests_of(written)
            places = np.minimum(np.searchsorted(wanted, digests), len(wanted) - 1)
            for at in np.flatnonzero(wanted[places] == digests).tolist():
                yield number, int(places[at]), written[at]


def _line(group: Group) -> bytes:
    is_pair = group.distance is not None
    sha256 = group.images[0].row.sha256
    line = DuplicateGroup(
        kind="look_alike" if is_pair else "same_bytes",
        distance=group.distance,
        sha256=None if is_pair else sha256,
        count=None if is_pair else group.count,
        splits=tuple(group.splits),
        classes=tuple(group.classes),
        images=tuple(
            Duplicate(row.key, sidecar.split, row.class_name, row.sha256 if is_pair else None)
            for sidecar, row in ((image.sidecar, image.row) for image in group.images)
        ),
    )
    return orjson.dumps(to_json(line), option=orjson.OPT_APPEND_NEWLINE)
