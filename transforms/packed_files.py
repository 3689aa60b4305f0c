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
import zlib
from typing import BinaryIO

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

    def path_of(self, uri: str, packing: str, version: str = "") -> str:
        """The local path of a file's unpacked contents.

        Raises:
            DamagedPackingError: it cannot be unpacked.
            OSError: it cannot be read, or there is no room to unpack it.
        """
        key = (uri, f"{packing}\0{version}")
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._paths:
                self._paths[key] = self._unpack(uri)
            return self._paths[key]

    def _unpack(self, uri: str) -> str:
        with self._lock:
            if not self._folder:
                self._folder = tempfile.mkdtemp(prefix="recordmill-unpacked-")
                atexit.register(self.clear)
        handle, path = tempfile.mkstemp(dir=self._folder)
        try:
            with os.fdopen(handle, "wb") as unpacked, storage.open_to_read(uri) as packed:
                _gunzip(packed, unpacked)
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


def _gunzip(packed: BinaryIO, unpacked: BinaryIO) -> None:
    try:
        shutil.copyfileobj(gzip.GzipFile(fileobj=packed), unpacked, COPY_BYTES)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DamagedPackingError(f"the gzip stream is damaged: {error}") from None


UNPACKED = UnpackedFiles()
"""This process's."""


def read_packed_range(uri: str, packing: str, offset: int, length: int, version: str = "") -> bytes:
    """Reads `length` bytes (-1: all that follow) from `offset` on of a packed file's contents.

    Args:
        uri: the packed file.
        packing: `gzip`: the whole file is a gzip stream.
        offset: in bytes of what unpacking gives.
        length: likewise.
        version: the file's, so that one written anew is unpacked anew.

    Raises:
        DamagedPackingError: it cannot be unpacked.
        OSError: it cannot be read.
        ValueError: there is no such packing.
    """
    if packing != "gzip":
        raise ValueError(f"there is no packing {packing!r}")
    return storage.read_range(UNPACKED.path_of(uri, packing, version), offset, length)
