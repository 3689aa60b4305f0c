"""Where and how a run works."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from recordmill import storage
from recordmill.schemas.exclusions import Exclusions


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Where and how a run works: nothing here but `exclusions` changes a byte of the dataset.

    Attributes:
        run_id: names the run.
        output: the output folder.
        outcome_file: where the job writes how it ended.
        inputs: folders by input name (empty: the only one, without a name).
        against: the folder of the dataset with which `expect` compares.
        reuse: folders of earlier datasets whose images may be stored again.
        exclusions: what the file in `exclude` names; the plan stands for its digest.
        versions: whether the dataset has a folder of its own below the output.
        overwrite: whether another dataset in the output may be replaced.
        preview: whether to plan only.
        names_convention: whether the user, or the layout, names a convention: only then may it have no place for boxes.
        writer: what writes the files: `recordmill`, or Beam's `WriteToTFRecord` (`beam`).
        threads: images decoded at once in one process; 0 for one a processor.
        processes: how many processes convert images, this one included.
        fewest_for_processes: references below which this one converts them alone.
        notes: what was found out before the job, for the user.
        facts: what else the marker's `run` part says: runner, versions, start.
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
