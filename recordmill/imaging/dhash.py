"""The difference hash: 64 bits that are equal for images that look alike, whatever their size and quality.

The image is reduced to 8 rows of 9 gray cells; each bit says whether a cell is darker than its right neighbour
(Neal Krawetz, "Kind of Like That", 2013). Cells are plain means of their pixels, so a JPEG decoded to a fraction
of its size gives nearly the same bits.
"""

from PIL import Image

from recordmill.imaging.pixels import Raster
from recordmill.imaging.resize import Size, jpeg_reduction

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
