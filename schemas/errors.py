"""How a run ends: its outcome, the exit codes, and the errors that users can act on.

Commands report these errors, and Python code can catch them. The text is one sentence: what is
wrong, where, and what to do. Errors of other classes are bugs or outages.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

Status = Literal[
    "published", "kept", "written", "planned", "submitted", "built", "refused", "failed"
]

DONE, FAILED, WRONG_USAGE, TOO_MANY_REJECTED, NOT_AS_EXPECTED = 0, 1, 2, 3, 4
"""The exit code of a process."""

INTERRUPTED, TERMINATED = 130, 143
"""The exit codes that shells expect of a process that SIGINT or SIGTERM ended."""


class Terminated(BaseException):
    """SIGTERM arrived."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended; the same in the outcome file, in the marker and on stdout.

    Attributes:
        status: `published` a dataset; `kept` the one that was there already; `written` by Beam,
            without a marker; `planned` and wrote nothing; `submitted` to a remote runner and not
            waited for; `built`, to be started by another program; `refused` to touch the output;
            `failed`.
        message: one sentence for people.
        exit_code: 0 done, 1 failed, 2 wrong usage or configuration, 3 too many rejected, 4 not as
            `expect` says.
        plan_id: the plan's id; empty if the run ended before planning.
        numbers: the ledger, and images, shards and bytes per split.
        notes: notes for the user.
    """

    status: Status
    message: str
    exit_code: int
    plan_id: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The former name of `message`; the next version will not have it."""
        return self.message


def as_message(message: str) -> dict[str, str]:
    """Returns the JSON keys that hold a message; scripts may still read the former `sentence`."""
    return {"message": message, "sentence": message}


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


class RecordmillError(Exception):
    """Something that a user can act on.

    Attributes:
        exit_code: the exit code of a command that fails with this error.
    """

    exit_code: ClassVar[int] = FAILED


class UsageError(RecordmillError, ValueError):
    """An error in the arguments or the settings.

    Several wrong settings get a line each, with the YAML key.
    """

    exit_code = WRONG_USAGE


class LoadError(RecordmillError, ValueError):
    """A dataset cannot be opened, or cannot be read as requested."""


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


class SettingError(ValueError):
    """A setting is wrong. The launcher reports it as a UsageError, with where it was written.

    The message is the path and the problem: `images.quality is 0: give 1 or more`.

    Attributes:
        path: the YAML key, with the keys above it, such as `images.quality`. A class whose settings
            may be in several places gives the path below it, and `at` completes that.
        problem: what is wrong and what to do, as the sentence goes on after the path; it may begin
            with a colon or a comma.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        if not self.path:
            return self.problem.removeprefix(": ")
        gap = "" if self.problem.startswith((":", ",")) else " "
        return f"{self.path}{gap}{self.problem}"

    def at(self, place: str) -> "SettingError":
        """Returns the error with its whole path.

        Args:
            place: where the settings are that raised it; empty for the top.
        """
        if not place or self.path == place or self.path.startswith(f"{place}."):
            return self
        return SettingError(f"{place}.{self.path}" if self.path else place, self.problem)
