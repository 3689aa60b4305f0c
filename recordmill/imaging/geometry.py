"""Maps points of the source image to the stored image, through rotation, crop and resize."""

from dataclasses import dataclass
from typing import Literal

from recordmill.imaging.exif import is_turned_sideways
from recordmill.imaging.jpeg_header import read_jpeg_header
from recordmill.imaging.limits import accepted_format
from recordmill.imaging.pillow_decode import load_image, open_image
from recordmill.imaging.prepared_image import PreparedImage
from recordmill.imaging.resize import Size, centred_box, padded_box
from recordmill.schemas.settings.images import ImageSettings, Resize

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""

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
        return (height, width) if is_turned_sideways(self.orientation) else (width, height)

    @property
    def area_scale(self) -> float:
        """The number of pixels of the stored image per pixel of the source."""
        source, stored = (width * height for width, height in (self.source_size, self.stored_size))
        if self.resize is None or self.resize.exact is None:
            return stored / source
        left, top, right, bottom = self._shown()
        shown = (right - left) * (bottom - top)
        return stored / shown if self.resize.fit == "crop" else shown / source

    def place(self, box: Box, drawn_on: Literal["displayed", "stored"]) -> Box:
        """Maps a box to the stored image; parts outside it were cropped away.

        Args:
            box: in fractions of the source.
            drawn_on: the orientation in which the box was drawn.

        Returns:
            The box in fractions of the stored image.
        """
        if self.turned and drawn_on == "stored":
            box = turn_box(box, self.orientation)
        elif not self.turned and drawn_on == "displayed":
            box = turn_box(box, _INVERSE.get(self.orientation, self.orientation))
        if self.resize is None or self.resize.exact is None:
            return box
        left, top, right, bottom = self._shown()
        is_cropped = self.resize.fit == "crop"
        size = self.displayed_size if is_cropped else self.stored_size
        return tuple(  # type: ignore[return-value]
            (side * whole - start) / (end - start) if is_cropped else (start + side * (end - start)) / whole
            for side, whole, start, end in zip(box, size * 2, (left, top) * 2, (right, bottom) * 2, strict=True)
        )

    def _shown(self) -> Box:
        """The part of the source that is shown (`crop`), or the part of the target that shows it (`pad`), in pixels."""
        if self.resize is not None and self.resize.fit == "crop":
            return centred_box(self.displayed_size, self.stored_size)
        return padded_box(self.displayed_size, self.stored_size)


def read_geometry(data: bytes, image: PreparedImage, settings: ImageSettings) -> Geometry:
    """The geometry of a prepared image.

    A JPEG's header is read again; any other file is loaded again, since its metadata may follow the pixels.

    Args:
        data: the source's bytes.
        image: the image made from them.
        settings: the settings it was prepared with.
    """
    file_format = accepted_format(data, settings)
    if file_format == "JPEG":
        header = read_jpeg_header(data)
        size, orientation = (header.width, header.height), header.orientation
    else:
        loaded = load_image(open_image(data, file_format), file_format)
        size, orientation = loaded.image.size, loaded.orientation
    resize = settings.resize if "resized" in image.changes else None
    return Geometry(size, orientation, "rotated" in image.changes, resize, (image.width, image.height))


def turn_box(box: Box, orientation: int) -> Box:
    """A box in fractions of the image after rotation by `orientation`."""
    left, top, right, bottom = box
    return {
        2: (1 - right, top, 1 - left, bottom),
        3: (1 - right, 1 - bottom, 1 - left, 1 - top),
        4: (left, 1 - bottom, right, 1 - top),
        5: (top, left, bottom, right),
        6: (1 - bottom, left, 1 - top, right),
        7: (1 - bottom, 1 - right, 1 - top, 1 - left),
        8: (top, 1 - right, bottom, 1 - left),
    }.get(orientation, box)
