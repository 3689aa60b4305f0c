"""ConvertShards: a shard's references become its finished files, in one step.

One DoFn takes a shard all the way. Two DoFns (encode, then write) would rely on fusion, which is an
optimization of the runner: with two worker threads, a prototype of that kind lost half its records
while its counters were right.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from recordmill import storage
from recordmill.schemas.dataset.totals import FinishedShards, ShardReport
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ShardBatch
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.transforms.planning.run_plan import RunPlan
from recordmill.transforms.planning.runs import RunSettings
from recordmill.transforms.shards.resources import available_processors
from recordmill.transforms.shards.shard_writer import ShardWriter, needs_unpacking
from recordmill.transforms.shards.worker_processes import WorkerProcesses

coders.registry.register_coder(ShardReport, coders.PickleCoder)


@dataclass
class ConvertShards(beam.PTransform):
    """Writes each shard of a PCollection of grouped batches of references.

    Attributes:
        settings: what the dataset is.
        run: where and how this run works.
        plan: the `RunPlan`, as a side input.
    """

    settings: DatasetSettings
    run: RunSettings
    plan: Any

    def expand(
        self, shards: beam.PCollection[tuple[tuple[str, int], Iterable[ShardBatch]]]
    ) -> beam.PCollection[ShardReport]:
        """PCollection[((split, index), batches)] -> PCollection[ShardReport]."""
        return shards | beam.ParDo(_ConvertShard(self.settings, self.run), self.plan)


def count_shard(report: ShardReport) -> None:
    """Counts a finished shard in Beam's metrics, which runners show during the run."""
    counts = {
        "images_written": report.records,
        "bytes_read": report.rows.input_bytes,
        "bytes_written": report.bytes,
    }
    counts |= {f"rejected_{reason}": count for reason, count in report.rows.rejected.items()}
    for name, count in counts.items():
        Metrics.counter("recordmill", name).inc(count)
    if not (report.reused or report.problem):
        Metrics.distribution("recordmill", "decode_milliseconds").update(report.milliseconds)


class _ConvertShard(beam.DoFn):
    """Writes each shard, and reads it back while the next one is written.

    It reports when the bundle ends.
    """

    def __init__(self, settings: DatasetSettings, run: RunSettings) -> None:
        self._settings = settings
        self._run = run
        self._writer: ShardWriter | None = None
        self._workers: WorkerProcesses | None = None

    def setup(self) -> None:
        self._finisher = ThreadPoolExecutor(1, thread_name_prefix="recordmill-finish")

    def teardown(self) -> None:
        if self._workers is not None:
            self._workers.close()
        self._finisher.shutdown()
        self._writer = self._workers = None

    def start_bundle(self) -> None:
        self._under_way: deque[Future[ShardReport]] = deque()
        self._reports: list[ShardReport] = []

    def process(self, element: tuple[tuple[str, int], Iterable[ShardBatch]], plan: RunPlan) -> None:
        (split, index), batches = element
        batch = ShardBatch.join(batches)
        writer = self._writer = self._writer or self._start(plan, batch.refs)
        report = self._workers.submit(split, index, batch) if self._workers else None
        if report is None:
            helped = (
                self._workers
                and self._is_help_worthwhile(plan)
                and all(storage.is_local(ref.uri) for ref in batch.refs)
            )
            if self._workers and helped:
                convert = self._workers.convert
            else:
                convert = writer.convert
            written = writer.write(split, index, batch, convert)
            report = self._finisher.submit(writer.finish, written)
        self._under_way.append(report)
        self._collect(wait=False)

    def _is_help_worthwhile(self, plan: RunPlan) -> bool:
        """Returns whether workers may convert images of a shard written here.

        Images merely copied cost more to hand over, and each part of a compressed shard is unpacked
        from its beginning.
        """
        if not (self._settings.decodes_nothing or plan.reuse):
            return True
        unpacks = plan.reuse and self._settings.compression == "gzip"
        return plan.dataset.shard_count < self._run.processes and not unpacks

    def _start(self, plan: RunPlan, refs: list[ImageRef]) -> ShardWriter:
        """Makes this process's writer; starts workers if they save more time than they take."""
        run, references = self._run, plan.dataset.summary.references
        processes = run.processes_for(plan.dataset.shard_count)
        with_workers = (
            processes > 1 and references >= run.fewest_for_processes and not needs_unpacking(refs)
        )
        # Chosen here, because the launcher may have another number of processors than the worker.
        threads = run.threads or (1 if self._settings.decodes_nothing else available_processors())
        if with_workers:
            in_line = run.threads < 2
        else:
            in_line = self._settings.decodes_nothing and not run.threads
        writer = ShardWriter(self._settings, plan, run, threads, in_line)
        if with_workers:
            threads = run.threads or max(1, threads // processes)
            there = replace(writer, threads=threads, in_line=threads == 1)
            self._workers = WorkerProcesses(writer, there, processes - 1, references)
        return writer

    def finish_bundle(self) -> Iterator[WindowedValue]:
        self._collect(wait=True)
        yield from map(GlobalWindows.windowed_value, self._reports)

    def _collect(self, wait: bool) -> None:
        """Collects the finished reports, or waits for all, and counts them.

        It counts them in this thread, as Beam's metrics require.
        """
        while self._under_way and (wait or self._under_way[0].done()):
            self._reports.append(self._under_way.popleft().result())
            count_shard(self._reports[-1])


def gather_reports(parts: Iterable[Any]) -> FinishedShards:
    """Adds up reports (`ShardReport`) and sums of reports (`FinishedShards`).

    The parts do not change.

    The parts have no more exact type here, because from the union of both Beam would try to derive
    a schema, and fail.
    """
    finished = FinishedShards()
    for part in parts:
        if isinstance(part, FinishedShards):
            finished.merge(part)
        else:
            finished.add(part)
    return finished
