"""Random access to the unpacked bytes of a TFRecord file, plain or gzip, on any of Beam's file systems."""

import errno
import hashlib
import os
import re
import stat
import zlib
from contextlib import suppress
from copy import copy
from typing import Any

from recordmill import storage

BLOCK_BYTES = 2**20
"""Block size of reads: small enough to stay in a processor's cache while checksums and digests are computed."""

_MOST_UNPACKED = 1032
"""Maximum number of bytes to which one byte of a deflate stream can unpack (zlib's technical notes)."""


class StoredFile:
    """A stored file, open for random access; if it is not compressed, also the reader of its unpacked bytes.

    Attributes:
        size: in bytes.
        members: number of gzip members: always 0.
        fault: why reading ended early: always empty.
    """

    members = 0
    fault = ""
    is_checksum_fault = False

    def __init__(self, path: str, digest: bool = False) -> None:
        """Opens a file.

        Args:
            path: on any of Beam's file systems.
            digest: whether `sha256` will be called: the digest is computed while reading.

        Raises:
            OSError: it does not exist, is not a file, or cannot be opened.
        """
        if storage.is_local(path) and not stat.S_ISREG(mode := os.stat(path).st_mode):  # a pipe would block
            raise OSError(errno.EINVAL, "is a directory" if stat.S_ISDIR(mode) else "it is a pipe or a device", path)
        self._stream = storage.open_to_read(path)
        self.size = storage.size_of(path) or 0
        self._digest = hashlib.sha256() if digest else None
        self._digested = 0

    def read_at(self, offset: int, count: int) -> bytes:
        """The `count` bytes from `offset` on; fewer only at the end of the file."""
        self._stream.seek(offset)
        data = self._stream.read(count)
        if self._digest and offset <= self._digested < offset + len(data):
            self._digest.update(memoryview(data)[self._digested - offset :])
            self._digested = offset + len(data)
        return data

    def read(self, offset: int, count: int) -> memoryview:
        """The bytes from `offset`: at least `count`, fewer only at the end; the view stays valid."""
        return memoryview(self.read_at(offset, max(count, BLOCK_BYTES)))

    def max_remaining(self, offset: int) -> int:
        """The number of bytes from `offset` to the end."""
        return self.size - offset

    def ahead(self) -> "StoredFile":
        """A reader for reading ahead: the file itself, which can be read anywhere."""
        return self

    def sha256(self) -> str:
        """The file's hex digest; reads the rest of the file. Only with `digest=True`."""
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

    `read` only goes forward: bytes before the last `offset` cannot be read again.

    Attributes:
        members: number of members so far.
        fault: why reading ended, if the gzip file itself is damaged; otherwise the empty string.
        is_checksum_fault: whether the fault is a trailer that does not match the unpacked bytes.
    """

    def __init__(self, stored: StoredFile) -> None:
        self._stored = stored
        self._packed_at = 0  # in the stored file
        self._tail = b""  # read, and not unpacked yet
        self._unpacked = b""
        self._start = 0  # position of `_unpacked` in the unpacked file
        self._inflate: Any = zlib.decompressobj(wbits=31)
        self._ended = False
        self.members = 1
        self.fault = ""
        self.is_checksum_fault = False

    def read(self, offset: int, count: int) -> memoryview:
        """Like `StoredFile.read`; bytes that cannot be unpacked count as beyond the end."""
        have = self._start + len(self._unpacked) - offset
        if have < count and not self._ended:
            pieces = [self._unpacked[offset - self._start :]]
            while have < count and not self._ended:
                piece = self._unpack()
                have += len(piece)
                pieces.append(piece[max(len(piece) - have, 0) :])  # bytes before `offset` are skipped
            self._unpacked, self._start = b"".join(pieces), offset
        return memoryview(self._unpacked)[offset - self._start :]

    def resume(self, stored: StoredFile) -> None:
        """Continues with the same file after it was opened again."""
        self._stored = stored

    @property
    def packed_bytes(self) -> int:
        """The number of stored bytes unpacked so far."""
        return self._packed_at - len(self._tail)

    def max_remaining(self, offset: int) -> int:
        """The maximum number of bytes from `offset` to the end, at the highest compression."""
        held = self._start + len(self._unpacked) - offset
        if self._ended:
            return held
        packed = self._stored.size - self._packed_at + len(self._tail)
        return held + (packed + 64) * _MOST_UNPACKED

    def ahead(self) -> "GzipBytes":
        """A copy for reading ahead; this one keeps its position."""
        other = copy(self)
        if not self._ended:
            other._inflate = self._inflate.copy()
        return other

    def _unpack(self) -> bytes:
        """The next unpacked bytes; empty at the end, and `_ended` is set."""
        while True:
            if not self._tail:
                self._tail = self._stored.read_at(self._packed_at, BLOCK_BYTES // 4)
                self._packed_at += len(self._tail)
            if not self._tail:
                return self._end("the gzip stream ends early: the file was truncated")
            before, tail = self._inflate.copy(), self._tail
            try:
                piece: bytes = self._inflate.decompress(tail, BLOCK_BYTES)
            except zlib.error as error:
                reason = re.sub(r"Error -?\d+ while decompressing data: ", "", str(error))
                self._end(f"the gzip stream is damaged ({reason})")
                self.is_checksum_fault = "incorrect" in str(error) and "header" not in str(error)
                return _unpack_before_damage(before, tail)
            self._tail = self._inflate.unconsumed_tail
            if self._inflate.eof:
                self._begin_member()
            if piece or self._ended:
                return piece

    def _begin_member(self) -> None:
        """Continues after a complete member, with the next one or to the end."""
        self._tail = self._inflate.unused_data
        if len(self._tail) < 2:
            more = self._stored.read_at(self._packed_at, BLOCK_BYTES // 4)
            self._packed_at += len(more)
            self._tail += more
        if self._tail.startswith(b"\x1f\x8b"):
            self.members += 1
            self._inflate = zlib.decompressobj(wbits=31)
        elif self._tail:
            what = "zeros" if not self._tail.strip(b"\0") else "bytes that are not gzip"
            self._end(f"{what} after the end of the gzip stream")
        else:
            self._ended = True

    def _end(self, fault: str) -> bytes:
        self._ended, self.fault = True, fault
        return b""


def _unpack_before_damage(inflate: Any, tail: bytes) -> bytes:
    """The bytes before the damage; the input is unpacked byte by byte, since a failing call returns nothing."""
    unpacked = bytearray()
    with suppress(zlib.error):
        for at in range(len(tail)):
            unpacked += inflate.decompress(tail[at : at + 1])
    return bytes(unpacked)
