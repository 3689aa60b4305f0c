"""The inputs of a run: what is listed, and the folders that messages and side files name."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from recordmill.schemas.settings.source import Input


@dataclass(frozen=True, slots=True)
class RunInputs:
    """What a run reads.

    Attributes:
        inputs: the folders and files to list.
        folders: the folder of each, by the input's name.
        problem: why they cannot be read; None if they can.
    """

    inputs: tuple[Input, ...] = ()
    folders: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None
