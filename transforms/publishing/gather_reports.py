"""Adds up the reports of finished shards."""

from collections.abc import Iterable
from typing import Any

import apache_beam as beam

from recordmill.schemas.dataset.shard_report import FinishedShards


class GatherReports(beam.CombineFn):
    """Adds up reports (`ShardReport`), and what was added up before (`FinishedShards`).

    Of a union of both, Beam would make a schema, and cannot. This adds in place: copying the totals of all classes for
    each report would take most of the time.
    """

    def create_accumulator(self) -> FinishedShards:  # noqa: D102  # as the next ones, Beam's own
        return FinishedShards()

    def add_input(self, finished: FinishedShards, part: Any) -> FinishedShards:  # noqa: D102
        (finished.merge if isinstance(part, FinishedShards) else finished.add)(part)
        return finished

    def merge_accumulators(self, parts: Iterable[FinishedShards]) -> FinishedShards:  # noqa: D102
        first, *others = parts
        for other in others:
            first.merge(other)
        return first

    def extract_output(self, finished: FinishedShards) -> FinishedShards:  # noqa: D102
        return finished
