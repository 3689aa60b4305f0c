"""A row of a table, whatever the table is written in."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from recordmill.schemas.rejection import Rejected

MAX_ROW_BYTES = 64 * 2**20
"""The longest row of a text file: what has more lacks a closing quote, or line ends."""


bad_row = partial(Rejected, "list", "bad_row")
"""The row cannot become a record."""


class UnreadableTableError(Exception):
    """A table cannot be read at all, or not on from here; the message says where and why.

    Attributes:
        key: the YAML key that names the column which it lacks; empty: it lacks none.
    """

    def __init__(self, sentence: str, key: str = "") -> None:
        """Takes the message and the key."""
        super().__init__(sentence)
        self.key = key


@dataclass(slots=True)  # frozen, making one would take five times as long
class Row:
    """One row.

    Attributes:
        number: as people count: the line that it begins in, from 1, header included; in Parquet, which has no lines,
            the row from 1.
        cells: what it holds, by column; a list where columns have no names; None for a row that is malformed.
        offset: first byte of the row in the file; in Parquet the row, from 0.
        length: bytes of the row in the file; -1 in Parquet.
        fault: what is wrong with it, where it is malformed.
        last: the line that it ends in.
    """

    number: int
    cells: Any
    offset: int = 0
    length: int = -1
    fault: str = ""
    last: int = 0

    @property
    def place(self) -> str:
        """Which row it is, for people."""
        return f"row {self.number}" if self.last <= self.number else f"row {self.number} (to line {self.last})"
