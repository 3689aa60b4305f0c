"""Numbers that publishing needs for every record of a shard; reading them is faster than reading rows.

A file in staging has one column after the other, each with one entry per record, in the order of the records.
"""

from struct import Struct
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recordmill import storage
from recordmill.schemas.dataset.sidecar_row import SidecarRow
from recordmill.schemas.digests import order_of
from recordmill.storage.dataset_files import shard_path

Digests = NDArray[np.uint64]

Column = Literal["places", "contents", "hashes"]
"""`places` are entries of the dataset's index (docs/format.md); `contents` are the first 64 bits of each image's
SHA-256; `hashes` are difference hashes, if they are computed."""

_WIDTHS: dict[Column, int] = {"places": 24, "contents": 8, "hashes": 8}

_PLACE = Struct("<QQQ")


class RecordColumns:
    """The columns of a shard that is being written.

    Args:
        seed: the dataset's, for the hashes of keys.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._columns = {column: bytearray() for column in _WIDTHS}

    def add(self, row: SidecarRow) -> None:
        """Adds a record."""
        columns, order = self._columns, order_of(self._seed, row.key)
        columns["places"] += _PLACE.pack(row.offset, row.length, order)
        columns["contents"] += int(row.sha256[:16], 16).to_bytes(8, "little")
        if row.difference_hash is not None:
            columns["hashes"] += int(row.difference_hash, 16).to_bytes(8, "little")

    @property
    def contents(self) -> bytes:
        """The column `contents`."""
        return bytes(self._columns["contents"])

    def as_bytes(self) -> bytes:
        """The content of the file."""
        return b"".join(self._columns.values())


def read_column(staging: str, split: str, index: int, records: int, column: Column) -> bytes:
    """Reads a column of a shard with this number of records.

    Raises:
        OSError: it cannot be read.
    """
    columns = list(_WIDTHS)
    before = sum(_WIDTHS[each] for each in columns[: columns.index(column)])
    path = shard_path(staging, split, index, "columns")
    return storage.read_range(path, records * before, records * _WIDTHS[column]) if records else b""


def as_numbers(column: bytes) -> Digests:
    """The entries of a column."""
    return np.frombuffer(column, "<u8").astype(np.uint64, copy=False)
