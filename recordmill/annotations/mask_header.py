"""Reads the headers of stored masks, without decoding their pixels."""

import struct

_PNG = struct.Struct(">8sI4sIIBB")
"""The begin of a PNG: its signature, and length, name, width, height, bits and color type of the
first chunk."""

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GRAY = 0


def read_mask_size(mask: bytes) -> tuple[int, int] | None:
    """Returns the width and height of a mask; None if it is not a PNG in 8 bits of gray."""
    if len(mask) < _PNG.size:
        return None
    signature, _, name, width, height, bits, color = _PNG.unpack_from(mask)
    if (signature, name, bits, color) != (_PNG_SIGNATURE, b"IHDR", 8, _GRAY):
        return None
    return width, height
