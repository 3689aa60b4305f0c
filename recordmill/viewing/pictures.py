"""Pictures for the page: small ones, decoded at reduced scale, and large ones.

They are shown as readers of the records decode them: a rotation in the metadata is not applied.
"""

import io
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
import simplejpeg
from PIL import Image

from recordmill.imaging.acceptance import sniff
from recordmill.imaging.depth import is_deep
from recordmill.imaging.pillow_decode import decode_first_frame, open_image
from recordmill.schemas.rejection import Rejected

SIDE = 256
"""The longer side of a small picture, in pixels."""

LARGE_SIDE = 2048
"""The longer side of a picture that a browser cannot show as it is stored."""

MOST_CACHED_BYTES = 48 * 2**20
"""The most bytes of small pictures that are kept."""

SHOWN_BY_BROWSERS = {
    "JPEG": "image/jpeg",
    "PNG": "image/png",
    "GIF": "image/gif",
    "WEBP": "image/webp",
    "BMP": "image/bmp",
}
"""The media types of formats that every browser shows."""


_DECODING = threading.BoundedSemaphore(2)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as it is sent.

    Attributes:
        media_type: its media type.
        data: its bytes.
    """

    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class StoredImage:
    """An image as it is stored.

    Attributes:
        data: an encoded image, or raw pixels.
        width: in pixels, if it is known; raw pixels have no other description.
        height: in pixels, if it is known.
        most_pixels: larger images are not decoded.
    """

    data: bytes
    width: int
    height: int
    most_pixels: int

    def _channels(self) -> int | None:
        """Returns the number of channels of raw pixels; None if these are not raw pixels."""
        pixels = self.width * self.height
        if min(self.width, self.height) < 1 or len(self.data) % pixels:
            return None
        channels = len(self.data) // pixels
        if sniff(self.data) is None and channels in (1, 3):
            return channels
        return None

    def _check(self, width: int, height: int) -> None:
        if width * height > self.most_pixels:
            detail = f"{width} x {height} is over the limit of {self.most_pixels:,} pixels"
            raise Rejected("decode", "too_many_pixels", detail)

    def decode(self, side: int) -> Image.Image:
        """Decodes it, at a scale at which its longer side has about `side` pixels or more.

        Two images are decoded at once, however many are asked for: each may take hundreds of
        megabytes.

        Returns:
            An RGB image.

        Raises:
            Rejected: it cannot be decoded, or is too large.
        """
        with _DECODING:
            return self._decode(side)

    def _decode(self, side: int) -> Image.Image:
        kind, channels = sniff(self.data), self._channels()
        if channels is not None:
            self._check(self.width, self.height)
            shape = (self.height, self.width, channels)
            pixels = np.frombuffer(self.data, np.uint8).reshape(shape)
            return Image.fromarray(pixels.squeeze(2) if channels == 1 else pixels).convert("RGB")
        if kind is None:
            raise Rejected("decode", "unknown_format", "it is not an encoded image")
        opened = open_image(self.data, kind)
        self._check(*opened.size)
        if kind == "JPEG":
            scale = side / max(opened.size)
            width, height = (max(math.ceil(each * scale), 1) for each in opened.size)
            try:
                pixels = simplejpeg.decode_jpeg(
                    self.data, fastdct=True, min_height=height, min_width=width, min_factor=1
                )
                return Image.fromarray(pixels)
            except ValueError:  # Pillow reads more JPEGs
                pass
        return _as_rgb(decode_first_frame(opened, kind).image)


def _as_rgb(image: Image.Image) -> Image.Image:
    if is_deep(image.mode):
        values = np.asarray(image, np.float64)
        least, most = values.min(), values.max()
        scaled = (values - least) * (255 / max(most - least, 1))
        return Image.fromarray(scaled.astype(np.uint8)).convert("RGB")
    return image.convert("RGB")


def make_small(stored: StoredImage, side: int = SIDE) -> Picture:
    """Makes a JPEG whose longer side has at most `side` pixels.

    Raises:
        Rejected: the image cannot be decoded, or is too large.
    """
    image = stored.decode(side)
    image.thumbnail((side, side))
    return Picture("image/jpeg", encode_jpeg(image, 82))


def make_large(stored: StoredImage) -> Picture:
    """Returns an image as it is stored, if browsers can show it; otherwise a PNG of it.

    Raises:
        Rejected: it cannot be decoded, or is too large.
    """
    media_type = SHOWN_BY_BROWSERS.get(sniff(stored.data) or "")
    if media_type is not None:
        stored.decode(SIDE)  # what a browser gets has been decoded within the limits
        return Picture(media_type, stored.data)
    image = stored.decode(LARGE_SIDE)
    image.thumbnail((LARGE_SIDE, LARGE_SIDE))
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return Picture("image/png", stream.getvalue())


def show_source(data: bytes, most_pixels: int) -> Picture:
    """Returns a source as browsers show it, even if it is damaged; otherwise a PNG of it.

    Raises:
        Rejected: browsers cannot show it, and it cannot be decoded, or is too large.
    """
    media_type = SHOWN_BY_BROWSERS.get(sniff(data) or "")
    if media_type is not None:
        return Picture(media_type, data)
    return make_large(StoredImage(data, -1, -1, most_pixels))


def encode_jpeg(image: Image.Image, quality: int) -> bytes:
    """Encodes an RGB image."""
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=quality)
    return stream.getvalue()


def draw_icon() -> Picture:
    """Returns the icon of the page: a small grid."""
    icon = Image.new("RGB", (32, 32), "#0b57a4")
    for place in range(9):
        left, top = 3 + 9 * (place % 3), 3 + 9 * (place // 3)
        icon.paste((255, 255, 255), (left, top, left + 8, top + 8))
    stream = io.BytesIO()
    icon.save(stream, "PNG")
    return Picture("image/png", stream.getvalue())


class PictureCache:
    """Keeps the pictures that were used last, up to a number of bytes, for all threads."""

    def __init__(self, most_bytes: int = MOST_CACHED_BYTES) -> None:
        """Keeps nothing yet; `most_bytes` is the most that it will keep."""
        self._most, self._bytes = most_bytes, 0
        self._pictures: OrderedDict[Hashable, Picture] = OrderedDict()
        self._changing = threading.Lock()

    def find(self, key: Hashable, make: Callable[[], Picture]) -> Picture:
        """Returns the picture with a key, which `make` makes if it is not kept."""
        with self._changing:
            if key in self._pictures:
                self._pictures.move_to_end(key)
                return self._pictures[key]
        picture = make()
        with self._changing:
            if key not in self._pictures:
                self._pictures[key] = picture
                self._bytes += len(picture.data)
            while self._bytes > self._most and self._pictures:
                _, dropped = self._pictures.popitem(last=False)
                self._bytes -= len(dropped.data)
        return picture
