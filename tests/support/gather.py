"""The reports of shards, added up as the pipeline does."""

from collections.abc import Iterable

from recordmill.schemas.dataset.shard_report import FinishedShards, ShardReport


def gather_reports(parts: Iterable[ShardReport | FinishedShards]) -> FinishedShards:
    """What reports, and what was added up before, add up to."""
    finished = FinishedShards()
    for part in parts:
        finished.add(part)
    return finished
