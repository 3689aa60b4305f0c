"""Resizes images to the configured size, and computes their difference hash.

The hash has 64 bits, which are equal for images that look alike, whatever their size and quality.
"""

from PIL import Image

from recordmill.imaging.colour import Colour, lay_on
from recordmill.imaging.pixels import Raster
from recordmill.schemas.settings.images import Resize

Size = tuple[int, int]  # width, height, in Pillow's order

# Pillow may first shrink by whole factors as long as this multiple of the final size remains, which is several times
# faster; from 3.0 on its documentation calls the result indistinguishable.
_REDUCING_GAP = 3.0


def target_size(size: Size, resize: Resize | None) -> Size:
    """Width and height after `resize` of an image of `size`, upright; unchanged if it fits."""
    width, height = size
    if resize is None:
        return size
    if resize.exact is not None:
        return resize.exact[1], resize.exact[0]
    limit, side = (resize.shortest, min(size)) if resize.longest is None else (resize.longest, max(size))
    if limit is None or side <= limit:
        return size
    scale = limit / side
    return max(1, round(width * scale)), max(1, round(height * scale))


def jpeg_reduction(size: Size, target: Size) -> int:
    """The fraction 1/1, 1/2, 1/4 or 1/8 to decode a JPEG to: at least twice the target remains for a good filter."""
    spare = min(size[0] / target[0], size[1] / target[1]) / 2
    return next((reduction for reduction in (8, 4, 2) if spare >= reduction), 1)


def resize_image(image: Image.Image, target: Size, resize: Resize, background: Colour) -> Image.Image:
    """Resamples an L or RGB image to the target with a Lanczos filter.

    If the aspect ratios differ, `resize.fit` decides. Padding makes a gray image RGB if the background is coloured.
    """
    if resize.exact is None:
        return _resample(image, target)
    if resize.fit == "crop":
        return _resample(image, target, centred_box(image.size, target))
    left, top, right, bottom = padded_box(image.size, target)
    return lay_on(background, target, _resample(image, (right - left, bottom - top)), (left, top))


def _resample(image: Image.Image, target: Size, box: tuple[float, float, float, float] | None = None) -> Image.Image:
    return image.resize(target, Image.Resampling.LANCZOS, box, _REDUCING_GAP)


def centred_box(size: Size, target: Size) -> tuple[float, float, float, float]:
    """The largest part of the image with the target's aspect ratio: left, top, right, bottom in pixels."""
    width, height = size
    scale = min(width / target[0], height / target[1])
    box_width, box_height = min(width, target[0] * scale), min(height, target[1] * scale)
    left, top = (width - box_width) / 2, (height - box_height) / 2
    return left, top, min(width, left + box_width), min(height, top + box_height)


def padded_box(size: Size, target: Size) -> tuple[int, int, int, int]:
    """The part of the target that shows an image of `size`, whole and centred: left, top, right, bottom in pixels."""
    scale = min(target[0] / size[0], target[1] / size[1])
    width, height = (max(1, min(limit, round(side * scale))) for side, limit in zip(size, target, strict=True))
    left, top = (target[0] - width) // 2, (target[1] - height) // 2
    return left, top, left + width, top + height


COLUMNS, ROWS = 9, 8


def difference_hash(raster: Raster) -> int:
    """The hash of a decoded image, 0 to 2**64 - 1; the first bit is the highest. The hash of a single colour is 0."""
    height, width, channels = raster.shape
    mode = "L" if channels == 1 else "RGBX"
    shown = Image.frombuffer(mode, (width, height), raster, "raw", mode, 0, 1)  # no copy
    cells = shown.resize((COLUMNS, ROWS), Image.Resampling.BOX)
    gray = (cells if channels == 1 else cells.convert("RGB").convert("L")).tobytes()
    bits = 0
    for row in range(ROWS):
        for at in range(row * COLUMNS, row * COLUMNS + COLUMNS - 1):
            bits = bits << 1 | (gray[at] < gray[at + 1])
    return bits


def hash_reduction(size: Size) -> int:
    """The fraction 1/1, 1/2, 1/4 or 1/8 to which a JPEG of this width and height may be decoded for its hash."""
    return jpeg_reduction(size, (4 * COLUMNS, 4 * ROWS))
