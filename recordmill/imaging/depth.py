"""Samples of more than 8 bits: which bits are stored, and what gets lost.

Formats do not say how many of 16 bits a camera or a scanner uses. Without `images.bits`, the high
byte is stored, so that values of 12 bits look black.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from recordmill.schemas.rejection import Rejected

Losses = Mapping[str, int]
"""What of an image is not stored, or was chosen for it alone:

- `pages`: the number of further pages of a TIFF;
- `brightest`: the largest stored value, 0 to 255, of an image of 16 bits per channel that was
  reduced to its high byte;
- `as_0_to_1`, `as_0_to_255`, `as_0_to_65535`, `stretched` (each 1): the range that 32-bit or float
  values were taken to have.
"""

_MAX_BITS = 16
_COLORS = {"RGB": 3, "RGBA": 3, "CMYK": 4}  # by mode, the channels that are not transparency
_VALUES_AT_ONCE = 2**22


def is_deep(mode: str) -> bool:
    """Returns whether a Pillow mode has more than 8 bits per channel."""
    return mode in ("I", "F") or mode.startswith("I;")


def reduce_to_8_bits(
    image: Image.Image, bits: int | None, declared: int | None, has_high_bytes: bool
) -> tuple[Image.Image, Losses]:
    """Reduces a loaded image to 8 bits per channel, and measures what is lost.

    Args:
        image: of any mode.
        bits: `images.bits`.
        declared: how many bits the file says that its values use; None if it does not say so.
        has_high_bytes: whether the image has the high bytes of 16 bits per channel.

    Raises:
        Rejected: `value_too_large`.
    """
    is_measured = bits is None and declared is None
    if not is_deep(image.mode):
        if not (has_high_bytes and is_measured and image.mode in _COLORS):
            return image, {}
        ranges = [image.getchannel(band).getextrema() for band in range(_COLORS[image.mode])]
        return image, {"brightest": max(int(high) for _, high in ranges)}  # type: ignore[arg-type]
    reduced = reduce_depth(image, declared or bits)
    if _has_own_range(image) and (bits is None or image.mode == "F"):
        low, high = _find_extremes(image)
        if low == high == 0:  # black in any range
            return reduced, {}
        kind = _find_range(low, high, image.mode == "F")
        if kind != "as_0_to_65535" or image.mode == "F":
            return reduced, {kind: 1}
    if not is_measured:
        return reduced, {}
    _, brightest = reduced.getchannel("L").getextrema()  # an LA has a second channel
    return reduced, {"brightest": int(brightest)}  # type: ignore[arg-type]


def reduce_depth(image: Image.Image, bits: int | None = None) -> Image.Image:
    """Converts an image of 16-bit, 32-bit or float values to L or LA.

    The result is LA if one gray value is declared transparent.

    Integers of `bits` bits keep the highest 8 of them. Without `bits`, 16-bit values keep their
    high byte, as in TensorFlow and libpng. 32-bit integers and floats have no agreed range: if all
    values are within 0..255 they are rounded, if within 0..65535 treated as 16 bits; otherwise the
    smallest value becomes black and the largest white. Floats within 0..1 are multiplied by 255
    first. NaN and minus infinity become the smallest finite value, infinity the largest.

    Raises:
        Rejected: `value_too_large`, if a value has more bits.
    """
    gray = np.empty((image.height, image.width), np.uint8)
    key = image.info.get("transparency")
    alpha = np.empty_like(gray) if isinstance(key, int) else None
    is_float = image.mode == "F"
    extremes = None
    if _has_own_range(image) and (bits is None or is_float):
        extremes = _find_extremes(image)
    for top, values in _blocks(image):
        block = slice(top, top + len(values))
        if extremes is not None:
            gray[block] = _reduce_wide(values, *extremes)
        else:
            gray[block] = _reduce_integers(values, bits)
        if alpha is not None:
            alpha[block] = np.where(values == key, 0, 255)
    reduced = Image.fromarray(gray)
    if alpha is not None:
        reduced.putalpha(Image.fromarray(alpha))
    return reduced


def _has_own_range(image: Image.Image) -> bool:
    """Returns whether its values have no agreed range.

    Pillow scales a PPM's I to 16 bits, whatever its maximum.
    """
    return image.mode == "F" or (image.mode == "I" and image.format != "PPM")


def _blocks(image: Image.Image) -> Iterator[tuple[int, NDArray[np.generic]]]:
    """Yields some rows at a time, to save memory, each time with the number of the first."""
    rows = max(1, _VALUES_AT_ONCE // image.width)
    for top in range(0, image.height, rows):
        bottom = min(top + rows, image.height)
        yield top, np.asarray(image.crop((0, top, image.width, bottom)))


def _reduce_integers(values: NDArray[np.generic], bits: int | None) -> NDArray[np.uint8]:
    if bits is None or bits == _MAX_BITS:
        return (np.clip(values, 0, 65_535).astype(np.uint16) >> 8).astype(np.uint8)
    low, high = int(values.min()), int(values.max())
    if low < 0 or high >> bits:
        raise reject_value(low if low < 0 else high, bits)
    return (values.astype(np.uint16) >> (bits - 8)).astype(np.uint8)


def reject_value(value: int, bits: int) -> Rejected:
    """Returns the rejection of an image with a value that does not fit into `images.bits`."""
    detail = f"a value is {value:,}, and images.bits is {bits}: at most {2**bits - 1:,}"
    return Rejected("decode", "value_too_large", detail)


def _find_extremes(image: Image.Image) -> tuple[float, float]:
    """Returns the smallest and the largest finite value; 0 if there is none."""
    found = []
    for _, values in _blocks(image):
        finite = values[np.isfinite(values)]
        if finite.size:
            found += [float(finite.min()), float(finite.max())]
    if found:
        return min(found), max(found)
    return 0.0, 0.0


def _find_range(low: float, high: float, is_float: bool) -> str:
    """Returns the range that values between two extremes are taken to have."""
    if low < 0 or high > 65_535:
        return "stretched"
    if high > 255:
        return "as_0_to_65535"
    if high <= 1 and is_float:
        return "as_0_to_1"
    return "as_0_to_255"


def _reduce_wide(values: NDArray[np.generic], low: float, high: float) -> NDArray[np.uint8]:
    is_float = values.dtype == np.float32
    with np.errstate(invalid="ignore"):  # numpy reports some kinds of NaN as invalid
        wide = values.astype(np.float64)  # so that the largest minus the smallest value fits
    wide = np.nan_to_num(wide, nan=low, posinf=high, neginf=low)
    match _find_range(low, high, is_float):
        case "stretched":
            if high > low:
                wide = (wide - low) * (255 / (high - low))
            else:
                wide = np.zeros_like(wide)
        case "as_0_to_65535":
            wide = wide / 257 if is_float else wide // 256
        case "as_0_to_1":
            wide = wide * 255
    return np.clip(np.rint(wide), 0, 255).astype(np.uint8)


def join_bytes(high: Image.Image, low: Image.Image, bits: int) -> Image.Image:
    """Returns the highest 8 of the `bits` bits of each color of an image.

    Transparency that fills 16 bits keeps its high byte.

    Args:
        high: the high bytes of 16 bits per channel, of mode RGB, RGBA or CMYK.
        low: the low bytes.
        bits: 9 to 15.

    Raises:
        Rejected: `value_too_large`, if a color has more bits.
    """
    bands = []
    for band in range(len(high.getbands())):
        upper, lower = (np.asarray(each.getchannel(band)) for each in (high, low))
        largest = int(upper.max())
        if largest >> (bits - 8):
            if band < _COLORS[high.mode]:
                value = 256 * largest + int(lower[upper == largest].max())
                raise reject_value(value, bits)
            bands.append(high.getchannel(band))
            continue
        bands.append(Image.fromarray((upper << (16 - bits)) | (lower >> (bits - 8))))
    return Image.merge(high.mode, bands)
