"""Shapes: annotations as pages draw them over their image, and the colors of classes."""

import colorsys
import math
from dataclasses import dataclass
from typing import NamedTuple


class ShapePoint(NamedTuple):
    """A point of a shape, in fractions of the image's width and height.

    `is_visible` is false for a point that the annotator marked as hidden.
    """

    x: float
    y: float
    is_visible: bool = True


@dataclass(frozen=True, slots=True)
class Shape:
    """One annotation as it is drawn over its image. It has at least one of the forms.

    Attributes:
        class_id: the id of its class; None if its Example has none.
        class_name: the name of its class; None if neither its Example nor the label map has one.
        sides: left, top, right and bottom, in fractions of the image's width and height.
        region: a gray PNG of the image's size; pixels above 0 are the object.
        points: its points, without those that are not labeled.
        lines: pairs of places in `points` that are joined by a line.
    """

    class_id: int | None = None
    class_name: str | None = None
    sides: tuple[float, float, float, float] | None = None
    region: bytes | None = None
    points: tuple[ShapePoint, ...] = ()
    lines: tuple[tuple[int, int], ...] = ()

    @property
    def share(self) -> float | None:
        """The share of the image between its sides; None unless these are finite."""
        if self.sides is None or not all(map(math.isfinite, self.sides)):
            return None
        left, top, right, bottom = self.sides
        return (right - left) * (bottom - top)


_COLORS = ("#ffd60a", "#4cc9f0", "#ff5d8f", "#7ae582", "#ff9f1c", "#b388ff", "#e5383b", "#2ec4b6")
"""Colors of the first classes: far from each other, and light enough to show on a photograph."""

_GOLDEN_ANGLE = 0.381966
"""As a fraction of a turn: consecutive hues are far apart, however many there are."""


def color_of_class(class_id: int | None) -> str:
    """Returns the color of a class as `#rrggbb`: the same in every page and for every dataset."""
    if class_id is None:
        return "#ffffff"
    if 0 <= class_id < len(_COLORS):
        return _COLORS[class_id]
    red, green, blue = colorsys.hls_to_rgb(class_id * _GOLDEN_ANGLE % 1, 0.62, 0.85)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"
