"""The masks of objects in Pascal VOC's folder `SegmentationObject`.

A pixel has the number of its object, from 1 in the order of the XML file. 255 is void: it belongs
to no object. Tools other than VOC's own write the colors of VOC's palette instead of its indices.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from recordmill.imaging.geometry import Size
from recordmill.imaging.masks.mask_file import MaskValues, decode_mask
from recordmill.imaging.masks.mask_values import table_of_voc
from recordmill.imaging.masks.outline import (
    FaultyOutline,
    FileIds,
    MaskFile,
    Outline,
    OutlineError,
)
from recordmill.schemas.formatting import format_count

OBJECT_MASKS = "SegmentationObject"
"""The folder of the masks, next to that of the XML files."""

_VOID = 255
_LARGEST_SIDE = 10_000
_LEAST_INSIDE = 0.5
"""The smallest share of an object's pixels in its box: a smaller one is another object's."""

Outlines = list[Outline | None]


def read_object_masks(
    data: bytes, key: str, boxes: Sequence[Sequence[float | None]], drawn_on: Size | None
) -> Outlines:
    """Returns the outline of each object of an image; None for one without pixels.

    An object whose pixels are in another place than its box has a faulty outline, and so have all
    objects if the file has more objects than boxes.

    Args:
        data: the mask file.
        key: its name in the dataset.
        boxes: left, top, right and bottom of each object in pixels, in the order of the XML file.
        drawn_on: width and height by the XML file, if it has them.
    """
    largest = min(max(drawn_on or (_LARGEST_SIDE,)), _LARGEST_SIDE)
    most_pixels = math.prod(drawn_on) if drawn_on else None
    try:
        values = decode_mask(data, (largest, largest), most_pixels).values
        numbers = _find_numbers(values, len(boxes))
    except OutlineError as error:
        return [FaultyOutline(error.reason, error.detail)] * len(boxes)
    height, width = values.shape
    is_comparable = drawn_on in (None, (width, height))
    outlines: Outlines = []
    for number, box in enumerate(boxes, start=1):
        value = numbers.get(number)
        if value is None:
            outlines.append(None)
        elif is_comparable and not _is_in_box(values, value, box):
            detail = f"most pixels of object {number} in the mask are outside its box"
            outlines.append(FaultyOutline("other_object", detail))
        else:
            outlines.append(FileIds(MaskFile(key, ""), (value,)))
    return outlines


def _find_numbers(values: MaskValues, objects: int) -> Mapping[int, int]:
    """Returns the value of each object's pixels by its number.

    Values are colors if they are too large for numbers of objects.

    Args:
        values: as `decode_mask` returns them.
        objects: how many objects the XML file has.

    Raises:
        OutlineError: `unknown_mask_value`: a value is neither, or there are more objects.
    """
    found = np.unique(values).tolist()
    by_number = {value: value for value in found}
    if max((value for value in found if value != _VOID), default=0) > objects:
        table = table_of_voc()
        if all(value in table for value in found):
            by_number = {table[value]: value for value in found}
    others = sorted(by_number.keys() - {0, _VOID})
    if others and others[-1] > objects:
        detail = f"the mask has an object {others[-1]}, and the XML file {_count(objects)}"
        raise OutlineError("unknown_mask_value", detail)
    return {number: by_number[number] for number in others}


def _count(objects: int) -> str:
    return format_count(objects, "object")


def _is_in_box(values: MaskValues, value: int, box: Sequence[float | None]) -> bool:
    """Returns whether most pixels of a value are in a box, whose sides count from 0 or from 1."""
    sides = [side for side in box if side is not None and math.isfinite(side)]
    if len(sides) < len(box):
        return True  # the box is dropped for its own fault
    left, top, right, bottom = sides
    mask = values == value
    rows = slice(max(0, math.floor(top) - 1), max(0, math.ceil(bottom)))
    columns = slice(max(0, math.floor(left) - 1), max(0, math.ceil(right)))
    inside = np.count_nonzero(mask[rows, columns])
    return bool(inside >= _LEAST_INSIDE * np.count_nonzero(mask))
