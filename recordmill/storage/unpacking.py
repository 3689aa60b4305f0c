"""Unpacks gzip files and members of zip archives, piece by piece and within a bound.

A deflate stream can unpack to 1,032 times its size; ordinary files of pixels or text seldom reach 20 times.
"""

import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from recordmill.schemas.rejection import Rejected
from recordmill.storage.record_bytes import GzipBytes, StoredFile
from recordmill.storage.record_reader import Damage, RecordFile

PIECE_BYTES = 2**20

MAX_RATIO = 100
"""How many times its size a compressed file may unpack to, above `FREE_BYTES`."""

FREE_BYTES = 64 * 2**20
"""Size to which any gzip file may unpack, whatever its ratio, unless the caller allows less."""

FREE_BYTES_OF_RECORDS = 2**20
"""Size to which any gzip file of records may unpack: less than for other files, since 16 bytes can be a record."""

STORED, DEFLATED = 0, 8
"""The supported zip methods (APPNOTE.TXT, 4.4.5)."""


class BadPacking(Rejected):
    """A compressed file cannot be unpacked.

    Attributes:
        is_doubtful: whether the bytes before it may be wrong, because a checksum over all of them does not match.
    """

    def __init__(self, message: str, is_doubtful: bool = False) -> None:
        super().__init__("read", "bad_packing", message)
        self.is_doubtful = is_doubtful

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.detail, self.is_doubtful)


class TooLarge(BadPacking):
    """A compressed file unpacks to more than is allowed."""


def gunzip(stored: StoredFile, max_ratio: int = MAX_RATIO, free_bytes: int | None = None) -> Iterator[memoryview]:
    """Yields the unpacked bytes of a gzip file of one or several members, as far as it is not damaged.

    If a file begins like a bomb, nothing is yielded before its whole size is known: counting takes a moment, whereas
    processing the bytes could take hours.

    Args:
        stored: the file.
        max_ratio: it may unpack to `free_bytes` plus this multiple of its size.
        free_bytes: None: `FREE_BYTES`.

    Raises:
        TooLarge: it unpacks to more.
        BadPacking: the stream is damaged or truncated; raised after the bytes before it.
    """
    content, total, is_counted = GzipBytes(stored), 0, False
    most = most_unpacked(stored.size, max_ratio, free_bytes)
    while piece := content.read(total, PIECE_BYTES):
        total += len(piece)
        if not is_counted and total > max_ratio * content.packed_bytes:
            is_counted = True
            with content.looking_ahead():
                _count(content, total, most, max_ratio)
        _check_size(total, most, max_ratio)
        yield piece
    if content.fault:
        raise BadPacking(f"the gzip file is damaged: {content.fault}", content.is_checksum_fault)


def most_unpacked(size: int, max_ratio: int = MAX_RATIO, free_bytes: int | None = None) -> int:
    """The size to which this number of bytes may unpack; see `gunzip`."""
    return (FREE_BYTES if free_bytes is None else free_bytes) + max_ratio * size


def read_bounded(records: RecordFile, stored: StoredFile, max_ratio: int) -> Iterator[tuple[int, memoryview | Damage]]:
    """Yields what `records` yields; if a gzip file unpacks to too much, a `Damage`, and then nothing more.

    A file that begins as a bomb yields nothing else.

    Args:
        records: of the file.
        stored: the file.
        max_ratio: a gzip file may unpack to `FREE_BYTES_OF_RECORDS` plus this multiple of its size.
    """
    too_large = Damage("gzip", f"the gzip file unpacks to more than {max_ratio} times its size")
    if records.compression == "none":
        yield from records
        return
    try:
        _check_ratio(stored, max_ratio, FREE_BYTES_OF_RECORDS)
    except TooLarge:
        yield 0, too_large
        return
    most = most_unpacked(stored.size, max_ratio, FREE_BYTES_OF_RECORDS)
    for offset, record in records:
        if offset > most:
            yield offset, too_large
            return
        yield offset, record


def _check_ratio(stored: StoredFile, max_ratio: int, free_bytes: int) -> None:
    """Raises TooLarge if a gzip file that begins like a bomb unpacks to more than `gunzip` allows."""
    content = GzipBytes(stored)
    total = len(content.read(0, PIECE_BYTES))
    if total > max_ratio * content.packed_bytes:
        _count(content, total, most_unpacked(stored.size, max_ratio, free_bytes), max_ratio)


def _count(content: GzipBytes, total: int, most: int, max_ratio: int) -> None:
    while piece := content.read(total, PIECE_BYTES):
        total += len(piece)
        _check_size(total, most, max_ratio)


def _check_size(total: int, most: int, max_ratio: int) -> None:
    if total > most:
        raise TooLarge(f"the gzip file unpacks to more than {max_ratio} times its size")


def unzip(archive: BinaryIO, name: str, max_ratio: int = MAX_RATIO) -> Iterator[bytes]:
    """Yields the unpacked bytes of one member of a zip archive.

    Args:
        archive: the archive.
        name: the member's.
        max_ratio: it may unpack to `FREE_BYTES` plus this multiple of its size.

    Raises:
        TooLarge: it unpacks to more.
        BadPacking: there is no such member, or it is damaged and none of its bytes can be trusted.
    """
    total = 0
    try:
        with zipfile.ZipFile(archive) as directory, directory.open(name) as member:
            packed = directory.getinfo(name).compress_size
            while piece := member.read(PIECE_BYTES):
                total += len(piece)
                if total > most_unpacked(packed, max_ratio):
                    raise TooLarge(f"{name} unpacks to more than {max_ratio} times its size")
                yield piece
    except (EOFError, zlib.error) as error:
        raise BadPacking(f"the zip archive is damaged: {error}", is_doubtful=True) from None
    except (KeyError, NotImplementedError, RuntimeError, zipfile.BadZipFile) as error:
        raise BadPacking(f"{name} cannot be unpacked: {error.args[0]}", is_doubtful=True) from None


@dataclass(frozen=True, slots=True)
class ZipMember:
    """The position of one member of a zip archive.

    Attributes:
        method: `STORED` or `DEFLATED`.
        start: first byte of its data in the archive, after its header.
        packed: compressed size in bytes.
        size: unpacked size in bytes.
        crc: CRC-32 of the unpacked bytes.
    """

    method: int
    start: int
    packed: int
    size: int
    crc: int

    def __str__(self) -> str:
        """Its form in `ImageRef.packing`."""
        return f"zip:{self.method}:{self.start}:{self.packed}:{self.size}:{self.crc:08x}"

    @classmethod
    def from_text(cls, packing: str) -> "ZipMember":
        """Parses the result of `str`.

        Raises:
            ValueError: it is not a packing.
        """
        name, *numbers = packing.split(":")
        if name != "zip" or len(numbers) != 5:
            raise ValueError(f"there is no packing {packing!r}")
        method, start, packed, size = map(int, numbers[:4])
        return cls(method, start, packed, size, int(numbers[4], 16))

    def unpack(self, data: bytes) -> bytes:
        """Unpacks its content.

        Args:
            data: the bytes of the archive from `start` on.

        Raises:
            BadPacking: they do not match the archive's directory.
        """
        if len(data) != self.packed:
            raise BadPacking("the archive ends inside the member")
        if self.method == DEFLATED:
            inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            try:
                data = inflate.decompress(data, self.size + 1)
            except zlib.error as error:
                raise BadPacking(f"the member is damaged: {error}") from None
        if len(data) != self.size:
            more = "more" if len(data) > self.size else "less"
            raise BadPacking(f"the member unpacks to {more} than the {self.size} bytes declared")
        if zlib.crc32(data) != self.crc:
            raise BadPacking("the member does not match its checksum")
        return data
