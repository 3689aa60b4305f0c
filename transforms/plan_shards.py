"""PlanShards and ShuffleReferences: a summary becomes a plan, and each reference goes to its shard.

A few images are converted to predict what the whole run will take: bytes, processor time and
memory.
"""

import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import repeat
from threading import BoundedSemaphore
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam import coders
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from recordmill.schemas.dataset.price import Price
from recordmill.schemas.dataset.record_index import UNKNOWN, RowOrigin
from recordmill.schemas.dataset.side_files import RejectedRow
from recordmill.schemas.digests import KeyHashes, source_digest_of
from recordmill.schemas.errors import FAILED, WRONG_USAGE
from recordmill.schemas.formatting import format_count
from recordmill.schemas.image_ref import ImageRef, Notice
from recordmill.schemas.label_map import LabelMap, rename_classes
from recordmill.schemas.reference_batch import ReferenceBatch, ShardBatch, ShardBatchCoder
from recordmill.schemas.settings.dataset import (
    DatasetSettings,
    ExampleLayout,
)
from recordmill.schemas.settings.recipe import Recipe
from recordmill.storage.tfrecord_file import frame_bytes
from recordmill.transforms.planning.earlier_dataset import EarlierDatasets, ReusableDataset
from recordmill.transforms.planning.explain_pairs import explain_pairs
from recordmill.transforms.planning.explain_unclaimed import explain_unclaimed
from recordmill.transforms.planning.explain_unnamed import explain_unnamed
from recordmill.transforms.planning.plan import (
    DatasetPlan,
    class_numbers,
    make_plan,
)
from recordmill.transforms.planning.progress import Progress, peak_memory
from recordmill.transforms.planning.run_inputs import RunInputs
from recordmill.transforms.planning.run_plan import OutputDecision, RunPlan
from recordmill.transforms.planning.runs import RunSettings
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.planning.summary import SAMPLE_SIZE, Summary, range_of
from recordmill.transforms.records.convert_image import ConvertedImage, convert_image
from recordmill.transforms.records.earlier_datasets import (
    JoinedReference,
    join_earlier,
)
from recordmill.transforms.records.image_functions import FunctionError
from recordmill.transforms.shards.read_ahead import ReadAhead
from recordmill.transforms.shards.resources import available_processors
from recordmill.transforms.shards.shard_files import InputDigests, WrittenShard

for _type in (DatasetPlan, RunPlan):  # Beam's own coder would make tuples of them
    coders.registry.register_coder(_type, coders.PickleCoder)

ShardId = tuple[str, int]

NO_EARLIER = EarlierDatasets()

PRICED_FROM = 1_000
"""The fewest references for which a run predicts its price; `--plan` always does."""

HELD_REFERENCES = 131_072
"""The references that a worker's thread sorts by shard at once: 64 MB."""

_WRITTEN_BYTES, _MOST_TIMES = 4 * 2**20, 8
"""Bytes of the sample that are written to measure the cost, and how often it is repeated at
most."""

_REFERENCE_SECONDS = 60e-6
"""CPU time to sort, shuffle and order a reference, and to pass an image between threads."""

_PROCESS_SECONDS, _END_SECONDS = 0.4, 0.7
"""CPU time of a further process, and of work done once per run: stages of the runner, companion
files, report."""

_REFERENCE_BYTES, _IN_PROGRESS_BYTES = 870, 100 * 2**20
"""Memory of DirectRunner per reference (docs/scale.md), and of images in progress."""


Sample = Sequence[tuple[ImageRef, ConvertedImage]]
"""Some images and their conversions, whose `seconds` are the CPU time to read and convert them."""


def _bytes_of_records(sample: Sample) -> int:
    return sum(frame_bytes(image.size()) for _, image in sample if image.record is not None)


def growth_of(sample: Sample) -> float:
    """Returns bytes of records per byte of their sources."""
    kept = [
        (ref, image)
        for ref, image in sample
        if not isinstance(image.row, RejectedRow) or image.row.left_out
    ]
    before = sum(ref.expected_bytes for ref, _ in kept)
    if before:
        return _bytes_of_records(kept) / before
    return 1.0


def predict_seconds(sample: Sample, summary: Summary) -> float:
    """Returns CPU seconds to convert all images, by regression on the file sizes of the sample."""
    found, sizes = np.array([(image.seconds, ref.expected_bytes) for ref, image in sample]).T
    whole, apart = sum(split.bytes for split in summary.splits.values()), sizes - sizes.mean()
    slope = 0.0
    if apart.any():
        slope = max(0.0, float(apart @ found / (apart @ apart)))
    total = summary.references * (found.mean() - slope * sizes.mean()) + slope * whole
    return max(0.0, float(total))


def convert_sample(
    summary: Summary, settings: DatasetSettings, reuse: Sequence[ReusableDataset] = ()
) -> Sample:
    """Converts the summary's sample.

    The sample is chosen by hash, so the same images give the same sizes. The functions of
    `images.function` and `keep` are called twice for each image.

    Args:
        summary: what was listed.
        settings: what the dataset is.
        reuse: earlier datasets whose images may be stored again.
    """
    numbers = class_numbers(summary, settings)
    renamed = settings.labels.rename
    labels = rename_classes({*numbers, *(ref.label for _, _, ref in summary.sample)}, renamed)
    label_map = LabelMap(dict.fromkeys(labels, 0), numbers=numbers, renamed=renamed)
    decoding, layout = BoundedSemaphore(available_processors()), ExampleLayout(settings)

    def convert(joined: JoinedReference) -> tuple[ImageRef, ConvertedImage]:
        ref, earlier = joined.ref, joined.earlier
        began = time.thread_time()
        converted = convert_image(ref, layout, label_map, decoding, earlier=earlier, twice=True)
        converted.seconds = time.thread_time() - began
        return ref, converted

    # The sample is in the order of its hashes, and has the lowest: few sidecars are read.
    orders, refs = [each[0] for each in summary.sample], [each[2] for each in summary.sample]
    origins = (RowOrigin(source_digest_of(ref)) if reuse else UNKNOWN for ref in refs)
    joined = join_earlier(reuse, zip(refs, origins, strict=True), orders, settings.seed)
    # Many threads, because they wait for stores.
    with closing(ReadAhead(SAMPLE_SIZE, batch_items=1)) as pool:
        return list(pool.map(convert, joined, lambda each: each.ref.expected_bytes, lambda _: 0))


def price_run(
    sample: Sample,
    summary: Summary,
    settings: DatasetSettings,
    processes: int,
    progress: Progress,
) -> Price:
    """Predicts the cost of a run, including its cost so far; `sample` must not be empty.

    Raises:
        OSError: the sample cannot be written to the temporary folder.
    """
    references, spent = summary.references, progress.cpu_seconds()
    batch = ShardBatchCoder().encode(ShardBatch.of_pairs((ref, 0) for ref, _ in sample))
    seconds, share = _measure_writing(sample, settings.compression)
    whole = sum(split.bytes for split in summary.splits.values())
    # A plain ratio: if a few files are much larger than the others, regression is less accurate for
    # bytes.
    ratio = _bytes_of_records(sample) / max(1, sum(ref.expected_bytes for ref, _ in sample))
    rest = (
        predict_seconds(sample, summary)
        + references * (seconds + _REFERENCE_SECONDS)
        + (processes - 1) * _PROCESS_SECONDS
        + _END_SECONDS
    )
    return Price(
        cpu_seconds=round(spent + rest, 2),
        memory=peak_memory() + _IN_PROGRESS_BYTES + _REFERENCE_BYTES * references,
        bytes_read=whole,
        bytes_shuffled=round(len(batch) * references / len(sample)),
        bytes_written=round(share * ratio * whole),
        minutes=round((spent + rest / processes) / 60, 2),
    )


def _measure_writing(sample: Sample, compression: str) -> tuple[float, float]:
    """Measures what it takes to write an image to a shard and read it back.

    Returns the CPU seconds for that, and the bytes of the shard per byte of its records.
    """
    some, size = list[tuple[ImageRef, ConvertedImage]](), 0
    for ref, image in sample:
        if size < _WRITTEN_BYTES:
            some.append((ref, image))
            size += image.size()
    some *= max(1, min(_MOST_TIMES, _WRITTEN_BYTES // max(size, 1)))
    with tempfile.TemporaryDirectory(prefix="recordmill-sample-") as folder:
        began = time.thread_time()
        shard = WrittenShard(
            folder, "sample", 0, InputDigests("0" * 64, "0" * 64), compression, repeat(0)
        )
        # Copies, because writing clears their records.
        shard.write(replace(image) for _, image in some)
        report = shard.finish({})
        seconds = time.thread_time() - began
    before = _bytes_of_records(some)
    return seconds / len(some), report.bytes / before if before else 1.0


def estimate_growth(
    summary: Summary,
    settings: DatasetSettings,
    shown: bool = False,
    reuse: Sequence[ReusableDataset] = (),
) -> tuple[float, Sample | None]:
    """Estimates bytes of records per byte of their sources, from the summary's sample.

    The sample is converted even if only the price of the run depends on it.

    Returns:
        - the estimate. Without functions in `images.function` and `keep`, it is 1.0 if bytes are
          stored untouched, or if nothing uses it. It is also 1.0 if no image of the sample can be
          converted;
        - the sample, or None if it was not converted.
    """
    cuts_by_size = settings.shards.count is None and settings.shards.cuts == "even"
    decides = settings.hooks or (settings.images.reencode != "never" and (shown or cuts_by_size))
    if not decides and not shown and summary.references < PRICED_FROM:
        return 1.0, None
    sample = convert_sample(summary, settings, reuse)
    return growth_of(sample) if decides else 1.0, sample


def _explain_sizes(sample: Sample) -> str | None:
    """Says that annotations are of other images, if most of a sample has another size."""
    wrong = [
        (ref, image.row.detail)
        for ref, image in sample
        if isinstance(image.row, RejectedRow) and image.row.reason == "size_mismatch"
    ]
    if 2 * len(wrong) <= len(sample):
        return None
    ref, detail = wrong[0]
    return (
        f"the annotations are not of these images: {len(wrong)} of {len(sample)} in a sample have "
        f"other sizes, such as {ref.key} ({detail}): correct the names or sizes in the annotations"
    )


def _refuse_losses(
    summary: Summary, settings: DatasetSettings, run: RunSettings
) -> tuple[Summary, int]:
    """Adds a problem if annotations, second images or files that nothing reads would be lost.

    Also returns the exit code of a run with problems.
    """
    flag = "--set " if run.command else ""  # a call in Python has no command
    for kind, listed in summary.list_unstored(ExampleLayout(settings)):
        what = f"the input has {format_count(listed, kind.unit)}"
        error = None if run.names_convention else kind.refuse_unstored(what, flag)
        if error is not None:
            return replace(summary, problems=[str(error)], problems_found=1), FAILED
    if not run.is_recognized or summary.problems:
        return summary, FAILED
    left = {*run.left_by_user}
    if not summary.references:
        left.add("unlabeled")
    unclaimed = [each for each in summary.unclaimed if each.role.role not in left]
    unread = None
    if run.other_classes:
        unread = explain_unnamed(summary, settings, run.other_classes, run.command)
    unread = unread or explain_pairs(summary.second_images, settings, run.command)
    unread = unread or explain_unclaimed(unclaimed, settings, run.command, summary.references)
    if not left & {"unlabeled", "one_class"}:  # the setting that names the label is not written
        # Imports the sources of archives and tables.
        from recordmill.transforms.planning.explain_several_classes import explain_several_classes

        unread = unread or explain_several_classes(summary, settings, run.command)
    if unread:
        return replace(summary, problems=[unread], problems_found=1), WRONG_USAGE
    return summary, FAILED


def plan_dataset(
    summary: Summary,
    selection: SplitCutoffs,
    settings: DatasetSettings,
    recipe: Recipe,
    run: RunSettings,
    earlier: EarlierDatasets = NO_EARLIER,
    given: RunInputs | None = None,
) -> RunPlan:
    """Plans the dataset as if the output were empty.

    Args:
        summary: what was listed.
        selection: how images are assigned so far.
        settings: what the dataset is.
        recipe: everything that the plan's id stands for.
        run: where and how this run works.
        earlier: the earlier datasets.
        given: the inputs; None: those of `run`.
    """
    if given is None:
        given = RunInputs(folders=run.inputs)
    growth, sample, price = 1.0, None, None
    summary, exit_code = _refuse_losses(summary, settings, run)
    if unusable := given.problem or earlier.problem:
        exit_code = WRONG_USAGE
        summary = replace(summary, problems=[unusable], problems_found=1)
    reuse, notes = earlier.reusable, [*earlier.notes]
    if not summary.problems:
        try:
            growth, sample = estimate_growth(summary, settings, run.preview, reuse)
        except FunctionError as error:
            summary = replace(summary, problems=[str(error)], problems_found=1)
    if wrong_sizes := _explain_sizes(sample or ()):
        summary = replace(summary, problems=[wrong_sizes], problems_found=1)
    plan = make_plan(summary, selection, settings, recipe, growth)
    if plan.problem is None:
        exit_code = WRONG_USAGE
        plan = replace(plan, problem=_refuse_corrections(plan, run))
    decision = _decide(plan, exit_code)
    processes = run.processes_for(plan.shard_count)
    if sample and plan.problem is None and (run.preview or summary.references >= PRICED_FROM):
        used = 1
        if summary.references >= run.fewest_for_processes:
            used = processes
        with suppress(OSError):  # of the temporary folder
            price = price_run(sample, summary, settings, used, run.progress)
    if plan.problem is None and processes < run.processes:
        count = format_count(plan.shard_count, "shard")
        notes.append(f"--processes={run.processes} became {processes}: the dataset has {count}")
    return RunPlan(plan, decision, given.folders, earlier, reuse, tuple(notes), price)


def _decide(plan: DatasetPlan, exit_code: int) -> OutputDecision:
    """Fails a plan with a problem; otherwise, the output decides later."""
    if plan.problem is not None:
        return OutputDecision("fail", plan.problem, exit_code)
    return OutputDecision()


def _refuse_corrections(plan: DatasetPlan, run: RunSettings) -> str | None:
    """Returns why `corrections` cannot be used for what was listed; None if it can."""
    if run.corrections and any(listed.total for _, listed in plan.summary.list_classified()):
        return (
            "corrections needs one class for each image, and these have annotations: remove it, "
            "and correct the annotations"
        )
    return run.corrections.find_unknown(plan.label_map.ids)


def assign_shard(
    ref: ImageRef, hashes: KeyHashes, plan: DatasetPlan, splitter: ImageSplitter
) -> ShardId | None:
    """Returns the shard of a reference; None if it is left out.

    Things that were rejected when listed get a shard, too, so that the sidecars list everything
    rejected.
    """
    if not isinstance(ref, Notice):
        split = splitter.place(ref, hashes)[1]
    elif ref.status == "rejected":
        split = next(iter(plan.starts))
    else:
        return None
    return (split, range_of(plan.starts[split], hashes.order)) if split else None


@dataclass
class PlanShards(beam.PTransform):
    """Plans the dataset of a PCollection of summaries (of one element).

    Attributes:
        settings: what the dataset is.
        recipe: everything that the plan's id stands for.
        run: where and how this run works.
        selection: the `SplitCutoffs`, as a side input.
        earlier: the `EarlierDatasets`, or a side input with them.
        given: the `RunInputs`, or a side input with them; None: those of `run`.
    """

    settings: DatasetSettings
    recipe: Recipe
    run: RunSettings
    selection: Any
    earlier: Any = NO_EARLIER
    given: Any = None

    def expand(self, summary: beam.PCollection[Summary]) -> beam.PCollection[RunPlan]:
        """PCollection[Summary] -> PCollection[RunPlan] of exactly one element."""
        return summary | beam.Map(
            plan_dataset,
            self.selection,
            self.settings,
            self.recipe,
            self.run,
            self.earlier,
            self.given,
        )


@dataclass
class ShuffleReferences(beam.PTransform):
    """Groups a PCollection of batches of references by shard: the one shuffle, of references only.

    Attributes:
        settings: what the dataset is.
        plan: the `DatasetPlan`, as a side input, or as it is.
    """

    settings: DatasetSettings
    plan: Any

    def expand(self, batches: beam.PCollection[ReferenceBatch]) -> beam.PCollection[Any]:
        """Returns a PCollection[((split, index), batches)], empty if the plan has no shards."""
        return (
            batches
            | "AssignShards"
            >> beam.ParDo(_AssignShards(self.settings), self.plan).with_output_types(
                tuple[ShardId, ShardBatch]
            )
            | "GroupByShard" >> beam.GroupByKey()
        )


class _AssignShards(beam.DoFn):
    """Sorts the references of a bundle by shard, several thousand at a time."""

    def __init__(self, settings: DatasetSettings) -> None:
        self._settings = settings

    def start_bundle(self) -> None:
        self._held = 0
        self._by_shard: defaultdict[ShardId, ShardBatch] = defaultdict(ShardBatch)

    def process(
        self, batch: ReferenceBatch, plan: DatasetPlan
    ) -> Iterator[tuple[ShardId, ShardBatch]]:
        if not plan.starts:
            return
        for notice in batch.notices:
            if notice.status == "fatal":  # our own plans do not convert then
                raise ValueError(f"{notice.uri}: {notice.detail}")
        splitter = ImageSplitter(self._settings.seed, self._settings.splits, plan.selection)
        hashes = batch.hash_with(splitter.seed)
        for ref, keys, digest, version in zip(
            batch.counted,
            hashes.iterate_keys(),
            hashes.iterate_digests(),
            hashes.iterate_versions(),
            strict=True,
        ):
            shard = assign_shard(ref, keys, plan, splitter)
            if shard is not None:
                self._by_shard[shard].add(ref, keys.order, digest, version)
        self._held += len(batch)
        if self._held >= HELD_REFERENCES:
            yield from self._flush()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield from map(GlobalWindows.windowed_value, self._flush())

    def _flush(self) -> Iterator[tuple[ShardId, ShardBatch]]:
        yield from self._by_shard.items()
        self.start_bundle()
