"""A file of a dataset, and its sidecar's rows."""

from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from recordmill.schemas.dataset.sidecar_row import SidecarRow
from recordmill.schemas.errors import LoadError
from recordmill.storage.dataset_files import read_rows

FORGED = (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError)
"""Errors that rows cause if Recordmill did not write them."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One TFRecord file of a dataset. Unknown values are None, or the empty string.

    Attributes:
        split: the split that it belongs to.
        name: its path below the dataset's folder.
        path: its full path.
        records: its number of records, according to the metadata.
        bytes: its size, according to the metadata.
        sha256: hex digest of the file, according to the metadata.
        sidecar: path of its sidecar.
        sidecar_sha256: hex digest of the sidecar, according to the metadata.
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
        """The sidecar's rows of the records in the file, in the file's order; none if there is no sidecar.

        Raises:
            OSError: the sidecar cannot be read.
            LoadError: Recordmill did not write it like this.
        """
        try:
            yield from (row for row in read_rows(self.sidecar) if isinstance(row, SidecarRow)) if self.sidecar else ()
        except FORGED as error:
            raise LoadError(f"the sidecar {self.sidecar} cannot be understood ({error}): restore it") from None
