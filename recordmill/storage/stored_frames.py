"""Reads records at known places of TFRecord files, packed or not."""

from recordmill import storage
from recordmill.storage.tfrecord_file import frame_bytes, unframe
from recordmill.storage.unpacked_bytes import UnpackedBytes

_MOST_OPEN = 8
"""Packed files that are open at once."""


class DamagedFrameError(ValueError):
    """There is no intact record at a place of a file."""


class StoredFrames:
    """Reads records of several files in any order.

    Args:
        is_packed: whether the files are packed.
    """

    def __init__(self, is_packed: bool) -> None:
        self._is_packed = is_packed
        self._opened: dict[str, UnpackedBytes] = {}

    def read(self, path: str, offset: int, length: int) -> bytes:
        """Returns a record.

        Args:
            path: its file, on any file system.
            offset: the first byte of its frame in the unpacked file.
            length: its bytes.

        Raises:
            DamagedFrameError: there is no such record.
            OSError: the file cannot be read.
        """
        size = frame_bytes(length)
        if self._is_packed:
            frame = self._open(path).read(offset, size)
        else:
            frame = storage.read_range(path, offset, size)
        record = unframe(frame, length)
        if record is None:
            raise DamagedFrameError(path)
        return record

    def _open(self, path: str) -> UnpackedBytes:
        if path not in self._opened:
            if len(self._opened) == _MOST_OPEN:
                self._opened.pop(next(iter(self._opened))).close()
            self._opened[path] = UnpackedBytes(path)
        return self._opened[path]

    def close(self) -> None:
        """Closes the packed files."""
        for opened in self._opened.values():
            opened.close()
