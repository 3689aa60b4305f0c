"""Reads the samples of binary PGM and PPM files with numpy; Pillow uses a Python loop at a microsecond per sample.

It uses such a loop for plain ones, too, whose numbers are text: they are limited instead.
"""

import io

import numpy as np
from PIL import ImageFile

from recordmill.schemas.rejection import Rejected

_MAX_STEPS = 2**24  # of Pillow's loop over text: less than ten seconds
_STEPS_OF_A_COMMENT = 64  # removing one copies a part of the text


def read_samples(opened: ImageFile.ImageFile) -> None:
    """Replaces a binary file's data with the same samples in Pillow's own layout, if Pillow would loop over them.

    Args:
        opened: the file, in memory and not yet loaded.

    Raises:
        Rejected: `too_much_work`, for plain files of too many numbers or comments.
        ValueError: there are too few samples.
    """
    codec, extents, offset, args = opened.tile[0]
    if codec not in ("ppm", "ppm_plain"):
        return
    assert isinstance(opened.fp, io.BytesIO)
    data = opened.fp.getvalue()
    wanted = opened.width * opened.height * len(opened.getbands())
    if codec == "ppm_plain":
        if wanted + _STEPS_OF_A_COMMENT * data.count(b"#", offset) > _MAX_STEPS:
            raise Rejected("decode", "too_much_work", f"PPM: more than {_MAX_STEPS:,} numbers or comments as text")
        return
    assert isinstance(args, tuple)
    largest = int(args[1])
    kind = np.dtype(np.uint8 if largest < 256 else ">u2")
    if (len(data) - offset) // kind.itemsize < wanted:
        raise ValueError("not enough image data")  # in Pillow's words
    white, layout = (65_535, "I;16B") if opened.mode == "I" else (255, opened.mode)
    scaled = np.minimum(np.rint(np.arange(256**kind.itemsize) / largest * white), white)
    table = scaled.astype(">u2" if opened.mode == "I" else np.uint8)
    opened.fp = io.BytesIO(table[np.frombuffer(data, kind, wanted, offset)].tobytes())
    opened.tile = [ImageFile._Tile("raw", extents, 0, (layout, 0, 1))]
