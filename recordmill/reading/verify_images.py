"""Checks whether images can be decoded as their records say, and whether they have metadata."""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache

from recordmill.imaging import ImageSettings, find_missing_decoder, prepare_image
from recordmill.imaging.acceptance import accepted_format, sniff, sniff_other
from recordmill.imaging.pixels import PreparedImage
from recordmill.imaging.strip_metadata import UnstrippableError, find_metadata
from recordmill.reading.example import UNMISTAKABLE, Expectations, ParsedExample, find_image
from recordmill.schemas.dataset.side_files import SidecarRow
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.images import FORMATS, OPTIONAL_FORMATS, STRIPPABLE

_SIZES = (("image/height", "image/width"), ("height", "width"), ("image_height", "image_width"))
_DIGEST = "image/key/sha256"

Problem = tuple[str, str]
"""The kind of a finding, and its text."""


@cache
def _decoding(max_pixels: int) -> ImageSettings:
    formats = tuple(
        name for name in (*FORMATS, *OPTIONAL_FORMATS) if not find_missing_decoder([name])
    )
    return ImageSettings(formats=formats, reencode="never", max_bytes=2**31, max_pixels=max_pixels)


def check_pixels(
    example: ParsedExample, expected: Expectations, row: SidecarRow | None = None
) -> Problem | None:
    """Returns the first problem with a record's images: digest, content, size or row.

    Args:
        example: the record.
        expected: what its dataset says of all records.
        row: its row in the sidecar, if there is one.
    """
    key, image = find_image(example, expected)
    if not key:
        return None
    digest = example.values(_DIGEST) or ()
    is_digest = (
        len(digest) == 1
        and isinstance(digest[0], bytes)
        and re.fullmatch(rb"[0-9a-f]{64}", digest[0])
    )
    if is_digest and hashlib.sha256(image).hexdigest().encode() != digest[0]:
        return "sha256", f"the image's sha256 differs from {_DIGEST}"
    try:
        prepared = prepare_image(image, _decoding(expected.max_pixels))
    except Rejected as bad:
        return "pixels", f"the image cannot be decoded: {bad}"[:1000]
    height, width = prepared.height, prepared.width
    for height_key, width_key in _SIZES:
        sides = [*(example.values(height_key) or ()), *(example.values(width_key) or ())]
        if len(sides) == 2 and sides != [height, width]:
            return (
                "pixels",
                f"the image has {width} x {height} pixels and the record says {sides[1]} x "
                f"{sides[0]}",
            )
    if row is not None and (problem := _compare_with_row(image, prepared, row)):
        return "sidecar", problem
    return _check_second_images(example, expected)


def _check_second_images(example: ParsedExample, expected: Expectations) -> Problem | None:
    """Returns the first problem with the second images of pairs."""
    for key in expected.second_image_keys:
        for data in example.values(key) or ():
            try:
                prepare_image(data, _decoding(expected.max_pixels))
            except Rejected as bad:
                return "pixels", f"the second image in {key} cannot be decoded: {bad}"[:1000]
    return None


def _compare_with_row(image: bytes, prepared: PreparedImage, row: SidecarRow) -> str | None:
    """Returns the problem if a row describes another image."""
    sides = (row.height, row.width, row.channels)
    found = (prepared.height, prepared.width, prepared.channels)
    if row.height is not None and sides != found:
        return f"the image has the shape {list(found)}, and its row in the sidecar {list(sides)}"
    is_copy = row.height is not None and not row.changes
    if is_copy and hashlib.sha256(image).hexdigest() != row.sha256:
        return "the image was stored unchanged, and its row in the sidecar has another sha256"
    return None


_ENCODED = "image/encoded"  # a name for nothing but the bytes of an image file
_PAGE = re.compile(rb"\s*(?:<!doctype|<html|<head|<\?xml|\{)", re.IGNORECASE)
_MOST_HELD = 1_000

RecordPlace = tuple[int, int]
"""A record's number in its file, and the byte at which it begins."""


class ImageFeatures:
    """Finds values that are not images in features of images, in a file without metadata.

    A feature is one of images if its name is `image/encoded`, or if a tenth of the file's records
    have an image there. Raw pixels have other names, and they begin like an image by chance only.
    Under the other usual names, an empty value or a page of text is not an image.
    """

    def __init__(self, expected: Expectations) -> None:
        self._names = expected.image_keys
        self._records = 0
        self._images: Counter[str] = Counter()
        self._held: dict[str, list[tuple[RecordPlace, str, bool]]] = defaultdict(list)

    def add(self, example: ParsedExample, place: RecordPlace) -> None:
        """Looks at one record."""
        self._records += 1
        is_raw = [*(example.values("image/format") or ())] in ([b"raw"], [b"RAW"])
        for key, kind, values in example.items():
            if kind not in (None, "bytes") or len(values) > 1:
                continue
            data = values[0] if values else b""
            if sniff(data) in UNMISTAKABLE:
                self._images[key] += 1
            elif len(self._held[key]) < _MOST_HELD and (problem := _why_no_image(data)):
                is_sure = key == _ENCODED and not is_raw
                is_sure |= key in self._names and (not data or bool(_PAGE.match(data)))
                self._held[key].append((place, problem, is_sure))

    def find_problems(self) -> list[tuple[RecordPlace, str]]:
        """Finds values that are not images, with their places, in the file's order."""
        found = []
        for key, held in self._held.items():
            holds_images = 10 * self._images[key] >= self._records
            found += [
                (place, f"{key} holds no image: {problem}")
                for place, problem, is_sure in held
                if is_sure or (holds_images and self._images[key])
            ]
        return sorted(found)


def _why_no_image(data: bytes) -> str | None:
    """Returns why bytes are not an image file, or None if they begin like one."""
    try:
        accepted_format(data, _decoding(ImageSettings().max_pixels))
    except Rejected as bad:
        if bad.reason == "format_not_allowed":
            return None
        return str(bad)[:200]
    return None


def check_metadata(example: ParsedExample, expected: Expectations) -> Iterator[Problem | None]:
    """Yields a problem, or None, for each image.

    An image is a value that is declared as one, or that begins like one.
    """
    if expected.images_are_declared:
        declared = expected.image_keys
    else:
        declared = ()
    for key, kind, values in example.items():
        for data in values if kind == "bytes" else ():
            file_format = sniff(data) or sniff_other(data)
            if file_format in UNMISTAKABLE or (key in declared and data):
                if problem := _find_metadata(data, file_format):
                    yield "metadata", f"the image in {key} {problem}"
                else:
                    yield None


def _find_metadata(data: bytes, file_format: str | None) -> str | None:
    if file_format not in STRIPPABLE:
        return (
            f"is {file_format or 'of an unknown format'}: metadata in this format cannot be "
            "ruled out"
        )
    try:
        found = find_metadata(data, file_format)
    except UnstrippableError as error:
        return f"cannot be read to its end: {error}"
    if found:
        return f"has metadata: {', '.join(found)}"
    return None
