"""Reads the mask files of an image: their pixels say which of its objects they belong to."""

import hashlib
from typing import TYPE_CHECKING

from recordmill.annotations.annotation import AnnotatedImage, ReadFile
from recordmill.imaging.masks.mask_file import DecodedMask, MaskValues, decode_mask
from recordmill.imaging.masks.mask_values import find_numbers, read_indices
from recordmill.imaging.masks.outline import (
    FileIds,
    FileOutline,
    NumberedObject,
    OutlineError,
)
from recordmill.imaging.masks.rasterize import find_frame, place_values, select_ids
from recordmill.schemas.rejection import TRANSIENT, Rejected

if TYPE_CHECKING:
    from recordmill.imaging.geometry import Frame
    from recordmill.imaging.masks.rasterize import Mask


class MaskFiles:
    """The mask files of one image; each is read and decoded once.

    Args:
        on: the image; its `files` have them by key.
    """

    def __init__(self, on: AnnotatedImage) -> None:
        self.read: list[ReadFile] = []
        self._on = on
        self._decoded: dict[str, DecodedMask | OutlineError] = {}
        self._numbers: dict[str, frozenset[int]] = {}

    def draw(self, outline: FileOutline, frame: "Frame") -> "Mask":
        """Draws the pixels of a file that belong to an object, on the stored image.

        Args:
            outline: the file, and the object's values or its number in it.
            frame: the orientation of the image on which its boxes were drawn; it counts if the
                file's own orientation and size leave both possible.

        Raises:
            OutlineError: the file is missing, cannot be decoded, has another size than the image,
                or numbers the objects wrongly or without this one.
            Rejected: stage `read`: it was there when it was listed, and cannot be read now, as for
                images.
        """
        if isinstance(outline, FileIds):
            values, frame = self.find_values(outline.file.key, frame)
            ids = outline.ids
        else:
            values, frame = self.find_values(outline.file.key, frame, has_palette=True)
            self._check_number(outline, values)
            ids = (outline.number,)
        return place_values(select_ids(values, ids), self._on.geometry, frame)

    def find_values(
        self, key: str, frame: "Frame", has_palette: bool = False
    ) -> tuple[MaskValues, "Frame"]:
        """Returns the values of a file's pixels, and the orientation of the image that they have.

        Args:
            key: the file's key.
            frame: as for `draw`.
            has_palette: whether the values are indices of Pascal VOC's palette, or its colors.

        Raises:
            OutlineError, Rejected: as for `draw`.
        """
        if key not in self._decoded:
            self._decoded[key] = self._read(key, has_palette)
        decoded = self._decoded[key]
        if isinstance(decoded, OutlineError):
            raise decoded
        height, width = decoded.values.shape
        frame = find_frame((width, height), self._on.geometry, frame)
        if decoded.is_turned:
            frame = "displayed"
        return decoded.values, frame

    def has_colors(self, key: str) -> bool:
        """Returns whether a file that was read has colors instead of ids."""
        decoded = self._decoded.get(key)
        return isinstance(decoded, DecodedMask) and decoded.has_colors

    def _check_number(self, outline: NumberedObject, values: MaskValues) -> None:
        """Checks that a file numbers the objects of its image, and has pixels of one of them.

        Raises:
            OutlineError: `no_mask`, or as for `find_numbers`.
        """
        key = outline.file.key
        if key not in self._numbers:
            self._numbers[key] = find_numbers(values, outline.objects)
        if outline.number not in self._numbers[key]:
            raise OutlineError("no_mask", f"the mask has no pixels of object {outline.number}")

    def _read(self, key: str, has_palette: bool) -> DecodedMask | OutlineError:
        """Reads a file; returns the error if that is its own fault.

        Raises:
            Rejected: as for `draw`.
        """
        file, read_file = self._on.files.get(key), self._on.read_file
        if file is None or read_file is None:
            return OutlineError("no_mask_file", "the image's reference does not name the file")
        try:
            data = read_file(file)
        except Rejected as rejected:
            if rejected.reason == "vanished" and file.size < 0:  # perhaps it was never there
                return OutlineError("no_mask_file", file.explain_missing(rejected.detail))
            if rejected.reason in TRANSIENT:
                raise Rejected("read", rejected.reason, f"{key}: {rejected.detail}") from None
            return OutlineError("bad_mask", rejected.detail)
        self.read.append(ReadFile(key, len(data), hashlib.sha256(data).hexdigest()))
        width, height = self._on.geometry.source_size
        longer = max(width, height)
        try:
            decoded = decode_mask(data, (longer, longer), width * height)
            if has_palette:
                return DecodedMask(read_indices(decoded), decoded.is_turned)
            return decoded
        except OutlineError as error:
            return error
