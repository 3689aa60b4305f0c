"""The low bytes of colors of 16 bits, which Pillow drops: it keeps the high ones.

Pillow gives the low bytes if the other byte order is set.
"""

import zlib
from collections.abc import Callable
from typing import NamedTuple

from PIL import Image, ImageFile

from recordmill.schemas.rejection import Rejected

_OTHER_ORDER = {"B": "L", "L": "B", "N": "B"}  # N is the machine's order, which is L
_PREMULTIPLIED = "RGBa;16"
_GRAY_AND_ALPHA = "LA;16B"
_HEADER_END = 29  # of a PNG's first chunk, with its checksum from here to 33


class LowBytes(NamedTuple):
    """What Pillow drops.

    Attributes:
        image: the low bytes, in the mode of the high ones.
        transparency: the transparent color, of 16 bits per channel; None if there is none.
    """

    image: Image.Image
    transparency: tuple[int, ...] | None


def load_low_bytes(
    data: bytes,
    opened: ImageFile.ImageFile,
    reopen: Callable[[bytes], ImageFile.ImageFile],
) -> LowBytes:
    """Loads the low bytes of a file whose colors have 16 bits per channel.

    Args:
        data: the file.
        opened: the same, not yet loaded.
        reopen: opens such a file.

    Raises:
        Rejected: `bad_header`, if they cannot be had.
    """
    raw_mode = _raw_mode(opened.tile[0])
    if raw_mode.startswith(_PREMULTIPLIED) or raw_mode[-3:-1] != "16":
        why = "images.bits cannot be applied to these colors of 16 bits: convert them to PNG"
        raise Rejected("decode", "bad_header", f"{opened.format}: {why}")
    if raw_mode == _GRAY_AND_ALPHA:
        gray, alpha = _load_gray_and_alpha(data, reopen)
        return LowBytes(Image.merge("RGBA", (gray, gray, gray, alpha)), None)
    low = reopen(data)
    low.tile = [_turn_order(tile) for tile in low.tile]
    low.load()
    key = opened.info.get("transparency")
    return LowBytes(low, key if isinstance(key, tuple) else None)


def _raw_mode(tile: ImageFile._Tile) -> str:
    return str(tile.args if isinstance(tile.args, str) else (tile.args or ("",))[0])


def _turn_order(tile: ImageFile._Tile) -> ImageFile._Tile:
    raw_mode = _raw_mode(tile)
    turned = raw_mode[:-1] + _OTHER_ORDER[raw_mode[-1]]
    args = turned if isinstance(tile.args, str) else (turned, *tile.args[1:])  # type: ignore[index]
    return tile._replace(args=args)


def _load_gray_and_alpha(
    data: bytes, reopen: Callable[[bytes], ImageFile.ImageFile]
) -> tuple[Image.Image, Image.Image]:
    """Loads a PNG of gray and alpha as if its four bytes per pixel were RGBA of 8 bits.

    Filters and passes of PNG depend on the bytes per pixel alone.
    """
    header = bytearray(data[12:_HEADER_END])
    header[12:14] = 8, 6
    checksum = zlib.crc32(header).to_bytes(4, "big")
    low = reopen(data[:12] + bytes(header) + checksum + data[_HEADER_END + 4 :])
    low.info.pop("transparency", None)
    low.load()
    return low.getchannel(1), low.getchannel(3)
