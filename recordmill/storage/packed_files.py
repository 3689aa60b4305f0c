"""Images inside files that are packed: their byte ranges are those of what unpacking gives.

A packed file that cannot be entered in its middle is unpacked once in each process that reads from it, to a temporary
file, so that memory does not grow with it; the file goes when the process ends. What is unpacked is bounded.
"""

import atexit
import os
import shutil
import tempfile
import threading
from collections.abc import Generator
from contextlib import closing
from typing import NamedTuple

from recordmill import storage
from recordmill.storage.record_bytes import StoredFile
from recordmill.storage.unpacking import (
    MAX_RATIO,
    BadPacking,
    TooLarge,
    ZipMember,
    gunzip,
    unzip,
)


class Unpacked(NamedTuple):
    """What unpacking gave.

    Attributes:
        path: a local file.
        size: bytes that are good.
        fault: why there are no more, in one sentence; the empty string where that is all.
        is_doubtful: whether they may be wrong all the same: a checksum over all of them does not fit.
    """

    path: str
    size: int
    fault: str
    is_doubtful: bool


class UnpackedFiles:
    """The unpacked files of this process, each unpacked when first asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        self._unpacked: dict[tuple[str, str], Unpacked] = {}
        self._folder = ""

    def unpack(self, uri: str, packing: str, version: str = "", max_ratio: int = MAX_RATIO, most: int = -1) -> Unpacked:
        """A packed file's contents, up to where it is damaged.

        Args:
            uri: the packed file.
            packing: see `read_packed_range`.
            version: the file's, so that one written anew is unpacked anew.
            max_ratio: how many times its size it may become, from 64 MiB on.
            most: how many bytes it may become; -1: any number.

        Raises:
            OSError: it cannot be read, or there is no room to unpack it.
            ValueError: there is no such packing.
        """
        key = (uri, f"{packing}\0{version}")
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._unpacked:
                self._unpacked[key] = self._unpack(uri, packing, max_ratio, most)
            return self._unpacked[key]

    def _unpack(self, uri: str, packing: str, max_ratio: int, most: int) -> Unpacked:
        with self._lock:
            if not self._folder:
                self._folder = tempfile.mkdtemp(prefix="recordmill-unpacked-")
                atexit.register(self.clear)
        handle, path = tempfile.mkstemp(dir=self._folder)
        size, fault, is_doubtful = 0, "", False
        try:
            with os.fdopen(handle, "wb") as unpacked:
                try:
                    for piece in _unpack_pieces(uri, packing, max_ratio):
                        unpacked.write(piece)
                        size += len(piece)
                        if 0 <= most < size:
                            raise TooLarge(f"it unpacks to more than the {most:,} bytes declared")
                except BadPacking as damage:
                    fault, is_doubtful = damage.detail, damage.is_doubtful
                    size = 0 if isinstance(damage, TooLarge) else size
                    unpacked.truncate(size)
        except BaseException:
            os.unlink(path)
            raise
        return Unpacked(path, size, fault, is_doubtful)

    def clear(self) -> None:
        """Deletes what was unpacked."""
        with self._lock:
            folder, self._folder = self._folder, ""
            self._unpacked.clear()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _unpack_pieces(uri: str, packing: str, max_ratio: int) -> Generator[bytes | memoryview, None, None]:
    """What a packed file becomes, piece by piece; raises BadPacking behind what is good of it."""
    kind, _, name = packing.partition(":")
    if kind == "gzip":
        with StoredFile(uri) as stored:
            yield from gunzip(stored, max_ratio)
    elif kind == "member":
        with storage.open_to_read(uri) as archive:
            yield from unzip(archive, name, max_ratio)
    else:
        raise ValueError(f"there is no packing {packing!r}")


UNPACKED = UnpackedFiles()
"""This process's."""


def read_packed_start(uri: str, packing: str, length: int) -> bytes:
    """Reads the first bytes of a packed file's contents, and unpacks little more than those; raises as below."""
    with closing(_unpack_pieces(uri, packing, MAX_RATIO)) as pieces:
        start = b""
        while len(start) < length and (piece := next(pieces, None)) is not None:
            start += bytes(piece)
        return start[:length]


def read_packed_range(
    uri: str,
    packing: str,
    offset: int,
    length: int,
    version: str = "",
    most: int = -1,
    max_ratio: int = MAX_RATIO,
) -> bytes:
    """Reads `length` bytes (-1: all that follow) from `offset` on of a packed file's contents.

    Args:
        uri: the packed file.
        packing: `gzip`: the whole file is a gzip stream. `gzip_records`: likewise, and what lies in it has checksums
            of its own, so that a wrong one of the whole file says nothing. `member:NAME`: a member of a zip archive.
            `zip:...`: a member by its place, see `files.unpacking.ZipMember`: only read as a whole, in memory.
        offset: in bytes of what unpacking gives.
        length: likewise.
        version: the file's, so that one written anew is unpacked anew.
        most: how many bytes its contents have at most; -1: any number.
        max_ratio: how many times its size it may become, from 64 MiB on.

    Raises:
        BadPacking: it cannot be unpacked as far as that.
        OSError: it cannot be read.
        ValueError: there is no such packing.
    """
    if packing.startswith("zip:"):
        member = ZipMember.from_text(packing)
        return member.unpack(storage.read_range(uri, member.start, member.packed))
    has_checksums = packing == "gzip_records"
    unpacked = UNPACKED.unpack(uri, "gzip" if has_checksums else packing, version, max_ratio, most)
    is_good = has_checksums or not unpacked.is_doubtful
    if unpacked.fault and not (is_good and 0 <= length <= unpacked.size - offset):
        raise BadPacking(unpacked.fault)
    return storage.read_range(unpacked.path, offset, length)
