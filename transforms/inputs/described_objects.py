"""The objects of an image as shapes of a class, which become boxes and outlines."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

from recordmill.annotations.annotation import Packable
from recordmill.annotations.attributes import Attributes
from recordmill.annotations.boxes import boxes_of
from recordmill.annotations.corners import OrientedBoxes
from recordmill.annotations.keypoints import KeyPoints
from recordmill.annotations.masks import Masks
from recordmill.imaging.geometry import Size
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.outlines import DescribedShape, NamedPoint

OBJECT = "object"
"""The class of an object with key points and without a class."""

OtherShapes = Literal["enclose", "drop", "reject"]
"""What to do with shapes that are not upright rectangles."""


@dataclass(slots=True)
class DescribedObjects:
    """The objects of one image, in their order.

    Attributes:
        other_shapes: what to do with shapes that are not upright rectangles.
        shapes: those that are kept.
        labels: the class of each.
        values: further values of each, by field.
        attributes: the attributes of each, by name.
        dropped: how many shapes were dropped.
        lost_points: why key points are not stored, and the place of their object, from 0.
    """

    other_shapes: OtherShapes
    shapes: list[DescribedShape] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    values: dict[str, list[Any]] = field(default_factory=dict)
    attributes: list[Mapping[str, str]] = field(default_factory=list)
    dropped: int = 0
    lost_points: list[tuple[str, int]] = field(default_factory=list)

    def add(
        self,
        shape: DescribedShape,
        label: str,
        title: str,
        *,
        values: Mapping[str, Any] | None = None,
        attributes: Mapping[str, str],
        lost_points: Iterable[str] = (),
    ) -> None:
        """Adds an object; its shape decides whether it is kept.

        Args:
            shape: its shape.
            label: its class.
            title: what the shape is called, for the message.
            values: further values, by field; the same fields for all objects of an image.
            attributes: its attributes, by name.
            lost_points: the reason for each of its key points that is not stored.

        Raises:
            Rejected: `refused_shape`: it is not an upright rectangle, and such shapes reject the
                image.
        """
        if shape.is_enclosed and self.other_shapes == "reject":
            detail = f"{title}, and source.other_shapes is reject"
            raise Rejected("list", "refused_shape", detail)
        if shape.is_enclosed and self.other_shapes == "drop":
            self.dropped += 1
            return
        self.lost_points += [(reason, len(self.shapes)) for reason in lost_points]
        self.shapes.append(shape)
        self.labels.append(label)
        self.attributes.append(attributes)
        for name, value in (values or {}).items():
            self.values.setdefault(name, []).append(value)

    @property
    def outlines(self) -> int:
        """The number of objects with an outline."""
        return sum(shape.outline is not None for shape in self.shapes)

    def annotate(
        self, size: Size, with_outlines: bool, point_names: Sequence[str] = ()
    ) -> Sequence[Packable]:
        """Returns what annotates the image: boxes, outlines if they are wanted, and so on.

        Args:
            size: width and height of the image as its annotators saw it.
            with_outlines: whether outlines are wanted.
            point_names: the names of the key points of all objects in the file.
        """
        shapes = {
            "enclosed": sum(shape.is_enclosed for shape in self.shapes),
            "other_shape": self.dropped,
        }
        given: list[Packable] = [
            boxes_of(
                [shape.box for shape in self.shapes],
                self.labels,
                values=self.values,
                drawn_on_size=size,
                shapes=shapes,
            )
        ]
        if with_outlines:
            given.append(Masks([shape.outline for shape in self.shapes]))
        if point_names:
            points = [_order_points(shape.points, point_names) for shape in self.shapes]
            given.append(KeyPoints(point_names, points, lost=self.lost_points))
        corners = [shape.corners for shape in self.shapes]
        if any(corners):
            given.append(OrientedBoxes(corners))
        if any(self.attributes):
            given.append(Attributes(self.attributes))
        return given


def _order_points(
    points: Sequence[NamedPoint], names: Sequence[str]
) -> Sequence[float | None] | None:
    """Returns x, y and visibility of each named point, 0 for others; None if there are none."""
    if not points:
        return None
    placed = {name: (x, y, visibility) for name, x, y, visibility in points}
    return [*chain.from_iterable(placed.get(name, (0, 0, 0)) for name in names)]
