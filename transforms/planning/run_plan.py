"""What a run does: the dataset that it makes, what it does in the output, and notes on both.

Each step returns its part, and changes none that it was given.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from recordmill import storage
from recordmill.schemas.dataset.price import Price
from recordmill.schemas.errors import FAILED
from recordmill.storage.dataset_files import staging_folder
from recordmill.transforms.planning.earlier_dataset import (
    EarlierDataset,
    EarlierDatasets,
    ReusableDataset,
)
from recordmill.transforms.planning.plan import DatasetPlan

Action = Literal["convert", "preview", "finish", "keep", "refuse", "fail"]


@dataclass(frozen=True, slots=True)
class OutputDecision:
    """What a run does in the output; `ClaimOutput` decides it.

    Attributes:
        action: `convert`; `preview`, writing nothing; `finish` a publication that was cut; `keep`
            the dataset there; `refuse`; or `fail`.
        sentence: why, unless the action is `convert`.
        exit_code: that of a run whose action is `fail`.
        output: the folder of the dataset: the run's output, or a version's folder below it.
        version: the name of the version's folder; empty without versions.
        staged_as: the name of the work in the output: the plan's id, or the run's id if Beam
            writes the files, because no other run resumes those.
        found: the dataset in that folder when the output was claimed.
        stamp: the stamp of its marker, see `dataset_files.stamp_marker`.
        replaced: the dataset that the new one replaces: the same, or the current version.
    """

    action: Action = "convert"
    sentence: str = ""
    exit_code: int = FAILED
    output: str = ""
    version: str = ""
    staged_as: str = ""
    found: EarlierDataset | None = None
    stamp: str | None = None
    replaced: EarlierDataset | None = None

    @property
    def staging(self) -> str:
        """The folder to which files are written until they are published."""
        return staging_folder(self.output, self.staged_as)

    def at(self, output: str, version: str) -> Self:
        """Returns the same decision for the folder of a version below an output.

        If the version is empty, it is for the output itself.
        """
        folder = storage.join(output, version) if version else output
        return replace(self, output=folder, version=version)


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The plan of a run.

    Attributes:
        dataset: the dataset to be made.
        decision: what to do in the output.
        inputs: the folder of each input, by the input's name.
        earlier: the earlier datasets of the run.
        reuse: those of them whose images may be stored again.
        notes: messages about this run alone, not about the dataset.
        price: the expected cost of the run; None if predicting it was not worth it.
    """

    dataset: DatasetPlan
    decision: OutputDecision = field(default_factory=OutputDecision)
    inputs: Mapping[str, str] = field(default_factory=dict)
    earlier: EarlierDatasets = field(default_factory=EarlierDatasets)
    reuse: tuple[ReusableDataset, ...] = ()
    notes: tuple[str, ...] = ()
    price: Price | None = field(default=None, compare=False)


def dataset_to_convert(plan: RunPlan) -> DatasetPlan:
    """Returns the dataset that a run converts; it has no shards if the run converts nothing."""
    if plan.decision.action == "convert":
        return plan.dataset
    return replace(plan.dataset, starts={})
