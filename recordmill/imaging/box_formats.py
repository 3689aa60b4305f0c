"""What Pillow does not say of AVIF (AV1 in ISOBMFF, 2.2.1) and JPEG 2000 (T.800, annexes A and I)."""

import struct

from recordmill.schemas.rejection import Rejected

_SIZE = struct.Struct(">IIII")  # width and height of the reference grid, and the image's offset in it
_START, _STYLE, _COMPONENT_STYLE, _TILE = b"\xff\x4f\xff\x51", 0xFF52, 0xFF53, 0xFF90

_MAX_BLOCKS = 2**20
"""Decoders keep a structure for each code-block and precinct. The largest image needs a thirtieth of this number."""


def avif_depth(data: bytes) -> int:
    """Bits per sample of the first image that says so; 8 if none does."""
    at = data.find(b"av1C")
    flags = data[at + 6 : at + 7] if at >= 0 else b""
    return (12 if flags[0] & 0x20 else 10) if flags and flags[0] & 0x40 else 8


def jpeg2000_depth(data: bytes) -> int:
    """Bits per sample of the first component."""
    depth = data[data.find(_START) + 42 :][:1] if _START in data else b""
    return (depth[0] & 0x7F) + 1 if depth else 8


def jpeg2000_profile(data: bytes) -> bytes | None:
    """The ICC profile in the header's boxes, None without one."""
    at = 0
    while at + 8 <= len(data):
        length, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        if kind == b"colr" and data[at + 8 : at + 9] in (b"\2", b"\3"):
            return data[at + 11 : at + length]
        if kind == b"jp2c" or length < 8:
            break
        at += 8 if kind == b"jp2h" else length
    return None


def check_codestream(data: bytes) -> None:
    """Checks of a JPEG 2000 what OpenJPEG does not check.

    Raises:
        Rejected: `too_much_work` if the main header cuts the image into far too many pieces; `truncated` if the data
            end with the marker of a tile, which OpenJPEG would leave blank without an error.
    """
    if data.endswith(_TILE.to_bytes(2, "big")):
        raise Rejected("decode", "truncated", "JPEG2000: the data end where a tile begins")
    at = data.find(_START) + 2
    if at < 2 or at + 40 > len(data):
        return
    right, bottom, left, top = _SIZE.unpack_from(data, at + 6)
    components = int.from_bytes(data[at + 38 : at + 40], "big")
    samples = max(right - left, 0) * max(bottom - top, 0) * components
    wide = components > 256
    while at + 4 <= len(data) and (marker := int.from_bytes(data[at : at + 2], "big")) != _TILE:
        if marker in (_STYLE, _COMPONENT_STYLE):
            flags, style = (4, 9) if marker == _STYLE else (5 + wide, 6 + wide)
            levels, width, height = (*data[at + style : at + style + 3], 0, 0, 0)[:3]
            sizes = [(width & 15) + (height & 15) + 4]
            if int.from_bytes(data[at + flags : at + flags + 1]) & 1:  # precincts, of the smallest resolution first
                sides = data[at + style + 5 : at + style + 6 + levels]
                sizes += [(side & 15) + (side >> 4) + 2 * (levels - level) for level, side in enumerate(sides)]
            if sum(samples >> size for size in sizes) > _MAX_BLOCKS:
                raise Rejected("decode", "too_much_work", f"JPEG2000: over {_MAX_BLOCKS:,} code-blocks or precincts")
        at += 2 + max(int.from_bytes(data[at + 2 : at + 4], "big"), 2)
