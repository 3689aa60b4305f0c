"""Unpacking gzip files and members of zip archives, piece by piece and never beyond a bound.

A deflate stream can become 1,032 times its size; ordinary files of pixels or text seldom become 20 times.
"""

import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from recordmill.schemas.rejection import Rejected
from recordmill.storage.record_bytes import GzipBytes, StoredFile

PIECE_BYTES = 2**20

MAX_RATIO = 100
"""How many times its size a packed file may become, beyond `FREE_BYTES`."""

FREE_BYTES = 64 * 2**20
"""What any gzip file may become, however well it is packed, unless whoever reads it allows less."""

STORED, DEFLATED = 0, 8
"""Zip's methods that are read (APPNOTE.TXT, 4.4.5)."""


class BadPacking(Rejected):
    """A packed file cannot be unpacked.

    Attributes:
        is_doubtful: whether what came out before may be wrong: a checksum over all of it does not fit.
    """

    def __init__(self, message: str, is_doubtful: bool = False) -> None:
        super().__init__("read", "bad_packing", message)
        self.is_doubtful = is_doubtful

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.detail, self.is_doubtful)


class TooLarge(BadPacking):
    """A packed file becomes larger than is allowed."""


def gunzip(stored: StoredFile, max_ratio: int = MAX_RATIO, free_bytes: int | None = None) -> Iterator[memoryview]:
    """Yields what a gzip file, of one member or several, unpacks to, as far as it is not damaged.

    Of a file that begins as a bomb does nothing is given before all of it was counted: to count takes a moment, and to
    make something of every second byte hours.

    Args:
        stored: the file.
        max_ratio: it may become `free_bytes` and so many times its size.
        free_bytes: None: `FREE_BYTES`.

    Raises:
        TooLarge: it becomes larger.
        BadPacking: the stream is damaged or was cut; after all that comes before.
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
    """What so many bytes may become; see `gunzip`."""
    return (FREE_BYTES if free_bytes is None else free_bytes) + max_ratio * size


def check_ratio(stored: StoredFile, max_ratio: int = MAX_RATIO, free_bytes: int | None = None) -> None:
    """Raises TooLarge where a gzip file that begins as a bomb becomes larger than `gunzip` allows."""
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
    """Yields what one member of a zip archive unpacks to.

    Args:
        archive: the archive.
        name: the member's.
        max_ratio: it may become `FREE_BYTES` and so many times its size.

    Raises:
        TooLarge: it becomes larger.
        BadPacking: there is no such member, or it is damaged; then nothing of it is good.
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
    """Where one member of a zip archive lies.

    Attributes:
        method: `STORED` or `DEFLATED`.
        start: first byte of its data in the archive, behind its header.
        packed: bytes there.
        size: bytes unpacked.
        crc: the CRC-32 of those.
    """

    method: int
    start: int
    packed: int
    size: int
    crc: int

    def __str__(self) -> str:
        """The text that stands for it in `ImageRef.packing`."""
        return f"zip:{self.method}:{self.start}:{self.packed}:{self.size}:{self.crc:08x}"

    @classmethod
    def from_text(cls, packing: str) -> "ZipMember":
        """What `str` wrote.

        Raises:
            ValueError: it is no packing.
        """
        name, *numbers = packing.split(":")
        if name != "zip" or len(numbers) != 5:
            raise ValueError(f"there is no packing {packing!r}")
        method, start, packed, size = map(int, numbers[:4])
        return cls(method, start, packed, size, int(numbers[4], 16))

    def unpack(self, data: bytes) -> bytes:
        """Its contents.

        Args:
            data: the bytes of the archive from `start` on.

        Raises:
            BadPacking: they are not what the archive's directory says.
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
