"""The errors that users can act on. Commands report them, and Python code can catch them.

The text is one sentence: what is wrong, where, and what to do. Errors of other classes are bugs or outages.
"""

from typing import ClassVar

from recordmill.schemas.outcome import FAILED, WRONG_USAGE, Outcome


class RecordmillError(Exception):
    """Something that a user can act on.

    Attributes:
        exit_code: the exit code of a command that fails with this error.
    """

    exit_code: ClassVar[int] = FAILED


class UsageError(RecordmillError, ValueError):
    """The arguments or the settings are wrong. Several wrong settings get a line each, with the YAML key."""

    exit_code = WRONG_USAGE


class LoadError(RecordmillError, ValueError):
    """A dataset cannot be opened, or cannot be read as requested."""


class ConversionError(RecordmillError):
    """A conversion made no dataset.

    Attributes:
        outcome: how it ended: `status`, `sentence`, the command's `exit_code`, `numbers` (the ledger) and `notes`.
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome

    def __str__(self) -> str:
        return self.outcome.sentence
