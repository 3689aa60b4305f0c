"""Images that have another split than in the dataset that is replaced: models may have been trained on its test images.

Images are compared by their bytes, not their names, so that files renamed since are found too. Only sidecars are read.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations

import numpy as np

from recordmill import storage
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.sidecar_row import SidecarRow
from recordmill.schemas.formatting import format_count
from recordmill.storage.many_files import sizes_of
from recordmill.transforms.publishing.digest_index import Digests
from recordmill.transforms.publishing.statistics import Sidecar, digests_of, read_chunks

MOST_COMPARED = 10_000_000
"""Images of both datasets together that are compared, in 8 bytes each."""

Paths = Mapping[str, Iterable[str]]
"""Those of sidecars, by split."""


def compare_splits(output: str, marker: Marker, sidecars: Sequence[Sidecar], written: int, unit: str) -> str:
    """One sentence on what of the dataset in the output will be in another split, or on why that is not known.

    Args:
        output: the folder.
        marker: of the dataset that it holds, and that is to be replaced.
        sidecars: of the dataset that will replace it.
        written: how many records that has.
        unit: what they are called.

    Returns:
        The sentence; the empty string where nothing has moved.

    Raises:
        OSError: a sidecar of the new dataset cannot be read.
    """
    if sum(split.records for split in marker.splits.values()) + written > MOST_COMPARED:
        return f"whether {unit}s have moved between splits was not checked: they are more than {MOST_COMPARED:,}"
    new: defaultdict[str, list[str]] = defaultdict(list)
    for sidecar in sidecars:
        new[sidecar.split].append(sidecar.path)
    old = {
        name: [storage.join(output, shard.sidecar) for shard in split.shards] for name, split in marker.splits.items()
    }
    if None in sizes_of(path for paths in old.values() for path in paths):
        return f"whether {unit}s have moved between splits is not known: sidecars of the replaced dataset are missing"
    return describe_moved(count_moved(old, new), unit)


def count_moved(old: Paths, new: Paths) -> Counter[tuple[str, str]]:
    """How many contents were in one split and are in another, by the names of both.

    What was in both already counts as one that has not moved.

    Args:
        old: of the dataset that is replaced.
        new: of the one that replaces it.

    Raises:
        OSError: a sidecar cannot be read.
    """
    before = {split: _contents(paths) for split, paths in old.items()}
    after = {split: _contents(paths) for split, paths in new.items()}
    moved: Counter[tuple[str, str]] = Counter()
    for left, entered in permutations({**before, **after}, 2):
        if left in before and entered in after:
            there = np.intersect1d(before[left], after[entered], assume_unique=True)
            known = before.get(entered, there[:0])
            moved[left, entered] = len(there) - int(np.isin(there, known, assume_unique=True).sum())
    return +moved


def describe_moved(moved: Mapping[tuple[str, str], int], unit: str) -> str:
    """One sentence on what has moved, the most first; the empty string where nothing has."""
    if not moved:
        return ""
    ordered = sorted(moved.items(), key=lambda item: (-item[1], item[0]))
    ways = ", ".join(f"{count:,} from {left} to {entered}" for (left, entered), count in ordered)
    are = "is" if sum(moved.values()) == 1 else "are"
    images = format_count(sum(moved.values()), unit)
    return f"{images} of the dataset that is replaced {are} in another split now: {ways}"


def _contents(paths: Iterable[str]) -> Digests:
    """The first 64 bits of the SHA-256 of what is written, each once, ascending."""
    found = [np.zeros(0, np.uint64)]
    for path in paths:
        found.extend(digests_of(row for row in rows if isinstance(row, SidecarRow)) for rows in read_chunks(path))
    return np.unique(np.concatenate(found))
