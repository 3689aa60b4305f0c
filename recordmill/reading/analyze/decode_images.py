"""Decodes untrusted images in a child process, so that a crash does not end this one.

Image libraries have crashed on crafted files before. The child imports neither Beam nor TensorFlow, starts in a
fraction of a second, and is replaced if an image crashes it.
"""

import struct
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from recordmill.imaging import ImageSettings
from recordmill.imaging.prepare import prepare_image
from recordmill.schemas.rejection import Rejected

_LENGTH = struct.Struct("<Q")
_ANSWER = struct.Struct("<iiH")  # height, width, length of the text that follows
_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Decoded:
    """The result of decoding an image.

    Attributes:
        height: in pixels; 0 if it could not be decoded.
        width: in pixels; 0 if it could not be decoded.
        problem: why it could not be decoded; otherwise the empty string.
    """

    height: int
    width: int
    problem: str = ""


class ImageDecoder:
    """Decodes images one at a time in a child process; use it in one thread, in a `with` block."""

    def __init__(self, max_pixels: int) -> None:
        """Does not start the child yet.

        Args:
            max_pixels: larger images are not decoded; their result says so.
        """
        self._max_pixels = max_pixels
        self._child: subprocess.Popen[bytes] | None = None

    def decode(self, image: bytes) -> Decoded:
        """Decodes one image; the bytes may be anything."""
        if self._child is None:
            self._child = _start(self._max_pixels)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        try:
            self._child.stdin.write(_LENGTH.pack(len(image)) + image)
            self._child.stdin.flush()
        except BrokenPipeError:
            return self._bury()
        answer = self._child.stdout.read(_ANSWER.size)
        if len(answer) < _ANSWER.size:
            return self._bury()
        height, width, size = _ANSWER.unpack(answer)
        return Decoded(height, width, self._child.stdout.read(size).decode())

    def _bury(self) -> Decoded:
        assert self._child is not None
        code = self._child.wait()
        self.close()
        return Decoded(0, 0, f"decoding it ended the decoder's process (exit code {code})")

    def close(self) -> None:
        """Ends the child."""
        child, self._child = self._child, None
        if child is not None:
            assert child.stdin is not None
            assert child.stdout is not None
            with suppress(BrokenPipeError):  # it may have ended
                child.stdin.close()  # which ends it
            child.stdout.close()
            child.wait()

    def __enter__(self) -> "ImageDecoder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _start(max_pixels: int) -> subprocess.Popen[bytes]:
    program = (
        f"import sys; sys.path.insert(0, {str(_ROOT)!r}); "
        f"from recordmill.reading.analyze.decode_images import serve; serve({max_pixels})"
    )
    return subprocess.Popen([sys.executable, "-P", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def serve(max_pixels: int) -> None:
    """Runs in the child: answers each image on standard input until it is closed."""
    settings = ImageSettings(reencode="never", max_bytes=2**31, max_pixels=max_pixels)
    images, answers = sys.stdin.buffer, sys.stdout.buffer
    while len(length := images.read(_LENGTH.size)) == _LENGTH.size:
        _answer(images.read(_LENGTH.unpack(length)[0]), settings, answers)


def _answer(image: bytes, settings: ImageSettings, answers: BinaryIO) -> None:
    try:
        prepared = prepare_image(image, settings)
        height, width, problem = prepared.height, prepared.width, b""
    except Rejected as bad:
        height, width, problem = 0, 0, f"the image cannot be decoded: {bad}".encode()[:1000]
    answers.write(_ANSWER.pack(height, width, len(problem)) + problem)
    answers.flush()
