"""Unpacks gzip files and members of zip archives, piece by piece and within a bound.

A deflate stream can unpack to 1,032 times its size; ordinary files of pixels or text seldom reach 20 times.
"""

import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from recordmill.schemas.packing import DEFLATED, ZipMember
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
    """Yields the unpacked bytes of a gzip file of one or several members, up to any damage.

    If a file begins like a bomb, nothing is yielded until its whole size is known: counting takes a moment, whereas
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

    def read_piece(source: GzipBytes, offset: int) -> memoryview:
        piece = source.read(offset, PIECE_BYTES)
        if offset + len(piece) > most:
            raise TooLarge(f"the gzip file unpacks to more than {max_ratio} times its size")
        return piece

    while piece := read_piece(content, total):
        total += len(piece)
        if not is_counted and total > max_ratio * content.packed_bytes:
            is_counted, ahead, counted = True, content.ahead(), total
            while more := read_piece(ahead, counted):
                counted += len(more)
        yield piece
    if content.fault:
        raise BadPacking(f"the gzip file is damaged: {content.fault}", content.is_checksum_fault)


def most_unpacked(size: int, max_ratio: int = MAX_RATIO, free_bytes: int | None = None) -> int:
    """The size to which this number of bytes may unpack; see `gunzip`."""
    return (FREE_BYTES if free_bytes is None else free_bytes) + max_ratio * size


def read_bounded(records: RecordFile, stored: StoredFile, max_ratio: int) -> Iterator[tuple[int, memoryview | Damage]]:
    """Yields what `records` yields; if a gzip file unpacks to too much, ends with a `Damage`.

    If a file begins like a bomb, that is all it yields.

    Args:
        records: the file's records.
        stored: the file.
        max_ratio: a gzip file may unpack to `FREE_BYTES_OF_RECORDS` plus this multiple of its size.
    """
    too_large = Damage("gzip", f"the gzip file unpacks to more than {max_ratio} times its size")
    if records.compression == "none":
        yield from records
        return
    try:
        next(gunzip(stored, max_ratio, FREE_BYTES_OF_RECORDS), None)
    except TooLarge:
        yield 0, too_large
        return
    except BadPacking:
        pass  # `records` finds the place
    most = most_unpacked(stored.size, max_ratio, FREE_BYTES_OF_RECORDS)
    for offset, record in records:
        if offset > most:
            yield offset, too_large
            return
        yield offset, record


def unzip(archive: BinaryIO, name: str, max_ratio: int = MAX_RATIO) -> Iterator[bytes]:
    """Yields the unpacked bytes of one member of a zip archive.

    Args:
        archive: the archive.
        name: the member's name.
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


def read_zip_member(member: ZipMember, data: bytes) -> bytes:
    """The unpacked content of a member of a zip archive.

    Args:
        member: its position.
        data: the bytes of the archive from `member.start` on.

    Raises:
        BadPacking: the bytes do not match the archive's directory.
    """
    if len(data) != member.packed:
        raise BadPacking("the archive ends inside the member")
    if member.method == DEFLATED:
        try:
            data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, member.size + 1)
        except zlib.error as error:
            raise BadPacking(f"the member is damaged: {error}") from None
    if len(data) != member.size:
        more = "more" if len(data) > member.size else "less"
        raise BadPacking(f"the member unpacks to {more} than the {member.size} bytes declared")
    if zlib.crc32(data) != member.crc:
        raise BadPacking("the member does not match its checksum")
    return data
