"""Reads any TFRecord file, however damaged: yields each record with its position, and a `Damage` for each damaged part.

Lengths are not trusted: a frame's length is compared with the bytes that remain before anything is read, and the
checksum of large records is computed in pieces before they are held in memory. The bytes of a file decide whether it is
gzip, not its name.

A record is a little-endian uint64 length, the masked CRC-32C of those 8 bytes, the data, and the data's masked CRC-32C
(tensorflow/core/lib/io/record_writer.h).
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from crc32c import crc32c

from recordmill.storage.record_bytes import BLOCK_BYTES, GzipBytes, StoredFile

FRAMING_BYTES = 16
"""Bytes that a record's frame adds to its data."""

_HEADER = struct.Struct("<QI")
HEADER_BYTES = _HEADER.size
"""Bytes of a frame before the data."""

_CHECKSUM = struct.Struct("<I")
_HELD_UNCHECKED = 4 * BLOCK_BYTES
_NOT_ZERO = re.compile(rb"[^\0]")
_HIGH_BYTES = bytes(4)  # of the length of any record below 4 GiB


_SHARD = re.compile(
    r"\.tf_?rec(?:ord)?s?\b"  # a.tfrecord, a.tfrec.gz, a.tfrecord-00000-of-00005
    r"|\.records?\b"
    r"|\d+-?of-?\d+"  # train-00000-of-01024, Inception's; test_01of02
    r"|(?:^|_)shard_\d+(?:\.gz)?$",  # scripts that write one file per process
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Damage:
    """Stands for one or several records that cannot be read.

    Attributes:
        kind: `length` or `data` if their checksum does not match, `cut` if the file ends early, `gzip` if the stream
            around them is damaged, or `zeros` if only zeros are left.
        detail: a description for people.
    """

    kind: Literal["length", "data", "cut", "gzip", "zeros"]
    detail: str


_BAD_DATA = Damage("data", "the data do not match their checksum")


class RecordFile:
    """One TFRecord file, read once from its first byte to its last."""

    def __init__(self, stored: StoredFile) -> None:
        packed = _is_gzip(stored.read_at(0, _HEADER.size))
        self._bytes = GzipBytes(stored) if packed else stored
        self.compression: Literal["gzip", "none"] = "gzip" if packed else "none"

    @property
    def members(self) -> int:
        """The number of gzip members so far; 0 for a plain file."""
        return self._bytes.members

    def __iter__(self) -> Iterator[tuple[int, memoryview | Damage]]:
        """Yields `(offset, record)`: where the frame begins in the unpacked file, and its data or a `Damage`.

        The view stays valid. After damage, reading continues with the next frame whose length, below 4 GiB, matches its
        checksum. Records in between are lost, so later records cannot be numbered by counting.
        """
        source, offset = self._bytes, 0
        block, at = source.read(0, BLOCK_BYTES), 0
        lost = damaged = False
        while True:
            if len(block) - at < _HEADER.size:
                block, at = source.read(offset, _HEADER.size), 0
                if len(block) < _HEADER.size:
                    break
            length, checksum = _HEADER.unpack_from(block, at)
            damage: Damage | None = None
            if masked(crc32c(block[at : at + 8])) != checksum:
                damage = self._bad_length(offset)
            else:
                if len(block) - at < length + FRAMING_BYTES:
                    block, damage = self._read_frame(offset, length)
                    at = 0
                if damage is None:
                    end = at + _HEADER.size + length
                    data = block[at + _HEADER.size : end]
                    if masked(crc32c(data)) == _CHECKSUM.unpack_from(block, end)[0]:
                        yield offset, data
                        at, offset = end + _CHECKSUM.size, offset + length + FRAMING_BYTES
                        continue
                    damage = _BAD_DATA
            damaged = True
            yield offset, damage
            offset = self._find_frame(offset + 1)
            if lost := offset < 0:
                break
            block, at = source.read(offset, _HEADER.size), 0
        if (damage := self._damage_at_end(offset, len(block) - at, lost, damaged)) is not None:
            yield offset, damage

    def _bad_length(self, offset: int) -> Damage:
        """The damage if a length does not match its checksum; the rest of the file may be zeros."""
        source, at = self._bytes.ahead(), offset
        while (block := source.read(at, BLOCK_BYTES)) and not _NOT_ZERO.search(block):
            at += len(block)
        return Damage("length", "the length does not match its checksum") if block else _zeros(at - offset)

    def _read_frame(self, offset: int, length: int) -> tuple[memoryview, Damage | None]:
        """Reads a block that begins with a record, or finds its damage."""
        most, framed = self._bytes.max_remaining(offset), length + FRAMING_BYTES
        if framed > most:
            return memoryview(b""), _cut(length, most)
        if length > _HELD_UNCHECKED and (damage := self._check_large(offset, length)):
            return memoryview(b""), damage
        block = self._bytes.read(offset, framed)
        return block, _ended_inside(self._bytes.fault, length, len(block)) if len(block) < framed else None

    def _check_large(self, offset: int, length: int) -> Damage | None:
        """Checks a large record in pieces, before holding all of it in memory."""
        source, checksum, done, end = self._bytes.ahead(), 0, _HEADER.size, _HEADER.size + length
        while done < end:
            piece = source.read(offset + done, 1)[: end - done]
            if not piece:
                return _ended_inside(source.fault, length, done)
            checksum = crc32c(piece, checksum)
            done += len(piece)
        stated = source.read(offset + end, _CHECKSUM.size)[: _CHECKSUM.size]
        if len(stated) < _CHECKSUM.size:
            return _ended_inside(source.fault, length, end + len(stated))
        return None if masked(checksum) == _CHECKSUM.unpack(stated)[0] else _BAD_DATA

    def _find_frame(self, offset: int) -> int:
        """The start of the next frame from `offset` whose length matches its checksum and fits the file; -1: none."""
        while len(block := self._bytes.read(offset, BLOCK_BYTES)) >= FRAMING_BYTES:
            for at in _frame_starts(block):
                if _HEADER.unpack_from(block, at)[0] + FRAMING_BYTES <= self._bytes.max_remaining(offset + at):
                    return offset + at
            offset += len(block) - _HEADER.size + 1
        return -1

    def _damage_at_end(self, offset: int, left: int, lost: bool, damaged: bool) -> Damage | None:
        """The damage at the end, if it has not been reported yet."""
        fault = self._bytes.fault
        if fault and not (damaged and self._bytes.is_checksum_fault):
            return Damage("gzip", fault)
        if lost or not left:
            return None
        if not _NOT_ZERO.search(self._bytes.read(offset, left)):
            return _zeros(left)
        return Damage("cut", f"the file ends inside the record's length: {left} bytes of its 12")


def _is_gzip(start: bytes) -> bool:
    """Decides by the first bytes; a plain file may begin with them by chance, but then they match their checksum."""
    if len(start) == _HEADER.size and masked(crc32c(start[:8])) == _HEADER.unpack(start)[1]:
        return False
    return start.startswith(b"\x1f\x8b")


def _frame_starts(block: memoryview) -> Iterator[int]:
    """Positions in a block at which 8 bytes, the last four of them 0, are followed by their checksum."""
    text = block.tobytes()
    place = text.find(_HIGH_BYTES, 4)
    while 0 <= place <= len(text) - 8:
        at = place - 4
        if text.startswith(_HIGH_BYTES, at) and text.startswith(_HIGH_BYTES, at + 8):  # skip zeros
            other = _NOT_ZERO.search(text, at)
            place = max(place + 1, (other.start() if other else len(text)) - 7)
        else:
            if masked(crc32c(text[at : at + 8])) == _HEADER.unpack_from(text, at)[1]:
                yield at
            place += 1
        place = text.find(_HIGH_BYTES, place)


def _ended_inside(fault: str, length: int, there: int) -> Damage:
    """The damage if the file, or its part that can be unpacked, ends inside a record."""
    return Damage("gzip", fault) if fault else _cut(length, there)


def _cut(length: int, left: int) -> Damage:
    inside = "data" if left < _HEADER.size + length else "checksum"
    held = max(left - _HEADER.size, 0)
    claim = f"{length:,} bytes are claimed, by a length that matches its checksum, and {held:,} are left"
    return Damage("cut", f"the file ends inside the record's {inside}: {claim}")


def _zeros(count: int) -> Damage:
    return Damage("zeros", f"{count:,} zeros instead of a record, up to the end of the file")


def masked(checksum: int) -> int:
    """A CRC-32C as TFRecord stores it: rotated right by 15 bits, plus 0xa282ead8."""
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def looks_like_records(path: str) -> bool:
    """Whether a file begins with a frame's length and its checksum, compressed or not.

    Raises:
        OSError: it cannot be read.
    """
    with StoredFile(path) as stored:
        start = stored.read_at(0, 2**16)
        if _is_gzip(start[: _HEADER.size]):
            start = bytes(GzipBytes(stored).read(0, _HEADER.size)[: _HEADER.size])
    return len(start) >= _HEADER.size and masked(crc32c(start[:8])) == _HEADER.unpack_from(start)[1]


def is_not_tfrecord(path: str) -> bool:
    """Whether a file is not a TFRecord file: it does not begin with a frame and contains no intact record.

    An empty file, a file of zeros and a damaged gzip stream may have been TFRecord files.

    Raises:
        OSError: it cannot be read.
    """
    if looks_like_records(path):
        return False
    with StoredFile(path) as stored:
        records = (record for _, record in RecordFile(stored))
        return stored.size > 0 and all(isinstance(each, Damage) and each.kind in ("length", "cut") for each in records)


def looks_like_shard(name: str) -> bool:
    """Whether a file of this base name is likely a TFRecord file."""
    return bool(_SHARD.search(name))
