"""Pairs of images that look alike: difference hashes within a small Hamming distance, found without comparing all.

The bits in which hashes differ at all are cut into three bands. Where two hashes differ in at most five bits, some band
differs in at most one: it is enough to compare hashes that have a band in common but for one bit, whichever it is. Of
64 bits a band without one has a million values, so that few strangers share it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

MOST_BITS = 5
"""Bits by which images that look alike may differ. On 120 photographs, of copies at half the size, at 224 rows, 20 %
brighter, at quality 20, or as PNG, 98 to 100 % were within; of 7,140 pairs of strangers the closest had 12."""

MOST_PAIRS = 10_000
"""Pairs that are listed at most."""

_FEW = 256  # hashes that are compared all with all: faster than sorting them some sixty times
_MOST_COMPARISONS = 300_000_000  # some ten seconds: ten times what a million hashes without any pattern need
_MOST_FOUND = 4_000_000  # pairs in memory, each of them perhaps some sixty times


@dataclass(frozen=True, slots=True)
class NearPairs:
    """Pairs of places in an array of hashes.

    Attributes:
        pairs: of shape (pairs, 2), the lower place first; sorted by distance, then by place.
        complete: whether these are all there are.
    """

    pairs: NDArray[np.int64]
    complete: bool


def are_telling(hashes: Hashes) -> NDArray[np.bool_]:
    """Whether hashes say what a picture looks like: all but those of a blank page or a plain gradient.

    These are all zeros or all ones except for a few bits.
    """
    ones = np.bitwise_count(hashes)
    return (ones > MOST_BITS) & (ones < 64 - MOST_BITS)


def find_near_pairs(hashes: Hashes, most_pairs: int = MOST_PAIRS, comparisons: int = _MOST_COMPARISONS) -> NearPairs:
    """Pairs of hashes that differ in at most `MOST_BITS` bits.

    Of several equal hashes each is paired with the first of them alone, and that one with the others' first: that many
    pictures of one colour make as many pairs, not their square.

    Args:
        hashes: one for each different picture.
        most_pairs: pairs to give at most, the closest ones.
        comparisons: hashes to compare at most; where that does not do, the result is not complete.
    """
    unique, first, members = np.unique(hashes, return_index=True, return_inverse=True)
    others = np.setdiff1d(np.arange(len(hashes)), first)
    equal = np.stack([first[members[others]], others], axis=1)
    different, complete = _find_different(unique, comparisons)
    pairs = np.concatenate([equal, np.sort(first[different], axis=1)]).astype(np.int64)
    order = np.lexsort((pairs[:, 1], pairs[:, 0], count_differing(hashes, pairs)))[:most_pairs]
    return NearPairs(pairs[order], complete and len(order) == len(pairs))


def count_differing(hashes: Hashes, pairs: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The differing bits of each pair of places."""
    return np.bitwise_count(hashes[pairs[:, 0]] ^ hashes[pairs[:, 1]])


def _find_different(unique: Hashes, comparisons: int) -> tuple[NDArray[np.int64], bool]:
    """Pairs of places in an array of different hashes, and whether all were compared."""
    found, room = [np.zeros((0, 2), np.int64)], _MOST_FOUND
    if len(unique) <= min(_FEW, comparisons**0.5):
        return np.argwhere(np.triu(np.bitwise_count(unique[:, None] ^ unique) <= MOST_BITS, 1)), True
    # A bit that all have in common, as pictures with a white margin do, would tell none apart.
    varying = np.bitwise_or.reduce(unique ^ unique[0])
    bits = np.flatnonzero(varying >> np.arange(64, dtype=np.uint64) & np.uint64(1)).astype(np.uint64)
    for third in np.array_split(bits, 3):
        for left_out in third:
            band = unique & np.bitwise_or.reduce(np.uint64(1) << third[third != left_out], initial=np.uint64(0))
            order = np.argsort(band)
            ordered = band[order]
            # Equal bands are neighbours: each place is compared with the next, then with the one after that, ...
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


def find_closest_apart(hashes: Hashes, parts: NDArray[np.int64], comparisons: int = 10**9) -> NDArray[np.int64]:
    """The places of the two hashes of different parts that differ least, of shape (1, 2); (0, 2) if there is one part.

    Args:
        hashes: one for each picture.
        parts: the number of the part that each belongs to.
        comparisons: hashes to compare at most, some seconds of work; where that does not do, hashes of the smallest
            parts are compared with all.
    """
    sizes, best, least = np.bincount(parts), np.zeros((0, 2), np.int64), 65
    order = np.lexsort((parts, sizes[parts]))[: len(parts) - max(sizes, default=0)]  # all but the largest part
    for place in order[: comparisons // max(len(parts), 1)]:
        distances = np.where(parts == parts[place], 65, np.bitwise_count(hashes ^ hashes[place]))
        if distances.min() < least:
            best, least = np.array([[place, distances.argmin()]]), distances.min()
    return best
