"""The one exception that makes a bad record a rejected row instead of a failed run."""

from typing import Literal

Stage = Literal["list", "read", "decode", "encode"]


class RejectedImage(Exception):  # it is an outcome, not an error of the program
    """An image that cannot become an Example.

    Attributes:
        stage: where it was found out: `list`, `read`, `decode` or `encode`.
        reason: a short stable code, e.g. `truncated`.
        detail: one line for people; the same on every machine.
        sha256: hex digest of the bytes read; empty where none were.
    """

    def __init__(self, stage: Stage, reason: str, detail: str, sha256: str = "") -> None:
        super().__init__(f"{reason}: {detail}")
        self.stage = stage
        self.reason = reason
        self.detail = detail
        self.sha256 = sha256
