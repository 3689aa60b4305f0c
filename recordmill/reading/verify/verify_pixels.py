"""Checks that the image in a record can be decoded, and matches its record."""

import hashlib
import re

from recordmill.imaging.sniff import sniff
from recordmill.reading.example import ParsedExample
from recordmill.reading.expectations import Expectations
from recordmill.reading.verify.decode_images import ImageDecoder

_SIZES = (("image/height", "image/width"), ("height", "width"), ("image_height", "image_width"))
_DIGEST = "image/key/sha256"
_HEX = re.compile(rb"[0-9a-f]{64}")
_UNMISTAKABLE = frozenset({"JPEG", "PNG", "GIF", "WEBP", "TIFF"})


def find_image(example: ParsedExample, expected: Expectations) -> tuple[str, bytes]:
    """The key and the bytes of a record's encoded image; ("", b"") if it has none.

    A feature that is known only by a usual name must begin like an image: raw pixels have such names too.
    """
    for key in expected.image_keys:
        values = example.values(key) or ()
        if len(values) == 1 and isinstance(values[0], bytes):
            image = values[0]
            if expected.images_are_stated or sniff(image) in _UNMISTAKABLE:
                return key, image
    return "", b""


def check_pixels(expected: Expectations, decoder: ImageDecoder, example: ParsedExample) -> tuple[str, str]:
    """The kind and the text of the problem with a record's image; two empty strings if there is none."""
    key, image = find_image(example, expected)
    if not key:
        return "", ""
    stated = example.values(_DIGEST) or ()
    is_digest = len(stated) == 1 and isinstance(stated[0], bytes) and _HEX.fullmatch(stated[0])
    if is_digest and hashlib.sha256(image).hexdigest().encode() != stated[0]:
        return "sha256", f"the image's sha256 differs from {_DIGEST}"
    decoded = decoder.decode(image)
    if decoded.problem:
        return "pixels", decoded.problem
    for height_key, width_key in _SIZES:
        said = [*(example.values(height_key) or ()), *(example.values(width_key) or ())]
        if len(said) == 2 and said != [decoded.height, decoded.width]:
            there = f"{decoded.width} x {decoded.height} pixels"
            return "pixels", f"the image has {there} and the record says {said[1]} x {said[0]}"
    return "", ""
