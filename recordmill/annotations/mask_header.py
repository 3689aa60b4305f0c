"""Reads the headers of stored masks, without decoding their pixels."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

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


def explain_header(
    mask: bytes,
    title: str,
    wanted: tuple[int, int] | None = None,
    whose: str = "the record says",
) -> str | None:
    """Returns what is wrong with the header of a stored mask; None if nothing is.

    Args:
        mask: the mask.
        title: what it is called, such as `mask 1`.
        wanted: the width and height that it must have; None for any.
        whose: what has these, as the begin of a clause.
    """
    size = read_mask_size(mask)
    if size is None:
        return f"{title} is not a PNG in 8 bits of gray"
    if wanted is None or size == wanted:
        return None
    here, there = (f"{width} x {height}" for width, height in (size, wanted))
    return f"{title} has {here} pixels, and {whose} {there}"


def read_image_size(values: Mapping[str, Sequence[Any]]) -> tuple[int, int] | None:
    """Returns the image's width and height in an Example; None if it lacks one."""
    if values.get("height") and values.get("width"):
        return values["width"][0], values["height"][0]
    return None
