"""A histogram over 64-bit hashes that merges in any order and finds even cut points.

Up to `MAX_BINS` distinct hashes it is exact, one bin a hash; beyond, it halves its resolution until they fit. The
resolution depends on the set of hashes alone (a coarser grid never has more occupied bins, and a part that overflows a
grid proves that the whole does), so merging is commutative and associative: shards are cut alike on every runner.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Self

from recordmill.schemas.dataset.totals import Totals
from recordmill.schemas.key_hashes import HASH_BITS, HASH_RANGE

MAX_BINS = 1 << 16


@dataclass(slots=True)
class HashHistogram(Totals):
    """Bytes by hash range.

    Attributes:
        shift: low bits of a hash that a bin ignores; 0 while exact.
        bins: bytes by `hash >> shift`.
    """

    shift: int = 0
    bins: dict[int, int] = field(default_factory=dict)

    def add(self, number: int, weight: int) -> None:
        """Counts one hash with its weight in bytes."""
        place = number >> self.shift
        self.bins[place] = self.bins.get(place, 0) + weight
        if len(self.bins) > MAX_BINS:
            self._coarsen(self.shift + 1)

    def merge(self, other: Self) -> None:
        """Adds another histogram's counts to this one; the other is left as it is."""
        if other.shift > self.shift:
            self._coarsen(other.shift)
        down = self.shift - other.shift
        for place, weight in other.bins.items():
            self.bins[place >> down] = self.bins.get(place >> down, 0) + weight
        if len(self.bins) > MAX_BINS:
            self._coarsen(self.shift + 1)

    def _coarsen(self, shift: int) -> None:
        while True:
            down, self.shift = shift - self.shift, shift
            coarse: dict[int, int] = {}
            for place, weight in self.bins.items():
                coarse[place >> down] = coarse.get(place >> down, 0) + weight
            self.bins = coarse
            if len(coarse) <= MAX_BINS or shift == HASH_BITS:
                return
            shift += 1

    def cut(self, parts: int) -> list[int]:
        """Cuts the hashes into ranges of about equal weight, none of them empty.

        Args:
            parts: how many ranges are wanted; at least 1.

        Returns:
            The first hash of each range, ascending, the first of them 0: as many as wanted, or one an occupied bin
            where there are fewer bins.
        """
        places = sorted(self.bins)
        parts = max(1, min(parts, len(places)))
        before = [0, *accumulate(self.bins[place] for place in places)]  # the weight below each place
        starts, index = [0], 0
        for part in range(1, parts):
            # A range ends where its share of the weight is reached, or where each later range needs a bin of its own.
            due = bisect_left(before, -(-before[-1] * part // parts))
            index = max(index + 1, min(due, len(places) - parts + part))
            starts.append(places[index] << self.shift)
        return starts

    def cut_equally(self, parts: int) -> list[int]:
        """Cuts all hashes into equal ranges, whatever their weight; those without a hash are joined to others.

        Args:
            parts: how many ranges are wanted; a power of two.

        Returns:
            The first hash of each range, ascending, the first of them 0: no more than wanted.
        """
        width = max(HASH_RANGE // parts, 1 << self.shift)
        starts = sorted({(place << self.shift) // width * width for place in self.bins})
        return [0, *starts[1:]]


def range_of(starts: list[int], number: int) -> int:
    """The index of the range, of those `HashHistogram.cut` gave, that a hash falls into."""
    return bisect_right(starts, number) - 1
