"""Totals of the rows of sidecars, for the writer of a shard and for its verification."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(slots=True)
class RowTotals:
    """Totals of rows, one per record or rejected reference.

    Attributes:
        records: rows of records.
        input_bytes: bytes of their sources.
        classes: records by class name; the empty name for those without a class of their own.
        rejected: rejected references by reason code.
        rejected_when_listed: those of them that were never read as images.
        changes: records by change.
        boxes: boxes of all references by outcome.
        instances: boxes, or else labels of records with several, by class name.
        boxes_of_records: the same, of records only.
        boxes_of_bare: the same, of records without any box left.
        bare: records that may have boxes and have none.
    """

    records: int = 0
    input_bytes: int = 0
    classes: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    rejected_when_listed: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    boxes: Counter[str] = field(default_factory=Counter)
    instances: Counter[str] = field(default_factory=Counter)
    boxes_of_records: Counter[str] = field(default_factory=Counter)
    boxes_of_bare: Counter[str] = field(default_factory=Counter)
    bare: int = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Adds one row."""
        if "rejected" in row:
            self.rejected[row["rejected"]] += 1
            self.rejected_when_listed += row.get("stage") == "list"
        else:
            self.records += 1
            self.input_bytes += row["bytes"]
            self.classes[row["class"] or ""] += 1
            self.changes.update(row["changes"])
            self.instances.update(row.get("classes", ()))
        boxes = row.get("boxes")
        if boxes is None:
            return
        self.boxes.update(boxes)
        if "rejected" not in row:
            self.boxes_of_records.update(boxes)
            if not boxes.get("written"):
                self.bare += 1
                self.boxes_of_bare.update(boxes)

    def merge(self, other: "RowTotals") -> None:
        """Adds the totals of other rows."""
        for each in fields(self):
            mine, others = getattr(self, each.name), getattr(other, each.name)
            setattr(self, each.name, mine + others)
