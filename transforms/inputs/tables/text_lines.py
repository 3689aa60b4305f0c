"""Lines of a text file, plain or gzipped and in any encoding, with their places in bytes."""

import codecs
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from recordmill.storage.record_bytes import StoredFile
from recordmill.storage.unpacking import MAX_RATIO, BadPacking, TooLarge, gunzip
from recordmill.transforms.inputs.tables.row import MAX_ROW_BYTES, UnreadableTableError

_BUFFER_BYTES = 2**16
_GZIP = b"\x1f\x8b"

_FREE_BYTES = 2**20  # less than other files have: two bytes are a row already, and a row takes microseconds

_MARKED = ("utf-32-le", "utf-32-be", "utf-8", "utf-16-le", "utf-16-be")  # UTF-32's mark begins with UTF-16's


def check_encoding(encoding: str, key: str) -> None:
    """Raises ValueError, beginning with the YAML key, where there is no such encoding."""
    try:
        "\n".encode(encoding).decode(encoding)
    except (LookupError, UnicodeError):
        raise ValueError(f"{key} {encoding!r} is not a known encoding: write one such as utf-8 or latin-1") from None


class TextLines:
    """An iterator over a file's lines, each with its end.

    A line that is not in the encoding raises UnicodeDecodeError; the next call gives the line after it.

    Attributes:
        codec: the encoding without doubt in it: `utf-16-le` for a `utf-16` whose byte order mark says so.
        is_gzip: whether the file is gzipped; places are those in the unpacked text.
        number: of the line given last, from 1.
        end: the byte after it.
        row_start: the byte at which the row under way begins, set by `begin_row`.
        row_number: the number of its first line.
    """

    def __init__(self, stream: io.BufferedReader, encoding: str, is_gzip: bool = False) -> None:
        """Reads the byte order mark, if any.

        Raises:
            UnreadableTableError: the mark contradicts the encoding.
        """
        self._stream = stream
        self._next = b""  # the line that `begin_row` has read
        self.is_gzip = is_gzip
        self.number = self.end = self.row_start = 0
        self.row_number = 1
        self.codec = self._find_codec(encoding)
        self._newline = "\n".encode(self.codec)
        self._ends = (self._newline, "\r\n".encode(self.codec))
        self._empty_lines = re.compile(b"(?:%b|%b)*+" % tuple(map(re.escape, self._ends)))

    def _find_codec(self, encoding: str) -> str:
        name = codecs.lookup(encoding).name.removesuffix("-sig")
        start = self._stream.peek()
        for codec in _MARKED:
            mark = "\ufeff".encode(codec)
            if start.startswith(mark) and name in (codec, codec[:6]):  # without the order of bytes
                self.end = self.row_start = len(self._stream.read(len(mark)))
                return codec
        if name == "utf-8" and start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise UnreadableTableError("it begins as UTF-16 does: set source.encoding: utf-16")
        return f"{name}-le" if name in ("utf-16", "utf-32") else name

    def __iter__(self) -> "TextLines":
        return self

    def begin_row(self) -> tuple[int, int]:
        """Goes over empty lines to where a row begins; gives its first byte and the number of its first line."""
        while (line := self._next or self._read_line()) in self._ends:
            # A file may have millions of them: one by one, they would take minutes.
            more = self._empty_lines.match(self._stream.peek())
            empty = line + self._stream.read(more.end() if more else 0)
            self.number += empty.count(self._newline)
            self.end += len(empty)
            self._next = b""
        self._next = line
        self.row_start, self.row_number = self.end, self.number + 1
        return self.row_start, self.row_number

    def peek(self) -> str:
        """The line that the next row begins with, which is still to come."""
        self.begin_row()
        return self._next.decode(self.codec, "replace")

    def __next__(self) -> str:
        line, self._next = self._next or self._read_line(), b""
        if not line:
            raise StopIteration
        self.number += 1
        self.end += len(line)
        if self.end - self.row_start > MAX_ROW_BYTES:
            size = f"{MAX_ROW_BYTES // 2**20} MiB"
            raise UnreadableTableError(f"row {self.row_number} has over {size}: is a quote not closed?")
        return line.decode(self.codec)

    def _read_line(self) -> bytes:
        """The next line; of one that is too long, more than a row may have; nothing at the end."""
        line = self._stream.readline(MAX_ROW_BYTES + 1)
        if (width := len(self._newline)) == 1:
            return line
        found = bytearray(line)
        while line and len(found) <= MAX_ROW_BYTES and (len(found) % width or not found.endswith(self._newline)):
            # The line feed's byte was in the middle of a letter, or is followed by the rest of it.
            line = self._stream.read(-len(found) % width) or self._stream.readline(MAX_ROW_BYTES + 1)
            found += line
        return bytes(found)


class _Pieces(io.RawIOBase):
    """Pieces of a file, as a stream."""

    def __init__(self, pieces: Iterator[bytes | memoryview]) -> None:
        self._pieces = pieces
        self._rest: bytes | memoryview = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._rest = self._rest or memoryview(next(self._pieces, b""))
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


@contextmanager
def open_lines(uri: str, encoding: str) -> Iterator[TextLines]:
    """Opens a text, plain or gzipped; which of the two, its first bytes say.

    Lines raise UnreadableTableError where the gzip file is damaged, or becomes more than 1 MiB and a hundred times its
    size.

    Raises:
        OSError: it is not there, or cannot be opened.
        UnreadableTableError: its byte order mark contradicts the encoding.
    """
    with StoredFile(uri) as stored:
        is_gzip = stored.read_at(0, len(_GZIP)) == _GZIP
        pieces = _read_gzip(stored) if is_gzip else _read_plain(stored)
        yield TextLines(io.BufferedReader(_Pieces(pieces), _BUFFER_BYTES), encoding, is_gzip)


def _read_plain(stored: StoredFile) -> Iterator[bytes]:
    position = 0
    while piece := stored.read_at(position, _BUFFER_BYTES):
        yield piece
        position += len(piece)


def _read_gzip(stored: StoredFile) -> Iterator[memoryview]:
    try:
        yield from gunzip(stored, MAX_RATIO, _FREE_BYTES)
    except TooLarge as error:
        raise UnreadableTableError(f"{error.detail}: unpack it, if that is right") from None
    except BadPacking as damage:
        raise UnreadableTableError(damage.detail) from None
