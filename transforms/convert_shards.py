"""ConvertShards: a shard's references become its finished files, in one step.

One DoFn takes a shard all the way. Split in two (encode, then write) it would lean on fusion, which is a runner's
optimisation: with two worker threads such a prototype lost half its records while its counters were right.
"""

import errno
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from schemas.image_ref import ImageRef
from schemas.label_map import LabelMap
from schemas.shard_report import ShardReport
from transforms import storage
from transforms.convert_image import ConvertedImage, convert_image
from transforms.dataset_settings import DatasetSettings
from transforms.key_hashes import hash_key
from transforms.plan import Plan
from transforms.progress import PROGRESS
from transforms.read_ahead import ReadAhead, default_threads
from transforms.run_settings import RunSettings
from transforms.shard_files import failed_report, find_finished, fingerprint, staging_folder, write_shard

REMOTE_READERS = 64
"""Images under way at once where each read waits for a network; decoding stays bounded by `threads`."""

_USERS_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT}


Finish = Callable[[], ShardReport]
Failed = Callable[[str], ShardReport]


def order_references(refs: Iterable[ImageRef], seed: int) -> list[ImageRef]:
    """A shard's references in their final order: by hash, so that classes are mixed and listing order has no say."""
    return sorted(refs, key=lambda ref: (hash_key(seed, ref.key).order, ref.key, ref.offset))


def find_duplicate_key(refs: list[ImageRef]) -> str:
    """One sentence on two references with one key, if there are such; equal keys are neighbours in the order."""
    for one, other in pairwise(refs):
        if one.key == other.key and one.offset == other.offset:
            return f"two images have the key {one.key!r}: {one.uri} and {other.uri}; rename one, or give inputs names"
    return ""


@dataclass
class ConvertShards(beam.PTransform):
    """Writes each shard of a PCollection of grouped references.

    Attributes:
        settings: what the dataset is.
        run: where and how this run works.
        plan: the `Plan`, as a side input.
    """

    settings: DatasetSettings
    run: RunSettings
    plan: Any

    def expand(
        self, shards: beam.PCollection[tuple[tuple[str, int], Iterable[ImageRef]]]
    ) -> beam.PCollection[ShardReport]:
        """PCollection[((split, index), references)] -> PCollection[ShardReport]."""
        return shards | beam.ParDo(_ConvertShard(self.settings, self.run.output, self.run.threads), self.plan)


def choose_threads(settings: DatasetSettings) -> int:
    """How many threads read and decode, unless the user says: one a processor, or one where nothing is decoded.

    Passing images through by their headers is mostly the interpreter's work, which threads only hand to and fro.
    """
    return 1 if settings.images.check == "header" and settings.images.reencode != "always" else default_threads()


class _ConvertShard(beam.DoFn):
    """Writes each shard, and reads it back while the next is written; reports when the bundle ends."""

    def __init__(self, settings: DatasetSettings, output: str, threads: int) -> None:
        self._settings = settings
        self._output = output
        self._threads = threads or choose_threads(settings)

    def setup(self) -> None:
        self._decoding = threading.BoundedSemaphore(self._threads)
        self._local = ReadAhead(self._threads)
        self._remote = ReadAhead(REMOTE_READERS, batch_items=1)
        self._finisher = ThreadPoolExecutor(1, thread_name_prefix="recordmill-finish")

    def teardown(self) -> None:
        self._local.close()
        self._remote.close()
        self._finisher.shutdown()

    def start_bundle(self) -> None:
        self._reports: list[Future[ShardReport]] = []

    def process(self, element: tuple[tuple[str, int], Iterable[ImageRef]], plan: Plan) -> None:
        (split, index), unordered = element
        refs = order_references(unordered, self._settings.seed)
        failed = partial(failed_report, split, index, refs)
        finish = self._write(split, index, refs, plan, failed)
        self._reports.append(self._finisher.submit(self._finish, finish, failed))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for report in self._reports:
            yield GlobalWindows.windowed_value(report.result())

    def _write(self, split: str, index: int, refs: list[ImageRef], plan: Plan, failed: Failed) -> Finish:
        """Writes one shard unless it is there; gives what is left to be done to get its report."""
        if problem := find_duplicate_key(refs):
            return partial(failed, problem)
        staging = staging_folder(self._output, plan.plan_id)
        mark = fingerprint(refs)
        finished = find_finished(staging, split, index, mark)
        if finished is not None:
            PROGRESS.add_done(len(refs))
            return lambda: finished
        images = self._convert(refs, plan.label_map)
        try:
            return write_shard(staging, split, index, images, mark, self._settings.compression).finish
        except OSError as error:
            return partial(failed, self._explain(error))

    def _finish(self, finish: Finish, failed: Failed) -> ShardReport:
        try:
            return finish()
        except OSError as error:
            return failed(self._explain(error))

    def _explain(self, error: OSError) -> str:
        """One sentence on what a user can mend, such as a full disk; anything else is raised again."""
        if error.errno not in _USERS_ERRORS:
            raise error
        return f"the output {self._output} cannot be written: {(error.strerror or str(error)).lower()}"

    def _convert(self, refs: list[ImageRef], label_map: LabelMap) -> Iterator[ConvertedImage]:
        pool = self._local if storage.is_local(refs[0].uri) else self._remote

        def convert(ref: ImageRef) -> ConvertedImage:
            return convert_image(ref, self._settings, label_map, self._decoding)

        for image in pool.map(convert, refs, lambda ref: ref.length if ref.length >= 0 else ref.size):
            PROGRESS.add_done(1)
            yield image
