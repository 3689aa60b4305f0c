"""FindSplitCutoffs: what must be known of all images before any one can be placed.

Nothing, for splits by hash and splits given: then no image is read. `limit` and `limit_per_class` need the highest
hash that they still take, stratified splits the hashes of each class.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.pvalue import AsDict, AsSingleton
from apache_beam.transforms.combiners import TopCombineFn

from recordmill.schemas.digests import HASH_RANGE, hash_key
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import SplitSettings
from recordmill.transforms.planning.splitting import SplitCutoffs, bounds_by_rank

_Hash = Any
"""The type of hashes for Beam: its coder for `int` is signed, and half of them do not fit."""


class _Group(NamedTuple):
    """Images that stay in one split: the hash that decides it, how many are of the main class, and if others are."""

    hash: int
    images: int
    is_mixed: bool


@dataclass
class FindSplitCutoffs(beam.PTransform):
    """Finds the `SplitCutoffs` for a PCollection of batches of references.

    Attributes:
        seed: the dataset's seed.
        splits: how images are split.
        limit: at most this many images; None for all.
        limit_per_class: the same for each class.
    """

    seed: int
    splits: SplitSettings
    limit: int | None
    limit_per_class: int | None = None

    def expand(self, batches: beam.PCollection[ReferenceBatch]) -> beam.PCollection[SplitCutoffs]:
        """PCollection[ReferenceBatch] -> PCollection[SplitCutoffs] of exactly one element."""
        start = batches.pipeline | "SplitCutoffs" >> beam.Create([SplitCutoffs()], reshuffle=False)
        if self.limit is None and self.limit_per_class is None and not self.splits.stratify:
            return start
        images = batches | "KeepImages" >> beam.FlatMap(attrgetter("refs")).with_output_types(ImageRef)
        take_below: Any = HASH_RANGE
        class_takes: Any = {}
        if self.limit_per_class is not None:
            class_takes = AsDict(
                images
                | "HashByClass" >> beam.Map(self._hash_by_class).with_output_types(tuple[str, _Hash])
                | "KeepLowestOfClass"
                >> beam.CombinePerKey(TopCombineFn(self.limit_per_class + 1)).with_output_types(tuple[str, _Hash])
                | "FindLimitOfClass"
                >> beam.MapTuple(lambda label, lowest: (label, _first_not_taken(lowest, self.limit_per_class or 0)))
            )
        if self.limit is not None:
            take_below = AsSingleton(
                images
                | "HashForLimit" >> beam.FlatMap(self._hash_for_limit, class_takes).with_output_types(_Hash)
                | "KeepLowest" >> beam.CombineGlobally(TopCombineFn(self.limit + 1)).with_output_types(list[_Hash])
                | "FindLimit" >> beam.Map(_first_not_taken, self.limit).with_output_types(_Hash)
            )
        class_bounds: Any = {}
        if self.splits.stratify:
            class_bounds = AsDict(
                images
                | "HashGroups"
                >> beam.FlatMap(self._group_hash, take_below, class_takes).with_output_types(tuple[str, str])
                | "GatherGroups" >> beam.GroupByKey()
                | "FindMainClass" >> beam.MapTuple(_find_main_class).with_output_types(tuple[str, _Hash])
                | "GroupClasses" >> beam.GroupByKey()
                | "RankClasses" >> beam.MapTuple(self._rank_class).with_output_types(tuple[str, _Hash])
            )
        return start | "Select" >> beam.Map(_select, take_below, class_takes, class_bounds).with_output_types(
            SplitCutoffs
        )

    def _hash_by_class(self, ref: ImageRef) -> tuple[str, int]:
        return ref.label, -hash_key(self.seed, ref.key).take

    def _hash_for_limit(self, ref: ImageRef, class_takes: Mapping[str, int]) -> Iterable[int]:
        take = hash_key(self.seed, ref.key).take
        if not SplitCutoffs(class_takes=class_takes).find_limit(ref.label, take):
            yield -take

    def _group_hash(self, ref: ImageRef, take_below: int, class_takes: Mapping[str, int]) -> Iterable[tuple[str, str]]:
        hashes = hash_key(self.seed, ref.key, ref.group)
        if not SplitCutoffs(take_below, class_takes=class_takes).find_limit(ref.label, hashes.take):
            yield f"{hashes.split:016x}", ref.label

    def _rank_class(self, label: str, groups: Iterable[_Group]) -> tuple[str, tuple[list[int], dict[int, str]]]:
        """A class's bounds, and the splits of those of its groups that hold other classes too."""
        listed = list(groups)
        bounds = bounds_by_rank([group.hash for group in listed for _ in range(group.images)], self.splits)
        names = (*self.splits.names, "")  # "": what the fractions leave out
        moved = {group.hash: names[bisect_right(bounds, group.hash)] for group in listed if group.is_mixed}
        return label, (bounds, moved)


def _first_not_taken(lowest: list[int], limit: int) -> int:
    """The hash after the `limit` lowest, which are given negated, the lowest first; 2**64 if there are no more."""
    return -lowest[limit] if len(lowest) > limit else HASH_RANGE


def _find_main_class(number: str, labels: Iterable[str]) -> tuple[str, _Group]:
    """The class that most of a group's images have, and how many."""
    counts = Counter(labels)
    label, images = min(counts.items(), key=lambda item: (-item[1], item[0]))
    return label, _Group(int(number, 16), images, len(counts) > 1)


def _select(
    _: SplitCutoffs,
    take_below: int,
    class_takes: Mapping[str, int],
    ranked: Mapping[str, tuple[Sequence[int], Mapping[int, str]]],
) -> SplitCutoffs:
    bounds = {label: own for label, (own, _) in ranked.items()}
    moved = {number: split for _, groups in ranked.values() for number, split in groups.items()}
    return SplitCutoffs(take_below, bounds, moved, dict(class_takes))
