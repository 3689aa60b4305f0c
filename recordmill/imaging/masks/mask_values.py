"""Turns the values of mask files into ids: by a table, a palette of colors, or a threshold."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recordmill.imaging.masks.mask_file import DecodedMask, MaskValues, pack_color
from recordmill.imaging.masks.outline import OutlineError
from recordmill.schemas.formatting import format_count, say_count

Ids = NDArray[np.int32]

_VOC_COLORS = 256
_VOID = 255
_LARGEST_GRAY = 65_535
_MOST_SHOWN = 3
_FEW_LEVELS = 2

_GRAY_COLOR = pack_color(1, 1, 1)
"""The value of a gray pixel of a file with colors is a multiple of this."""

_LEAST_RANGE = 32
"""The smallest difference between two levels, if there are values between them."""

_MOST_FLAT = 0.05
"""The largest share of the pixels between two levels that are like their neighbors: smooth borders
are narrow slopes, and the pixels of an id are not."""


def table_of_voc() -> dict[int, int]:
    """Returns the index of each color of Pascal VOC's palette, as `decode_mask` gives the color.

    Some tools write VOC's masks as colors. The bits of an index are spread over red, green and blue
    in turn, from the highest bit on.
    """
    table = {}
    for index in range(_VOC_COLORS):
        channels = [0, 0, 0]
        for bit in range(8):
            channels[bit % 3] |= (index >> bit & 1) << (7 - bit // 3)
        table[pack_color(*channels)] = index
    return table


def read_indices(decoded: DecodedMask) -> MaskValues:
    """Returns the indices of Pascal VOC's palette that a mask has, also if it has its colors.

    Raises:
        OutlineError: `unknown_mask_value`: a color is not in the palette.
    """
    if decoded.has_colors or decoded.values.max(initial=0) >= _VOC_COLORS:
        return apply_table(decoded.values, table_of_voc())
    return decoded.values


def find_numbers(values: MaskValues, objects: int) -> frozenset[int]:
    """Returns the numbers of the objects in a mask, from 1; 255 is void.

    Args:
        values: the number of each pixel's object.
        objects: how many objects the image has.

    Raises:
        OutlineError: `unknown_mask_value`: there are more.
    """
    found = frozenset(np.unique(values).tolist()) - {0, _VOID}
    largest = max(found, default=0)
    if largest > objects:
        known = format_count(objects, "object")
        detail = f"the mask has an object {largest}, and the image {known}"
        raise OutlineError("unknown_mask_value", detail)
    return found


def apply_table(values: MaskValues, table: Mapping[int, int]) -> Ids:
    """Returns the id of each pixel.

    Args:
        values: as `decode_mask` returns them.
        table: the id of each value.

    Raises:
        OutlineError: `unknown_mask_value`: a value is not in the table.
    """
    found, places = np.unique(values, return_inverse=True)
    unknown = [value for value in found.tolist() if value not in table]
    if unknown:
        shown = ", ".join(map(_show_value, unknown[:_MOST_SHOWN]))
        detail = f"{say_count(len(unknown), 'value', 'is')} not in the table, such as {shown}"
        raise OutlineError("unknown_mask_value", detail)
    ids = np.array([table[value] for value in found.tolist()], np.int32)
    return ids[places].reshape(values.shape)


def read_gray(values: MaskValues) -> MaskValues:
    """Returns the gray values of a mask that is stored as colors; others are as they were."""
    if np.any(values % _GRAY_COLOR):
        return values
    return values // _GRAY_COLOR


def check_ids(values: MaskValues, most: int) -> Ids:
    """Returns values that are ids.

    Raises:
        OutlineError: `unknown_mask_value`: one is larger than `most`, or negative.
    """
    unknown = np.unique(values[(values > most) | (values < 0)]).tolist()
    if unknown:
        shown = ", ".join(map(_show_value, unknown[:_MOST_SHOWN]))
        detail = f"the mask has values over {most}, such as {shown}"
        if unknown[0] < 0:
            detail = f"the mask has values under 0, such as {shown}"
        elif most < unknown[-1] <= _LARGEST_GRAY:
            detail += "; --set masks=png16 stores ids up to 65,535"
        raise OutlineError("unknown_mask_value", detail)
    return values


def split_levels(values: MaskValues, threshold: int) -> Ids:
    """Returns 1 for values of the threshold or more, and 0 for others."""
    return (values >= threshold).astype(np.int32)


@dataclass(frozen=True, slots=True)
class MaskLevels:
    """The two levels of a mask of one object.

    Attributes:
        low: the value outside.
        high: the value inside.
        is_exact: whether there are no other values. If there are, they are those of anti-aliased
            borders, and a threshold decides.
    """

    low: int
    high: int
    is_exact: bool

    @property
    def threshold(self) -> int:
        """The value in the middle."""
        return (self.low + self.high + 1) // 2


def find_levels(values: MaskValues) -> MaskLevels | None:
    """Returns the two levels of a mask; None if its values are ids.

    A mask of more values has two levels if those between the lowest and the highest are slopes.
    """
    found = np.unique(values)
    low, high = int(found[0]), int(found[-1])
    if len(found) <= _FEW_LEVELS:
        return MaskLevels(low, high, is_exact=True)
    if high - low < _LEAST_RANGE:
        return None
    padded = np.pad(values, 1, constant_values=low)
    inner = padded[1:-1, 1:-1]
    is_flat = (inner == padded[1:-1, :-2]) & (inner == padded[1:-1, 2:])
    is_flat &= (inner == padded[:-2, 1:-1]) & (inner == padded[2:, 1:-1])
    is_between = (values > low) & (values < high)
    if np.count_nonzero(is_flat & is_between) > _MOST_FLAT * np.count_nonzero(is_between):
        return None
    return MaskLevels(low, high, is_exact=False)


def _show_value(value: int) -> str:
    """Returns a value as a number, or as a color if it is too large for a gray one."""
    if value < 2**16:
        return str(value)
    return f"({value & 255}, {value >> 8 & 255}, {value >> 16})"
