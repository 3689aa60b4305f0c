"""Splits: assigns images to train, test, ... by hash, by rank in the class, or by the source."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from recordmill.schemas.digests import HASH_RANGE, KeyHashes, hash_key
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.settings.dataset import SplitSettings


def split_bounds(settings: SplitSettings) -> list[int]:
    """Returns the exclusive upper ends of the splits' ranges of hashes.

    They are in the order of `settings.names`.
    """
    return [
        min(HASH_RANGE, round(share * HASH_RANGE))
        for share in accumulate(settings.fractions.values())
    ]


@dataclass(frozen=True, slots=True)
class SplitCutoffs:
    """Hashes at which to cut, from all images; empty for plain splits by hash and given splits.

    Attributes:
        cutoff: images whose `take` hash is at least this are left out by `limit`.
        class_bounds: for stratified splits, the upper ends of the splits' ranges of hashes, by
            class.
        moved: the splits of hashes that do not follow the ranges: those that fill a split and, if
            stratified, those of groups with several classes; the empty string for a hash that is
            left out.
        class_cutoffs: the same as `cutoff` for `limit_per_class`, by label.
    """

    cutoff: int = HASH_RANGE
    class_bounds: Mapping[str, Sequence[int]] = field(default_factory=dict)
    moved: Mapping[int, str] = field(default_factory=dict)
    class_cutoffs: Mapping[str, int] = field(default_factory=dict)

    def find_limit(self, label: str, take: int) -> str | None:
        """Returns the limit that leaves out an image of this label and hash; None if none does."""
        if take >= self.class_cutoffs.get(label, HASH_RANGE):
            return "limit_per_class"
        if take >= self.cutoff:
            return "limit"
        return None


class ImageSplitter:
    """Assigns each image to its split, or says why it is left out.

    Attributes:
        seed: the dataset's seed.
        selection: the cutoffs.
        middles: the middle of each split's range of hashes; empty unless splits are plain ranges of
            hashes.
    """

    def __init__(self, seed: int, settings: SplitSettings, selection: SplitCutoffs) -> None:
        self.seed = seed
        self._stratify = settings.stratify
        # "": the fractions leave it out.
        self._names, self._bounds = (
            (*settings.names, ""),
            split_bounds(settings),
        )
        self.selection = selection
        by_hash = not settings.given and not settings.stratify
        middles = [(low + high) // 2 for low, high in pairwise([0, *self._bounds])]
        self.middles = list(zip(settings.names, middles, strict=True)) if by_hash else []

    def place(self, ref: ImageRef, hashes: KeyHashes | None = None) -> tuple[KeyHashes, str, str]:
        """Returns the hashes of an image, its split, and why it is left out.

        The hashes are computed unless they are given. The reason is one of `LEFT_OUT`, or an empty
        string if the image is not left out.
        """
        hashes = hashes or hash_key(self.seed, ref.key, ref.group)
        if limit := self.selection.find_limit(ref.label, hashes.take):
            return hashes, "", limit
        split = ref.split or self.selection.moved.get(hashes.split)
        if split is None:
            bounds = self.selection.class_bounds[ref.label] if self._stratify else self._bounds
            split = self._names[bisect_right(bounds, hashes.split)]
        return hashes, split, "" if split else "fraction"


def bounds_by_rank(numbers: Sequence[int], settings: SplitSettings) -> list[int]:
    """Returns the ranges of hashes that give one class its exact shares.

    Args:
        numbers: the split hashes of the class's images; images of the same group have the same
            hash.
        settings: the shares.

    Returns:
        Upper ends as in `split_bounds`, with `round(n * share)` images between them, counted
        cumulatively. An end within a group moves to the nearer edge of the group, so a split's
        count differs from its share by no more than the largest group.
    """
    ranked = [*sorted(numbers), HASH_RANGE]
    ends = [round(len(numbers) * share) for share in accumulate(settings.fractions.values())]
    return [_bound_near(ranked, end) for end in ends]


def _bound_near(ranked: Sequence[int], end: int) -> int:
    """Returns the nearer edge of the group at an end; `HASH_RANGE` is the last of `ranked`."""
    first, beyond = bisect_left(ranked, ranked[end]), bisect_right(ranked, ranked[end])
    return ranked[end] if end - first <= beyond - end else ranked[beyond]


def fill_empty_splits(
    counts: Mapping[str, int],
    nearest: Mapping[str, Sequence[tuple[int, int]]],
    settings: SplitSettings,
) -> dict[int, str]:
    """Gives each empty split the group of images whose hash is nearest to its range.

    Args:
        counts: images by split, according to the hashes.
        nearest: for each split the (distance, hash) of the distinct hashes nearest to it,
            ascending; at most one more than there are splits.
        settings: the splits.

    Returns:
        Splits by hash, for `SplitCutoffs.moved`; no split is emptied to fill another. An empty
        split for which no hash can be spared is left out of the result.
    """
    names, bounds = settings.names, split_bounds(settings)
    home = {number: bisect_right(bounds, number) for near in nearest.values() for _, number in near}
    spare = {
        name: {number for number, at in home.items() if at == index}
        for index, name in enumerate(names)
    }
    moved: dict[int, str] = {}
    for name in (name for name in names if not counts.get(name)):
        for _, number in nearest.get(name, ()):
            donor = names[home[number]] if home[number] < len(names) else ""
            if number in moved or (donor and len(spare[donor]) < 2):
                continue
            moved[number] = name
            if donor:
                spare[donor].discard(number)
            break
    return moved
