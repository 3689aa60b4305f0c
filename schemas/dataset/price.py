"""What a run costs: predicted by its plan, and measured."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a run costs.

    Attributes:
        cpu_seconds: processor time of all processes, with start-up.
        memory: peak memory of the main process, in bytes.
        bytes_read: of the images.
        bytes_shuffled: of references, as they are sent between workers; None if that was not
            measured.
        bytes_written: of the shards.
        minutes: the duration on this machine.
    """

    cpu_seconds: float
    memory: int
    bytes_read: int
    bytes_shuffled: int | None = None
    bytes_written: int
    minutes: float


@dataclass(frozen=True, slots=True)
class ComparedPrice:
    """What a run was predicted to cost, and what it had cost when its dataset was complete.

    Attributes:
        predicted: by its plan.
        measured: absent unless one process ran all stages.
    """

    predicted: Price
    measured: Price | None = None
