"""The report of a shard's writer on the finished shard."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from recordmill.schemas.annotation_totals import AnnotationTotals


@dataclass(frozen=True, slots=True)
class ShardReport:
    """The totals of one finished shard, counted from the finished file and its sidecar.

    Attributes:
        split: the shard's split.
        index: the shard's place in the plan, from 0 within its split.
        references: number of references; always `records` plus the sum of `rejected`.
        digest: of the references, order-free and in hex; see `schemas.reference_digest.digest_of`.
        records: Examples in the file, read back from it.
        bytes: size of the file.
        sha256: hex digest of the file.
        sidecar_sha256: hex digest of its sidecar.
        input_bytes: bytes of the source images that were written.
        classes: Examples by class name; the empty name for those without a class of their own.
        rejected: rejected references by reason code.
        changes: Examples by change (`rotated`, `reencoded`, ...).
        boxes: boxes of the references by outcome, see `transforms.records.boxes.PlacedBoxes`; empty if there are
            none.
        instances: boxes, or else labels of Examples with several, by class name; empty if there are none.
        annotations: boxes and labels that are in no Example, and images without a box.
        missing: Examples that lack an optional feature, by its key.
        milliseconds: how long its images took to decode and encode; not stored.
        reused: whether an earlier run had finished it.
        problem: one sentence that fails the run, e.g. a full disk; the empty string if there is none.
    """

    split: str
    index: int
    references: int
    digest: str
    records: int
    bytes: int
    sha256: str
    sidecar_sha256: str
    input_bytes: int
    classes: Mapping[str, int]
    rejected: Mapping[str, int]
    changes: Mapping[str, int]
    boxes: Mapping[str, int] = field(default_factory=dict)
    instances: Mapping[str, int] = field(default_factory=dict)
    annotations: AnnotationTotals = field(default_factory=AnnotationTotals)
    missing: Mapping[str, int] = field(default_factory=dict)
    milliseconds: int = field(default=0, compare=False)
    reused: bool = False
    problem: str = ""

    def as_dict(self) -> dict[str, Any]:
        """As plain values, without those of one run: the same shard gives the same values."""
        return {name: value for name, value in asdict(self).items() if name != "milliseconds"}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """The report that `as_dict` made plain."""
        return cls(**{**plain, "annotations": AnnotationTotals(**plain.get("annotations", {}))})
