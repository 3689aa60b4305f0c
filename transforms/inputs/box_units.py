"""Boxes that are fractions of an image, in formats whose boxes are in pixels or percent."""

import math
from collections.abc import Iterable, Sequence
from itertools import chain

from recordmill.transforms.inputs.named_files import bad_annotations

ABOUT_ONE = 1.001
"""Fractions are below this number: tools round them."""


def have_fractional_sides(sides: Sequence[float]) -> bool:
    """Returns whether the sides of boxes are between 0 and 1, and not all of them whole."""
    found = list(filter(math.isfinite, sides))
    if not found or min(found) < 0 or max(found) >= ABOUT_ONE:
        return False
    return not all(float(side).is_integer() for side in found)


def refuse_fractions(boxes: Iterable[Sequence[float | None]], unit: str = "pixels") -> None:
    """Refuses an image whose boxes are all fractions of it.

    Args:
        boxes: left, top, right and bottom of each, in the unit of the format.
        unit: that unit.

    Raises:
        Rejected: `bad_annotations`: they are.
    """
    sides = [side for side in chain.from_iterable(boxes) if side is not None]
    if not have_fractional_sides(sides):
        return
    how = "x by the image's width, and y by its height"
    if unit == "percent":
        how = "them by 100"
    raise bad_annotations(
        f"its boxes are fractions of the image, the largest {max(sides):g}, and are read in "
        f"{unit}: multiply {how}"
    )
