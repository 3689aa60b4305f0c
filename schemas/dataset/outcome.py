"""How a run ends: its outcome, with the numbers of a dataset, of a plan, or of a failure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from recordmill.schemas.dataset.json_values import from_json, to_json
from recordmill.schemas.dataset.marker import (
    AnnotationEntry,
    DuplicateCounts,
    Ledger,
    Marker,
    NamedImages,
)
from recordmill.schemas.dataset.price import ComparedPrice
from recordmill.schemas.earlier_names import with_earlier_counts
from recordmill.schemas.errors import RecordmillError

OutcomeStatus = Literal[
    "published", "kept", "written", "planned", "submitted", "built", "refused", "failed"
]

Unit = Literal["image", "row", "file"]


@dataclass(frozen=True, slots=True)
class SplitNumbers:
    """One split; of a plan, the bytes are an estimate."""

    images: int
    shards: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetNumbers:
    """The numbers of a dataset that was published, kept or written.

    Attributes:
        unit: what a record is made from.
        splits: by name.
        classes: number of classes.
        ledger: as in the marker, like all others down to `remarks`.
        duplicates: absent if Beam wrote the files.
        price: what the run was predicted to cost, and what it cost.
        report: the name of the report's file; absent if there is none.
        version: the folder below the output that holds the dataset; absent without versions.
        analysis: `analyzed`, `failed`, or `kept` if it was there already; absent if none was
            requested.
    """

    unit: Unit
    splits: Mapping[str, SplitNumbers]
    classes: int
    ledger: Ledger
    named: NamedImages | None = None
    annotations: Mapping[str, AnnotationEntry] | None = None
    gps_positions: int | None = None
    changes: Mapping[str, int]
    duplicates: DuplicateCounts | None = None
    input_bytes: int
    output_bytes: int
    remarks: tuple[str, ...] = ()
    price: ComparedPrice | None = None
    report: str | None = None
    version: str | None = None
    analysis: str | None = None

    @classmethod
    def of(cls, marker: Marker) -> Self:
        """Returns the numbers that the marker of a dataset has."""
        return cls(
            unit=marker.unit,
            splits={
                name: SplitNumbers(split.records, len(split.shards), split.bytes)
                for name, split in marker.splits.items()
            },
            classes=len(marker.labels),
            ledger=marker.ledger,
            named=marker.named,
            annotations=marker.annotations or None,
            gps_positions=marker.gps_positions,
            changes=marker.changes,
            duplicates=marker.duplicates,
            input_bytes=marker.input_bytes,
            output_bytes=marker.output_bytes,
            remarks=marker.remarks,
        )


@dataclass(frozen=True, slots=True)
class PlannedLedger:
    """What will happen to everything that was listed; the rest will be converted."""

    listed: int
    rejected: Mapping[str, int]
    ignored: Mapping[str, int]
    left_out: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedNumbers:
    """The numbers of a run that planned a dataset and wrote nothing; see `DatasetNumbers`."""

    unit: Unit
    splits: Mapping[str, SplitNumbers]
    ledger: PlannedLedger
    named: NamedImages | None = None
    classes: int
    input_bytes: int
    price: ComparedPrice | None = None


@dataclass(frozen=True, slots=True)
class FailedNumbers:
    """The numbers of a run that rejected or dropped too much, or broke the contract.

    Attributes:
        ledger: of the dataset that was not published.
        lost_classes: some classes that lost all images; absent if the contract was broken.
        annotations: as in the marker.
        report: the path of the report of what was not published; absent if there is none.
    """

    ledger: Ledger
    lost_classes: tuple[str, ...] | None = None
    annotations: Mapping[str, AnnotationEntry] | None = None
    report: str | None = None


Numbers = DatasetNumbers | PlannedNumbers | FailedNumbers


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended; the same in the outcome file, in the marker and on stdout.

    Attributes:
        status: `published` a dataset; `kept` the one that was there already; `written` by Beam,
            without a marker; `planned` and wrote nothing; `submitted` to a remote runner and not
            waited for; `built`, to be started by another program; `refused` to touch the output;
            `failed`.
        message: what happened, for people, in one sentence; after a failure, further lines may say
            more.
        exit_code: 0 done, 1 failed, 2 wrong usage or configuration, 3 too many rejected, 4 not as
            `expect` says.
        plan_id: the plan's id; empty if the run ended before planning.
        numbers: the ledger, and images, shards and bytes per split; None if the run ended before
            there were any. Their class depends on the status: `PlannedNumbers` of a plan,
            `DatasetNumbers` of a dataset, and `FailedNumbers` of a dataset that was not published.
        notes: notes for the user.
    """

    status: OutcomeStatus
    message: str
    exit_code: int
    plan_id: str = ""
    numbers: Numbers | None = None
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The former name of `message`; the next version will not have it."""
        return self.message

    @property
    def dataset(self) -> DatasetNumbers | None:
        """The numbers of the dataset that is complete in the output; None if there is none."""
        if self.status in ("published", "kept") and isinstance(self.numbers, DatasetNumbers):
            return self.numbers
        return None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Returns the outcome that a file's JSON describes.

        Raises:
            MisfitError: it is not an outcome.
        """
        rest = {key: each for key, each in value.items() if key != "numbers"}
        outcome = from_json(cls, rest)
        return replace(outcome, numbers=_read_numbers(outcome.status, value.get("numbers", {})))

    def to_object(self) -> dict[str, Any]:
        """Returns the object of JSON that files contain."""
        return {**to_json(self), "numbers": self.plain_numbers()}

    def plain_numbers(self) -> dict[str, Any]:
        """Returns the numbers as plain JSON values, by key; an empty object if there are none.

        Annotations are there again by the keys of earlier versions.
        """
        if self.numbers is None:
            return {}
        return with_earlier_counts(to_json(self.numbers))


def _read_numbers(status: OutcomeStatus, numbers: Mapping[str, Any]) -> Numbers | None:
    """Returns the numbers of an outcome with their types, or None if it has none.

    A run that failed after its dataset was complete has the numbers of that dataset.

    Raises:
        MisfitError: they are not an outcome's.
    """
    if not numbers:
        return None
    if status == "planned":
        return from_json(PlannedNumbers, numbers)
    if "splits" in numbers:
        return from_json(DatasetNumbers, numbers)
    return from_json(FailedNumbers, numbers)


class ConversionError(RecordmillError):
    """A conversion made no dataset.

    Attributes:
        outcome: how it ended: `status`, `message`, the command's `exit_code`, `numbers` (the
            ledger) and `notes`.
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome

    def __str__(self) -> str:
        return self.outcome.message
