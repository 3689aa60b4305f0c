"""Reports of shards, added up as a run does."""

from collections.abc import Iterable

from recordmill.schemas.dataset.shard_report import FinishedShards, ShardReport


def gather_reports(reports: Iterable[ShardReport]) -> FinishedShards:
    """All reports together."""
    finished = FinishedShards()
    for report in reports:
        finished.add(report)
    return finished
