"""Corners and angles of oriented boxes, moved to their place on the stored image."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Self

import orjson

from recordmill.annotations.annotation import (
    AnnotatedImage,
    AnnotationKind,
    AnnotationOutcome,
    ListedLabels,
    LostAnnotations,
    PlacedAnnotations,
    Values,
)
from recordmill.annotations.boxes import list_classes
from recordmill.annotations.count_details import DetailCount, drop_undecoded, lose_details
from recordmill.annotations.shapes import Shape, ShapePoint
from recordmill.schemas.dataset.json_values import as_kept_json
from recordmill.schemas.features import RecordField
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import Rejected

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recordmill.imaging.geometry import Box
    from recordmill.schemas.settings.dataset import Contract, DatasetSettings

Corner = tuple[float, float]

_FIELDS = {
    "corners": RecordField(
        "float",
        "x and y of the four corners of each box, clockwise, as fractions of the image; those of "
        "an oriented box may be outside it",
        many=True,
    ),
    "angle": RecordField(
        "float",
        "the angle of each box in degrees, clockwise, -180 to 180: that of the side from its first "
        "corner to its second",
        many=True,
    ),
}

_NUMBERS = 8
"""The numbers in four corners."""

_SIDES = ((0, 1), (1, 2), (2, 3), (3, 0))


@dataclass(frozen=True, slots=True)
class OrientedBoxes:
    """The corners of an image's oriented boxes, as its source gives them.

    Attributes:
        corners: for each box x and y of its four corners, one after the other in either direction;
            None for a box that is upright.
        fractions: whether they are in fractions of the image instead of pixels.
    """

    kind: ClassVar[str] = "corners"

    corners: Sequence[Sequence[float] | None]
    fractions: bool = False

    def pack(self) -> bytes:
        """Returns the bytes that a reference carries."""
        return as_kept_json([self.corners, self.fractions])

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Returns the corners that a reference carries."""
        return cls(*orjson.loads(packed))


class CornerKind(AnnotationKind):
    """OrientedBoxes and angles of the objects in boxes."""

    name: ClassVar[str] = OrientedBoxes.kind
    unit: ClassVar[str] = "oriented box"
    fields: ClassVar[Mapping[str, RecordField]] = _FIELDS
    compared: ClassVar[frozenset[str]] = frozenset({"xmin", "box_labels"})
    loaded: ClassVar[Sequence[frozenset[str]]] = (frozenset({"corners"}),)
    loaded_type: ClassVar[str] = "float32"
    is_always_loaded: ClassVar[bool] = True
    follows_pixels: ClassVar[bool] = True

    def list_labels(self, packed: bytes) -> ListedLabels:
        """Returns the number of oriented boxes; their classes are those of the boxes."""
        given = OrientedBoxes.unpack(packed).corners
        return ListedLabels((), sum(corners is not None for corners in given))

    def place(self, packed: bytes, on: AnnotatedImage) -> PlacedAnnotations:
        """Moves the corners of the objects that are stored; upright ones have those of the box."""
        given = OrientedBoxes.unpack(packed)
        if on.objects is None:
            return drop_undecoded(self.list_labels(packed).total)
        placed, written = list[Sequence[Corner]](), 0
        for at, sides in zip(on.objects.stored, on.objects.sides, strict=True):
            corners = given.corners[at]
            written += corners is not None
            if corners is None:
                placed.append(_corners_of_box(sides))
            else:
                placed.append(_place_corners(corners, given.fractions, on))
        count = DetailCount(on.objects, on.unwanted, frozenset())
        count.drop_with_boxes({at: 1 for at, each in enumerate(given.corners) if each is not None})
        return PlacedAnnotations(_as_fields(placed, on), [], count.outcome(written))

    def fill(self, on: AnnotatedImage) -> Values:
        """Returns the corners of boxes that are all upright."""
        if on.objects is None:
            return {}
        return _as_fields(list(map(_corners_of_box, on.objects.sides)), on)

    def lose(
        self, packed: bytes, rejected: Rejected, label_map: LabelMap
    ) -> AnnotationOutcome | None:
        """Counts the oriented boxes of an image that is not written."""
        return lose_details(self.list_labels(packed).total, rejected)

    def check_limits(self, lost: LostAnnotations, settings: "DatasetSettings") -> None:
        """Returns None: corners are as faulty as their boxes, which have limits."""

    def most_lost(self, contract: "Contract") -> None:
        """Returns None: corners are only lost with their boxes, which have a limit."""

    def check(self, values: Values) -> str | None:
        """Returns the problem with the corners in an Example: each box has four, and an angle."""
        for name in ("xmin", "box_labels"):
            if name not in values:
                continue
            boxes = len(values[name])
            for field, each in (("corners", _NUMBERS), ("angle", 1)):
                if field in values and len(values[field]) != each * boxes:
                    return f"it has {len(values[field])} values of {field} for {boxes} boxes"
        if not all(map(math.isfinite, (*values.get("corners", ()), *values.get("angle", ())))):
            return "a corner or an angle of its boxes is not finite"
        return None

    def trace(self, values: Values, names: Mapping[int, str]) -> list[Shape]:
        """Returns the outlines of the boxes in an Example as shapes."""
        numbers = values.get("corners") or ()
        count = len(numbers) // _NUMBERS
        shapes = []
        for place, (class_id, class_name) in enumerate(list_classes(values, names, count)):
            own = numbers[place * _NUMBERS : (place + 1) * _NUMBERS]
            points = tuple(map(ShapePoint, own[0::2], own[1::2]))
            shapes.append(Shape(class_id, class_name, points=points, lines=_SIDES))
        return shapes

    def as_array(
        self, values: Values, size: tuple[int, int], resized: tuple[int, int] | None = None
    ) -> "NDArray[np.float32]":
        """Returns x and y of the corners, as fractions, as float32 of shape (boxes, 4, 2)."""
        import numpy as np

        return np.asarray(values["corners"], np.float32).reshape(-1, 4, 2)


CORNERS = CornerKind()


def _corners_of_box(sides: "Box") -> Sequence[Corner]:
    left, top, right, bottom = sides
    return (left, top), (right, top), (right, bottom), (left, bottom)


def _place_corners(
    corners: Sequence[float], is_fraction: bool, on: AnnotatedImage
) -> Sequence[Corner]:
    """Returns corners on the stored image, as fractions of it, clockwise."""
    assert on.objects is not None
    width, height = (1, 1) if is_fraction else on.geometry.frame_size(on.objects.drawn_on)
    placed = list[Corner]()
    for x, y in zip(corners[0::2], corners[1::2], strict=True):
        point = x / width, y / height
        placed.append(on.geometry.place((*point, *point), on.objects.drawn_on)[:2])
    around = zip(placed, [*placed[1:], placed[0]], strict=True)
    if sum(one[0] * two[1] - two[0] * one[1] for one, two in around) < 0:
        # A mirrored image has turned the direction. The first side stays the first.
        first, second, third, fourth = placed
        return second, first, fourth, third
    return placed


def _as_fields(placed: Sequence[Sequence[Corner]], on: AnnotatedImage) -> dict[str, Any]:
    """Returns the values of the fields for the corners of all boxes."""
    width, height = on.geometry.stored_size
    angles = []
    for (x1, y1), (x2, y2), *_ in placed:
        angles.append(math.degrees(math.atan2((y2 - y1) * height, (x2 - x1) * width)))
    numbers = chain.from_iterable(chain.from_iterable(placed))
    return {"corners": list(numbers), "angle": angles}
