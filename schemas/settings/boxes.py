"""How boxes are taken."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSettings:
    """How boxes are taken: the YAML keys under `boxes:`.

    Attributes:
        drawn_on: which way up the image was when boxes were drawn on it: `displayed`, as its EXIF orientation asks for,
            or `stored`, as its bytes have it. Where the annotations state the image's size, that decides if it can.
        invalid: what becomes of boxes that stick out of the image, are empty or of no known class. `clip` cuts off what
            sticks out and drops the others, `drop` drops them all, `reject` rejects the image. All are counted.
    """

    drawn_on: Literal["displayed", "stored"] = "displayed"
    invalid: Literal["clip", "drop", "reject"] = "clip"
