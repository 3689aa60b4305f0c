"""Duplicates within a dataset, and images that changed their split.

Duplicates are images of the same bytes, and pairs that look alike.

No image is read to find them. Images of the same bytes have the same digest: workers group the
digests of all shards, and fetch the rows of digests that occur several times. Pairs that look alike
have difference hashes within a small Hamming distance. They are found during publication, from one
hash per image, without comparing all pairs.

Images in another split than in the replaced dataset matter since models may have been trained on
its test images. They are compared by their bytes, so renamed files are found, too.
"""

import errno
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any

import apache_beam as beam
import numpy as np
import orjson
from numpy.typing import NDArray

from recordmill import storage
from recordmill.annotations.stored_fields import digest_kinds, list_annotation_keys
from recordmill.schemas.dataset.file_names import DUPLICATES, SHARD
from recordmill.schemas.dataset.json_values import as_kept_json, to_json
from recordmill.schemas.dataset.marker import DuplicateCounts, LookAlikes, Marker, SameBytes
from recordmill.schemas.dataset.side_files import (
    Duplicate,
    DuplicateGroup,
    DuplicateKind,
    SidecarRow,
)
from recordmill.schemas.dataset.totals import ShardReport
from recordmill.schemas.formatting import say_count
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.storage.dataset_files import read_rows, shard_path
from recordmill.storage.stored_frames import StoredFrames
from recordmill.storage.temporary_files import SortedRows
from recordmill.transforms.planning.run_plan import RunPlan
from recordmill.transforms.shards.shard_files import (
    DigestArray,
    NumbersColumn,
    as_numbers,
    read_column,
)

Hashes = NDArray[np.uint64]

MOST_BITS = 5
"""The most bits by which near-duplicates differ. Of copies of 120 photographs at half the size, at
224 rows, 20% brighter, at quality 20, or as PNG, 98 to 100% differed in no more; of 7,140 pairs of
strangers, the closest differed in 12."""

MOST_PAIRS = 10_000
"""The most pairs that are listed."""

# So few hashes are all compared with each other: faster than sorting them about sixty times.
_FEW = 256
_MOST_COMPARISONS = 300_000_000  # about ten seconds: ten times what a million random hashes need
_MOST_FOUND = 4_000_000  # pairs in memory, each of them perhaps about sixty times


PairArray = NDArray[np.int64]
"""Pairs of places in an array, of shape (pairs, 2)."""


def are_distinctive(hashes: Hashes) -> NDArray[np.bool_]:
    """Tells which hashes say what a picture looks like.

    All do, except for those of a blank page or a plain gradient. The latter are all zeros or all
    ones, except for a few bits.
    """
    ones = np.bitwise_count(hashes)
    return (ones > MOST_BITS) & (ones < 64 - MOST_BITS)


def find_near_pairs(
    hashes: Hashes, most_pairs: int = MOST_PAIRS, comparisons: int = _MOST_COMPARISONS
) -> tuple[PairArray, bool]:
    """Finds pairs of hashes that differ in at most `MOST_BITS` bits.

    Also returns whether the pairs are complete. In each pair, the lower place comes first; pairs
    are sorted by distance, then by place.

    Equal hashes are paired only with the first of them, which represents them in other pairs: n
    pictures of one color give n - 1 pairs.

    Args:
        hashes: one for each different picture.
        most_pairs: the most pairs to return, the closest ones.
        comparisons: the most comparisons; if they do not suffice, the result is not complete.
    """
    unique, first, members = np.unique(hashes, return_index=True, return_inverse=True)
    others = np.setdiff1d(np.arange(len(hashes)), first)
    equal = np.stack([first[members[others]], others], axis=1)
    different, complete = _find_different(unique, comparisons)
    pairs = np.concatenate([equal, np.sort(first[different], axis=1)]).astype(np.int64)
    order = np.lexsort((pairs[:, 1], pairs[:, 0], count_differing(hashes, pairs)))[:most_pairs]
    return pairs[order], complete and len(order) == len(pairs)


def count_differing(hashes: Hashes, pairs: PairArray) -> NDArray[np.uint8]:
    """Returns the number of differing bits of each pair of places."""
    return np.bitwise_count(hashes[pairs[:, 0]] ^ hashes[pairs[:, 1]])


def _find_different(unique: Hashes, comparisons: int) -> tuple[PairArray, bool]:
    """Finds pairs of places in an array of different hashes, and whether none are missing."""
    found, room = [np.zeros((0, 2), np.int64)], _MOST_FOUND
    if len(unique) <= min(_FEW, comparisons**0.5):
        return np.argwhere(
            np.triu(np.bitwise_count(unique[:, None] ^ unique) <= MOST_BITS, 1)
        ), True
    # A bit that all have in common, like those of a white margin, would tell none apart.
    varying = np.bitwise_or.reduce(unique ^ unique[0])
    bits = np.flatnonzero(varying >> np.arange(64, dtype=np.uint64) & np.uint64(1)).astype(
        np.uint64
    )
    for third in np.array_split(bits, 3):
        for left_out in third:
            band = unique & np.bitwise_or.reduce(
                np.uint64(1) << third[third != left_out], initial=np.uint64(0)
            )
            order = np.argsort(band)
            ordered = band[order]
            # Equal bands are neighbors: each place is compared with the next, then with the one
            # after it, ...
            places, step = np.arange(len(unique) - 1), 1
            while len(places := places[ordered[places] == ordered[places + step]]):
                comparisons -= len(places)
                if comparisons < 0 or room < 0:
                    return np.unique(np.concatenate(found), axis=0), False
                pairs = np.sort(np.stack([order[places], order[places + step]], axis=1), axis=1)
                found.append(pairs[count_differing(unique, pairs) <= MOST_BITS])
                room -= len(found[-1])
                step += 1
                places = places[: np.searchsorted(places, len(unique) - step)]
    return np.unique(np.concatenate(found), axis=0), True


def find_closest_apart(
    hashes: Hashes, parts: NDArray[np.int64], comparisons: int = 10**9
) -> PairArray:
    """Finds the places of the closest two hashes in different parts.

    Returns an array of shape (1, 2), or (0, 2) if there is one part.

    Args:
        hashes: one for each picture.
        parts: the number of the part that each belongs to.
        comparisons: the most comparisons, a few seconds of work; if they do not suffice, only
            hashes of the smallest parts are compared with all others.
    """
    sizes, best, least = np.bincount(parts), np.zeros((0, 2), np.int64), 65
    # All but the largest part.
    order = np.lexsort((parts, sizes[parts]))[: len(parts) - max(sizes, default=0)]
    for place in order[: comparisons // max(len(parts), 1)]:
        distances = np.where(parts == parts[place], 65, np.bitwise_count(hashes ^ hashes[place]))
        if distances.min() < least:
            best, least = np.array([[place, distances.argmin()]]), distances.min()
    return best


MOST_LISTED = 1_000
"""The most images of one group that are listed by name; `count` says how many there are."""

GROUP_IMAGES = 4_000_000
"""Digests that a worker sorts at once, on average: 8 bytes each."""

ShardPlace = tuple[str, int]
"""A shard's split and index."""


Copies = tuple[ShardPlace, list[tuple[str, bytes]] | None]
"""A shard's images whose digests occur several times: the SHA-256 of each, and as JSON its key,
split, class, and the digests of its annotations by kind; in the order of the records. None if the
shard is no longer in staging, because another run has published it."""


@dataclass
class FindCopies(beam.PTransform):
    """Finds the images of a PCollection of reports whose bytes occur several times.

    Attributes:
        plan: the `RunPlan`, as a side input.
        settings: what the dataset is.
    """

    plan: Any
    settings: DatasetSettings

    def expand(self, reports: beam.PCollection[ShardReport]) -> beam.PCollection[Copies]:
        """PCollection[ShardReport] -> PCollection[Copies], at most one per shard."""
        return (
            reports
            | "CutContents" >> beam.FlatMap(distribute_digests, self.plan)
            | "GroupByDigest" >> beam.GroupByKey()
            | "FindRepeated" >> beam.FlatMapTuple(lambda _, parts: find_repeated(parts))
            | "GroupCopies" >> beam.GroupByKey()
            | "FetchCopies"
            >> beam.Map(_fetch_copies, self.plan, self.settings).with_output_types(
                tuple[ShardPlace, Any]
            )
        )


def _fetch_copies(
    repeated: tuple[ShardPlace, Iterable[bytes]], plan: RunPlan, settings: DatasetSettings
) -> Copies:
    """Reads the rows of a shard whose digests occur several times."""
    place, digests = repeated
    wanted = np.sort(np.concatenate([as_numbers(each) for each in digests]))
    staging = plan.decision.staging
    rows = _get_rows(shard_path(staging, *place, "jsonl"), wanted)
    features = ExampleLayout(settings).features
    keys = list_annotation_keys((each.key, each.field) for each in features)
    path = shard_path(staging, *place, SHARD)
    frames = StoredFrames(settings.compression != "none")

    def describe(row: SidecarRow) -> bytes:
        annotations = {}
        if keys:
            annotations = digest_kinds(frames.read(path, row.offset, row.length), keys)
        return as_kept_json((row.key, place[0], row.class_name, annotations))

    try:
        return place, [(row.sha256, describe(row)) for _, row in rows]
    except FileNotFoundError:
        return place, None
    finally:
        frames.close()


def distribute_digests(
    report: ShardReport, plan: RunPlan
) -> Iterator[tuple[int, tuple[ShardPlace, bytes]]]:
    """Distributes a shard's digests over groups of bounded size, equal ones to the same group."""
    contents = as_numbers(report.contents)
    groups = 1 + plan.dataset.summary.references // GROUP_IMAGES
    numbers = contents % np.uint64(groups)
    for number in np.unique(numbers).tolist():
        yield number, (report.place, contents[numbers == number].tobytes())


def find_repeated(parts: Iterable[tuple[ShardPlace, bytes]]) -> Iterator[tuple[ShardPlace, bytes]]:
    """Yields a group's digests that occur several times, by the shards that have them."""
    places, columns = zip(*parts, strict=True)
    digests = [as_numbers(column) for column in columns]
    ordered = np.sort(np.concatenate(digests))
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    for place, own in zip(places, digests, strict=True) if len(repeated) else ():
        if len(found := np.intersect1d(own, repeated)):
            yield place, found.tobytes()


def list_duplicates(
    staging: str, reports: Sequence[ShardReport], copies: Iterable[Copies], finds_closest: bool
) -> DuplicateCounts:
    """Writes `duplicates.jsonl` in staging: one line per group, then one per pair.

    Groups are sorted by SHA-256, and pairs with the closest first.

    Args:
        staging: the folder of the shards.
        reports: of all shards, in their order.
        copies: the results of `FindCopies`, in any order.
        finds_closest: whether the last line is the closest pair of images in different splits.

    Returns:
        The numbers for the marker.

    Raises:
        OSError: a shard's files cannot be read, or the list cannot be written.
    """
    groups, complete = find_same_bytes(staging, copies), None
    hashes = read_numbers(staging, reports, "hashes")
    if len(hashes) == sum(report.records for report in reports):  # the run computed them
        pairs, complete = find_look_alikes(staging, reports, hashes, finds_closest)
        groups = chain(groups, pairs)
    numbers: defaultdict[DuplicateKind, SameBytes] = defaultdict(SameBytes)

    def lines() -> Iterator[bytes]:
        for group in groups:
            numbers[group.kind].add(
                group.count or len(group.images),
                group.splits,
                group.classes,
                group.conflicting_annotations,
            )
            yield orjson.dumps(to_json(group), option=orjson.OPT_APPEND_NEWLINE)

    storage.write_file(storage.join(staging, DUPLICATES), lines())
    alike = None if complete is None else LookAlikes.of(numbers["look_alike"], MOST_BITS, complete)
    return DuplicateCounts(numbers["same_bytes"], alike)


def find_same_bytes(staging: str, copies: Iterable[Copies]) -> Iterator[DuplicateGroup]:
    """Yields groups of at least two images with the same SHA-256, sorted by it.

    The images of a group are in the shards' order.
    """
    rows = SortedRows()
    for (split, index), own in copies:
        if own is None:
            raise FileNotFoundError(
                errno.ENOENT, os.strerror(errno.ENOENT), shard_path(staging, split, index, "jsonl")
            )
        rows.add([(f"{sha256}{split}\0{index:06d}", value) for sha256, value in own])
    for sha256, same in groupby(rows, key=lambda row: row[0][:64]):
        images: list[Duplicate] = []
        splits, classes, count = set(), set(), 0
        annotations: defaultdict[str, set[str]] = defaultdict(set)
        for _, value in same:
            count += 1
            *named, digests = orjson.loads(value)
            image = Duplicate(*named)
            for kind, digest in digests.items():
                annotations[kind].add(digest)
            splits.add(image.split)
            classes.add(image.class_name or "")
            if len(images) < MOST_LISTED:
                images.append(image)
        if count > 1:  # the first 64 bits of two digests may be equal by chance
            differing = tuple(kind for kind, each in sorted(annotations.items()) if len(each) > 1)
            more = {"conflicting_annotations": differing or None}
            yield _group("same_bytes", images, splits, classes, sha256=sha256, count=count, **more)


def _group(
    kind: DuplicateKind, images: list[Duplicate], splits: set[str], classes: set[str], **more: Any
) -> DuplicateGroup:
    return DuplicateGroup(
        kind=kind,
        splits=tuple(sorted(splits)),
        classes=tuple(sorted(classes)),
        images=tuple(images),
        **more,
    )


def read_numbers(
    staging: str, reports: Iterable[ShardReport], column: NumbersColumn
) -> DigestArray:
    """Reads one column for all records of some shards."""
    return as_numbers(b"".join([read_column(staging, report, column) for report in reports]))


def find_look_alikes(
    staging: str, reports: Sequence[ShardReport], hashes: DigestArray, finds_closest: bool
) -> tuple[Iterator[DuplicateGroup], bool]:
    """Finds pairs of images with different bytes whose difference hashes are close.

    Of images with the same bytes, the first stands for all. Pictures that look like a blank page or
    a plain gradient are left out: their hashes say nothing about them.

    Returns:
        The pairs and, if asked for, the closest pair in different splits; and whether no pairs are
        missing.
    """
    contents, first = np.unique(read_numbers(staging, reports, "contents"), return_index=True)
    distinctive = are_distinctive(hashes[first])
    contents, first = contents[distinctive], first[distinctive]
    hashes = hashes[first]

    def describe(kind: DuplicateKind, pairs: PairArray) -> Iterator[DuplicateGroup]:
        wanted = contents[np.unique(pairs)]
        found: dict[int, Duplicate] = {}
        for report in reports if len(wanted) else ():
            for place, row in _get_rows(
                shard_path(staging, report.split, report.index, "jsonl"), wanted
            ):
                found.setdefault(
                    int(wanted[place]), Duplicate(row.key, report.split, row.class_name, row.sha256)
                )
        for places, distance in zip(
            pairs.tolist(), count_differing(hashes, pairs).tolist(), strict=True
        ):
            images = [found[int(contents[place])] for place in places]
            splits, classes = (
                {image.split for image in images},
                {image.class_name or "" for image in images},
            )
            yield _group(kind, images, splits, classes, distance=distance)

    near, complete = find_near_pairs(hashes)
    splits = np.unique([report.split for report in reports], return_inverse=True)[1]
    parts = np.repeat(splits, [report.records for report in reports])[first]
    closest = find_closest_apart(hashes, parts) if finds_closest else near[:0]
    return chain(describe("look_alike", near), describe("closest_apart", closest)), complete


def read_digests(sidecar: str) -> Iterator[tuple[list[SidecarRow], DigestArray]]:
    """Yields the rows of a sidecar's records, 20,000 at a time, and the images' digests.

    These are the first 64 bits of each image's SHA-256.
    """
    rows = (row for row in read_rows(sidecar) if isinstance(row, SidecarRow))
    while chunk := list(islice(rows, 20_000)):
        digests = bytes.fromhex("".join([row.sha256[:16] for row in chunk]))
        yield chunk, np.frombuffer(digests, ">u8").astype(np.uint64)


def _get_rows(sidecar: str, wanted: DigestArray) -> Iterator[tuple[int, SidecarRow]]:
    """Yields the rows whose digests begin with one of the ascending `wanted`.

    Each comes with its place in `wanted`, which is first.
    """
    for rows, digests in read_digests(sidecar):
        places = np.minimum(np.searchsorted(wanted, digests), len(wanted) - 1)
        for at in np.flatnonzero(wanted[places] == digests).tolist():
            yield int(places[at]), rows[at]


MOST_COMPARED = 10_000_000
"""The most images of both datasets together that are compared; each takes 8 bytes."""

ContentsBySplit = Mapping[str, DigestArray]
"""The first 64 bits of the SHA-256 of each image, by split."""


def compare_splits(
    output: str, marker: Marker, staging: str, reports: Sequence[ShardReport], unit: str
) -> Iterator[str]:
    """Yields a note if images change splits, or if this cannot be determined.

    Args:
        output: the folder.
        marker: of the dataset in it, which will be replaced.
        staging: the folder of the dataset that will replace it.
        reports: of the shards there.
        unit: what records are called.
    """
    before, after = (
        sum(each.records for each in parts) for parts in (marker.splits.values(), reports)
    )
    if before + after > MOST_COMPARED:
        yield (
            f"whether {unit}s have moved between splits was not checked: they are more than "
            f"{MOST_COMPARED:,}"
        )
        return
    try:
        old = {
            name: _contents(storage.join(output, shard.sidecar) for shard in split.shards)
            for name, split in marker.splits.items()
        }
    except (
        OSError,
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
    ):
        # They may be the reason for replacing it.
        yield (
            f"whether {unit}s have moved between splits is not known: sidecars of the replaced "
            "dataset are damaged"
        )
        return
    by_split = groupby(sorted(reports, key=attrgetter("place")), attrgetter("split"))
    moved = count_moved(
        old, {split: read_numbers(staging, shards, "contents") for split, shards in by_split}
    )
    if moved:
        ways = ", ".join(
            f"{count:,} from {left} to {entered}" for (left, entered), count in moved.most_common()
        )
        what = (
            f"{say_count(moved.total(), unit, 'is')} in another split than in the dataset that "
            "is replaced"
        )
        yield f"{what}: {ways}"


def _contents(paths: Iterable[str]) -> DigestArray:
    """Reads the contents of some sidecars."""
    return np.concatenate(
        [np.zeros(0, np.uint64), *(digests for path in paths for _, digests in read_digests(path))]
    )


def count_moved(old: ContentsBySplit, new: ContentsBySplit) -> Counter[tuple[str, str]]:
    """Counts contents that were in one split and are now in another, by the names of both.

    Contents that were already in both count as not moved.

    Args:
        old: the replaced dataset's.
        new: the new dataset's.
    """
    moved: Counter[tuple[str, str]] = Counter()
    for entered, contents in new.items():
        added = np.setdiff1d(contents, old.get(entered, contents[:0]))
        for left, earlier in old.items():
            moved[left, entered] = len(np.intersect1d(earlier, added))
    return +moved
