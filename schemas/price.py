"""What a run costs, as predicted from a few images, or as measured."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a run costs.

    Attributes:
        cpu_seconds: processor time of all processes, with start-up.
        memory: peak memory of the main process, in bytes.
        bytes_read: of the images.
        bytes_shuffled: of references, as they are sent between workers.
        bytes_written: of the shards.
        minutes: on this machine.
    """

    cpu_seconds: float
    memory: int
    bytes_read: int
    bytes_shuffled: int
    bytes_written: int
    minutes: float
