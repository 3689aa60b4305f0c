"""The lines of YOLO's text files: boxes, boxes with key points or further numbers, and polygons.

Each line is a class number and more numbers, all in parts of the image. How many there are says what they are, as in
Ultralytics' own loader (ultralytics/data/utils.py, `verify_image_label`), but line by line: one file may hold boxes and
polygons, as Roboflow exports them.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Literal

from recordmill.imaging.geometry import Box
from recordmill.schemas.rejection import Rejected

OtherShapes = Literal["enclose", "drop", "reject"]

_CLASS = re.compile(r"[0-9]{1,9}(\.0*)?")

_FLAGS = {0.0, 1.0, 2.0}  # of a key point: not there, hidden, seen


@dataclass(slots=True)
class YoloBoxes:
    """What one text file says.

    Attributes:
        boxes: xmin, ymin, xmax, ymax of each, in parts of the image.
        labels: the class number of each.
        enclosed: how many of them are boxes around polygons.
        dropped: polygons that were left out.
    """

    boxes: list[Box] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    enclosed: int = 0
    dropped: int = 0


def read_yolo_lines(
    text: str,
    other_shapes: OtherShapes = "enclose",
    key_points: tuple[int, int] | None = None,
    boxes_only: bool = False,
) -> YoloBoxes:
    """The boxes of one text file.

    Args:
        text: of the file.
        other_shapes: what to do with polygons.
        key_points: `kpt_shape` of data.yaml: how many key points each box has, and of how many numbers each.
        boxes_only: whether the first four numbers of each line are a box, whatever follows.

    Raises:
        Rejected: a line is neither.
    """
    found = YoloBoxes()
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        values = _numbers(words[1:])
        if len(values) < 4 or not _CLASS.fullmatch(words[0]):
            raise Rejected("list", "bad_annotations", f"line {number} is not a class number and four numbers or more")
        if boxes_only or _begins_with_box(values, key_points, number):
            x, y, width, height = values[:4]
            found.boxes.append((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
        elif other_shapes == "reject":
            raise Rejected("list", "refused_shape", f"line {number} is a polygon, and source.other_shapes is reject")
        elif other_shapes == "drop":
            found.dropped += 1
            continue
        else:
            found.boxes.append((min(values[0::2]), min(values[1::2]), max(values[0::2]), max(values[1::2])))
            found.enclosed += 1
        found.labels.append(int(words[0].partition(".")[0]))
    return found


def _numbers(words: list[str]) -> list[float]:
    try:
        return [float(word) for word in words]
    except ValueError:
        return []


def _begins_with_box(values: list[float], key_points: tuple[int, int] | None, number: int) -> bool:
    """Whether the first four numbers of a line are a box; else all of them are the points of a polygon.

    Raises:
        Rejected: the numbers fit neither.
    """
    count, further = len(values), values[4:]
    if count <= 5:  # a box, or one with a confidence
        return True
    if key_points:
        wanted = 4 + math.prod(key_points)
        if count != wanted:
            shape = list(key_points)
            raise Rejected(
                "list",
                "bad_annotations",
                f"line {number} has {count} numbers after its class, not {wanted} by kpt_shape: {shape}",
            )
        return True
    flagged = count >= 13 and len(further) % 3 == 0 and _FLAGS.issuperset(further[2::3])
    if flagged:  # three key points or more, each with a flag
        return True
    in_image = all(-1 < value < 2 for value in values)
    if count % 2 == 0 and in_image:
        return False
    if count % 2 and (not in_image or all(value.is_integer() for value in further)):  # attributes
        return True
    raise Rejected(
        "list",
        "bad_annotations",
        f"line {number} has {count} numbers after its class, which are neither a box nor the points of a polygon: "
        "if the first four are a box, set source.lines=boxes",
    )
