"""Images that a dataset holds twice: files of the same bytes, and pairs that look alike; no image is read for it.

The same bytes have the same digest: workers group the digests of all shards, and fetch the rows of those that are there
several times. Pairs that look alike are found while the dataset is published, from one difference hash an image.
"""

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, Literal

import apache_beam as beam
import numpy as np
import orjson
from apache_beam import coders
from numpy.typing import NDArray

from recordmill import storage
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.dataset.marker import DuplicateCounts, LookAlikes, SameBytes
from recordmill.schemas.dataset.shard_report import ShardReport
from recordmill.schemas.dataset.side_files import Duplicate, DuplicateGroup
from recordmill.schemas.dataset.sidecar_row import SidecarRow
from recordmill.storage.dataset_files import read_rows, shard_path, staging_folder
from recordmill.storage.temporary_files import SortedRows
from recordmill.transforms.planning.plan import Plan
from recordmill.transforms.publishing.near_duplicates import (
    MOST_BITS,
    are_telling,
    count_differing,
    find_closest_apart,
    find_near_pairs,
)
from recordmill.transforms.shards.record_columns import Column, Digests, as_numbers, read_column

MOST_LISTED = 1_000
"""Images of one group that are listed by name; `count` says how many there are."""

GROUP_IMAGES = 4_000_000
"""Digests that a worker sorts at once, on average: 8 bytes each."""

_CHUNK = 20_000

Place = tuple[str, int]
"""A shard's split and its place there."""


@dataclass(frozen=True, slots=True)
class Copies:
    """A shard's images whose digests are there several times.

    Attributes:
        place: the shard's split and its place there.
        rows: the SHA-256 of each, and its key, split and class as JSON; in the order of the records.
        is_gone: whether the shard is not in staging any more, because another run has published it.
    """

    place: Place
    rows: list[tuple[str, bytes]]
    is_gone: bool = False


coders.registry.register_coder(Copies, coders.PickleCoder)


@dataclass
class FindCopies(beam.PTransform):
    """Finds the images of a PCollection of reports whose bytes occur several times.

    Attributes:
        output: the folder of the dataset, or of its versions.
        plan: the `Plan`, as a side input.
    """

    output: str
    plan: Any

    def expand(self, reports: beam.PCollection[ShardReport]) -> beam.PCollection[Copies]:
        """PCollection[ShardReport] -> PCollection[Copies], at most one a shard."""
        return (
            reports
            | "CutContents" >> beam.FlatMap(cut_contents, self.plan)
            | "GroupByDigest" >> beam.GroupByKey()
            | "FindRepeated" >> beam.FlatMapTuple(lambda _, parts: find_repeated(parts))
            | "GroupCopies" >> beam.GroupByKey()
            | "FetchCopies" >> beam.Map(self._fetch, self.plan).with_output_types(Copies)
        )

    def _fetch(self, repeated: tuple[Place, Iterable[bytes]], plan: Plan) -> Copies:
        folder = storage.join(self.output, plan.version) if plan.version else self.output
        return fetch_copies(staging_folder(folder, plan.plan_id), *repeated)


def cut_contents(report: ShardReport, plan: Plan) -> Iterator[tuple[int, tuple[Place, bytes]]]:
    """Distributes a shard's digests over groups of a bounded size; equal ones are in one group."""
    contents = as_numbers(report.contents)
    groups = 1 + plan.summary.references // GROUP_IMAGES
    numbers = contents % np.uint64(groups)
    for number in np.unique(numbers).tolist():
        yield number, (report.place, contents[numbers == number].tobytes())


def find_repeated(parts: Iterable[tuple[Place, bytes]]) -> Iterator[tuple[Place, bytes]]:
    """The digests of a group that are there several times, by the shards that have them."""
    places, columns = zip(*parts, strict=True)
    digests = [as_numbers(column) for column in columns]
    ordered = np.sort(np.concatenate(digests))
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    for place, own in zip(places, digests, strict=True) if len(repeated) else ():
        if len(found := np.intersect1d(own, repeated)):
            yield place, found.tobytes()


def fetch_copies(staging: str, place: Place, repeated: Iterable[bytes]) -> Copies:
    """The rows of a shard whose digests are among some."""
    wanted = np.sort(np.concatenate([as_numbers(part) for part in repeated]))
    try:
        rows = [
            (row.sha256, orjson.dumps((row.key, place[0], row.class_name)))
            for _, row in _fetch(shard_path(staging, *place, "jsonl"), wanted)
        ]
    except FileNotFoundError:
        return Copies(place, [], is_gone=True)
    return Copies(place, rows)


def list_duplicates(
    path: str, staging: str, reports: Sequence[ShardReport], copies: Iterable[Copies], apart: bool
) -> DuplicateCounts:
    """Writes the list of all duplicates, one line a group, sorted by SHA-256, then one line a pair, closest first.

    Args:
        path: the file to write.
        staging: the folder of the shards.
        reports: of all shards, in their order.
        copies: what `FindCopies` found in them, in any order.
        apart: whether the last line is the closest pair of images in different splits.

    Returns:
        The numbers for the marker.

    Raises:
        OSError: a shard's files cannot be read, or the list not written.
    """
    temporary = storage.temporary_name(path)
    with storage.open_to_write(temporary) as lines:

        def write(groups: Iterator[DuplicateGroup]) -> SameBytes:
            numbers = SameBytes()
            for group in groups:
                lines.write(orjson.dumps(to_json(group), option=orjson.OPT_APPEND_NEWLINE))
                numbers.add(group.count or len(group.images), group.splits, group.classes)
            return numbers

        same, alike = write(find_same_bytes(staging, copies)), None
        hashes = read_numbers(staging, reports, "hashes")
        if len(hashes) == sum(report.records for report in reports):  # they were taken
            complete, pairs, closest = find_look_alikes(staging, reports, hashes, apart)
            alike = LookAlikes.of(write(pairs), MOST_BITS, complete)
            write(closest)
    storage.move_file(temporary, path)
    return DuplicateCounts(same, alike)


def find_same_bytes(staging: str, copies: Iterable[Copies]) -> Iterator[DuplicateGroup]:
    """Groups of at least two images with the same SHA-256, sorted by it; their images are in the shards' order."""
    rows = SortedRows()
    for each in copies:
        split, index = each.place
        if each.is_gone:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shard_path(staging, split, index, "jsonl"))
        rows.add((f"{sha256}{split}\0{index:06d}", value) for sha256, value in each.rows)
    for sha256, same in groupby(rows, key=lambda row: row[0][:64]):
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


def read_numbers(staging: str, reports: Iterable[ShardReport], column: Column) -> Digests:
    """A column of all records of some shards."""
    columns = (read_column(staging, each.split, each.index, each.records, column) for each in reports)
    return as_numbers(b"".join(columns))


def find_look_alikes(
    staging: str, reports: Sequence[ShardReport], hashes: Digests, apart: bool
) -> tuple[bool, Iterator[DuplicateGroup], Iterator[DuplicateGroup]]:
    """Pairs of images of different bytes whose difference hashes are close.

    Of images with the same bytes the first stands for all. Left out are pictures that look like a blank page or a plain
    gradient: they have nothing to be compared by.

    Returns:
        Whether these are all there are; the pairs; and, if asked for, the closest pair in different splits.
    """
    contents, first = np.unique(read_numbers(staging, reports, "contents"), return_index=True)
    telling = are_telling(hashes[first])
    contents, first = contents[telling], first[telling]
    hashes = hashes[first]

    def describe(kind: Literal["look_alike", "closest_apart"], pairs: NDArray[np.int64]) -> Iterator[DuplicateGroup]:
        wanted = contents[np.unique(pairs)]
        found: dict[int, Duplicate] = {}
        for report in reports if len(wanted) else ():
            for place, row in _fetch(shard_path(staging, report.split, report.index, "jsonl"), wanted):
                found.setdefault(int(wanted[place]), Duplicate(row.key, report.split, row.class_name, row.sha256))
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
    splits = np.unique([report.split for report in reports], return_inverse=True)[1]
    parts = np.repeat(splits, [report.records for report in reports])[first]
    closest = find_closest_apart(hashes, parts) if apart else near.pairs[:0]
    return near.complete, describe("look_alike", near.pairs), describe("closest_apart", closest)


def digests_of(sidecar: str) -> Iterator[tuple[list[SidecarRow], Digests]]:
    """The records of a sidecar, some thousands at a time, and the first 64 bits of the SHA-256 of each one's image."""
    rows = (row for row in read_rows(sidecar) if isinstance(row, SidecarRow))
    while chunk := list(islice(rows, _CHUNK)):
        digests = bytes.fromhex("".join([row.sha256[:16] for row in chunk]))
        yield chunk, np.frombuffer(digests, ">u8").astype(np.uint64)


def _fetch(sidecar: str, wanted: Digests) -> Iterator[tuple[int, SidecarRow]]:
    """The images whose digests begin with one of these, ascending ones: the digest's place, and the row."""
    for rows, digests in digests_of(sidecar):
        places = np.minimum(np.searchsorted(wanted, digests), len(wanted) - 1)
        for at in np.flatnonzero(wanted[places] == digests).tolist():
            yield int(places[at]), rows[at]
