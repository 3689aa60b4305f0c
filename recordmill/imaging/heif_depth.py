"""Reads how many bits the samples of an AVIF or HEIC have, since decoders reduce them to 8.

The boxes are those of ISO/IEC 14496-12 and 23008-12. `av1C` configures AV1's decoder (AV1-ISOBMFF,
2.3), and `hvcC` HEVC's (ISO/IEC 14496-15, 8.3).
"""

from collections.abc import Iterator
from itertools import islice

_MAX_BOXES = 4_096  # of one kind of list; real files have about twenty
_USUAL_BITS = 8

_BmffBox = tuple[bytes, memoryview]


def read_bits(data: bytes) -> int:
    """Returns the bits of each sample of the main picture; 8 if the file does not say so."""
    meta = _find(_boxes(data), b"meta")[4:]
    parts = list(_boxes(meta))
    properties = list(_boxes(_find(parts, b"iprp")))
    listed = list(_boxes(_find(properties, b"ipco")))
    main = _read_main_item(_find(parts, b"pitm"))
    of_main = [
        listed[index - 1]
        for index in _list_associations(_find(properties, b"ipma"), main)
        if 0 < index <= len(listed)
    ]
    found = [*map(_bits_of, of_main)]
    if not any(found):  # a grid of tiles, which have the decoder's configuration
        found = [_bits_of(each) for each in listed if each[0] != b"pixi"]
    return max(found, default=0) or _USUAL_BITS


def _boxes(data: bytes) -> Iterator[_BmffBox]:
    """Yields the kind and the content of each box, up to a damaged one."""
    at, view = 0, memoryview(data)  # pixels are not copied
    for _ in range(_MAX_BOXES):
        size, kind, first = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8], 8
        if size == 1:
            size, first = int.from_bytes(data[at + 8 : at + 16], "big"), 16
        end = at + size if size else len(data)
        if len(kind) < 4 or not at + first <= end <= len(data):
            return
        yield kind, view[at + first : end]
        at = end


def _find(boxes: Iterator[_BmffBox] | list[_BmffBox], wanted: bytes) -> bytes:
    """Returns the content of the first box of a kind; empty if there is none."""
    return next((bytes(content) for kind, content in boxes if kind == wanted), b"")


def _read_main_item(content: bytes) -> int:
    """Returns the number of the main picture's item."""
    return int.from_bytes(content[4:8] if content[:1] > b"\0" else content[4:6], "big")


def _list_associations(content: bytes, item: int) -> Iterator[int]:
    """Yields the indexes of an item's properties, counted from 1."""
    of_item, of_index = (4 if content[:1] > b"\0" else 2), (2 if content[3:4] == b"\1" else 1)
    mask, at = (0x7FFF if of_index == 2 else 0x7F), 8
    for _ in range(min(int.from_bytes(content[4:8], "big"), _MAX_BOXES)):
        number = int.from_bytes(content[at : at + of_item], "big")
        first = at + of_item + 1
        at = first + of_index * int.from_bytes(content[first - 1 : first], "big")
        if at > len(content):
            return
        if number == item:
            for place in range(first, at, of_index):
                yield int.from_bytes(content[place : place + of_index], "big") & mask


def _bits_of(box: _BmffBox) -> int:
    """Returns the bits of a sample that a property says; 0 if it is about something else."""
    kind, content = box
    match kind:
        case b"pixi":
            return max(islice(content, 5, 5 + content[4]), default=0) if len(content) > 4 else 0
        case b"av1C" if len(content) > 2:
            is_high, is_twelve = content[2] & 0x40, content[2] & 0x20
            if not is_high:
                return 8
            return 12 if is_twelve else 10
        case b"hvcC" if len(content) > 17:
            return 8 + (content[17] & 7)
    return 0
