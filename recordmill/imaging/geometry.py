"""Resizes images, maps points of source images to stored ones, and computes difference hashes."""

from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from recordmill.imaging.acceptance import accepted_format
from recordmill.imaging.color import Color, lay_on
from recordmill.imaging.exif import is_turned_sideways
from recordmill.imaging.jpeg_header import read_jpeg_header
from recordmill.imaging.pillow_decode import decode_first_frame, open_image
from recordmill.imaging.pixels import PreparedImage, Raster, view_image
from recordmill.schemas.settings.images import ImageSettings, Resize

Size = tuple[int, int]  # width, height, in Pillow's order

PixelValue = TypeVar("PixelValue", bound=np.generic)

Coordinate = TypeVar("Coordinate", float, NDArray[np.float64])

# Pillow may first shrink by whole factors as long as this multiple of the final size remains, which
# is several times faster; from 3.0 on its documentation calls the result indistinguishable.
_REDUCING_GAP = 3.0


def target_size(size: Size, resize: Resize | None) -> Size:
    """Returns width and height after `resize` of an image of `size`, upright.

    Unchanged if it fits.
    """
    width, height = size
    if resize is None:
        return size
    if resize.exact is not None:
        return resize.exact[1], resize.exact[0]
    if resize.longest is None:
        limit, side = resize.shortest, min(size)
    else:
        limit, side = resize.longest, max(size)
    if limit is None or side <= limit:
        return size
    scale = limit / side
    return max(1, round(width * scale)), max(1, round(height * scale))


def jpeg_reduction(size: Size, target: Size) -> int:
    """Returns the fraction 1/n to decode a JPEG to, as n: 1, 2, 4 or 8.

    At least twice the target remains for a good filter.
    """
    spare = min(size[0] / target[0], size[1] / target[1]) / 2
    return next((reduction for reduction in (8, 4, 2) if spare >= reduction), 1)


def resize_image(
    image: Image.Image, target: Size, resize: Resize, background: Color
) -> Image.Image:
    """Resamples an L or RGB image to the target with a Lanczos filter.

    If the aspect ratios differ, `resize.fit` decides. Padding makes a gray image RGB if the
    background is colored.
    """
    if resize.exact is None:
        return resample(image, target)
    if resize.fit == "crop":
        return resample(image, target, centered_box(image.size, target))
    left, top, right, bottom = padded_box(image.size, target)
    return lay_on(background, target, resample(image, (right - left, bottom - top)), (left, top))


def resample(
    image: Image.Image, target: Size, box: tuple[float, float, float, float] | None = None
) -> Image.Image:
    """Returns a part of an image, given as left, top, right and bottom in pixels, of another size.

    Args:
        image: of mode L, RGB or F.
        target: width and height.
        box: the part; None for all of it.
    """
    return image.resize(target, Image.Resampling.LANCZOS, box, _REDUCING_GAP)


def centered_box(size: Size, target: Size) -> tuple[float, float, float, float]:
    """Returns the largest part of the image with the target's aspect ratio.

    The part is given as left, top, right and bottom in pixels.
    """
    width, height = size
    scale = min(width / target[0], height / target[1])
    box_width, box_height = min(width, target[0] * scale), min(height, target[1] * scale)
    left, top = (width - box_width) / 2, (height - box_height) / 2
    return left, top, min(width, left + box_width), min(height, top + box_height)


def padded_box(size: Size, target: Size) -> tuple[int, int, int, int]:
    """Returns the part of the target that shows an image of `size`, whole and centered.

    The part is given as left, top, right and bottom in pixels.
    """
    scale = min(target[0] / size[0], target[1] / size[1])
    width, height = (
        max(1, min(limit, round(side * scale))) for side, limit in zip(size, target, strict=True)
    )
    left, top = (target[0] - width) // 2, (target[1] - height) // 2
    return left, top, left + width, top + height


COLUMNS, ROWS = 9, 8


def hash_differences(raster: Raster) -> int:
    """Returns the hash of a decoded image, 0 to 2**64 - 1; the first bit is the highest.

    The hash of a single color is 0.
    """
    cells = view_image(raster).resize((COLUMNS, ROWS), Image.Resampling.BOX)
    gray = np.asarray(cells if cells.mode == "L" else cells.convert("RGB").convert("L"))
    return int.from_bytes(np.packbits(gray[:, :-1] < gray[:, 1:]).tobytes())


def hash_reduction(size: Size) -> int:
    """Returns the fraction 1/n to which a JPEG may be decoded for its hash, as n: 1, 2, 4 or 8.

    `size` is the width and height of the JPEG.
    """
    return jpeg_reduction(size, (4 * COLUMNS, 4 * ROWS))


Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""

Frame = Literal["displayed", "stored"]
"""The orientation in which an image was annotated: upright, or as its pixels are stored."""

_INVERSE = {6: 8, 8: 6}


@dataclass(frozen=True, slots=True)
class Geometry:
    """The geometric steps from a source to its stored image.

    Attributes:
        source_size: width and height in the source's bytes, before rotation.
        orientation: the orientation in the source's metadata, 1 to 8.
        turned: whether the stored image was rotated accordingly.
        resize: how it was resized; None if it was not.
        stored_size: width and height of the stored image.
    """

    source_size: Size
    orientation: int
    turned: bool
    resize: Resize | None
    stored_size: Size

    @property
    def displayed_size(self) -> Size:
        """Width and height of the source, upright."""
        width, height = self.source_size
        if is_turned_sideways(self.orientation):
            return height, width
        return width, height

    @property
    def area_scale(self) -> float:
        """The number of pixels of the stored image per pixel of the source."""
        left, top, right, bottom = self.place((0.0, 0.0, 1.0, 1.0), "displayed")
        source, stored = (width * height for width, height in (self.source_size, self.stored_size))
        return (right - left) * (bottom - top) * stored / source

    def frame_size(self, drawn_on: Frame) -> Size:
        """Returns width and height of the source in the orientation in which it was annotated."""
        if drawn_on == "displayed":
            return self.displayed_size
        return self.source_size

    def turn_from(self, drawn_on: Frame) -> int:
        """Returns the orientation to apply to what was drawn on the source, before any resizing."""
        if self.turned and drawn_on == "stored":
            return self.orientation
        if not self.turned and drawn_on == "displayed":
            return _INVERSE.get(self.orientation, self.orientation)
        return 1

    def find_shown(self) -> tuple[Box, tuple[int, int, int, int]]:
        """Returns the part of the turned source that is shown, and where the stored image shows it.

        Both are given as left, top, right and bottom in pixels.
        """
        size = self.frame_size("displayed" if self.turned else "stored")
        whole, stored = (0, 0, *size), (0, 0, *self.stored_size)
        if self.resize is None or self.resize.exact is None:
            return whole, stored
        if self.resize.fit == "crop":
            return centered_box(size, self.stored_size), stored
        return whole, padded_box(size, self.stored_size)

    def place(self, box: Box, drawn_on: Frame) -> Box:
        """Maps a box to the stored image; parts outside it were cropped away.

        Args:
            box: in fractions of the source.
            drawn_on: the orientation in which the box was drawn.

        Returns:
            The box in fractions of the stored image.
        """
        box = turn_box(box, self.turn_from(drawn_on))
        if self.resize is None or self.resize.exact is None:
            return box
        if self.resize.fit == "crop":
            return self._place_in_crop(box)
        return self._place_in_padding(box)

    def _place_in_crop(self, box: Box) -> Box:
        shown = centered_box(self.displayed_size, self.stored_size)
        edges = zip(box, self.displayed_size * 2, shown[:2] * 2, shown[2:] * 2, strict=True)
        return tuple(  # type: ignore[return-value]
            (side * whole - start) / (end - start) for side, whole, start, end in edges
        )

    def _place_in_padding(self, box: Box) -> Box:
        shown = padded_box(self.displayed_size, self.stored_size)
        edges = zip(box, self.stored_size * 2, shown[:2] * 2, shown[2:] * 2, strict=True)
        return tuple(  # type: ignore[return-value]
            (start + side * (end - start)) / whole for side, whole, start, end in edges
        )


def read_geometry(data: bytes, image: PreparedImage, settings: ImageSettings) -> Geometry:
    """Returns the geometry of a prepared image.

    A JPEG's header is read again. Any other file is loaded, unless it was for this image: its
    metadata may follow the pixels.

    Args:
        data: the source's bytes.
        image: the image made from them.
        settings: the settings it was prepared with.
    """
    file_format = accepted_format(data, settings)
    if file_format == "JPEG":
        header = read_jpeg_header(data)
        source = header.width, header.height, header.orientation
    else:
        source = (
            image.source or decode_first_frame(open_image(data, file_format), file_format).source
        )
    resize = settings.resize if "resized" in image.changes else None
    return Geometry(
        source[:2], source[2], "rotated" in image.changes, resize, (image.width, image.height)
    )


def turn_box(box: Box, orientation: int) -> Box:
    """Returns a box in fractions of the image after rotation by `orientation`."""
    left, top, right, bottom = box
    if orientation == 1:
        return min(left, right), min(top, bottom), max(left, right), max(top, bottom)
    (x, y), (other_x, other_y) = (
        turn_point(*corner, (1, 1), orientation) for corner in ((left, top), (right, bottom))
    )
    return min(x, other_x), min(y, other_y), max(x, other_x), max(y, other_y)


def turn_point(
    x: Coordinate, y: Coordinate, size: Size, orientation: int
) -> tuple[Coordinate, Coordinate]:
    """Returns where a point of an image is after rotation by `orientation`, 1 to 8.

    Args:
        x: its distance from the left side, or an array of those of several points.
        y: its distance from the upper side.
        size: width and height of the image in the unit of `x` and `y`: 1 for fractions.
        orientation: the orientation.
    """
    width, height = size
    match orientation:
        case 2:
            return width - x, y
        case 3:
            return width - x, height - y
        case 4:
            return x, height - y
        case 5:
            return y, x
        case 6:
            return height - y, x
        case 7:
            return height - y, width - x
        case 8:
            return y, width - x
        case _:
            return x, y


def turn_values(values: NDArray[PixelValue], orientation: int) -> NDArray[PixelValue]:
    """Returns an array of shape (height, width) after rotation by `orientation`, 1 to 8."""
    match orientation:
        case 2:
            return values[:, ::-1]
        case 3:
            return values[::-1, ::-1]
        case 4:
            return values[::-1]
        case 5:
            return values.T
        case 6:
            return values[::-1].T
        case 7:
            return values[::-1, ::-1].T
        case 8:
            return values[:, ::-1].T
        case _:
            return values
