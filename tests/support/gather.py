"""The reports of shards, added up as the pipeline does."""

from collections.abc import Iterable

from recordmill.schemas.dataset.shard_report import FinishedShards, ShardReport


def gather_reports(reports: Iterable[ShardReport]) -> FinishedShards:
    """What the reports add up to."""
    finished = FinishedShards()
    for report in reports:
        finished.add(report)
    return finished
