"""An object as a stream of blocks."""

import errno
import io
import os
from typing import Any, BinaryIO

from recordmill.storage.stores.store import BLOCK_BYTES, Store


def open_to_read(store: Store, uri: str) -> BinaryIO:
    """An object as a stream, with one request per block, the first at the first read."""
    return io.BufferedReader(_RangeReader(store, uri), BLOCK_BYTES)


class _RangeReader(io.RawIOBase):
    """A raw stream with random access to an object."""

    def __init__(self, store: Store, uri: str) -> None:
        super().__init__()
        self._store = store
        self._uri = uri
        self._at = 0
        self._end: int | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_END:
            found = self._store.describe(self._uri)
            if found is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._uri)
            self._end = int(found.size_in_bytes)
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at}.get(whence, self._end or 0)
        self._at = max(start + offset, 0)
        return self._at

    def tell(self) -> int:
        return self._at

    def readall(self) -> bytes:
        if self._end is not None and self._at >= self._end:
            return b""
        data = self._store.read(self._uri, self._at, -1)
        self._at = self._end = self._at + len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        if self._end is not None and self._at >= self._end:
            return 0
        data = self._store.read(self._uri, self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        if len(data) < len(buffer):
            self._end = self._at
        return len(data)
