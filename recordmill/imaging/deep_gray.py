"""Gray images of 16 bits that are kept as they are: turned, resized and encoded as PNG."""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from recordmill.imaging.color import Color, judge_profile
from recordmill.imaging.geometry import (
    Size,
    centered_box,
    padded_box,
    resample,
    turn_values,
)
from recordmill.imaging.pixels import Raster
from recordmill.schemas.settings.images import Resize

DeepGray = NDArray[np.uint16]
"""Values 0 to 65,535, of shape (height, width)."""

_FULL = 65_535 // 255
"""What a value of 8 bits is multiplied by to fill 16."""

_LUMA = (0.299, 0.587, 0.114)


def read_deep_gray(image: Image.Image) -> DeepGray | None:
    """Returns the values of a gray image of 16 bits; None for any other image.

    32-bit integers and floats have no agreed range, and a transparent gray value would need another
    channel: these are other images.
    """
    is_scaled = image.mode == "I" and image.format in ("PNG", "PPM")
    if not (image.mode.startswith("I;16") or is_scaled) or "transparency" in image.info:
        return None
    return np.clip(np.asarray(image), 0, 65_535).astype(np.uint16)


def ignores_profile(icc_profile: bytes | None) -> bool:
    """Returns whether a profile would change the values, which it does not: they are kept."""
    verdict, _ = judge_profile(icc_profile, "L")
    return verdict != "harmless"


def place_deep_gray(
    values: DeepGray, orientation: int, target: Size, resize: Resize | None, background: Color
) -> DeepGray:
    """Turns and resizes values as `resize_image` does the pixels of 8 bits.

    Args:
        values: as stored in the file.
        orientation: 1 to 8, to be applied.
        target: width and height of the stored image.
        resize: the setting.
        background: its gray is around padded images.
    """
    turned = np.ascontiguousarray(turn_values(values, orientation))
    height, width = turned.shape
    if resize is None or (width, height) == target:
        return turned
    whole = Image.fromarray(turned.astype(np.float32))
    if resize.exact is None:
        return _round(resample(whole, target))
    if resize.fit == "crop":
        return _round(resample(whole, target, centered_box(whole.size, target)))
    left, top, right, bottom = padded_box(whole.size, target)
    gray = round(float(np.dot(_LUMA, background)))
    placed = np.full(target[::-1], gray * _FULL, np.uint16)
    placed[top:bottom, left:right] = _round(resample(whole, (right - left, bottom - top)))
    return placed


def _round(image: Image.Image) -> DeepGray:
    return np.clip(np.rint(np.asarray(image)), 0, 65_535).astype(np.uint16)


def encode_deep_gray(values: DeepGray) -> bytes:
    """Returns a PNG of 16 bits without metadata."""
    stream = io.BytesIO()
    Image.fromarray(values).save(stream, "PNG")
    return stream.getvalue()


def take_high_bytes(values: DeepGray) -> Raster:
    """Returns the values as readers of 8 bits see them."""
    return (values >> 8).astype(np.uint8)[:, :, np.newaxis]
