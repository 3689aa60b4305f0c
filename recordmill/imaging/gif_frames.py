"""Whether a GIF has a second frame (GIF89a, 18 to 26): found as Pillow does, without keeping the blocks in between."""

import re

_FRAME, _TRAILER = b",", b";"
_COMMENT, _APPLICATION = 0xFE, 0xFF
_BLOCK = re.compile(rb"[;,!]")  # a trailer, a frame or an extension; bytes between them are skipped


def has_second_frame(data: bytes) -> bool:
    """Whether the header of another frame follows the first frame's pixels; damage counts as its absence."""
    try:
        first = _find_frame(data, 13 + _palette_bytes(data[10]), is_first=True)
        return first > 0 and _find_frame(data, _skip_blocks(data, first), is_first=False) > 0
    except IndexError:  # the data end inside a block
        return False


def _find_frame(data: bytes, position: int, is_first: bool) -> int:
    """Where the pixels of the next frame begin, or 0."""
    while (block := _BLOCK.search(data, position)) and block[0] != _TRAILER:
        position = block.end()
        if block[0] == _FRAME:
            size_of_codes = position + 9 + _palette_bytes(data[position + 8])
            return size_of_codes + 1 if size_of_codes < len(data) else 0
        position = _skip_extension(data, position, is_first)
    return 0


def _skip_extension(data: bytes, position: int, is_first: bool) -> int:
    kind, position = data[position], position + 1
    if kind != _COMMENT:  # the first block is read without checking whether it ends the extension
        loops = is_first and kind == _APPLICATION and data.startswith(b"NETSCAPE2.0", position + 1)
        position += 1 + data[position]
        if loops:
            position += 1 + data[position]
    return _skip_blocks(data, position)


def _skip_blocks(data: bytes, position: int) -> int:
    while length := data[position]:
        position += 1 + length
    return position + 1


def _palette_bytes(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0
