"""Finds the main picture of a TIFF among its pages (TIFF 6.0, section 2; DNG 1.7, chapter 2).

Cameras and editors put a small preview first. It is marked as a reduced picture, and the whole one
is a later page, or one below (SubIFDs). In a raw photograph, the whole one is the sensor's data.
"""

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from recordmill.schemas.rejection import Rejected

_SUBFILE, _OLD_SUBFILE, _SUB_DIRECTORIES = 254, 255, 330
_WIDTH, _HEIGHT, _COMPRESSION, _PHOTOMETRIC = 256, 257, 259, 262
_READ = frozenset(
    {_SUBFILE, _OLD_SUBFILE, _SUB_DIRECTORIES, _WIDTH, _HEIGHT, _COMPRESSION, _PHOTOMETRIC}
)
_INTEGERS = {1: "B", 3: "H", 4: "I", 13: "I", 16: "Q", 18: "Q"}  # by type

_NOT_WHOLE = 0b1101  # bits of NewSubfileType: a reduced picture, a mask, a map of depths
_OLD_REDUCED = 2
_SENSOR = frozenset({32803, 34892})  # color filter array, linear raw
# Of NEF, ARW, SRW, PEF and others, and of DNG.
_SENSOR_COMPRESSIONS = frozenset({32767, 32769, 32770, 32772, 34713, 34892, 65000, 65535})
# Canon's CR2 and Phase One's IIQ, which do not mark their previews.
_MARKED_AS_RAW = re.compile(rb"(?:II\*\0|MM\0\*).{4}(?:CR[\2\3]|IIII|MMMM)", re.DOTALL)

_MAX_ENTRIES = 2**18
"""A stack of ten thousand pages has half of that."""

REMEDY = "develop it to TIFF, PNG or JPEG first"
"""What to do about a raw photograph."""


class TiffPage(NamedTuple):
    """What a directory says about its picture.

    Attributes:
        offset: the place of the directory in the file.
        area: width times height.
        is_whole: whether it is neither a reduced picture nor a mask.
        is_sensor_data: whether it holds the values of a camera's sensor.
    """

    offset: int
    area: int
    is_whole: bool
    is_sensor_data: bool


class _DirectoryLayout(NamedTuple):
    """The layout of a file's directories."""

    order: str
    start: struct.Struct
    number: struct.Struct
    entry: struct.Struct
    first: int


def _form_of(data: bytes) -> _DirectoryLayout:
    order, is_big = "<" if data[:2] == b"II" else ">", data[2:3] == b"+" or data[3:4] == b"+"
    if is_big:
        start, count, entry, first = "Q", "Q", "HHQ8s", 8
    else:
        start, count, entry, first = "I", "H", "HHI4s", 4
    return _DirectoryLayout(
        order,
        struct.Struct(order + start),
        struct.Struct(order + count),
        struct.Struct(order + entry),
        first,
    )


def read_pages(data: bytes) -> list[TiffPage]:
    """Reads the directories in the file's order, each followed by those below it.

    What cannot be read is left out: decoders say more about damage.
    """
    form = _form_of(data)
    if len(data) < form.first + form.start.size:
        return []
    waiting, seen, pages, entries = [form.start.unpack_from(data, form.first)[0]], {0}, [], 0
    while waiting and entries < _MAX_ENTRIES:
        offset = waiting.pop()
        if offset in seen or offset + form.number.size > len(data):
            continue
        seen.add(offset)
        count = form.number.unpack_from(data, offset)[0]
        end = offset + form.number.size + count * form.entry.size
        if count > _MAX_ENTRIES or end > len(data):
            continue
        entries += count
        values = dict(_read_entries(data, form, offset + form.number.size, count))
        if end + form.start.size <= len(data):
            waiting.append(form.start.unpack_from(data, end)[0])
        waiting += reversed(values.get(_SUB_DIRECTORIES, ()))
        pages.append(_describe(offset, {tag: each[0] for tag, each in values.items() if each}))
    return pages


def _read_entries(
    data: bytes, form: _DirectoryLayout, place: int, count: int
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yields the tags that are read, with their values."""
    for at in range(place, place + count * form.entry.size, form.entry.size):
        tag, kind, values, inline = form.entry.unpack_from(data, at)
        if tag not in _READ or kind not in _INTEGERS or not 0 < values <= _MAX_ENTRIES:
            continue
        packed = struct.Struct(f"{form.order}{values}{_INTEGERS[kind]}")
        if packed.size <= len(inline):
            yield tag, packed.unpack_from(inline)
        elif (start := form.start.unpack(inline)[0]) + packed.size <= len(data):
            yield tag, packed.unpack_from(data, start)


def _describe(offset: int, values: dict[int, int]) -> TiffPage:
    is_reduced = values.get(_SUBFILE, 0) & _NOT_WHOLE or values.get(_OLD_SUBFILE) == _OLD_REDUCED
    is_sensor_data = (
        values.get(_PHOTOMETRIC) in _SENSOR or values.get(_COMPRESSION) in _SENSOR_COMPRESSIONS
    )
    area = values.get(_WIDTH, 0) * values.get(_HEIGHT, 0)
    return TiffPage(offset, area, not is_reduced, is_sensor_data)


def find_main_page(data: bytes, pages: list[TiffPage]) -> TiffPage | None:
    """Returns the page with the main picture: the first, unless that is marked as something else.

    Returns None if the file has no readable page.

    Raises:
        Rejected: `raw_photograph`, if the main picture is a sensor's data, or is missing.
    """
    if not pages:
        return None
    whole = [page for page in pages if page.is_whole]
    if _MARKED_AS_RAW.match(data) or any(page.is_sensor_data for page in whole):
        raise reject_raw("TIFF", "it holds the data of a camera's sensor")
    if pages[0].is_whole:
        return pages[0]
    if not whole:
        raise reject_raw("TIFF", "its first page is a reduced picture, and it has no whole one")
    return max(whole, key=lambda page: page.area)


def count_whole_pages(data: bytes) -> int:
    """Returns the number of pages that are neither reduced pictures nor masks; at least 1."""
    return max(1, sum(page.is_whole for page in read_pages(data)))


def with_first_page(data: bytes, page: TiffPage) -> bytes:
    """Returns the file with another page first."""
    form = _form_of(data)
    changed = bytearray(data)
    form.start.pack_into(changed, form.first, page.offset)
    return bytes(changed)


def reject_raw(kind: str, why: str) -> Rejected:
    """Returns the rejection of a raw photograph, with the remedy."""
    return Rejected("decode", "raw_photograph", f"{kind}: {why}: {REMEDY}")
