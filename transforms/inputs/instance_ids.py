"""Objects whose pixels have numbers that say their class, as in Cityscapes' `instanceIds`.

The value of a pixel is `1000 * id + n` for the object n, from 0, of the class with an id. Lower
values are those of stuff and of groups of objects.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recordmill.annotations.boxes import Boxes, boxes_of
from recordmill.annotations.masks import Masks
from recordmill.imaging.geometry import Size
from recordmill.imaging.masks.mask_file import MaskValues, decode_mask
from recordmill.imaging.masks.outline import FileIds, MaskFile, OutlineError
from recordmill.transforms.inputs.named_files import bad_annotations

_OBJECTS_PER_CLASS = 1_000
_LARGEST_SIDE = 20_000
_MOST_PIXELS = 2**26
_ROWS = 256
"""Rows that are searched at once, so that memory does not grow with the file."""


@dataclass(frozen=True, slots=True)
class MaskObjects:
    """The objects in a mask file, in the order of their numbers.

    Attributes:
        numbers: the value of the pixels of each.
        sides: left, top, right and bottom of each in pixels.
        size: width and height of the file.
    """

    numbers: Sequence[int]
    sides: Sequence[Sequence[float]]
    size: Size

    @property
    def classes(self) -> Sequence[int]:
        """The ids of their classes."""
        return [number // _OBJECTS_PER_CLASS for number in self.numbers]

    @property
    def boxes(self) -> Boxes:
        """The boxes, with the ids of their classes."""
        return boxes_of(self.sides, self.classes, drawn_on_size=self.size)

    def as_masks(self, key: str) -> Masks:
        """Returns the masks, whose file has a key."""
        file = MaskFile(key, "")
        return Masks([FileIds(file, (number,)) for number in self.numbers])


def read_instance_ids(data: bytes, path: str) -> MaskObjects:
    """Finds the objects in a mask file.

    Args:
        data: the file.
        path: its path below the input, for the message.

    Raises:
        Rejected: `bad_annotations`: it is not an image of numbers, or very large.
    """
    try:
        decoded = decode_mask(data, (_LARGEST_SIDE, _LARGEST_SIDE), _MOST_PIXELS)
    except OutlineError as error:
        raise bad_annotations(f"{path}: {error.detail}") from None
    if decoded.has_colors:
        raise bad_annotations(f"{path}: the mask has colors instead of numbers of objects")
    return find_objects(decoded.values)


def find_objects(values: MaskValues) -> MaskObjects:
    """Finds the objects in the values of a mask's pixels, an array of shape (height, width)."""
    height, width = values.shape
    numbers = np.unique(values[values >= _OBJECTS_PER_CLASS])
    firsts = np.full((2, len(numbers)), max(height, width))
    ends = np.zeros((2, len(numbers)), np.int64)
    for top in range(0, height, _ROWS):
        part = values[top : top + _ROWS]
        rows, columns = np.nonzero(part >= _OBJECTS_PER_CLASS)
        places = np.searchsorted(numbers, part[rows, columns])
        for side, found in enumerate((columns, rows + top)):
            np.minimum.at(firsts[side], places, found)
            np.maximum.at(ends[side], places, found + 1)
    sides = np.concatenate((firsts, ends)).T
    return MaskObjects(numbers.tolist(), sides.tolist(), (width, height))
