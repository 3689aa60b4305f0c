"""ConvertShards: a shard's references become its finished files, in one step.

One DoFn takes a shard all the way. Split in two (encode, then write) it would lean on fusion, which is a runner's
optimisation: with two worker threads such a prototype lost half its records while its counters were right.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any
from unicodedata import normalize

import apache_beam as beam
from apache_beam import coders
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from recordmill import storage
from recordmill.schemas.dataset.file_names import EXAMPLES
from recordmill.schemas.dataset.shard_report import ShardReport
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.example_layout import ExampleLayout
from recordmill.storage.dataset_files import shard_path, staging_folder
from recordmill.storage.output_errors import explain_output_error
from recordmill.transforms.planning.key_hashes import hash_key
from recordmill.transforms.planning.plan import Plan
from recordmill.transforms.records.change_examples import keep_examples
from recordmill.transforms.records.convert_image import ConvertedImage, convert_image
from recordmill.transforms.records.features.find_function import FunctionError
from recordmill.transforms.run_settings import RunSettings
from recordmill.transforms.shards.progress import PROGRESS
from recordmill.transforms.shards.read_ahead import DecodePool, default_threads
from recordmill.transforms.shards.second_process import SecondProcess
from recordmill.transforms.shards.shard_files import (
    WrittenShard,
    failed_report,
    find_finished,
    fingerprint,
    write_shard,
)

FEWEST_FOR_TWO = 2_000
"""References below which a second process would take as long to begin as it saves."""


def order_references(refs: Iterable[ImageRef], seed: int) -> list[ImageRef]:
    """A shard's references in their final order: by hash, so that classes are mixed and listing order has no say."""
    return sorted(refs, key=lambda ref: (hash_key(seed, ref.key).order, ref.key, ref.offset))


def find_duplicate_key(refs: list[ImageRef], unit: str) -> str:
    """One sentence on two references with one key, if there are such; equal keys are neighbours in the order."""
    for one, other in pairwise(refs):
        if one.key != other.key:
            continue
        if (one.uri, one.offset) == (other.uri, other.offset):
            return f"the {unit} {one.key!r} is listed twice ({one.uri}): remove one, or give each a key of its own"
        if one.uri == other.uri:
            return f"two {unit}s in {one.uri} have the key {one.key!r}: give each a key of its own"
        what = f"two {unit}s have the key {one.key!r}"
        if normalize("NFC", one.uri) == normalize("NFC", other.uri):
            how = "which differ only in how Unicode spells a letter"
            return f"{what}: {one.uri!a} and {other.uri!a}, {how}; rename one"
        return f"{what}: {one.uri} and {other.uri}; rename one, or give inputs names"
    return ""


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


def _decodes_nothing(settings: DatasetSettings) -> bool:
    images = settings.images
    if settings.features:  # functions may want pixels
        return False
    if settings.source.gives_pixels:
        return images.store == "raw" and images.resize is None
    return images.check == "header" and images.reencoding != "always" and images.store in ("auto", "jpeg")


class InputError(Exception):
    """An image could not be read for a reason that says nothing about it: its store is out of order."""


def count_shard(report: ShardReport) -> None:
    """Counts a finished shard in Beam's metrics, which runners show while they work."""
    counts = {"images_written": report.records, "bytes_read": report.rows.input_bytes, "bytes_written": report.bytes}
    counts |= {f"rejected_{reason}": count for reason, count in report.rows.rejected.items()}
    for name, count in counts.items():
        Metrics.counter("recordmill", name).inc(count)
    if not (report.reused or report.problem):
        Metrics.distribution("recordmill", "decode_milliseconds").update(report.milliseconds)


class _ConvertShard(beam.DoFn):
    """Writes each shard, and reads it back while the next is written; reports when the bundle ends."""

    def __init__(self, settings: DatasetSettings, run: RunSettings) -> None:
        self._settings = settings
        self._run = run
        # Where nothing is decoded it is mostly the interpreter's work, which threads only hand back and forth.
        self._in_line = not run.threads and _decodes_nothing(settings)

    def setup(self) -> None:
        self._layout = ExampleLayout(self._settings)
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
        if self._second is None and self._pays_for_two(plan):
            self._second = SecondProcess(lambda *shard: self._finish(self._write(plan, *shard)))
        # Clients of stores do not survive a fork.
        if self._second and self._second.is_idle() and all(storage.is_local(ref.uri) for ref in refs):
            self._under_way.append(self._second.submit(split, index, refs))
        else:
            self._under_way.append(self._finisher.submit(self._finish, self._write(plan, split, index, refs)))
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

    def _write(self, plan: Plan, split: str, index: int, unordered: list[ImageRef]) -> WrittenShard | ShardReport:
        """Writes one shard; gives its report at once if it was finished before or cannot be written."""
        refs = order_references(unordered, self._settings.seed)
        if problem := find_duplicate_key(refs, self._settings.unit):
            return failed_report(split, index, len(refs), problem)
        staging = staging_folder(self._run.output, plan.plan_id)
        mark = fingerprint(refs)
        if finished := find_finished(staging, split, index, mark):
            PROGRESS.add_done(len(refs))
            return finished
        try:
            with closing(self._convert(refs, plan.label_map, split)) as images:
                shard = write_shard(staging, split, index, images, mark, self._settings.compression)
            if index == 0 and self._settings.report:
                keep_examples(shard_path(staging, split, index, EXAMPLES), refs, shard.changed, self._settings)
            return shard
        except FunctionError as error:
            problem = str(error)
        except OSError as error:  # of the output: those of the images are InputErrors
            problem = explain_output_error(error, self._run.output)
        return failed_report(split, index, len(refs), problem)

    def _finish(self, shard: WrittenShard | ShardReport) -> ShardReport:
        if isinstance(shard, ShardReport):
            return shard
        try:
            return shard.finish()
        except OSError as error:
            problem = explain_output_error(error, self._run.output)
            return failed_report(shard.split, shard.index, shard.rows.references, problem)

    def _convert(self, refs: list[ImageRef], label_map: LabelMap, split: str) -> Generator[ConvertedImage, None, None]:
        in_line = self._in_line and storage.is_local(refs[0].uri)
        decoding = nullcontext() if in_line else self._readers.decoding

        def convert(ref: ImageRef) -> ConvertedImage:
            try:
                return convert_image(ref, self._layout, label_map, decoding, split)
            except OSError as error:
                raise InputError(f"{ref.uri} cannot be read: {error}") from error

        if in_line:
            images = (convert(ref) for ref in refs)
        else:
            pool = self._readers.pool_for(refs[0].uri)
            images = pool.map(convert, refs, attrgetter("expected_bytes"), ConvertedImage.size)
        with storage.parts_kept_open(), closing(images):
            for image in images:
                PROGRESS.add_done(1)
                yield image
