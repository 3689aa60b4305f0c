"""The reports of shards, added up as the pipeline does."""

from collections.abc import Iterable
from functools import reduce

from recordmill.schemas.dataset.totals import FinishedShards, ShardReport
from recordmill.transforms.convert_shards import GatherReports


def gather_reports(parts: Iterable[ShardReport | FinishedShards]) -> FinishedShards:
    """What reports, and what was added up before, add up to."""
    return reduce(GatherReports().add_input, parts, FinishedShards())
