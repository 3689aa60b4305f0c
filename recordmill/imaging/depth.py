"""Reduces gray images of more than 8 bits to 8, without the saturation of Pillow's `convert`."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def is_deep(mode: str) -> bool:
    """Whether a Pillow mode has more than 8 bits per channel."""
    return mode in ("I", "F") or mode.startswith("I;")


def reduce_depth(image: Image.Image) -> Image.Image:
    """Converts an image of 16-bit, 32-bit or float values to L, or to LA if one gray value is declared transparent.

    16-bit values keep their high byte, as in TensorFlow and libpng. 32-bit integers and floats have no agreed range: if
    all values are within 0..255 they are rounded, if within 0..65535 treated as 16 bits; otherwise the smallest
    value becomes black and the largest white. Floats within 0..1 are multiplied by 255 first. NaN and minus infinity
    become the smallest finite value, infinity the largest.
    """
    values = np.asarray(image)
    if image.mode == "F":
        gray = _from_floats(values)
    elif image.mode == "I" and image.format != "PPM":
        gray = _from_integers(values)
    else:  # Pillow scales a PPM's I to 16 bits, whatever its maximum
        gray = (np.clip(values, 0, 65_535).astype(np.uint16) >> 8).astype(np.uint8)
    reduced = Image.fromarray(gray)
    key = image.info.get("transparency")
    if isinstance(key, int):
        reduced.putalpha(Image.fromarray(np.where(values == key, 0, 255).astype(np.uint8)))
    return reduced


def _from_integers(values: NDArray[np.int32]) -> NDArray[np.uint8]:
    low, high = int(values.min()), int(values.max())
    if low >= 0 and high <= 255:
        return values.astype(np.uint8)
    if low >= 0 and high <= 65_535:
        return (values >> 8).astype(np.uint8)
    return _stretch(values.astype(np.float64), low, high)


def _from_floats(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    with np.errstate(invalid="ignore"):  # which some kinds of NaN are reported to be
        wide = values.astype(np.float64)  # in which a float32's largest minus its smallest value fits
    finite = wide[np.isfinite(wide)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    wide = np.nan_to_num(wide, nan=low, posinf=high, neginf=low)
    if low >= 0 and high <= 1:
        return _round(wide * 255)
    if low >= 0 and high <= 255:
        return _round(wide)
    if low >= 0 and high <= 65_535:
        return _round(wide / 257)
    return _stretch(wide, low, high)


def _stretch(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.uint8]:
    return _round((values - low) * (255 / (high - low)) if high > low else np.zeros_like(values))


def _round(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
