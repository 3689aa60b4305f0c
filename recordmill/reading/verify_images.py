"""Checks the images of records: whether they can be decoded as their records say, and whether they have metadata."""

import hashlib
import re
from collections.abc import Iterator

from recordmill.imaging import ImageSettings, find_missing_decoder, prepare_image
from recordmill.imaging.acceptance import sniff, sniff_other
from recordmill.imaging.strip_metadata import UnstrippableError, find_metadata
from recordmill.reading.example import UNMISTAKABLE, Expectations, ParsedExample, find_image
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.images import FORMATS, OPTIONAL_FORMATS, STRIPPABLE

_SIZES = (("image/height", "image/width"), ("height", "width"), ("image_height", "image_width"))
_DIGEST = "image/key/sha256"
_HEX = re.compile(rb"[0-9a-f]{64}")

Problem = tuple[str, str]
"""The kind of a finding, and its text."""


class ImageChecks:
    """Checks the images of one file, record by record.

    Attributes:
        images: the number of images in which metadata was looked for.
    """

    def __init__(self, expected: Expectations, decode: bool, no_metadata: bool) -> None:
        """Decodes images, and looks for metadata, as requested."""
        self._expected, self._decode, self._no_metadata = expected, decode, no_metadata
        formats = tuple(name for name in (*FORMATS, *OPTIONAL_FORMATS) if not find_missing_decoder([name]))
        self._settings = ImageSettings(
            formats=formats, reencode="never", max_bytes=2**31, max_pixels=expected.max_pixels
        )
        self.images = 0

    def check(self, example: ParsedExample) -> Iterator[Problem]:
        """Yields each problem with a record's images."""
        if self._decode:
            yield from self._check_pixels(example)
        if self._no_metadata:
            yield from self._check_metadata(example)

    def _check_pixels(self, example: ParsedExample) -> Iterator[Problem]:
        key, image = find_image(example, self._expected)
        if not key:
            return
        digest = example.values(_DIGEST) or ()
        is_digest = len(digest) == 1 and isinstance(digest[0], bytes) and _HEX.fullmatch(digest[0])
        if is_digest and hashlib.sha256(image).hexdigest().encode() != digest[0]:
            yield "sha256", f"the image's sha256 differs from {_DIGEST}"
            return
        try:
            prepared = prepare_image(image, self._settings)
        except Rejected as bad:
            yield "pixels", f"the image cannot be decoded: {bad}"[:1000]
            return
        height, width = prepared.height, prepared.width
        for height_key, width_key in _SIZES:
            sides = [*(example.values(height_key) or ()), *(example.values(width_key) or ())]
            if len(sides) == 2 and sides != [height, width]:
                yield "pixels", f"the image has {width} x {height} pixels and the record says {sides[1]} x {sides[0]}"
                return

    def _check_metadata(self, example: ParsedExample) -> Iterator[Problem]:
        """Looks in the declared image features, and in all others whose values begin like an image."""
        declared = self._expected.image_keys if self._expected.images_are_declared else ()
        for key, kind, values in example.items():
            for data in values if kind == "bytes" else ():
                file_format = sniff(data) or sniff_other(data)
                if file_format in UNMISTAKABLE or (key in declared and data):
                    self.images += 1
                    if problem := _find_metadata(data, file_format):
                        yield "metadata", f"the image in {key} {problem}"


def _find_metadata(data: bytes, file_format: str | None) -> str:
    if file_format not in STRIPPABLE:
        return f"is {file_format or 'of an unknown format'}: metadata in this format cannot be ruled out"
    try:
        found = find_metadata(data, file_format)
    except UnstrippableError as error:
        return f"cannot be read to its end: {error}"
    return f"has metadata: {', '.join(found)}" if found else ""
