"""Reads the headers of stored masks, without decoding their pixels."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_PNG = struct.Struct(">8sI4sIIBB")
"""The begin of a PNG: its signature, and length, name, width, height, bits and color type of the
first chunk."""

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GRAY = 0


_USUAL_BITS = 8

MOST_BITS = 16
"""The bits of the values of a semantic mask with `masks: png16`."""

_MASK_BITS = (_USUAL_BITS, MOST_BITS)


class MaskHeader(NamedTuple):
    """What the header of a mask says.

    Attributes:
        size: width and height.
        bits: how many bits a value has: 8 or 16.
    """

    size: tuple[int, int]
    bits: int


def read_mask_header(mask: bytes) -> MaskHeader | None:
    """Returns the header of a mask; None if it is not a PNG in 8 or 16 bits of gray."""
    if len(mask) < _PNG.size:
        return None
    signature, _, name, width, height, bits, color = _PNG.unpack_from(mask)
    if (signature, name, color) != (_PNG_SIGNATURE, b"IHDR", _GRAY) or bits not in _MASK_BITS:
        return None
    return MaskHeader((width, height), bits)


def read_mask_size(mask: bytes) -> tuple[int, int] | None:
    """Returns the width and height of a mask; None if it is not a PNG in 8 bits of gray."""
    header = read_mask_header(mask)
    if header is None or header.bits != _USUAL_BITS:
        return None
    return header.size


def explain_header(
    mask: bytes,
    title: str,
    wanted: tuple[int, int] | None = None,
    whose: str = "the record says",
    most_bits: int = _USUAL_BITS,
) -> str | None:
    """Returns what is wrong with the header of a stored mask; None if nothing is.

    Args:
        mask: the mask.
        title: what it is called, such as `mask 1`.
        wanted: the width and height that it must have; None for any.
        whose: what has these, as the begin of a clause.
        most_bits: the most bits of a value: 8 or 16.
    """
    header = read_mask_header(mask)
    if header is None or header.bits > most_bits:
        bits = "8 bits" if most_bits == _USUAL_BITS else "8 or 16 bits"
        return f"{title} is not a PNG in {bits} of gray"
    if wanted is None or header.size == wanted:
        return None
    here, there = (f"{width} x {height}" for width, height in (header.size, wanted))
    return f"{title} has {here} pixels, and {whose} {there}"


def read_image_size(values: Mapping[str, Sequence[Any]]) -> tuple[int, int] | None:
    """Returns the image's width and height in an Example; None if it lacks one."""
    if values.get("height") and values.get("width"):
        return values["width"][0], values["height"][0]
    return None
