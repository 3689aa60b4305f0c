"""Splits: which of train, test, ... an image belongs to, decided by hashes, by the source, or by rank in its class."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.inputs.listing.patterns import compile_pattern
from recordmill.transforms.planning.key_hashes import HASH_RANGE, KeyHashes, hash_key

SPLIT_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
    "eval": "eval",
    "holdout": "holdout",
}
"""Words, in lower case, that mean a split rather than a class, in the order of splits; and what the split is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSettings:
    """How images are split: the YAML keys under `splits:`.

    Attributes:
        fractions: share of the images by split name, e.g. `{train: 0.8, validation: 0.1, test: 0.1}`; what is left
            to 1 is left out of the dataset. Decided by a hash of the key: images added later move no old one.
        stratify: gives each class those shares exactly (to one image, or to the largest group), by rank of the hashes
            within the class; growth may move images at the boundaries.
        group: a regular expression (RE2's syntax) with a group `(?P<group>...)`, searched in each key: images whose
            keys give the same text stay in one split, e.g. all pictures of one patient.
        from_folders: the first folder below the input gives the split: `{train: train, val: validation}`.
        from_source: the source gives the split (a manifest's column, a file's name): `{TRAIN: train, TEST: test}`.
            Without it, what the source says of splits is not used.
    """

    fractions: Mapping[str, float] = field(default_factory=lambda: {"train": 0.9, "test": 0.1})
    stratify: bool = False
    group: str | None = None
    from_folders: Mapping[str, str] = field(default_factory=dict)
    from_source: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ValueError where the settings are impossible or contradict each other."""
        for name in (*self.fractions, *self.given.values()):
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
                raise ValueError(
                    f"splits: {name!r} cannot be a split's name: use letters, digits, - and _ (it names files)"
                )
        for name, fraction in self.fractions.items():
            if not 0 < fraction <= 1:
                raise ValueError(f"splits.fractions.{name} is {fraction}: give a share above 0 and at most 1")
        if sum(self.fractions.values()) > 1 + 1e-9:
            total = f"{sum(self.fractions.values()):.6g}"
            raise ValueError(f"splits.fractions sum to {total}, which is over 1: lower them")
        if self.group:
            compile_pattern(self.group, "splits.group", "group")
        if self.from_folders and self.from_source:
            raise ValueError("splits.from_folders and splits.from_source contradict each other: remove one of them")
        if self.stratify and self.given:
            other = "splits.from_folders" if self.from_folders else "splits.from_source"
            raise ValueError(f"splits.stratify and {other} contradict each other: remove one of them")
        if not self.fractions and not self.given:
            raise ValueError("splits.fractions names no split: give at least one, such as {train: 1.0}")

    @property
    def given(self) -> Mapping[str, str]:
        """Words of folders or of the source to split names, where splits are given; else empty."""
        return self.from_folders or self.from_source

    @property
    def names(self) -> tuple[str, ...]:
        """The splits asked for, in the order in which they were written."""
        return tuple(dict.fromkeys(self.given.values())) or tuple(self.fractions)

    @property
    def neighbours(self) -> int:
        """How many nearest hashes must be known of each split, so that any number of empty ones can be filled."""
        return len(self.names) + 1

    @property
    def bounds(self) -> list[int]:
        """Upper ends, exclusive, of the splits' ranges of hashes, in the order of `names`."""
        return [min(HASH_RANGE, round(share * HASH_RANGE)) for share in accumulate(self.fractions.values())]


@dataclass(frozen=True, slots=True)
class SplitCutoffs:
    """What must be known of all images before any one can be placed; empty for plain hash and given splits.

    Attributes:
        take_below: images whose `take` hash is at least this are left out by `limit`.
        class_bounds: for stratified splits, upper ends of the splits' ranges of hashes by class.
        moved: splits of single hashes: where a split would have stayed empty, and in stratified splits of groups that
            hold several classes; the empty string for one that is left out.
    """

    take_below: int = HASH_RANGE
    class_bounds: Mapping[str, Sequence[int]] = field(default_factory=dict)
    moved: Mapping[int, str] = field(default_factory=dict)


class ImageSplitter:
    """Says each image's place: its split, or why it is left out.

    Attributes:
        selection: what was known beforehand.
        middles: the middle of each split's range of hashes; empty where hashes decide no split.
        neighbours: see `SplitSettings.neighbours`.
    """

    def __init__(self, seed: int, settings: SplitSettings, selection: SplitCutoffs) -> None:
        self._seed = seed
        self._stratify = settings.stratify
        self._names, self._bounds = settings.names, settings.bounds
        self.selection = selection
        edges = [0, *self._bounds]
        by_hash = not settings.given and not settings.stratify
        middles = [(low + high) // 2 for low, high in pairwise(edges)]
        self.middles = list(zip(self._names, middles, strict=True)) if by_hash else []
        self.neighbours = settings.neighbours

    def place(self, ref: ImageRef) -> tuple[KeyHashes, str, str]:
        """The numbers of one image, its split, and the reason where it is left out (`limit`, `fraction`)."""
        hashes = hash_key(self._seed, ref.key, ref.group)
        if hashes.take >= self.selection.take_below:
            return hashes, "", "limit"
        split = ref.split or self.selection.moved.get(hashes.split)
        if split is None:
            split = self._by_hash(ref.label, hashes.split)
        return hashes, split, "" if split else "fraction"

    def _by_hash(self, label: str, number: int) -> str:
        index = split_by_hash(number, self.selection.class_bounds[label] if self._stratify else self._bounds)
        return self._names[index] if index < len(self._names) else ""


def split_by_hash(number: int, bounds: Sequence[int]) -> int:
    """The index of the split whose range holds a hash; the number of splits where none does."""
    return bisect_right(bounds, number)


def bounds_by_rank(numbers: Sequence[int], settings: SplitSettings) -> list[int]:
    """The ranges of hashes that give one class its exact shares.

    Args:
        numbers: the split hashes of the class's images; those of one group are equal.
        settings: the shares.

    Returns:
        Upper ends as in `SplitSettings.bounds`: between them lie `round(n * share)` images, counted cumulatively. An
        end within a group moves to the nearer of the group's own ends, so that a split's count differs from its share
        by no more than the largest group.
    """
    ranked = sorted(numbers)
    ends = [round(len(ranked) * share) for share in accumulate(settings.fractions.values())]
    return [_bound_near(ranked, end) for end in ends]


def _bound_near(ranked: Sequence[int], end: int) -> int:
    if end >= len(ranked):
        return HASH_RANGE
    first, beyond = bisect_left(ranked, ranked[end]), bisect_right(ranked, ranked[end])
    if end - first <= beyond - end:
        return ranked[end]
    return ranked[beyond] if beyond < len(ranked) else HASH_RANGE


def fill_empty_splits(
    counts: Mapping[str, int], nearest: Mapping[str, Sequence[tuple[int, int]]], settings: SplitSettings
) -> dict[int, str]:
    """Gives each empty split the group of images whose hash lies nearest to its range.

    Args:
        counts: images by split, as the hashes have it.
        nearest: for each split the (distance, hash) of the distinct hashes nearest to it, ascending; as many as there
            are splits and one more, where there are so many.
        settings: the splits.

    Returns:
        Splits by hash, for `SplitCutoffs.moved`; no split is emptied for another. An empty split for which no hash can
        be spared is left out of the result.
    """
    names, bounds = settings.names, settings.bounds
    home = {number: bisect_right(bounds, number) for near in nearest.values() for _, number in near}
    spare = {name: {number for number, at in home.items() if at == index} for index, name in enumerate(names)}
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
