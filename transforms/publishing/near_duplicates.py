"""Pairs of images that look alike: difference hashes within a small Hamming distance, found without comparing all.

Hashes of 64 bits are cut into three bands. Where two of them differ in at most five bits, some band differs in at most
one: it is enough to compare hashes that have a band in common but for one bit, whichever it is. A band without a bit
has a million values, so that few strangers share one.
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

_BANDS = ((0, 22), (22, 21), (43, 21))  # first bit, bits
_MOST_COMPARISONS = 300_000_000  # some ten seconds: ten times what a million hashes without any pattern need
_MOST_FOUND = 4_000_000  # pairs in memory, each of them perhaps some sixty times


@dataclass(frozen=True, slots=True)
class NearPairs:
    """Pairs of places in an array of hashes.

    Attributes:
        pairs: of shape (pairs, 2), the lower place first; sorted by distance, then by place.
        distances: the differing bits of each, of shape (pairs,).
        complete: whether these are all there are.
    """

    pairs: NDArray[np.int64]
    distances: NDArray[np.int64]
    complete: bool


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
    distances = np.bitwise_count(hashes[pairs[:, 0]] ^ hashes[pairs[:, 1]]).astype(np.int64)
    order = np.lexsort((pairs[:, 1], pairs[:, 0], distances))[:most_pairs]
    return NearPairs(pairs[order], distances[order], complete and len(order) == len(pairs))


def _find_different(unique: Hashes, comparisons: int) -> tuple[NDArray[np.int64], bool]:
    """Pairs of places in an array of different hashes, and whether all were compared."""
    found, room = [np.zeros((0, 2), np.int64)], _MOST_FOUND
    for first_bit, bits in _BANDS:
        for left_out in range(bits):
            mask = (2**bits - 1 - (1 << left_out)) << first_bit
            band = unique & np.uint64(mask)
            order = np.argsort(band)
            ordered = band[order]
            # Equal bands are neighbours: each place is compared with the next, then with the one after that, ...
            places, step = np.arange(len(unique) - 1), 1
            while len(places := places[ordered[places] == ordered[places + step]]):
                comparisons -= len(places)
                if comparisons < 0 or room < 0:
                    return np.unique(np.concatenate(found), axis=0), False
                pairs = np.sort(np.stack([order[places], order[places + step]], axis=1), axis=1)
                near = np.bitwise_count(unique[pairs[:, 0]] ^ unique[pairs[:, 1]]) <= MOST_BITS
                found.append(pairs[near])
                room -= len(found[-1])
                step += 1
                places = places[: np.searchsorted(places, len(unique) - step)]
    return np.unique(np.concatenate(found), axis=0), True
