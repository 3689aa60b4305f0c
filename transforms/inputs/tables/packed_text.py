"""The bytes of a table's text, plain or gzipped; which of the two, its first bytes say."""

from collections.abc import Iterator
from contextlib import contextmanager

from recordmill.storage.record_bytes import StoredFile
from recordmill.storage.unpacking import MAX_RATIO, BadPacking, TooLarge, gunzip
from recordmill.transforms.inputs.tables.row import UnreadableTableError

_GZIP = b"\x1f\x8b"

_FREE_BYTES = 2**20  # less than other files have: two bytes are a row already, and a row takes microseconds


class PackedText:
    """A text under way, read from its beginning to its end.

    Attributes:
        is_gzip: whether it is unpacked on the way.
    """

    def __init__(self, stored: StoredFile) -> None:
        self._stored = stored
        self._position = 0
        self.is_gzip = stored.read_at(0, len(_GZIP)) == _GZIP
        self._pieces = gunzip(stored, MAX_RATIO, _FREE_BYTES) if self.is_gzip else None

    def read(self, count: int) -> bytes:
        """The next bytes: about `count`, fewer at the end, none after it.

        Raises:
            UnreadableTableError: the gzip file is damaged, or becomes more than 1 MiB and a hundred times its size.
        """
        if self._pieces is None:
            data = self._stored.read_at(self._position, count)
            self._position += len(data)
            return data
        try:
            return bytes(next(self._pieces, b""))
        except TooLarge as error:
            raise UnreadableTableError(f"{error.detail}: unpack it, if that is right") from None
        except BadPacking as damage:
            raise UnreadableTableError(damage.detail) from None


@contextmanager
def open_text(uri: str) -> Iterator[PackedText]:
    """Opens a table's text.

    Raises:
        OSError: it is not there, or cannot be opened.
    """
    with StoredFile(uri) as stored:
        yield PackedText(stored)
