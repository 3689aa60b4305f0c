"""Reads a shard's sidecar for the verifier."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import orjson

from recordmill import storage
from recordmill.reading.shard import Shard
from recordmill.schemas.dataset.sidecar_row import SidecarRow, row_from_json
from recordmill.schemas.dataset.totals import RowTotals

FORGED = (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError)
"""Errors that rows cause if Recordmill did not write them."""


class Findings(Protocol):
    """Collects findings."""

    shard: Shard

    def add(self, kind: str, detail: str) -> None:
        """Adds one."""


class SidecarRows:
    """A shard's sidecar, read at its first use.

    Attributes:
        sha256: hex digest of the sidecar; the empty string until it is read, or if it cannot be read.
        totals: totals of its rows, including those of rejected references; None if they are not Recordmill's.
    """

    def __init__(self, check: Findings) -> None:
        self._check = check
        self._rows: list[SidecarRow] | None = None
        self._by_offset: dict[int, int] = {}
        self.sha256 = ""
        self.totals: RowTotals | None = None

    def read(self) -> Sequence[SidecarRow]:
        """The rows of the records, in their order; if the sidecar cannot be read, none, and a finding is added."""
        sidecar = self._check.shard.sidecar
        if self._rows is None:
            self._rows = []
            try:
                content = storage.read_range(sidecar) if sidecar else b""
                everything = [row_from_json(orjson.loads(line)) for line in content.splitlines()]
                rows = [row for row in everything if isinstance(row, SidecarRow)]
                self._by_offset = {row.offset: number for number, row in enumerate(rows)}
                with suppress(*FORGED):
                    self.totals = RowTotals.of(everything)
                self._rows, self.sha256 = rows, hashlib.sha256(content).hexdigest() if sidecar else ""
            except FileNotFoundError:
                self._check.add("missing", f"the sidecar is missing ({sidecar})")
            except (OSError, *FORGED) as error:
                self._check.add("sidecar", f"the sidecar cannot be read: {error} ({sidecar})")
        return self._rows

    def place(self, offset: int, counted: int) -> tuple[int, int, str]:
        """The number of the record that begins at an offset, the offset, and the key of its source.

        Args:
            offset: in the unpacked file.
            counted: the number by counting, which is used if no row has the offset.
        """
        rows = self.read()
        number = self._by_offset.get(offset)
        return (counted, offset, "") if number is None else (number, offset, str(rows[number].key))
