"""The exit codes, and the errors that users can act on.

Commands report these errors, and Python code can catch them. The text is one sentence: what is
wrong, where, and what to do. Errors of other classes are bugs or outages.
"""

from typing import ClassVar

DONE, FAILED, WRONG_USAGE, TOO_MANY_REJECTED, NOT_AS_EXPECTED = 0, 1, 2, 3, 4
"""The exit code of a process."""

INTERRUPTED, TERMINATED = 130, 143
"""The exit codes that shells expect of a process that SIGINT or SIGTERM ended."""


class Terminated(BaseException):
    """SIGTERM arrived."""


class RecordmillError(Exception):
    """Base class of errors that the caller can fix.

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
