"""Reads the bytes that a reference points to, also inside compressed files.

Ranges are of the unpacked content.

A compressed file without random access is unpacked once in each process that reads from it, to a
temporary file, so memory does not grow with its size. The temporary file is deleted when the
process ends. The unpacked size is bounded: a deflate stream can unpack to 1,032 times its size;
ordinary files of pixels or text seldom reach 20 times.
"""

import atexit
import errno
import os
import tempfile
import threading
import time
import zipfile
import zlib
from collections import deque
from collections.abc import Iterator
from functools import cache
from typing import Any, BinaryIO, NamedTuple

from recordmill import storage
from recordmill.schemas.image_ref import (
    DEFLATED,
    Gzip,
    ImageRef,
    NamedMember,
    Packing,
    SourceFile,
    ZipMember,
    parse_packing,
)
from recordmill.schemas.rejection import Rejected
from recordmill.storage.regular_files import NotAFileError
from recordmill.storage.tfrecord_file import Damage, GzipBytes, RecordFile, StoredFile

PIECE_BYTES = 2**20

MAX_RATIO = 100
"""How many times its size a compressed file may unpack to, above `FREE_BYTES`."""

FREE_BYTES = 64 * 2**20
"""Size to which any gzip file may unpack, whatever its ratio, unless the caller allows less."""

FREE_BYTES_OF_RECORDS = 2**20
"""Size to which any gzip file of records may unpack: less than for other files, since 16 bytes can
be a record."""


class BadPacking(Rejected):
    """A compressed file cannot be unpacked.

    Attributes:
        is_doubtful: whether the bytes before it may be wrong, because a checksum over all of them
            does not match.
    """

    def __init__(self, message: str, is_doubtful: bool = False) -> None:
        super().__init__("read", "bad_packing", message)
        self.is_doubtful = is_doubtful

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.detail, self.is_doubtful)


class TooLarge(BadPacking):
    """A compressed file unpacks to more than is allowed."""


def gunzip(
    stored: StoredFile, max_ratio: int = MAX_RATIO, free_bytes: int | None = None
) -> Iterator[memoryview]:
    """Yields the unpacked bytes of a gzip or ZLIB file, up to any damage.

    If a file begins like a bomb, nothing is yielded until its whole size is known: counting takes a
    moment, whereas processing the bytes could take hours.

    Args:
        stored: the file.
        max_ratio: it may unpack to `free_bytes` plus this multiple of its size.
        free_bytes: None: `FREE_BYTES`.

    Raises:
        TooLarge: it unpacks to more.
        BadPacking: the stream is damaged or truncated; raised after the bytes before it.
    """
    most = most_unpacked(stored.size, max_ratio, free_bytes)

    def unpack_all(content: GzipBytes) -> Iterator[memoryview]:
        total = 0
        while piece := content.read(total, PIECE_BYTES):
            total += len(piece)
            if total > most:
                raise TooLarge(
                    f"the {content.format} file unpacks to more than {max_ratio} times its size"
                )
            yield piece

    content = GzipBytes(stored)
    # It begins like a bomb.
    if len(content.read(0, PIECE_BYTES)) > max_ratio * content.packed_bytes:
        deque(unpack_all(GzipBytes(stored)), maxlen=0)
    yield from unpack_all(content)
    if content.fault:
        raise BadPacking(
            f"the {content.format} file is damaged: {content.fault}", content.is_checksum_fault
        )


def most_unpacked(size: int, max_ratio: int = MAX_RATIO, free_bytes: int | None = None) -> int:
    """Returns the size to which this number of bytes may unpack; see `gunzip`."""
    return (FREE_BYTES if free_bytes is None else free_bytes) + max_ratio * size


def read_bounded(
    records: RecordFile, stored: StoredFile, max_ratio: int
) -> Iterator[tuple[int, memoryview | Damage]]:
    """Yields what `records` yields; if a gzip file unpacks to too much, ends with a `Damage`.

    If a file begins like a bomb, that is all it yields.

    Args:
        records: the file's records.
        stored: the file.
        max_ratio: a packed file may unpack to `FREE_BYTES_OF_RECORDS` plus this multiple of its
            size.
    """
    packed = "ZLIB" if records.compression == "zlib" else "gzip"
    too_large = Damage("gzip", f"the {packed} file unpacks to more than {max_ratio} times its size")
    most = most_unpacked(stored.size, max_ratio, FREE_BYTES_OF_RECORDS)
    if records.compression != "none":
        try:
            next(gunzip(stored, max_ratio, FREE_BYTES_OF_RECORDS), None)
        except TooLarge:
            yield 0, too_large
            return
        except BadPacking:
            pass  # `records` finds the place
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
    except (
        EOFError,
        KeyError,
        NotImplementedError,
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        why = "the archive was truncated"
        if error.args:
            why = error.args[0]
        raise BadPacking(f"{name} cannot be unpacked: {why}", is_doubtful=True) from None


def read_zip_member(member: ZipMember, data: bytes) -> bytes:
    """Returns the unpacked content of a member of a zip archive.

    Args:
        member: its position.
        data: the bytes of the archive from `member.start` on.

    Raises:
        BadPacking: the bytes do not match the archive's directory.
    """
    if member.method == DEFLATED:
        try:
            data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, member.size + 1)
        except zlib.error as error:
            raise BadPacking(f"the member is damaged: {error}") from None
    if len(data) != member.size or zlib.crc32(data) != member.crc:
        raise BadPacking(
            "the member does not match its size and checksum in the archive's directory"
        )
    return data


class Unpacked(NamedTuple):
    """The result of unpacking.

    Attributes:
        path: a local file.
        size: number of intact bytes.
        fault: why there are no more, in one sentence; None if the content is complete.
        is_doubtful: whether even these bytes may be wrong, because a checksum over all of them does
            not match.
    """

    path: str
    size: int
    fault: str | None
    is_doubtful: bool


_lock = threading.Lock()


def unpack(
    uri: str, packing: Gzip | NamedMember, version: str = "", max_ratio: int = MAX_RATIO
) -> Unpacked:
    """Unpacks a file, up to any damage, at its first use in this process.

    Args:
        uri: the packed file.
        packing: its kind.
        version: the file's version, so that a changed file is unpacked again.
        max_ratio: how many times its size it may unpack to, above 64 MiB.

    Raises:
        OSError: it cannot be read, or there is no space to unpack it.
    """
    with _lock:
        return _unpack(uri, packing, version, max_ratio)


@cache
def _unpack(uri: str, packing: Gzip | NamedMember, version: str, max_ratio: int) -> Unpacked:
    handle, path = tempfile.mkstemp(dir=_folder())
    size, is_doubtful = 0, False
    fault: str | None = None
    try:
        with os.fdopen(handle, "wb") as unpacked:
            try:
                for piece in _unpack_pieces(uri, packing, max_ratio):
                    unpacked.write(piece)
                    size += len(piece)
            except BadPacking as damage:
                fault, is_doubtful = damage.detail, damage.is_doubtful
                size = 0 if isinstance(damage, TooLarge) else size
                unpacked.truncate(size)
    except BaseException:
        os.unlink(path)
        raise
    return Unpacked(path, size, fault, is_doubtful)


@cache
def _folder() -> str:
    """This process's folder of unpacked files, deleted when it ends."""
    folder = tempfile.TemporaryDirectory(prefix="recordmill-unpacked-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)  # left to itself, it would warn
    return folder.name


def _unpack_pieces(
    uri: str, packing: Gzip | NamedMember, max_ratio: int
) -> Iterator[bytes | memoryview]:
    """Yields the unpacked content piece by piece; raises BadPacking after the intact part."""
    if isinstance(packing, NamedMember):
        with storage.open_to_read(uri) as archive:
            yield from unzip(archive, packing.name, max_ratio)
    else:
        with StoredFile(uri) as stored:
            yield from gunzip(stored, max_ratio)


def read_packed_range(
    uri: str,
    packing: Packing,
    offset: int,
    length: int,
    version: str = "",
    max_ratio: int = MAX_RATIO,
) -> bytes:
    """Reads `length` bytes (-1: to the end) from `offset` of a compressed file's content.

    Args:
        uri: the packed file.
        packing: its kind; a `ZipMember` is read as a whole, in memory.
        offset: in bytes of the unpacked content.
        length: in bytes of the unpacked content.
        version: the file's version, so that a changed file is unpacked again.
        max_ratio: how many times its size it may unpack to, above 64 MiB.

    Raises:
        BadPacking: it cannot be unpacked that far.
        OSError: it cannot be read.
    """
    if isinstance(packing, ZipMember):
        return read_zip_member(packing, storage.read_range(uri, packing.start, packing.packed))
    has_checksums = packing == Gzip(has_checksums=True)
    unpacked = unpack(uri, Gzip() if has_checksums else packing, version, max_ratio)
    is_good = has_checksums or not unpacked.is_doubtful
    if unpacked.fault and not (is_good and 0 <= length <= unpacked.size - offset):
        raise BadPacking(unpacked.fault)
    return storage.read_range(unpacked.path, offset, length)


RETRY_SECONDS = (0.1, 0.5)
"""How long to wait before each retry if the problem is the store, not the file."""

_VANISHED = {errno.ENOENT, errno.ENOTDIR}
_UNREADABLE = {
    errno.EACCES,
    errno.EPERM,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ESPIPE,
    errno.ENXIO,
}


def read_image(ref: ImageRef, max_bytes: int, max_ratio: int = MAX_RATIO) -> bytes:
    """Reads the bytes of one image.

    Args:
        ref: its reference.
        max_bytes: longer images are not read at all.
        max_ratio: how many times its size a packed file may become, see `gunzip`.

    Raises:
        Rejected: stage `read`: it is too long (`too_many_bytes`), has disappeared (`vanished`) or
            changed its length (`changed`) since it was listed, is packed and damaged
            (`bad_packing`), or is itself unreadable (`unreadable`).
        Exception: the store failed at every try; that says nothing about the image.
    """
    expected = ref.image_bytes
    if expected > max_bytes:
        raise Rejected(
            "read", "too_many_bytes", f"{expected} bytes, where images.max_bytes allows {max_bytes}"
        )
    # Reading one byte more than expected detects a file that has grown, without reading all of it.
    if ref.length >= 0:
        most = ref.length
    elif expected >= 0:
        most = expected + 1
    else:
        most = max_bytes + 1
    data = _read(ref, most, max_ratio)
    if expected < 0 and len(data) == most:
        raise Rejected(
            "read",
            "too_many_bytes",
            f"more than the {max_bytes} bytes that images.max_bytes allows",
        )
    if expected >= 0 and len(data) != expected:
        more = "more" if len(data) > expected else "less"
        raise Rejected(
            "read", "changed", f"{expected} bytes when it was listed, {more} when it was read"
        )
    return data


def read_source_file(file: SourceFile, max_bytes: int) -> bytes:
    """Reads the bytes of a file besides an image's own; arguments and errors as `read_image`."""
    return read_image(file.as_reference, max_bytes)


def read_start(ref: ImageRef, most: int) -> bytes:
    """Reads the first bytes of a file, or of a member of an archive.

    Only as much of a member of a zip archive is unpacked.

    Args:
        ref: a reference to it.
        most: how many bytes.

    Raises:
        BadPacking: they cannot be unpacked.
        OSError: they cannot be read.
    """
    wanted = most if ref.length < 0 else min(most, ref.length)
    packing = parse_packing(ref.packing) if ref.packing else None
    if packing is None:
        return storage.read_range(ref.uri, ref.offset, wanted)
    if not isinstance(packing, ZipMember):
        return read_packed_range(ref.uri, packing, ref.offset, wanted, ref.version)
    data = storage.read_range(ref.uri, packing.start, min(packing.packed, 2 * most))
    if packing.method != DEFLATED:
        return data[:most]
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, most)
    except zlib.error as error:
        raise BadPacking(f"the member is damaged: {error}") from None


def _read(ref: ImageRef, length: int, max_ratio: int) -> bytes:
    packing = parse_packing(ref.packing) if ref.packing else None
    for wait in (*RETRY_SECONDS, None):
        try:
            if packing:
                return read_packed_range(
                    ref.uri, packing, ref.offset, length, ref.version, max_ratio
                )
            return storage.read_range(ref.uri, ref.offset, length)
        except OSError as error:
            if error.errno in _VANISHED:
                raise Rejected(
                    "read", "vanished", "the file was listed, and was gone when it was read"
                ) from None
            if error.errno in _UNREADABLE or isinstance(error, NotAFileError):
                why = (
                    f"the file cannot be read ({(error.strerror or type(error).__name__).lower()})"
                )
                raise Rejected("read", "unreadable", why) from None
            if wait is None:
                raise
            time.sleep(wait)
    raise AssertionError("every try returns or raises")
