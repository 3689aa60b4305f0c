"""The verifier's child process, without a process: each question is answered in this one."""

from collections.abc import Iterator

from recordmill.reading.dataset import StoredShard
from recordmill.reading.example import Expectations
from recordmill.reading.verify_shard import Level, ShardCheck, verify_shard


class EagerChild:
    """Answers as a `ChildProcess` does."""

    def ask(
        self, shard: StoredShard, expected: Expectations, level: Level, no_metadata: bool
    ) -> Iterator[int | ShardCheck]:
        """All answers about a shard."""
        numbers: list[int] = []
        check = verify_shard(shard, expected, level, no_metadata, numbers.append)
        yield from numbers
        yield check

    def close(self) -> int:
        """Does nothing: there is no process."""
        return 0
