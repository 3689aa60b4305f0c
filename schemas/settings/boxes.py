"""The settings under `boxes:`."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSettings:
    """How boxes are read: the YAML keys under `boxes:`.

    Attributes:
        drawn_on: the orientation of the image when boxes were drawn on it: `displayed`, as its EXIF orientation says,
            or `stored`, as its bytes are. If the annotations contain the image's size, that decides where it can.
        invalid: what happens to boxes that extend beyond the image, are empty or have an unknown class. `clip` clips
            the first and drops the others, `drop` drops them all, `reject` rejects the image. All are counted.
    """

    drawn_on: Literal["displayed", "stored"] = "displayed"
    invalid: Literal["clip", "drop", "reject"] = "clip"
