"""A loss that fails a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

LOST_CLASSES = "max_rejected.lost_classes"
"""The setting that allows classes, and splits, to lose all their images."""

CONTAINERS = "max_rejected.containers"
"""The setting that allows files of many images to be lost."""


@dataclass(frozen=True, slots=True)
class Excess:
    """A loss that is over a limit, or that no limit allows.

    Attributes:
        problem: what was lost, and the limit, as a sentence without its full stop.
        remedy: what to do about its cause; None if that is not known.
        accepting: the settings, by their paths, that allow this loss; empty if none does.
    """

    problem: str
    remedy: str | None = None
    accepting: Mapping[str, int] = field(default_factory=dict)
