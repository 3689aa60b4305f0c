"""Reads the mask files of an image: their pixels say which of its objects they belong to."""

import hashlib
from typing import TYPE_CHECKING

from recordmill.annotations.annotation import AnnotatedImage, ReadFile
from recordmill.imaging.masks.mask_file import DecodedMask, MaskValues, decode_mask
from recordmill.imaging.masks.outline import FileIds, OutlineError
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

    def draw(self, outline: FileIds, frame: "Frame") -> "Mask":
        """Draws the pixels of a file that belong to an object, on the stored image.

        Args:
            outline: the file and the object's values in it.
            frame: the orientation of the image on which its boxes were drawn; it counts if the
                file's own orientation and size leave both possible.

        Raises:
            OutlineError: the file is missing, cannot be decoded, or has another size than the
                image.
            Rejected: stage `read`: it was there when it was listed, and cannot be read now, as for
                images.
        """
        values, frame = self.find_values(outline.file.key, frame)
        return place_values(select_ids(values, outline.ids), self._on.geometry, frame)

    def find_values(self, key: str, frame: "Frame") -> tuple[MaskValues, "Frame"]:
        """Returns the values of a file's pixels, and the orientation of the image that they have.

        Args:
            key: the file's key.
            frame: as for `draw`.

        Raises:
            OutlineError, Rejected: as for `draw`.
        """
        if key not in self._decoded:
            self._decoded[key] = self._read(key)
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

    def _read(self, key: str) -> DecodedMask | OutlineError:
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
                return OutlineError("no_mask_file", rejected.detail)
            if rejected.reason in TRANSIENT:
                raise Rejected("read", rejected.reason, f"{key}: {rejected.detail}") from None
            return OutlineError("bad_mask", rejected.detail)
        self.read.append(ReadFile(key, len(data), hashlib.sha256(data).hexdigest()))
        width, height = self._on.geometry.source_size
        longer = max(width, height)
        try:
            return decode_mask(data, (longer, longer), width * height)
        except OutlineError as error:
            return error
