"""Finds the runs of masks that are given as pixels."""

import numpy as np
from numpy.typing import NDArray

from recordmill.imaging.geometry import Size
from recordmill.imaging.masks.outline import Runs


def find_runs(part: NDArray[np.bool_], left: int, top: int, size: Size) -> Runs:
    """Returns the runs of a mask of a part of an image, in the whole image.

    Args:
        part: an array of shape (height, width), true inside the object.
        left: the first column of the part.
        top: its first row.
        size: width and height of the image, which holds the part.
    """
    height, width = part.shape
    # A pixel outside, above and below each column, ends the runs of the columns.
    padded = np.zeros((width, height + 2), bool)
    padded[:, 1:-1] = part.T
    pixels = padded.ravel()
    columns, rows = np.divmod(np.flatnonzero(pixels[1:] != pixels[:-1]), height + 2)
    edges = (columns + left) * size[1] + rows + top
    starts, ends = edges[0::2], edges[1::2]
    # In the whole image, one may begin where the last one has ended.
    is_apart = starts[1:] != ends[:-1]
    starts = np.concatenate((starts[:1], starts[1:][is_apart]))
    ends = np.concatenate((ends[:-1][is_apart], ends[-1:]))
    both = np.stack((starts, ends), axis=1).ravel()
    bounds = np.concatenate(([0], both, [size[0] * size[1]]))
    return Runs(size, tuple((bounds[1:] - bounds[:-1]).tolist()))
