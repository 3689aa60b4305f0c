"""The forms in which sources describe the pixels of an object, and what may be wrong with them.

Coordinates are in pixels from the upper left corner of the image, where integers are corners of
pixels, or in fractions of its sides. A size is width and height.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from recordmill.imaging.geometry import Size

OutlineFault = Literal[
    "bad_polygon",
    "bad_rle",
    "bad_mask",
    "mask_size",
    "unknown_mask_value",
    "no_mask_file",
    "other_object",
    "no_mask",
]
"""Why an outline cannot be used.

`bad_polygon`: fewer than three points, half a point, a coordinate that is not a number, or a border
that is too long to follow. `bad_rle`: runs that are negative, or do not fill the mask exactly.
`bad_mask`: an image of a mask cannot be decoded. `mask_size`: the mask has another size than its
image. `unknown_mask_value`: a color or a number of a mask file is not in the table of its values.
`no_mask_file`: the file does not exist. `other_object`: the mask is in another place than the
object's box. `no_mask`: a file that numbers the objects of its image has no pixels of this one.
"""


class OutlineError(Exception):
    """An outline cannot be used.

    Attributes:
        reason: why, as a code.
        detail: one line for people; the same on every machine.
    """

    def __init__(self, reason: OutlineFault, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Polygons:
    """The parts of an object, which are united.

    A part that crosses itself is outside where it overlaps itself twice. Parts of fewer than three
    points cover nothing.

    Attributes:
        parts: x, y, x, y, ... of the corners of each part, which is closed.
        fractions: whether coordinates are in fractions of the image instead of pixels.
    """

    parts: tuple[tuple[float, ...], ...]
    fractions: bool = False


@dataclass(frozen=True, slots=True)
class Runs:
    """A mask of the whole image as lengths of runs, outside and inside the object in turn.

    The runs go down the columns, from left to right, and begin outside. They fill the mask.

    Attributes:
        size: width and height of the mask.
        counts: the number of pixels in each run.
    """

    size: Size
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bitmap:
    """A mask of a part of the image, as an encoded image whose pixels are 0 outside the object.

    Attributes:
        left: the first column of the part; it may be outside the image.
        top: the first row.
        data: the encoded image, in a format that `decode_mask` reads.
    """

    left: int
    top: int
    data: bytes


@dataclass(frozen=True, slots=True)
class MaskFile:
    """A file whose pixels say to which object or class they belong.

    Attributes:
        key: its name in the dataset, as images have one.
        uri: where to read it.
        size: its bytes when it was listed; -1 if that is unknown.
        version: its modification time, generation or ETag then; only compared for equality.
    """

    key: str
    uri: str
    size: int = -1
    version: str = ""


@dataclass(frozen=True, slots=True)
class FileIds:
    """The pixels of a mask file that have one of several values.

    Attributes:
        file: the mask file.
        ids: the values, as `decode_mask` returns them.
    """

    file: MaskFile
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NumberedObject:
    """The pixels of one object in a mask file that numbers the objects of its image from 1.

    Values are numbers, or the colors of Pascal VOC's palette that stand for them. 255 is void: such
    pixels belong to no object.

    Attributes:
        file: the mask file.
        number: the object's number.
        objects: how many objects the image has; a larger number makes the file faulty.
    """

    file: MaskFile
    number: int
    objects: int


@dataclass(frozen=True, slots=True)
class FaultyOutline:
    """An outline that its source describes in a way that cannot be used.

    Attributes:
        reason: why, as a code.
        detail: one line for people; the same on every machine.
    """

    reason: OutlineFault
    detail: str


@dataclass(frozen=True, slots=True)
class Joined:
    """Several shapes of one object, which are united."""

    shapes: tuple[Polygons | Runs | Bitmap, ...]


DrawableOutline = Polygons | Runs | Bitmap | Joined
"""An outline that can be drawn without reading a file."""

FileOutline = FileIds | NumberedObject
"""An outline whose pixels are in a mask file."""

Outline = DrawableOutline | FileOutline | FaultyOutline


def join_outlines(outlines: Sequence[Outline]) -> Outline:
    """Returns the outline of an object that several outlines make up together.

    If one of them cannot be used, so is the whole; the values of one mask file are united.

    Args:
        outlines: at least one.
    """
    faulty = next((each for each in outlines if isinstance(each, FaultyOutline)), None)
    if faulty or len(outlines) == 1:
        return faulty or outlines[0]
    polygons = [each for each in outlines if isinstance(each, Polygons)]
    if len(polygons) == len(outlines) and len({each.fractions for each in polygons}) == 1:
        parts = itertools.chain.from_iterable(each.parts for each in polygons)
        return Polygons(tuple(parts), polygons[0].fractions)
    of_ids = [each for each in outlines if isinstance(each, FileIds)]
    if len(of_ids) == len(outlines) and len({each.file for each in of_ids}) == 1:
        ids = itertools.chain.from_iterable(each.ids for each in of_ids)
        return FileIds(of_ids[0].file, tuple(dict.fromkeys(ids)))
    if any(isinstance(each, FileOutline) for each in outlines):
        return FaultyOutline("bad_mask", "it is in several files")
    shapes: list[Polygons | Runs | Bitmap] = []
    for each in outlines:
        if isinstance(each, Joined):
            shapes += each.shapes
        elif isinstance(each, Polygons | Runs | Bitmap):
            shapes.append(each)
    return Joined(tuple(shapes))
