"""TFRecord files: written by Beam's own sink, read back frame by frame.

A record is a little-endian uint64 length, the masked CRC-32C of those 8 bytes, the data, and the data's masked CRC-32C
(tensorflow/core/lib/io/record_writer.h).
"""

import gzip
import hashlib
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import google_crc32c
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.tfrecordio import WriteToTFRecord

from transforms import storage

FRAMING_BYTES = 16
"""Bytes that a record's frame adds to its data."""

_HEADER = struct.Struct("<QI")
_CHECKSUM = struct.Struct("<I")


class RecordSink:
    """One TFRecord file, written through `WriteToTFRecord`'s sink; which record goes where is the caller's.

    `offset` is where the next record begins, in bytes of the uncompressed file.
    """

    def __init__(self, path: str, compression: str) -> None:
        kind = CompressionTypes.GZIP if compression == "gzip" else CompressionTypes.UNCOMPRESSED
        self._sink: Any = WriteToTFRecord(path, compression_type=kind)._sink
        self._file = self._sink.open(path)
        self.offset = 0

    def write(self, record: bytes) -> None:
        """Appends one record."""
        self._sink.write_record(self._file, record)
        self.offset += len(record) + FRAMING_BYTES

    def close(self) -> None:
        """Finishes the file."""
        self._sink.close(self._file)


@dataclass(frozen=True, slots=True)
class FileContents:
    """What was read back from a finished file: its size in bytes, its hex digest, and how many records it holds."""

    bytes: int
    sha256: str
    records: int


class DamagedFileError(Exception):
    """A file is no TFRecord file, or one that was cut or changed; the message says where."""


def read_back(path: str, compression: str) -> FileContents:
    """Reads a file from its first byte to its last: every frame, both checksums, the digest of the stored bytes.

    Raises:
        DamagedFileError: a frame or a checksum is wrong, gzip's own too.
    """
    with storage.open_to_read(path) as stored:
        hashed = _HashedStream(stored)
        stream = gzip.GzipFile(fileobj=hashed) if compression == "gzip" else hashed  # type: ignore[call-overload]
        try:
            records = sum(1 for _ in read_records(stream))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DamagedFileError(f"the gzip stream is damaged: {error}") from None
        return FileContents(hashed.bytes, hashed.digest.hexdigest(), records)


def read_records(stream: Any) -> Iterator[bytes]:
    """Yields the data of each record of a stream. No more is read than the stream holds, whatever a length claims.

    Raises:
        DamagedFileError: the stream ends inside a record, or a checksum does not fit; says which record, and where.
    """
    blocks = _Blocks(stream)
    index = offset = 0

    def damage(what: str) -> DamagedFileError:
        return DamagedFileError(f"record {index} at byte {offset}: {what}")

    while header := blocks.take(_HEADER.size):
        if len(header) < _HEADER.size:
            raise damage("the file ends inside the record's length")
        length, checksum = _HEADER.unpack(header)
        if masked_crc32c(header[:8]) != checksum:
            raise damage("the checksum of the length does not fit")
        data = blocks.take(length)
        tail = blocks.take(_CHECKSUM.size)
        if len(data) < length or len(tail) < _CHECKSUM.size:
            raise damage("the file ends inside the record")
        if masked_crc32c(data) != _CHECKSUM.unpack(tail)[0]:
            raise damage("the checksum of the data does not fit")
        yield data
        index += 1
        offset += length + FRAMING_BYTES


def masked_crc32c(data: bytes) -> int:
    """The masked CRC-32C of TFRecord: rotated right by 15 bits, plus 0xa282ead8."""
    checksum: int = google_crc32c.value(data)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


class _Blocks:
    """Cuts a stream, read in large blocks, into pieces; a read, a digest and a lock for each frame would cost more."""

    SIZE = 2**21

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._block = b""
        self._at = 0

    def take(self, count: int) -> bytes:
        """The next bytes: `count` of them, fewer at the end of the stream."""
        end = self._at + count
        if end <= len(self._block):
            piece = self._block[self._at : end]
            self._at = end
            return piece
        pieces = [self._block[self._at :]]
        missing = count - len(pieces[0])
        while missing > 0:
            self._block = self._stream.read(self.SIZE)
            self._at = min(missing, len(self._block))
            pieces.append(self._block[: self._at])
            missing -= self._at
            if not self._block:
                break
        return b"".join(pieces)


class _HashedStream:
    """Passes a stream's bytes on and keeps their number and digest."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.digest = hashlib.sha256()
        self.bytes = 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.digest.update(data)
        self.bytes += len(data)
        return data
