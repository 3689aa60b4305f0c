"""The lines of YOLO's text files: boxes, polygons, oriented boxes, and boxes with key points."""

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from recordmill.annotations.annotation import Packable
from recordmill.annotations.boxes import Boxes, boxes_of
from recordmill.annotations.corners import OrientedBoxes
from recordmill.annotations.keypoints import KeyPoints
from recordmill.annotations.masks import Masks
from recordmill.imaging.geometry import Box
from recordmill.imaging.masks.outline import Outline
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.described_objects import OtherShapes
from recordmill.transforms.inputs.named_files import bad_annotations
from recordmill.transforms.inputs.outlines import polygons_of

LineForms = Literal["auto", "boxes"]
YoloTask = Literal["auto", "obb"]

_CLASS = re.compile(r"[0-9]{1,9}(\.0*)?")
_LARGEST = 2.0
"""No side of a box in fractions is further from the image's corner; it is 1 inside the image."""

_FLAGS = {0.0, 1.0, 2.0}  # of a key point: not labeled, hidden, visible


@dataclass(slots=True)
class YoloObjects:
    """The objects in a text file, in the order of their lines.

    Attributes:
        labels: the class number of each.
        sides: left, top, right and bottom of each, in fractions of the image.
        outlines: that of each polygon; None for other lines.
        points: x, y and visibility of each key point, for each object; None for one without any.
        corners: x and y of each corner of each oriented box; None for other lines.
        enclosed: how many boxes enclose a polygon or an oriented box.
        dropped: how many polygons were dropped.
        skipped: how many boxes have further values that are not read.
    """

    labels: list[int] = field(default_factory=list)
    sides: list[Box] = field(default_factory=list)
    outlines: list[Outline | None] = field(default_factory=list)
    points: list[Sequence[float] | None] = field(default_factory=list)
    corners: list[Sequence[float] | None] = field(default_factory=list)
    enclosed: int = 0
    dropped: int = 0
    skipped: int = 0

    @property
    def boxes(self) -> Boxes:
        """The boxes of all objects."""
        shapes = {"enclosed": self.enclosed, "other_shape": self.dropped}
        return boxes_of(self.sides, self.labels, fractions=True, shapes=shapes)

    @property
    def polygons(self) -> int:
        """The number of objects with an outline."""
        return sum(outline is not None for outline in self.outlines)

    def annotate(self, point_names: Sequence[str], with_outlines: bool) -> Sequence[Packable]:
        """Returns what annotates the image.

        Args:
            point_names: the names of the key points; none if these are not read.
            with_outlines: whether outlines are wanted.
        """
        given: list[Packable] = [self.boxes]
        if with_outlines:
            given.append(Masks(self.outlines))
        if point_names:
            given.append(KeyPoints(point_names, self.points, fractions=True))
        if any(self.corners):
            given.append(OrientedBoxes(self.corners, fractions=True))
        return given


@dataclass(frozen=True, slots=True, kw_only=True)
class YoloLines:
    """Reads the lines of a text file; the attributes are settings of the source `yolo`."""

    lines: LineForms
    kpt_shape: tuple[int, ...]
    task: YoloTask
    other_shapes: OtherShapes

    def read(self, text: str) -> YoloObjects:
        """Returns the objects of one text file.

        Each line is a class number and further numbers, all fractions of the image. Their count
        decides what they are, as in Ultralytics' own loader (ultralytics/data/utils.py,
        `verify_image_label`), but line by line: one file may hold both boxes and polygons, as
        Roboflow exports them.

        Raises:
            Rejected: a line is neither a box nor an accepted polygon, or all boxes are in pixels.
        """
        found = YoloObjects()
        for number, line in enumerate(text.splitlines(), start=1):
            words = line.split()
            if not words:
                continue
            values: list[float] = []
            with suppress(ValueError):
                values = [float(word) for word in words[1:]]
            if len(values) < 4 or not _CLASS.fullmatch(words[0]):
                raise bad_annotations(
                    f"line {number} is not a class number and four numbers or more"
                )
            label = int(words[0].partition(".")[0])
            if self.lines == "boxes" or _begins_with_box(values, self.kpt_shape, number):
                self._add_box(found, label, values)
            else:
                self._add_polygon(found, label, values, number)
        if found.sides and all(max(map(abs, box)) > _LARGEST for box in found.sides):
            raise bad_annotations(
                "its boxes are not fractions of the image: divide x and width by the image's "
                "width, and y and height by its height"
            )
        return found

    def _add_box(self, found: YoloObjects, label: int, values: Sequence[float]) -> None:
        """Adds a box, and its key points if it has some that are read."""
        x, y, width, height = values[:4]
        points = None
        if len(values) > 5 and self.kpt_shape and self.lines == "auto":
            points = _read_points(values[4:], self.kpt_shape[1])
        elif len(values) > 5:
            found.skipped += 1
        found.labels.append(label)
        found.sides.append((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
        found.outlines.append(None)
        found.points.append(points)
        found.corners.append(None)

    def _add_polygon(
        self, found: YoloObjects, label: int, values: Sequence[float], number: int
    ) -> None:
        """Adds the box around a polygon, or around an oriented box, unless it is dropped.

        Raises:
            Rejected: `refused_shape`: `other_shapes` rejects it.
        """
        if self.other_shapes == "reject":
            detail = f"line {number} is a polygon, and source.other_shapes is reject"
            raise Rejected("list", "refused_shape", detail)
        if self.other_shapes == "drop":
            found.dropped += 1
            return
        found.enclosed += 1
        outline, corners = None, None
        if self.task == "auto":
            outline = polygons_of([values], fractions=True)
        elif len(values) == 8:
            corners = values
        xs, ys = values[0::2], values[1::2]
        found.labels.append(label)
        found.sides.append((min(xs), min(ys), max(xs), max(ys)))
        found.outlines.append(outline)
        found.points.append(None)
        found.corners.append(corners)


def _begins_with_box(values: list[float], kpt_shape: tuple[int, ...], number: int) -> bool:
    """Tells whether the first four numbers of a line are a box.

    Otherwise, all of them are the points of a polygon.

    Raises:
        Rejected: the numbers fit neither.
    """
    count, further = len(values), values[4:]
    if count <= 5:  # a box, or one with a confidence
        return True
    found = f"line {number} has {count} numbers after its class"
    if kpt_shape:
        if count != (wanted := 4 + math.prod(kpt_shape)):
            raise bad_annotations(f"{found}, not {wanted} by source.kpt_shape")
        return True
    flagged = count >= 13 and len(further) % 3 == 0 and _FLAGS.issuperset(further[2::3])
    if flagged:  # three key points or more, each with a flag
        return True
    in_image = all(-1 < value < 2 for value in values)
    if count % 2 == 0 and in_image:
        return False
    if count % 2 and (not in_image or all(value.is_integer() for value in further)):  # attributes
        return True
    neither = "which are neither a box nor the points of a polygon"
    raise bad_annotations(
        f"{found}, {neither}: if the first four are a box, set source.lines=boxes"
    )


def _read_points(values: Sequence[float], numbers: int) -> list[float]:
    """Returns x, y and visibility of each key point.

    Without flags, points with a negative coordinate are not labeled, as in Ultralytics' loader, and
    all others are visible.

    Args:
        values: the key points of one object.
        numbers: how many numbers a point has: 3 with a flag, otherwise 2.
    """
    if numbers == 3:
        return [*values]
    points: list[float] = []
    for x, y in zip(values[0::2], values[1::2], strict=True):
        visibility = 0 if x < 0 or y < 0 else 2
        points += (x, y, visibility)
    return points
