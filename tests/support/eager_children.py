"""The verifier's child process, without a process: each question is answered in this one."""

from collections.abc import Iterator
from typing import Any

from recordmill.reading.verify_shard import verify_shard


class EagerChild:
    """Answers as a `ChildProcess` does."""

    def ask(self, *arguments: Any) -> Iterator[Any]:
        """All answers about a shard."""
        numbers: list[int] = []
        check = verify_shard(*arguments, numbers.append)
        yield from numbers
        yield check

    def close(self) -> int:
        """Does nothing: there is no process."""
        return 0
