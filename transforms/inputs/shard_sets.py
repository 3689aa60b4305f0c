"""Finds files that belong to a set and are missing, and files that hold less than their set says.

A set's files have numbers in their names, such as `-00000-of-00005`, or `recordmill.json` or
`dataset_info.json` next to them lists them.
"""

import posixpath
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, combinations, islice

import orjson

from recordmill import storage
from recordmill.schemas.dataset.file_names import MARKER, SHARD_NUMBER, counts_from_one
from recordmill.schemas.dataset.tfds_shards import DATASET_INFO, FILE_FORMAT, list_tfds_shards
from recordmill.schemas.image_ref import ImageRef, Listed, Notice
from recordmill.storage.dataset_files import find_marker

DESCRIPTIONS = frozenset({MARKER, DATASET_INFO})
"""Names of the files that list a set."""

MOST_MISSING = 1_000
"""The most missing files that are named: a forged name may claim any count."""

_MALFORMED = (AttributeError, KeyError, OverflowError, TypeError, ValueError)


@dataclass(slots=True)
class ShardTally:
    """What one part of an input says about sets of files.

    Attributes:
        records: the number of records of each file that the source read, by its path below the
            input; only of files that may belong to a set.
        descriptions: the paths of files that list a set.
        held: notices of damaged files by their paths, until it is known how much they have lost.
    """

    records: dict[str, int] = field(default_factory=dict)
    descriptions: set[str] = field(default_factory=set)
    held: list[tuple[str, Notice]] = field(default_factory=list)

    def add(
        self, path: str, listed: Generator[Listed, None, bool]
    ) -> Generator[Listed, None, bool]:
        """Yields what a file gave, except for notices of damage, and counts its records.

        Returns what the generator returns.
        """
        count = 0
        while True:
            try:
                each = next(listed)
            except StopIteration as end:
                self.records[path] = count
                return bool(end.value)
            if isinstance(each, Notice) and each.reason == "bad_tfrecord":
                self.held.append((path, each))
                continue
            count += each.status in ("", "rejected", "left_out")
            yield each

    def merge(self, other: "ShardTally") -> None:
        """Adds the tally of another part of the input."""
        self.records |= other.records
        self.descriptions |= other.descriptions
        self.held += other.held


@dataclass(frozen=True, slots=True)
class _Listing:
    """A file that lists a set, and the number of records of each file that it lists, by path."""

    name: str
    records: Mapping[str, int]


def _read_description(root: str, path: str) -> _Listing:
    """Reads a file that lists a set; a malformed one lists nothing."""
    folder, name = posixpath.split(path)
    found: dict[str, int] = {}
    place = storage.join(root, folder) if folder else root
    try:
        if name == MARKER:
            marker = find_marker(place)
            for split in marker.splits.values() if marker else ():
                found |= {shard.name: shard.records for shard in split.shards}
        else:
            info = orjson.loads(storage.read_range(storage.join(place, name)))
            if info.get("fileFormat", FILE_FORMAT) == FILE_FORMAT:
                found = {shard.name: shard.records for shard in list_tfds_shards(info)}
    except (OSError, *_MALFORMED):
        found = {}
    return _Listing(name, {posixpath.join(folder, each): n for each, n in found.items()})


def judge_sets(
    whole: ImageRef, prefix: str, tally: ShardTally, is_selected: Callable[[str], bool]
) -> Iterator[Listed]:
    """Yields rejections of missing files, and of files that have lost records.

    Args:
        whole: a reference to the input, a folder.
        prefix: what the keys of its files begin with.
        tally: what was found in all of it.
        is_selected: whether the settings select a path, so that its file should be there.
    """
    listings = [_read_description(whole.uri, path) for path in sorted(tally.descriptions)]
    counts = {path: (n, each.name) for each in listings for path, n in each.records.items()}
    missing = {
        path: f"{name} lists it, with {n:,} records"
        for path, (n, name) in counts.items()
        if path not in tally.records and is_selected(path)
    }
    listed = {posixpath.dirname(path) for path in counts}
    for path, detail in find_missing(tally.records.keys()):
        if posixpath.dirname(path) not in listed and is_selected(path):
            missing[path] = detail
    root = whole.uri.rstrip("/")
    for path, detail in islice(sorted(missing.items()), MOST_MISSING):
        lost = whole.replace(key=f"{prefix}{path}", uri=f"{root}/{path}")
        yield lost.notice("rejected", "missing_shard", detail)
    for path, notice in tally.held:
        yield _explain_damage(notice, tally.records[path], *counts.get(path, (None, "")))
    damaged = {path for path, _ in tally.held}
    for path, (expected, name) in sorted(counts.items()):
        there = tally.records.get(path, expected)
        if there < expected and path not in damaged:
            detail = _describe_loss(there, expected, name)
            cut = whole.replace(key=f"{prefix}{path}", uri=f"{root}/{path}")
            yield cut.notice("rejected", "bad_tfrecord", detail)


def _explain_damage(notice: Notice, there: int, expected: int | None, name: str) -> Notice:
    """Adds to a damaged file's notice how many records it has lost, if that is known."""
    if expected is None:
        return notice
    if expected == there == 0:
        return notice.notice("ignored", "no_records")
    return notice.replace(detail=f"{notice.detail}; {_describe_loss(there, expected, name)}")


def _describe_loss(there: int, expected: int, name: str) -> str:
    lost = max(expected - there, 0)
    return f"it has lost {lost:,} of the {expected:,} records that {name} lists"


def find_missing(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields the paths of missing files, by the numbers in the names of others, with a detail.

    Files of a set are in one folder, or each of them is in one of several folders.
    """
    # By the name around the number and the set's size: the numbers in each folder, with a path.
    sets: dict[tuple[str, int], dict[str, dict[int, str]]] = defaultdict(lambda: defaultdict(dict))
    for path in sorted(paths):
        folder, base = posixpath.split(path)
        if match := SHARD_NUMBER.search(base):
            around = f"{base[: match.start('number')]}*{base[match.end('number') :]}"
            sets[around, int(match["count"])][folder][int(match["number"])] = path
    for (_, count), folders in sorted(sets.items()):
        numbers = {*chain.from_iterable(folders.values())}
        is_spread = not any(a.keys() & b.keys() for a, b in combinations(folders.values(), 2))
        if is_spread and len(folders) > 1 and len(numbers) >= count:
            continue
        for found in folders.values():
            yield from _missing_in(found, count)


def _missing_in(found: Mapping[int, str], count: int) -> Iterator[tuple[str, str]]:
    """Yields the missing files of a set in one folder."""
    example = next(iter(found.values()))
    folder, base = posixpath.split(example)
    match = SHARD_NUMBER.search(base)
    assert match
    first, width = int(counts_from_one(base, found, count)), len(match["number"])
    numbers = (number for number in range(first, first + count) if number not in found)
    for number in islice(numbers, MOST_MISSING):
        name = f"{base[: match.start('number')]}{number:0{width}}{base[match.end('number') :]}"
        place = f"the others' names say that it is file {number} of {count:,}"
        yield posixpath.join(folder, name), f"{place}, counted from {first}"
