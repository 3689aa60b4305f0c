"""One file of a dataset, and its sidecar's rows."""

from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from recordmill import storage
from recordmill.schemas.dataset.sidecar_row import SidecarRow, row_from_json


@dataclass(frozen=True, slots=True)
class Shard:
    """One TFRecord file of a dataset. What nobody has stated is None, or the empty string.

    Attributes:
        split: the split that it belongs to.
        name: its path below the dataset's folder.
        path: its whole path.
        records: how many records it is said to hold.
        bytes: its size, as stated.
        sha256: hex digest of the file, as stated.
        sidecar: whole path of its sidecar.
        sidecar_sha256: hex digest of the sidecar, as stated.
    """

    split: str
    name: str
    path: str
    records: int | None = None
    bytes: int | None = None
    sha256: str = ""
    sidecar: str = ""
    sidecar_sha256: str = ""

    def rows(self) -> Iterator[SidecarRow]:
        """The sidecar's rows of the records in the file, in the file's order; none where there is no sidecar.

        Raises:
            OSError: the sidecar cannot be read.
            orjson.JSONDecodeError: a line of it is no JSON.
        """
        if self.sidecar:
            with storage.open_to_read(self.sidecar) as lines:
                rows = map(row_from_json, map(orjson.loads, lines))
                yield from (row for row in rows if isinstance(row, SidecarRow))
