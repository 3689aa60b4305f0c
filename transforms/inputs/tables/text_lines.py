"""Lines of a text file in any encoding, with their places in bytes."""

import codecs
import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from recordmill.transforms.inputs.tables.row import MAX_ROW_BYTES, Row, UnreadableTableError

_CHUNK_BYTES = 2**18

_MARKS = {  # in this order: UTF-32's mark begins with UTF-16's
    "utf-32": ((codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be")),
    "utf-8": ((codecs.BOM_UTF8, "utf-8"),),
    "utf-16": ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")),
}

_LONGEST_MARK = 4


def check_encoding(encoding: str, key: str) -> None:
    """Raises ValueError, beginning with the YAML key, where there is no such encoding."""
    try:
        "\n".encode(encoding).decode(encoding)
    except (LookupError, UnicodeError):
        raise ValueError(
            f"{key} {encoding!r} is not a known encoding: write utf-8, utf-16, latin-1 or another"
        ) from None


class Readable(Protocol):
    """What gives bytes from its beginning to its end."""

    def read(self, count: int, /) -> bytes:
        """The next bytes: about `count`, none after the end."""
        ...


class TextLines:
    """An iterator over a file's lines, each with its end.

    A line that is not in the encoding raises UnicodeDecodeError; the next call gives the line after it.

    Attributes:
        codec: the encoding without doubt in it: `utf-16-le` for a `utf-16` whose byte order mark says so.
        number: of the line given last, from 1.
        end: the byte after it.
        row_start: the byte at which the row under way begins, set by `begin_row`.
        row_number: the number of its first line.
    """

    def __init__(self, stream: Readable, encoding: str) -> None:
        """Reads the byte order mark, if any.

        Raises:
            UnreadableTableError: the mark contradicts the encoding.
        """
        self._stream = stream
        self._buffer = b""
        self._position = 0  # in the buffer
        self.number = self.end = self.row_start = 0
        self.row_number = 1
        self.codec = self._find_codec(encoding)
        self._newline = "\n".encode(self.codec)
        line_end, carriage_return = map(re.escape, (self._newline, "\r".encode(self.codec)))
        self._empty_lines = re.compile(b"(?:(?:%b)++|(?:%b%b)++)++" % (line_end, carriage_return, line_end))

    def _find_codec(self, encoding: str) -> str:
        name = codecs.lookup(encoding).name.removesuffix("-sig")
        while len(self._buffer) < _LONGEST_MARK and self._fill():
            pass
        for marked, marks in _MARKS.items():
            for mark, codec in marks:
                if not self._buffer.startswith(mark):
                    continue
                if name in (marked, codec):
                    self._position = self.end = self.row_start = len(mark)
                    return codec
                if marked == "utf-16" and name == "utf-8":
                    raise UnreadableTableError("it begins as UTF-16 does: set source.encoding: utf-16")
        return f"{name}-le" if name in ("utf-16", "utf-32") else name

    def __iter__(self) -> "TextLines":
        return self

    def begin_row(self) -> tuple[int, int]:
        """Goes over empty lines to where a row begins; gives its first byte and the number of its first line."""
        while empty := self._empty_lines.match(self._buffer, self._position):
            self.number += self._buffer.count(self._newline, *empty.span())
            self.end += empty.end() - self._position
            self._position = empty.end()
            if self._position == len(self._buffer):
                self._fill()
        self.row_start, self.row_number = self.end, self.number + 1
        return self.row_start, self.row_number

    def __next__(self) -> str:
        line = self._next_line()
        if not line:
            raise StopIteration
        self.number += 1
        self.end += len(line)
        if self.end - self.row_start > MAX_ROW_BYTES:
            self._refuse()
        return line.decode(self.codec)

    def _next_line(self) -> bytes:
        searched = self._position
        while (at := self._find_newline(searched)) < 0:
            # The last bytes may be the beginning of a line's end.
            searched = max(self._position, len(self._buffer) - len(self._newline) + 1)
            searched -= self._position
            if not self._fill():
                at = len(self._buffer)
                break
            if len(self._buffer) > MAX_ROW_BYTES:
                self._refuse()
        else:
            at += len(self._newline)
        line = self._buffer[self._position : at]
        self._position = at
        return line

    def _find_newline(self, start: int) -> int:
        width = len(self._newline)
        at = self._buffer.find(self._newline, start)
        while at >= 0 and (at - self._position) % width:
            at = self._buffer.find(self._newline, at + 1)
        return at

    def _fill(self) -> bool:
        """Reads on, after what is not yet given; says whether there was more."""
        chunk = self._stream.read(_CHUNK_BYTES)
        self._buffer = self._buffer[self._position :] + chunk
        self._position = 0
        return bool(chunk)

    def _refuse(self) -> None:
        size = f"{MAX_ROW_BYTES // 2**20} MiB"
        raise UnreadableTableError(f"row {self.row_number} has over {size}: is a quote not closed?")


def read_rows(lines: TextLines, read_cells: Callable[[], Any]) -> Iterator[Row]:
    """Yields the rows of a text; empty ones are left out.

    A row that is malformed has a fault, and the next row begins with the line after it.

    Args:
        lines: of the file.
        read_cells: takes the lines of one row and returns its cells, `[]` where it is empty; raises ValueError where
            it is malformed.
    """
    while True:
        offset, first = lines.begin_row()
        cells, fault = None, ""
        try:
            cells = read_cells()
        except StopIteration:
            return
        except UnicodeDecodeError:
            fault = f"it is not in {lines.codec}"
        except ValueError as error:
            fault = str(error)
        if cells != []:
            yield Row(first, cells, offset, lines.end - offset, fault, lines.number)
