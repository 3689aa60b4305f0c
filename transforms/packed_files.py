"""Images inside files that are packed: their byte ranges are those of what unpacking gives.

A packed file that cannot be entered in its middle is unpacked once in each process that reads from it, to a temporary
file, so that memory does not grow with it; the file goes when the process ends.
"""

import atexit
import gzip
import os
import shutil
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO, cast

from transforms import storage

COPY_BYTES = 2**20


class DamagedPackingError(Exception):
    """A packed file cannot be unpacked; the message says why."""


class UnpackedFiles:
    """The unpacked files of this process, each unpacked when first asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        self._paths: dict[tuple[str, str], str] = {}
        self._folder = ""

    def path_of(self, uri: str, packing: str, version: str = "", most: int = -1) -> str:
        """The local path of a file's unpacked contents, of which there are at most `most` bytes (-1: any number).

        Raises:
            DamagedPackingError: it cannot be unpacked, or there is more of it.
            OSError: it cannot be read, or there is no room to unpack it.
        """
        key = (uri, f"{packing}\0{version}")
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._paths:
                self._paths[key] = self._unpack(uri, packing, most)
            return self._paths[key]

    def _unpack(self, uri: str, packing: str, most: int) -> str:
        with self._lock:
            if not self._folder:
                self._folder = tempfile.mkdtemp(prefix="recordmill-unpacked-")
                atexit.register(self.clear)
        handle, path = tempfile.mkstemp(dir=self._folder)
        try:
            with os.fdopen(handle, "wb") as unpacked, _open_contents(uri, packing) as contents:
                _copy(contents, unpacked, most)
        except BaseException:
            os.unlink(path)
            raise
        return path

    def clear(self) -> None:
        """Deletes what was unpacked."""
        with self._lock:
            folder, self._folder = self._folder, ""
            self._paths.clear()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _copy(contents: IO[bytes], unpacked: BinaryIO, most: int) -> None:
    copied = 0
    while block := contents.read(COPY_BYTES):
        copied += len(block)
        if 0 <= most < copied:
            raise DamagedPackingError(f"more comes out of it than the {most:,} bytes that it should hold")
        unpacked.write(block)


@contextmanager
def _open_contents(uri: str, packing: str) -> Iterator[IO[bytes]]:
    """What a packed file holds, as a stream.

    Raises:
        DamagedPackingError: it cannot be unpacked, there or at any later read.
    """
    kind, _, name = packing.partition(":")
    if kind not in ("gzip", "member"):
        raise ValueError(f"there is no packing {packing!r}")
    try:
        with storage.open_to_read(uri) as packed:
            if kind == "gzip":
                with gzip.GzipFile(fileobj=packed) as stream:
                    yield cast(IO[bytes], stream)
            else:
                with zipfile.ZipFile(packed) as archive, archive.open(name) as member:
                    yield member
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        what = "gzip stream" if kind == "gzip" else "zip archive"
        raise DamagedPackingError(f"the {what} is damaged: {error}") from None
    except (KeyError, NotImplementedError, RuntimeError, zipfile.BadZipFile) as error:
        raise DamagedPackingError(f"{name} cannot be unpacked: {error.args[0]}") from None


UNPACKED = UnpackedFiles()
"""This process's."""


def read_packed_start(uri: str, packing: str, length: int) -> bytes:
    """Reads the first bytes of a packed file's contents, and unpacks no more than those; raises as below."""
    with _open_contents(uri, packing) as contents:
        return contents.read(length)


def read_packed_range(uri: str, packing: str, offset: int, length: int, version: str = "", most: int = -1) -> bytes:
    """Reads `length` bytes (-1: all that follow) from `offset` on of a packed file's contents.

    Args:
        uri: the packed file.
        packing: `gzip`: the whole file is a gzip stream; `member:NAME`: a member of a zip archive.
        offset: in bytes of what unpacking gives.
        length: likewise.
        version: the file's, so that one written anew is unpacked anew.
        most: how many bytes its contents have at most; -1: any number.

    Raises:
        DamagedPackingError: it cannot be unpacked.
        OSError: it cannot be read.
        ValueError: there is no such packing.
    """
    return storage.read_range(UNPACKED.path_of(uri, packing, version, most), offset, length)
