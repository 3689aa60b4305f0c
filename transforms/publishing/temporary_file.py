"""What does not fit into memory while a dataset is published: bytes in an unnamed file on this machine."""

import tempfile
import weakref
from typing import BinaryIO


class TemporaryFileError(ValueError):
    """The file cannot be written; the sentence says where, and what to do."""


class TemporaryFile:
    """A file that is made when something is first put into it, and is gone with this object."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = None
        self._end = 0

    def append(self, data: bytes | bytearray) -> int:
        """Appends bytes; gives their offset.

        Raises:
            TemporaryFileError: there is no room for them, or no right to write.
        """
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115  # closed with this object
                weakref.finalize(self, self._file.close)
            self._file.seek(self._end)
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise TemporaryFileError(
                f"temporary files cannot be written ({why}): set TMPDIR to a folder with more room"
            ) from error
        self._end += len(data)
        return self._end - len(data)

    def read(self, offset: int, length: int) -> bytes:
        """The bytes there; none where nothing was put into the file."""
        if self._file is None:
            return b""
        self._file.seek(offset)
        return self._file.read(length)
