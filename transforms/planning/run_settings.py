"""Where and how a run works."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from recordmill import storage
from recordmill.schemas.exclusions import Exclusions


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Where and how a run works: only `exclusions` changes any byte of the dataset.

    Attributes:
        run_id: identifies the run.
        output: the output folder.
        outcome_file: where the job writes how it ended.
        inputs: folders by input name (empty for the only input, without a name).
        against: the folder of the dataset with which `expect` compares.
        reuse: folders of earlier datasets whose images may be stored again.
        exclusions: the contents of the file in `exclude`; the plan id includes its digest.
        versions: whether the dataset has a folder of its own below the output.
        overwrite: whether another dataset in the output may be replaced.
        preview: whether only to plan.
        names_convention: whether the user or the layout names a convention: only then may it be one without boxes.
        writer: what writes the files: `recordmill`, or Beam's `WriteToTFRecord` (`beam`).
        threads: images decoded at once in one process; 0 for one per processor.
        processes: the number of processes that convert images, including this one.
        fewest_for_processes: with fewer references, this process converts all of them.
        notes: messages for the user from before the job.
        facts: other values for the marker's `run` part: runner, versions, start.
    """

    run_id: str
    output: str
    outcome_file: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    against: str = ""
    reuse: tuple[str, ...] = ()
    exclusions: Exclusions = field(default_factory=Exclusions)
    versions: bool = False
    overwrite: bool = False
    preview: bool = False
    names_convention: bool = True
    writer: Literal["recordmill", "beam"] = "recordmill"
    threads: int = 0
    processes: int = 1
    fewest_for_processes: int = 0
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def at(self, version: str) -> Self:
        """The same with the folder of a version as the output; unchanged if the version is the empty string."""
        return replace(self, output=storage.join(self.output, version)) if version else self
