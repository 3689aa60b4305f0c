"""ConvertShards: a shard's references become its finished files, in one step.

One DoFn takes a shard all the way. Split in two (encode, then write) it would lean on fusion, which is a runner's
optimisation: with two worker threads such a prototype lost half its records while its counters were right.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from recordmill import storage
from recordmill.schemas.dataset.shard_report import ShardReport
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.transforms.planning.plan import Plan
from recordmill.transforms.run_settings import RunSettings
from recordmill.transforms.shards.read_ahead import DecodePool, default_threads
from recordmill.transforms.shards.second_process import SecondProcess
from recordmill.transforms.shards.shard_writer import ShardWriter, decodes_nothing

FEWEST_FOR_TWO = 2_000
"""References below which a second process would take as long to begin as it saves."""


coders.registry.register_coder(ShardReport, coders.PickleCoder)


@dataclass
class ConvertShards(beam.PTransform):
    """Writes each shard of a PCollection of grouped batches of references.

    Attributes:
        settings: what the dataset is.
        run: where and how this run works.
        plan: the `Plan`, as a side input.
    """

    settings: DatasetSettings
    run: RunSettings
    plan: Any

    def expand(
        self, shards: beam.PCollection[tuple[tuple[str, int], Iterable[ReferenceBatch]]]
    ) -> beam.PCollection[ShardReport]:
        """PCollection[((split, index), batches)] -> PCollection[ShardReport]."""
        return shards | beam.ParDo(_ConvertShard(self.settings, self.run), self.plan)


def count_shard(report: ShardReport) -> None:
    """Counts a finished shard in Beam's metrics, which runners show while they work."""
    counts = {"images_written": report.records, "bytes_read": report.rows.input_bytes, "bytes_written": report.bytes}
    counts |= {f"rejected_{reason}": count for reason, count in report.rows.rejected.items()}
    counts |= {f"left_out_{reason}": count for reason, count in report.rows.left_out.items()}
    for name, count in counts.items():
        Metrics.counter("recordmill", name).inc(count)
    if not (report.reused or report.problem):
        Metrics.distribution("recordmill", "decode_milliseconds").update(report.milliseconds)


class _ConvertShard(beam.DoFn):
    """Writes each shard, and reads it back while the next is written; reports when the bundle ends."""

    def __init__(self, settings: DatasetSettings, run: RunSettings) -> None:
        self._settings = settings
        self._run = run
        self._in_line = not run.threads and decodes_nothing(settings)

    def setup(self) -> None:
        # Chosen here: the launcher's processors are not the worker's.
        self._readers = DecodePool.of(1 if self._in_line else self._run.threads or default_threads())
        self._finisher = ThreadPoolExecutor(1, thread_name_prefix="recordmill-finish")
        self._second: SecondProcess | None = None

    def teardown(self) -> None:
        if self._second is not None:
            self._second.close()
        self._finisher.shutdown()
        del self._readers

    def start_bundle(self) -> None:
        self._under_way: deque[Future[ShardReport]] = deque()
        self._reports: list[ShardReport] = []

    def process(self, element: tuple[tuple[str, int], Iterable[ReferenceBatch]], plan: Plan) -> None:
        (split, index), batches = element
        refs = [ref for batch in batches for ref in (*batch.refs, *batch.notices)]
        writer = ShardWriter(
            self._settings, self._run.output, plan.plan_id, plan.label_map, self._readers, self._in_line
        )
        if self._second is None and self._pays_for_two(plan):
            self._second = SecondProcess(lambda *shard: writer.finish(writer.write(*shard)))
        # Clients of stores do not survive a fork.
        if self._second and self._second.is_idle() and all(storage.is_local(ref.uri) for ref in refs):
            self._under_way.append(self._second.submit(split, index, refs))
        else:
            self._under_way.append(self._finisher.submit(writer.finish, writer.write(split, index, refs)))
        self._collect(wait=False)

    def _pays_for_two(self, plan: Plan) -> bool:
        """Whether a second process, writing some of the shards, would save more time than it takes to begin."""
        return (
            self._run.processes > 1
            and self._in_line
            and storage.is_local(self._run.output)
            and sum(map(len, plan.starts.values())) > 1
            and plan.summary.references >= FEWEST_FOR_TWO
        )

    def finish_bundle(self) -> Iterator[WindowedValue]:
        self._collect(wait=True)
        yield from map(GlobalWindows.windowed_value, self._reports)

    def _collect(self, wait: bool) -> None:
        """Takes the reports that are there, or waits for all; counts them in this thread, as Beam's metrics demand."""
        while self._under_way and (wait or self._under_way[0].done()):
            self._reports.append(self._under_way.popleft().result())
            count_shard(self._reports[-1])
