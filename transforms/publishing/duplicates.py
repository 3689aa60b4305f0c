"""Images that a dataset holds twice: files of the same bytes, and pairs that look alike; no image is read for it.

The sidecars have every image's SHA-256, and its difference hash where `images.near_duplicates` asks for it. The numbers
of one pass say which images to look for; a second one fetches their rows, which are sorted on disk.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from recordmill import storage
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.dataset.marker import DuplicateCounts, LookAlikes, SameBytes
from recordmill.schemas.dataset.side_files import Duplicate, DuplicateGroup
from recordmill.schemas.dataset.sidecar_row import SidecarRow
from recordmill.storage.temporary_files import DigestIndex, Digests, SortedRows
from recordmill.transforms.publishing.near_duplicates import (
    MOST_BITS,
    are_telling,
    count_differing,
    find_closest_apart,
    find_near_pairs,
)
from recordmill.transforms.publishing.statistics import Sidecar, Statistics, digests_of, read_chunks

MOST_LISTED = 1_000
"""Images of one group that are listed by name; `count` says how many there are."""


def list_duplicates(path: str, sidecars: Sequence[Sidecar], statistics: Statistics, apart: bool) -> DuplicateCounts:
    """Writes the list of all duplicates, one line a group, sorted by SHA-256, then one line a pair, closest first.

    Args:
        path: the file to write.
        sidecars: of all shards, in the order in which the statistics were gathered.
        statistics: of the same sidecars.
        apart: whether the last line is the closest pair of images in different splits.

    Returns:
        The numbers for the marker.

    Raises:
        OSError: a sidecar cannot be read or the file not written.
    """
    temporary = storage.temporary_name(path)
    with storage.open_to_write(temporary) as lines:

        def write(groups: Iterator[DuplicateGroup]) -> SameBytes:
            numbers = SameBytes()
            for group in groups:
                lines.write(orjson.dumps(to_json(group), option=orjson.OPT_APPEND_NEWLINE))
                numbers.add(group.count or len(group.images), group.splits, group.classes)
            return numbers

        same, alike = write(find_same_bytes(sidecars, statistics.contents)), None
        if len(statistics.hashes) == len(statistics.contents):  # they were taken
            complete, pairs, closest = find_look_alikes(sidecars, statistics, apart)
            alike = LookAlikes.of(write(pairs), MOST_BITS, complete)
            write(closest)
    storage.move_file(temporary, path)
    return DuplicateCounts(same, alike)


def find_same_bytes(sidecars: Sequence[Sidecar], contents: DigestIndex) -> Iterator[DuplicateGroup]:
    """Groups of at least two images with the same SHA-256, sorted by it."""
    rows = SortedRows()
    rows.add(
        (row.sha256, orjson.dumps((row.key, split, row.class_name)))
        for split, _, row in _fetch(sidecars, contents.repeated())
    )
    for sha256, same in groupby(rows, key=itemgetter(0)):
        images: list[Duplicate] = []
        splits, classes, count = set(), set(), 0
        for _, value in same:
            count += 1
            image = Duplicate(*orjson.loads(value))
            splits.add(image.split)
            classes.add(image.class_name or "")
            if len(images) < MOST_LISTED:
                images.append(image)
        if count > 1:  # the first 64 bits of two digests may be equal by chance
            yield DuplicateGroup(
                kind="same_bytes",
                sha256=sha256,
                count=count,
                splits=tuple(sorted(splits)),
                classes=tuple(sorted(classes)),
                images=tuple(images),
            )


def find_look_alikes(
    sidecars: Sequence[Sidecar], statistics: Statistics, apart: bool
) -> tuple[bool, Iterator[DuplicateGroup], Iterator[DuplicateGroup]]:
    """Pairs of images of different bytes whose difference hashes are close.

    Of images with the same bytes the first stands for all. Left out are pictures that look like a blank page or a plain
    gradient: they have nothing to be compared by.

    Returns:
        Whether these are all there are; the pairs; and, if asked for, the closest pair in different splits.
    """
    contents, first = np.unique(statistics.contents.in_order(), return_index=True)
    telling = are_telling(statistics.hashes[first])
    contents, first = contents[telling], first[telling]
    hashes = statistics.hashes[first]

    def describe(kind: Literal["look_alike", "closest_apart"], pairs: NDArray[np.int64]) -> Iterator[DuplicateGroup]:
        wanted = contents[np.unique(pairs)]
        found: dict[int, Duplicate] = {}
        for split, place, row in _fetch(sidecars, wanted):
            found.setdefault(int(wanted[place]), Duplicate(row.key, split, row.class_name, row.sha256))
        for places, distance in zip(pairs.tolist(), count_differing(hashes, pairs).tolist(), strict=True):
            images = tuple(found[int(contents[place])] for place in places)
            yield DuplicateGroup(
                kind=kind,
                distance=distance,
                splits=tuple(sorted({image.split for image in images})),
                classes=tuple(sorted({image.class_name or "" for image in images})),
                images=images,
            )

    near = find_near_pairs(hashes)
    splits = np.unique([sidecar.split for sidecar in sidecars], return_inverse=True)[1]
    parts = np.repeat(splits, statistics.written)[first]
    closest = find_closest_apart(hashes, parts) if apart else near.pairs[:0]
    return near.complete, describe("look_alike", near.pairs), describe("closest_apart", closest)


def _fetch(sidecars: Sequence[Sidecar], wanted: Digests) -> Iterator[tuple[str, int, SidecarRow]]:
    """The images whose digests begin with one of these, ascending ones: split, the digest's place, row.

    They come in the sidecars' order.
    """
    if not len(wanted):
        return
    for sidecar in sidecars:
        for rows in read_chunks(sidecar.path):
            written = [row for row in rows if isinstance(row, SidecarRow)]
            digests = digests_of(written)
            places = np.minimum(np.searchsorted(wanted, digests), len(wanted) - 1)
            for at in np.flatnonzero(wanted[places] == digests).tolist():
                yield sidecar.split, int(places[at]), written[at]
