"""A row of a table in any format."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from recordmill.schemas.rejection import Rejected

MAX_ROW_BYTES = 64 * 2**20
"""The longest row of a text file: anything longer lacks a closing quote, or line ends."""


bad_row = partial(Rejected, "list", "bad_row")
"""The row cannot become a record."""


class UnreadableTableError(Exception):
    """A table, or the rest of it, cannot be read; the message says where and why.

    Attributes:
        key: the YAML key that names the missing column; empty if none is missing.
    """

    def __init__(self, sentence: str, key: str = "") -> None:
        """Takes the message and the key."""
        super().__init__(sentence)
        self.key = key


@dataclass(slots=True)  # if frozen, creating one would take five times as long
class Row:
    """One row.

    Attributes:
        number: the line in which it begins, from 1, header included; in Parquet, which has no lines, the row, from 1.
        cells: its cells by column; a list if columns have no names; None if the row is malformed.
        offset: the first byte of the row in the file; in Parquet, the row, from 0.
        length: its number of bytes in the file; -1 in Parquet.
        fault: what is wrong with a malformed row.
        last: the line in which it ends.
    """

    number: int
    cells: Any
    offset: int = 0
    length: int = -1
    fault: str = ""
    last: int = 0

    @property
    def place(self) -> str:
        """Which row it is, for messages."""
        return f"row {self.number}" if self.last <= self.number else f"row {self.number} (to line {self.last})"
