"""Decoding other people's images without risk to this process: in a child that may die of one.

Image libraries have crashed on crafted files before. What the child answers is plain JSON.
"""

from dataclasses import dataclass

import orjson

from recordmill.reading.verify.child_process import ChildDiedError, ChildProcess, answer, questions
from recordmill.schemas.rejection import Rejected


@dataclass(frozen=True, slots=True)
class Decoded:
    """The result of decoding an image.

    Attributes:
        height: in pixels; 0 where it could not be decoded.
        width: in pixels; 0 where it could not be decoded.
        problem: why it could not be decoded; else the empty string.
    """

    height: int
    width: int
    problem: str = ""


class ImageDecoder(ChildProcess):
    """Decodes images one at a time in a child process; use it in one thread, in a `with` block."""

    def __init__(self, max_pixels: int) -> None:
        """Does not start the child yet.

        Args:
            max_pixels: larger images are not decoded; their result says so.
        """
        super().__init__(f"{__name__}:serve({max_pixels})")

    def decode(self, image: bytes) -> Decoded:
        """Decodes one image; the bytes may be anything."""
        try:
            return Decoded(*orjson.loads(next(self.ask(image))))
        except ChildDiedError as died:
            return Decoded(0, 0, f"decoding it ended the decoder's process (exit code {died})")


def serve(max_pixels: int) -> None:
    """The child."""
    from recordmill.imaging import ImageSettings, prepare_image  # not needed where images are only sent

    settings = ImageSettings(reencode="never", max_bytes=2**31, max_pixels=max_pixels)
    for image in questions():
        try:
            prepared = prepare_image(image, settings)
            found = (prepared.height, prepared.width, "")
        except Rejected as bad:
            found = (0, 0, f"the image cannot be decoded: {bad}"[:1000])
        answer(orjson.dumps(found))
