"""Checks whether libpng, and so TensorFlow, accepts a PNG that Pillow decodes (PNG, third edition, 5 and 11.2)."""

import re
import struct
import zlib
from collections.abc import Iterator

_CHUNK = struct.Struct(">I4s")
_HEADER = struct.Struct(">IIBBBBB")  # width, height, depth, colour type, compression, filter, interlace
_CRITICAL = re.compile(rb"IHDR(PLTE)?(IDAT)+IEND")
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_PIECE = 2**20


def is_sound_png(data: bytes) -> bool:
    """Whether checksums, the chunks' order, the header and the length of the pixels are right.

    Pillow ignores such errors as long as it can go on, and leaves missing rows black.
    """
    chunks = _read_chunks(data)
    kinds = [kind for kind, _ in chunks]
    if _CRITICAL.fullmatch(b"".join(kind for kind in kinds if kind[:1].isupper())) is None or kinds[0] != b"IHDR":
        return False
    start, pixels = kinds.index(b"IDAT"), kinds.count(b"IDAT")
    if set(kinds[start : start + pixels]) != {b"IDAT"} or len(chunks[0][1]) != _HEADER.size:
        return False
    width, height, depth, colour, compression, filtering, interlace = _HEADER.unpack(chunks[0][1])
    if compression or filtering or interlace > 1 or colour not in _CHANNELS:
        return False
    unpacked = _unpacked_size([body for kind, body in chunks if kind == b"IDAT"])
    return unpacked == _size_of_rows(width, height, depth * _CHANNELS[colour], bool(interlace))


def find_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yields the kind of each chunk, and where it begins and ends: the last one may end after the data."""
    position = 8
    while position + _CHUNK.size <= len(data):
        length, kind = _CHUNK.unpack_from(data, position)
        begin, position = position, position + 12 + length
        yield kind, begin, position


def _read_chunks(data: bytes) -> list[tuple[bytes, memoryview]]:
    """Kinds and bodies of all chunks; nothing if a checksum is wrong or the end is missing."""
    chunks: list[tuple[bytes, memoryview]] = []
    view = memoryview(data)
    for kind, begin, end in find_chunks(data):
        if view[end - 4 : end] != zlib.crc32(view[begin + 4 : end - 4]).to_bytes(4, "big"):
            break
        chunks.append((kind, view[begin + 8 : end - 4]))
        if kind == b"IEND":
            return chunks
    return []


def _unpacked_size(parts: list[memoryview]) -> int:
    """The number of bytes the parts unpack to; -1 if they are damaged or end early."""
    unpacking, size = zlib.decompressobj(), 0
    try:
        for part in parts:
            rest = bytes(part)
            while rest and not unpacking.eof:
                size += len(unpacking.decompress(rest, _PIECE))
                rest = unpacking.unconsumed_tail
        while not unpacking.eof and (more := unpacking.decompress(b"", _PIECE)):
            size += len(more)
    except zlib.error:
        return -1
    return size if unpacking.eof else -1


def _size_of_rows(width: int, height: int, bits: int, interlaced: bool) -> int:
    """Bytes of all rows, each with its filter byte."""
    size = 0
    for left, top, across, down in _ADAM7 if interlaced else [(0, 0, 1, 1)]:
        columns, rows = -(-max(width - left, 0) // across), -(-max(height - top, 0) // down)
        size += rows * (1 + (columns * bits + 7) // 8) if columns else 0
    return size
