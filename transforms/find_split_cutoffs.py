"""FindSplitCutoffs: finds the hashes at which to cut, before any image can be assigned to a split.

Plain splits by hash and given splits need no cutoffs. `limit` and `limit_per_class` need the first
hash that they leave out, stratified splits the hashes of each class.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.pvalue import AsDict, AsSingleton
from apache_beam.transforms.combiners import TopCombineFn

from recordmill.schemas.digests import HASH_RANGE
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.transforms.planning.splitting import SplitCutoffs, bounds_by_rank

_Hash = Any
"""The type of hashes for Beam: its coder for `int` is signed, and half of the hashes do not fit."""

_Keyed = tuple[str, _Hash]

_ImageHashes = tuple[str, _Hash, str]
"""An image's label, the hash that decides whether `limit` takes it, and that of its split, in
hex."""

_Ranked = tuple[list[int], dict[int, str]]
"""A class's bounds, and the splits of some of its groups by hash."""


class _Group(NamedTuple):
    """Images that are kept in one split.

    Attributes:
        hash: the hash that decides the split.
        images: how many of them are in the main class.
        is_mixed: whether any are in another class.
    """

    hash: int
    images: int
    is_mixed: bool


@dataclass
class FindSplitCutoffs(beam.PTransform):
    """Finds the `SplitCutoffs` for a PCollection of batches of references.

    Attributes:
        settings: what the dataset is.
    """

    settings: DatasetSettings

    def expand(self, batches: beam.PCollection[ReferenceBatch]) -> beam.PCollection[SplitCutoffs]:
        """PCollection[ReferenceBatch] -> PCollection[SplitCutoffs] of exactly one element."""
        splits, limit, limit_per_class = (
            self.settings.splits,
            self.settings.limit,
            self.settings.limit_per_class,
        )
        start = batches.pipeline | "SplitCutoffs" >> beam.Create([SplitCutoffs()], reshuffle=False)
        if limit is None and limit_per_class is None and not splits.stratify:
            return start
        images = batches | "KeepImages" >> beam.FlatMap(
            _list_hashes, self.settings.seed
        ).with_output_types(_ImageHashes)
        cutoff: Any = HASH_RANGE
        class_cutoffs: Any = {}
        if limit_per_class is not None:
            lowest_of_class = beam.CombinePerKey(_keep_one_more(limit_per_class)).with_output_types(
                _Keyed
            )
            find_limit = beam.MapTuple(
                lambda label, lowest: (label, _find_cutoff(lowest, limit_per_class))
            )
            hashes = images | "HashByClass" >> beam.Map(_hash_by_class).with_output_types(_Keyed)
            class_cutoffs = AsDict(
                hashes | "KeepLowestOfClass" >> lowest_of_class | "FindLimitOfClass" >> find_limit
            )
        if limit is not None:
            cutoff = AsSingleton(
                images
                | "HashForLimit"
                >> beam.FlatMap(_hash_for_limit, class_cutoffs).with_output_types(_Hash)
                | "KeepLowest"
                >> beam.CombineGlobally(_keep_one_more(limit)).with_output_types(list[_Hash])
                | "FindLimit" >> beam.Map(_find_cutoff, limit).with_output_types(_Hash)
            )
        class_bounds: Any = {}
        if splits.stratify:
            groups = beam.FlatMap(_group_hash, cutoff, class_cutoffs)
            class_bounds = AsDict(
                images
                | "HashGroups" >> groups.with_output_types(tuple[str, str])
                | "GatherGroups" >> beam.GroupByKey()
                | "FindMainClass" >> beam.MapTuple(_find_main_class).with_output_types(_Keyed)
                | "GroupClasses" >> beam.GroupByKey()
                | "RankClasses" >> beam.MapTuple(self._rank_class).with_output_types(_Keyed)
            )
        return start | "Select" >> beam.Map(_select, cutoff, class_cutoffs, class_bounds)

    def _rank_class(self, label: str, groups: Iterable[_Group]) -> tuple[str, _Ranked]:
        """Returns a class's bounds, and the split of each group that also has other classes."""
        listed = list(groups)
        hashes = chain.from_iterable([group.hash] * group.images for group in listed)
        bounds = bounds_by_rank([*hashes], self.settings.splits)
        names = (*self.settings.splits.names, "")  # "": the images that the fractions leave out
        moved = {
            group.hash: names[bisect_right(bounds, group.hash)]
            for group in listed
            if group.is_mixed
        }
        return label, (bounds, moved)


def _list_hashes(batch: ReferenceBatch, seed: int) -> Iterator[_ImageHashes]:
    """Yields what decides about each image of a batch."""
    keys = batch.hash_with(seed).iterate_keys()
    for ref, hashes in zip(batch.refs, keys, strict=False):  # notices have hashes, too
        yield ref.label, hashes.take, f"{hashes.split:016x}"


def _hash_by_class(image: _ImageHashes) -> tuple[str, int]:
    label, take, _ = image
    return label, -take


def _hash_for_limit(image: _ImageHashes, class_cutoffs: Mapping[str, int]) -> Iterable[int]:
    label, take, _ = image
    if not SplitCutoffs(class_cutoffs=class_cutoffs).find_limit(label, take):
        yield -take


def _group_hash(
    image: _ImageHashes, cutoff: int, class_cutoffs: Mapping[str, int]
) -> Iterable[tuple[str, str]]:
    label, take, split = image
    if not SplitCutoffs(cutoff, class_cutoffs=class_cutoffs).find_limit(label, take):
        yield split, label


def _keep_one_more(limit: int) -> TopCombineFn:
    """Keeps one hash more than a limit, for `_find_cutoff`.

    Runners get the number as display data, in 64 bits with a sign.
    """
    return TopCombineFn(min(limit + 1, 2**63 - 1))


def _find_cutoff(lowest: list[int], limit: int) -> int:
    """Returns the hash after the `limit` lowest, or 2**64 if there are no more hashes.

    `lowest` are negated hashes, the lowest first.
    """
    if len(lowest) > limit:
        return -lowest[limit]
    return HASH_RANGE


def _find_main_class(number: str, labels: Iterable[str]) -> tuple[str, _Group]:
    """Returns the class of most of a group's images, and the group."""
    counts = Counter(labels)
    label, images = min(counts.items(), key=lambda item: (-item[1], item[0]))
    return label, _Group(int(number, 16), images, len(counts) > 1)


def _select(
    _: SplitCutoffs, cutoff: int, class_cutoffs: Mapping[str, int], ranked: Mapping[str, _Ranked]
) -> SplitCutoffs:
    bounds: dict[str, list[int]] = {}
    moved: dict[int, str] = {}
    for label, (own, groups) in ranked.items():
        bounds[label] = own
        moved |= groups
    return SplitCutoffs(cutoff, bounds, moved, dict(class_cutoffs))
