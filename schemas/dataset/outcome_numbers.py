"""The numbers of an outcome, by what the run came to: a dataset, a plan, or a failure.

An outcome carries them as JSON, in which it is also written to files. A key that is absent from it
is None here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from recordmill.schemas.dataset.json_values import from_json
from recordmill.schemas.dataset.marker import DuplicateCounts, Ledger, NamedImages
from recordmill.schemas.dataset.totals import ImagesWithoutBoxes
from recordmill.schemas.errors import ComparedPrice, Status

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
    boxes: Mapping[str, int] | None = None
    dropped_boxes: Mapping[str, Mapping[str, int]] | None = None
    images_without_boxes: ImagesWithoutBoxes | None = None
    labels_of_images: Mapping[str, int] | None = None
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
        boxes: as in the marker.
    """

    ledger: Ledger
    lost_classes: tuple[str, ...] | None = None
    boxes: Mapping[str, int] | None = None


Numbers = DatasetNumbers | PlannedNumbers | FailedNumbers


def read_numbers(status: Status, numbers: Mapping[str, Any]) -> Numbers | None:
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
