"""The text into which pycocotools packs the runs of a mask (`rleToString` in cocoapi's maskApi.c).

Each number is in groups of 5 bits, lowest first. From the fourth on, it is the difference to the
run before the last.
"""

import numpy as np
from numpy.typing import NDArray

from recordmill.imaging.masks.outline import OutlineError

_FIRST = ord("0")
_MORE, _SIGN, _BITS = 0x20, 0x10, 5
_MOST_GROUPS = 10
"""The groups of the longest number, which has 50 bits."""


def unpack_runs(text: bytes) -> NDArray[np.int64]:
    """Returns the lengths of the runs that a text packs; they may be negative.

    Raises:
        OutlineError: `bad_rle`: the text has other characters, or ends within a number.
    """
    if not text:
        return np.zeros(0, np.int64)
    groups = np.frombuffer(text, np.uint8).astype(np.int64) - _FIRST
    if groups.min() < 0 or groups.max() >= 2 * _MORE or groups[-1] & _MORE:
        raise OutlineError("bad_rle", f"its text is not one of packed runs: {text[:20]!r}")
    ends = np.flatnonzero((groups & _MORE) == 0)
    lengths = np.diff(ends, prepend=-1)
    if lengths.max() > _MOST_GROUPS:
        raise OutlineError("bad_rle", "a run has more than 50 bits")
    starts = ends - lengths + 1
    places = np.arange(len(groups)) - np.repeat(starts, lengths)
    runs = np.add.reduceat((groups & (_MORE - 1)) << (_BITS * places), starts)
    runs -= np.where(groups[ends] & _SIGN, 1, 0) << (_BITS * lengths)
    for start in (1, 2):
        runs[start::2] = np.cumsum(runs[start::2])
    return runs
