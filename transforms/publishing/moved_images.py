"""Finds images in another split than in the replaced dataset: models may have been trained on its test images.

Images are compared by their bytes, not their names, so renamed files are found, too. Only sidecars are read.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, permutations
from operator import attrgetter

import numpy as np

from recordmill import storage
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.shard_report import ShardReport
from recordmill.schemas.formatting import format_count
from recordmill.transforms.publishing.duplicates import read_digests, read_numbers
from recordmill.transforms.shards.record_columns import Digests

MOST_COMPARED = 10_000_000
"""The most images of both datasets together that are compared; each takes 8 bytes."""

Contents = Mapping[str, Digests]
"""The first 64 bits of the SHA-256 of each image, by split."""


def compare_splits(output: str, marker: Marker, staging: str, reports: Sequence[ShardReport], unit: str) -> str:
    """One sentence on which images of the dataset in the output will be in another split, or on why that is not known.

    Args:
        output: the folder.
        marker: of the dataset in it, which will be replaced.
        staging: the folder of the dataset that will replace it.
        reports: of the shards there.
        unit: what records are called.

    Returns:
        The sentence; the empty string if nothing has moved.
    """
    before, after = (sum(each.records for each in parts) for parts in (marker.splits.values(), reports))
    if before + after > MOST_COMPARED:
        return f"whether {unit}s have moved between splits was not checked: they are more than {MOST_COMPARED:,}"
    try:
        old = {
            name: _contents(storage.join(output, shard.sidecar) for shard in split.shards)
            for name, split in marker.splits.items()
        }
    except (OSError, AttributeError, KeyError, TypeError, ValueError):  # perhaps the reason for replacing it
        return f"whether {unit}s have moved between splits is not known: sidecars of the replaced dataset are damaged"
    by_split = groupby(sorted(reports, key=attrgetter("place")), attrgetter("split"))
    new = {split: read_numbers(staging, shards, "contents") for split, shards in by_split}
    return describe_moved(count_moved(old, new), unit)


def count_moved(old: Contents, new: Contents) -> Counter[tuple[str, str]]:
    """Counts contents that were in one split and are now in another, by the names of both.

    Contents that were already in both count as not moved.

    Args:
        old: the replaced dataset's.
        new: the new dataset's.
    """
    before, after = ({split: np.unique(each) for split, each in contents.items()} for contents in (old, new))
    moved: Counter[tuple[str, str]] = Counter()
    for left, entered in permutations({**before, **after}, 2):
        if left in before and entered in after:
            there = np.intersect1d(before[left], after[entered], assume_unique=True)
            known = before.get(entered, there[:0])
            moved[left, entered] = len(there) - int(np.isin(there, known, assume_unique=True).sum())
    return +moved


def describe_moved(moved: Mapping[tuple[str, str], int], unit: str) -> str:
    """One sentence on moved images, most frequent moves first; the empty string without any."""
    if not moved:
        return ""
    ordered = sorted(moved.items(), key=lambda item: (-item[1], item[0]))
    ways = ", ".join(f"{count:,} from {left} to {entered}" for (left, entered), count in ordered)
    are = "is" if sum(moved.values()) == 1 else "are"
    images = format_count(sum(moved.values()), unit)
    return f"{images} of the dataset that is replaced {are} in another split now: {ways}"


def _contents(paths: Iterable[str]) -> Digests:
    """Reads the contents of some sidecars."""
    return np.concatenate([np.zeros(0, np.uint64), *(digests for path in paths for _, digests in read_digests(path))])
