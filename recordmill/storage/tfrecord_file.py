"""Reads TFRecord files, packed or not and however damaged, and writes them through Beam's sink.

A file yields each record with its position, and a `Damage` for each damaged part.

Lengths are not trusted: a frame's length is compared with the bytes that remain before anything is
read. The bytes of a file decide whether it is packed with gzip or ZLIB, not its name.

A record is a little-endian uint64 length, the masked CRC-32C of those 8 bytes, the data, and the
data's masked CRC-32C (tensorflow/core/lib/io/record_writer.h).
"""

import hashlib
import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from crc32c import crc32c

from recordmill import storage
from recordmill.schemas.str_path import StrPath

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK_BYTES = 2**20
"""Block size of reads: small enough to stay in a processor's cache while checksums and digests are
computed."""

_MOST_UNPACKED = 1032
"""Maximum number of bytes to which one byte of a deflate stream can unpack (zlib's technical
notes)."""

_PACKED_BYTES = 2**16
"""How much of a gzip file is unpacked at a time, or less if that gives `BLOCK_BYTES`."""


class StoredFile:
    """A stored file, open for random access.

    If it is not compressed, it is also the reader of its unpacked bytes.

    Attributes:
        size: in bytes.
        members: number of gzip members: always 0.
        fault: why reading ended early: always None.
    """

    members = 0
    fault: str | None = None
    is_checksum_fault = False

    def __init__(self, path: StrPath, digest: bool = False) -> None:
        """Opens a file.

        Args:
            path: on any of Beam's file systems.
            digest: whether `sha256` will be called: the digest is computed while reading.

        Raises:
            OSError: it does not exist, is not a file, or cannot be opened.
        """
        path = os.fspath(path)
        self._stream = storage.open_to_read(path)
        self.size = storage.size_of(path) or 0
        self._digest = hashlib.sha256() if digest else None
        self._digested = 0

    def read_at(self, offset: int, count: int) -> bytes:
        """Returns the `count` bytes from `offset` on; fewer only at the end of the file."""
        self._stream.seek(offset)
        data = self._stream.read(count)
        if self._digest and offset <= self._digested < offset + len(data):
            self._digest.update(memoryview(data)[self._digested - offset :])
            self._digested = offset + len(data)
        return data

    def read(self, offset: int, count: int) -> memoryview:
        """Returns the bytes from `offset`: at least `count`, and fewer only at the end.

        The view stays valid.
        """
        return memoryview(self.read_at(offset, max(count, BLOCK_BYTES)))

    def max_remaining(self, offset: int) -> int:
        """Returns the number of bytes from `offset` to the end."""
        return self.size - offset

    def sha256(self) -> str:
        """Returns the file's hex digest; reads the rest of the file. Only with `digest=True`."""
        assert self._digest is not None
        while self.read_at(self._digested, BLOCK_BYTES):
            pass
        return self._digest.hexdigest()

    def __enter__(self) -> "StoredFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()


class GzipBytes:
    """The unpacked bytes of a gzip file of one member, or of several concatenated ones.

    They may also be those of a ZLIB stream, TensorFlow's other compression of TFRecords.

    `read` only goes forward: bytes before the last `offset` cannot be read again.

    Attributes:
        format: `gzip` or `ZLIB`, as the first bytes say.
        packed_bytes: number of stored bytes unpacked so far.
        members: number of members so far.
        fault: why reading ended, if the stream itself is damaged; otherwise None.
        is_checksum_fault: whether the fault is a trailer that does not match the unpacked bytes.
    """

    def __init__(self, stored: StoredFile) -> None:
        self._stored = stored
        self.packed_bytes = 0
        self._unpacked = b""
        self._start = 0  # position of `_unpacked` in the unpacked file
        is_zlib = compression_of(stored.read_at(0, _HEADER.size)) == "zlib"
        self.format: Literal["gzip", "ZLIB"] = "gzip"
        wbits = 31
        if is_zlib:
            self.format, wbits = "ZLIB", zlib.MAX_WBITS
        self._inflate: Any = zlib.decompressobj(wbits)
        self._ended = False
        self.members = 1
        self.fault: str | None = None
        self.is_checksum_fault = False

    def read(self, offset: int, count: int) -> memoryview:
        """Reads unpacked bytes; those that cannot be unpacked count as beyond the end."""
        have = self._start + len(self._unpacked) - offset
        if have < count and not self._ended:
            pieces = [self._unpacked[offset - self._start :]]
            while have < count and not self._ended:
                piece = self._unpack()
                have += len(piece)
                # Bytes before `offset` are skipped.
                pieces.append(piece[max(len(piece) - have, 0) :])
            self._unpacked, self._start = b"".join(pieces), offset
        return memoryview(self._unpacked)[offset - self._start :]

    @property
    def start(self) -> int:
        """The lowest offset that can be read."""
        return self._start

    def copy_at(self, offset: int) -> "GzipBytes":
        """Returns a reader that goes on from an offset that was just read.

        What either reads does not move the other; they read the same stored file, one at a time.
        """
        other = GzipBytes.__new__(GzipBytes)
        rest = self._unpacked[offset - self._start :]
        vars(other).update(vars(self), _inflate=self._inflate.copy(), _unpacked=rest, _start=offset)
        return other

    def max_remaining(self, offset: int) -> int:
        """Returns the most bytes from `offset` to the end, at the highest compression."""
        held = self._start + len(self._unpacked) - offset
        if self._ended:
            return held
        return held + (self._stored.size - self.packed_bytes + 64) * _MOST_UNPACKED

    def _unpack(self) -> bytes:
        """Returns the next unpacked bytes, perhaps none; `_ended` is set at the end."""
        packed = self._stored.read_at(self.packed_bytes, _PACKED_BYTES)
        if not packed:
            return self._end(f"the {self.format} stream ends early: the file was truncated")
        before = self._inflate.copy()
        try:
            piece: bytes = self._inflate.decompress(packed, BLOCK_BYTES)
        except zlib.error as error:
            reason = re.sub(r"Error -?\d+ while decompressing data: ", "", str(error))
            self._end(f"the {self.format} stream is damaged ({reason})")
            self.is_checksum_fault = "incorrect" in str(error) and "header" not in str(error)
            return _unpack_before_damage(before, packed)
        self.packed_bytes += (
            len(packed) - len(self._inflate.unused_data) - len(self._inflate.unconsumed_tail)
        )
        if self._inflate.eof:
            self._begin_member()
        return piece

    def _begin_member(self) -> None:
        """Continues after a complete member, with the next one or to the end."""
        following = self._stored.read_at(self.packed_bytes, _PACKED_BYTES)
        if following.startswith(b"\x1f\x8b") and self.format == "gzip":
            self.members += 1
            self._inflate = zlib.decompressobj(wbits=31)
        elif following:
            what = "zeros"
            if following.strip(b"\0"):
                what = f"bytes that are not {self.format}"
            self._end(f"{what} after the end of the {self.format} stream")
        else:
            self._ended = True

    def _end(self, fault: str) -> bytes:
        self._ended, self.fault = True, fault
        return b""


def _unpack_before_damage(inflate: Any, tail: bytes) -> bytes:
    """Returns the bytes before the damage.

    The input is unpacked byte by byte, since a failing call returns nothing.
    """
    unpacked = bytearray()
    with suppress(zlib.error):
        for at in range(len(tail)):
            unpacked += inflate.decompress(tail[at : at + 1])
    return bytes(unpacked)


_HEADER = struct.Struct("<QI")
"""What precedes a record's data: its length, and the length's checksum."""

_CHECKSUM = struct.Struct("<I")
"""What follows the data: their checksum."""

_FRAMING_BYTES = _HEADER.size + _CHECKSUM.size

_NOT_ZERO = re.compile(rb"[^\0]")
_HIGH_BYTES = bytes(4)  # of the length of any record below 4 GiB

_Bytes = TypeVar("_Bytes", int, "NDArray[Any]")
"""A number of bytes, or an array of them."""


def frame_bytes(length: _Bytes) -> _Bytes:
    """Returns the size of the frame around a record of this length."""
    return length + _FRAMING_BYTES


def data_bytes(framed: _Bytes, records: int = 1) -> _Bytes:
    """Returns the size of the data in frames, by the size of the frames and their number."""
    return framed - _FRAMING_BYTES * records


def data_offset(offset: int) -> int:
    """Returns the first byte of the data in the frame that begins at an offset."""
    return offset + _HEADER.size


def unframe(frame: bytes, length: int) -> bytes | None:
    """Returns the record in a frame, or None if its length or a checksum does not match."""
    begin, end = _HEADER.size, len(frame) - _CHECKSUM.size
    if end - begin != length or frame[:begin] != _pack_header(length):
        return None
    record = frame[begin:end]
    if _CHECKSUM.unpack_from(frame, end)[0] == masked(crc32c(record)):
        return record
    return None


@lru_cache(maxsize=2**16)
def _pack_header(length: int) -> bytes:
    return _HEADER.pack(length, masked(crc32c(length.to_bytes(8, "little"))))


def describe_frames(places: Iterable[tuple[int, int]]) -> bytes:
    """Returns the index of a file: a line `<offset> <length>` for each of its frames.

    Args:
        places: the offset of each frame, and the length of its record.
    """
    return "".join(f"{offset} {frame_bytes(length)}\n" for offset, length in places).encode()


@dataclass(frozen=True, slots=True)
class Damage:
    """Stands for one or several records that cannot be read.

    Attributes:
        kind: `length` or `data` if their checksum does not match, `cut` if the file ends early,
            `gzip` if the gzip or ZLIB stream around them is damaged, or `zeros` if only zeros are
            left. With `data` it is one record, otherwise their number is unknown.
        detail: a description for people.
    """

    kind: Literal["length", "data", "cut", "gzip", "zeros"]
    detail: str


class RecordFile:
    """One TFRecord file, read once from its first byte to its last."""

    def __init__(self, stored: StoredFile) -> None:
        self.compression = compression_of(stored.read_at(0, _HEADER.size))
        self._bytes: StoredFile | GzipBytes = stored
        if self.compression != "none":
            self._bytes = GzipBytes(stored)

    @property
    def members(self) -> int:
        """The number of gzip members so far; 0 for a plain file."""
        return self._bytes.members

    def __iter__(self) -> Iterator[tuple[int, memoryview | Damage]]:
        """Yields `(offset, record)`: where the frame begins, and its data or a `Damage`.

        The offset is one in the unpacked file. The view stays valid. After damage, reading
        continues with the next frame whose length, below 4 GiB, matches its checksum. Records in
        between are lost, so later records cannot be numbered by counting.
        """
        source, offset, damaged = self._bytes, 0, False
        block, at = source.read(0, BLOCK_BYTES), 0
        while offset >= 0:
            if len(block) - at < _HEADER.size:
                block, at = source.read(offset, _HEADER.size), 0
                if len(block) < _HEADER.size:
                    break
            length, checksum = _HEADER.unpack_from(block, at)
            framed, left = length + _FRAMING_BYTES, len(block) - at
            if masked(crc32c(block[at : at + 8])) != checksum:
                damage = Damage("length", "the length does not match its checksum")
            else:
                if left < framed and framed <= (left := source.max_remaining(offset)):
                    block, at = source.read(offset, framed), 0
                    left = len(block)
                if left >= framed:
                    data = block[at + _HEADER.size : at + _HEADER.size + length]
                    if (
                        masked(crc32c(data))
                        == _CHECKSUM.unpack_from(block, at + _HEADER.size + length)[0]
                    ):
                        yield offset, data
                        at, offset = at + framed, offset + framed
                        continue
                    damage = Damage("data", "the data do not match their checksum")
                else:
                    damage = _cut(length, left)
            damaged, start = True, offset
            offset, zeros = self._find_frame(start)
            yield start, zeros or damage
            block, at = source.read(offset, _HEADER.size) if offset >= 0 else block, 0
        if source.fault and not (damaged and source.is_checksum_fault):
            yield offset, Damage("gzip", source.fault)
        elif offset >= 0 and block:
            yield offset, _cut_in_header(block)

    def _find_frame(self, offset: int) -> tuple[int, Damage | None]:
        """Finds the next frame after `offset` whose length matches its checksum and fits the file.

        Returns:
            Its start, -1 if there is none; and the damage if only zeros are left.
        """
        start, only_zeros = offset, True
        while block := self._bytes.read(offset, BLOCK_BYTES):
            only_zeros = only_zeros and not _NOT_ZERO.search(block)
            for at in _frame_starts(block):
                length, _ = _HEADER.unpack_from(block, at)
                fits = frame_bytes(length) <= self._bytes.max_remaining(offset + at)
                if fits and offset + at > start:
                    return offset + at, None
            offset += max(len(block) - _HEADER.size + 1, 1)
        if only_zeros and offset > start:
            return -1, _zeros(offset - start)
        return -1, None


Compression = Literal["gzip", "zlib", "none"]


def compression_of(start: bytes) -> Compression:
    """Returns how a file is compressed, judging by its first bytes.

    A plain file may begin with those of gzip or ZLIB by chance, but then they match their checksum,
    or they are a length below 4 GiB.
    """
    if begins_with_frame(start):
        return "none"
    if start.startswith(b"\x1f\x8b"):
        return "gzip"
    # RFC 1950: deflate, a window of at most 32 KiB, a check of both bytes, and no dictionary.
    is_zlib = (
        len(start) > 1
        and start[0] & 0x8F == 8
        and not start[1] & 0x20
        and not (start[0] << 8 | start[1]) % 31
        and start[4:8] != _HIGH_BYTES
    )
    if is_zlib:
        return "zlib"
    return "none"


def begins_with_frame(start: bytes) -> bool:
    """Returns whether unpacked bytes begin with a frame: a length and its checksum."""
    return len(start) >= _HEADER.size and masked(crc32c(start[:8])) == _HEADER.unpack_from(start)[1]


def _frame_starts(block: memoryview) -> Iterator[int]:
    """Yields the positions in a block at which 8 bytes are followed by their checksum.

    The last four of the 8 bytes are 0.
    """
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


def _cut_in_header(block: memoryview) -> Damage:
    if not _NOT_ZERO.search(block):
        return _zeros(len(block))
    ends = f"the file ends inside the record's length: {len(block)} bytes of its 12"
    return Damage("cut", ends)


def _cut(length: int, left: int) -> Damage:
    inside = "data" if left < _HEADER.size + length else "checksum"
    held = max(left - _HEADER.size, 0)
    claim = (
        f"{length:,} bytes are claimed, by a length that matches its checksum, and {held:,} are "
        "left"
    )
    return Damage("cut", f"the file ends inside the record's {inside}: {claim}")


def _zeros(count: int) -> Damage:
    return Damage("zeros", f"{count:,} zeros instead of a record, up to the end of the file")


def masked(checksum: int) -> int:
    """Returns a CRC-32C as TFRecord stores it: rotated right by 15 bits, plus 0xa282ead8."""
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def looks_like_records(path: str) -> bool:
    """Returns whether a file begins with a frame's length and its checksum, compressed or not.

    Raises:
        OSError: it cannot be read.
    """
    with StoredFile(path) as stored:
        start = stored.read_at(0, 2**16)
        if compression_of(start) != "none":
            start = bytes(GzipBytes(stored).read(0, _HEADER.size)[: _HEADER.size])
    return begins_with_frame(start)


def is_not_tfrecord(path: str) -> bool:
    """Returns whether a file is not a TFRecord file.

    Such a file does not begin with a frame and contains no intact record. An empty file, a file of
    zeros and a damaged gzip stream may have been TFRecord files.

    Raises:
        OSError: it cannot be read.
    """
    if looks_like_records(path):
        return False
    with StoredFile(path) as stored:
        records = (record for _, record in RecordFile(stored))
        return stored.size > 0 and all(
            isinstance(each, Damage) and each.kind in ("length", "cut") for each in records
        )


class RecordSink:
    """One TFRecord file, written through `WriteToTFRecord`'s sink.

    The caller assigns records to files. `offset` is the start of the next record in the
    uncompressed file, in bytes.
    """

    def __init__(self, path: str, compression: str) -> None:
        # Imported here: Beam takes seconds, and readers do not need it.
        from apache_beam.io.filesystem import CompressedFile, CompressionTypes

        from recordmill.storage.stores.find_store import record_sink

        stored = storage.open_to_write(path)
        packed = compression == "gzip"
        if packed:
            self._file: Any = CompressedFile(stored, compression_type=CompressionTypes.GZIP)
        else:
            self._file = stored
        self._sink: Any = record_sink(path)
        self.offset = 0

    def write(self, record: bytes) -> None:
        """Appends one record."""
        self._sink.write_encoded_record(self._file, record)
        self.offset += len(record) + _FRAMING_BYTES

    def close(self) -> None:
        """Finishes the file."""
        self._sink.close(self._file)


@dataclass(frozen=True, slots=True)
class FileContents:
    """The size in bytes, hex digest and number of records of a finished file, as read back."""

    bytes: int
    sha256: str
    records: int


class DamagedFileError(Exception):
    """A file is not a TFRecord file, or was truncated or changed; the message says where."""


def read_back(path: str, compression: str) -> FileContents:
    """Reads a whole file, and computes the digest of the stored bytes.

    Every frame and both of its checksums are checked.

    Args:
        path: the file.
        compression: `none` or `gzip`.

    Raises:
        DamagedFileError: a frame or a checksum (also gzip's) is wrong, or the file is not
            compressed as expected.
    """
    with StoredFile(path, digest=True) as stored:
        records = RecordFile(stored)
        if stored.size and records.compression != compression:
            raise DamagedFileError(
                f"the compression is {records.compression} and should be {compression}"
            )
        count = 0
        for offset, data in records:
            if isinstance(data, Damage):
                raise DamagedFileError(f"record {count} at byte {offset}: {data.detail}")
            count += 1
        return FileContents(stored.size, stored.sha256(), count)
