"""Checks that the images in records have no metadata: Exif, positions, XMP, comments, data after their end."""

from collections.abc import Iterator

from recordmill.imaging.sniff import sniff, sniff_other
from recordmill.imaging.strip_metadata import UnstrippableError, find_metadata
from recordmill.reading.example import ParsedExample
from recordmill.reading.expectations import Expectations
from recordmill.reading.verify.finding import Finding
from recordmill.reading.verify.verify_pixels import UNMISTAKABLE
from recordmill.schemas.settings.images import STRIPPABLE


class MetadataCheck:
    """Looks for metadata in all features that hold encoded images.

    Attributes:
        images: number of images that were read, by any thread.
    """

    def __init__(self, expected: Expectations) -> None:
        """Looks into the image features of a dataset, and into all others whose values begin like an image."""
        self._keys = expected.image_keys if expected.images_are_stated else ()
        self._raw = not expected.image_keys
        self.images = 0

    def __call__(self, example: ParsedExample) -> Iterator[tuple[str, str]]:
        """Yields the kind and the text of each problem with a record's images."""
        for key, kind, values in example.items():
            for data in values if kind == "bytes" else ():
                file_format = sniff(data) or sniff_other(data)
                if file_format in UNMISTAKABLE or (key in self._keys and data):
                    self.images += 1
                    if problem := _find_problem(data, file_format):
                        yield "metadata", f"the image in {key} {problem}"

    def conclude(self) -> Iterator[Finding]:
        """Yields a finding if nothing was proved, since no record has an image."""
        if not self.images and not self._raw:
            yield Finding("metadata", "no record has an encoded image, so metadata cannot be ruled out")


def _find_problem(data: bytes, file_format: str | None) -> str:
    if file_format not in STRIPPABLE:
        return f"is {file_format or 'of an unknown format'}: metadata in this format cannot be ruled out"
    try:
        found = find_metadata(data, file_format)
    except UnstrippableError as error:
        return f"cannot be read to its end: {error}"
    return f"has metadata: {', '.join(found)}" if found else ""
