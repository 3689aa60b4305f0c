"""Checks that the image in a record can be decoded, and matches its record.

Images are decoded in a child process that may crash: crafted files have crashed image libraries before. Its answers are
plain JSON.
"""

import hashlib
import re
from collections.abc import Callable
from functools import partial

import orjson

from recordmill.imaging import ImageSettings, find_missing_decoder, prepare_image
from recordmill.imaging.acceptance import sniff
from recordmill.reading.example import Expectations, ParsedExample
from recordmill.reading.verify.child_process import ChildDiedError, ChildProcesses, serve_answers
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.images import FORMATS, OPTIONAL_FORMATS

_SIZES = (("image/height", "image/width"), ("height", "width"), ("image_height", "image_width"))
_DIGEST = "image/key/sha256"
_HEX = re.compile(rb"[0-9a-f]{64}")
UNMISTAKABLE = frozenset({"JPEG", "PNG", "GIF", "WEBP", "TIFF"})
"""Formats that a value's first bytes identify beyond doubt."""


def find_image(example: ParsedExample, expected: Expectations) -> tuple[str, bytes]:
    """The key and the bytes of a record's encoded image; ("", b"") if it has none.

    If a feature is known only by its usual name, its value must begin like an image: raw pixels have the same names.
    """
    for key in expected.image_keys:
        values = example.values(key) or ()
        if len(values) == 1 and isinstance(values[0], bytes):
            image = values[0]
            if expected.images_are_stated or sniff(image) in UNMISTAKABLE:
                return key, image
    return "", b""


class ImageDecoders(ChildProcesses):
    """Processes that decode images, each started at its first use; use them in a `with` block."""

    def __init__(self, max_pixels: int, count: int) -> None:
        """Does not start them yet; images of more than `max_pixels` pixels are not decoded."""
        super().__init__(f"{__name__}:serve({max_pixels})", count)


def check_pixels(expected: Expectations, decoders: ImageDecoders, example: ParsedExample) -> tuple[str, str]:
    """The kind and the text of the problem with a record's image; two empty strings if there is none."""
    key, image = find_image(example, expected)
    if not key:
        return "", ""
    digest = example.values(_DIGEST) or ()
    is_digest = len(digest) == 1 and isinstance(digest[0], bytes) and _HEX.fullmatch(digest[0])
    if is_digest and hashlib.sha256(image).hexdigest().encode() != digest[0]:
        return "sha256", f"the image's sha256 differs from {_DIGEST}"
    try:
        with decoders.borrow() as decoder:
            height, width, problem = orjson.loads(next(decoder.ask(image)))
    except ChildDiedError as died:
        problem = f"decoding it ended the decoder's process (exit code {died})"
    if problem:
        return "pixels", problem
    for height_key, width_key in _SIZES:
        sides = [*(example.values(height_key) or ()), *(example.values(width_key) or ())]
        if len(sides) == 2 and sides != [height, width]:
            return "pixels", f"the image has {width} x {height} pixels and the record says {sides[1]} x {sides[0]}"
    return "", ""


def serve(max_pixels: int) -> None:
    """Runs in the child: answers each image with its height, its width, and the reason if it cannot be decoded."""
    formats = tuple(name for name in (*FORMATS, *OPTIONAL_FORMATS) if not find_missing_decoder([name]))
    settings = ImageSettings(formats=formats, reencode="never", max_bytes=2**31, max_pixels=max_pixels)
    serve_answers(partial(_decode, settings))


def _decode(settings: ImageSettings, image: bytes, answer: Callable[[bytes], None]) -> None:
    try:
        prepared = prepare_image(image, settings)
        answer(orjson.dumps((prepared.height, prepared.width, "")))
    except Rejected as bad:
        answer(orjson.dumps((0, 0, f"the image cannot be decoded: {bad}"[:1000])))
