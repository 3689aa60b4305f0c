"""PlanShards and ShuffleReferences: the summary becomes a plan, and every reference goes to its shard."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from recordmill.schemas.digests import order_of
from recordmill.schemas.formatting import format_count
from recordmill.schemas.image_ref import ImageRef, Notice
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import DatasetSettings, Recipe
from recordmill.schemas.settings.example_layout import ExampleLayout, explain_unstored_boxes
from recordmill.transforms.planning.plan import Plan, ReusableDataset, describe_settings, make_plan
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.planning.summary import Summary, range_of
from recordmill.transforms.records.features.find_function import FunctionError
from recordmill.transforms.run_settings import RunSettings
from recordmill.transforms.shards.earlier_datasets import find_reusable
from recordmill.transforms.shards.sample_images import Sample, convert_sample, price_run

ShardId = tuple[str, int]

PRICED_FROM = 1_000
"""References from which on a run is worth predicting its price; `--plan` always does."""

HELD_REFERENCES = (16_384, 131_072)
"""References that a worker's thread sorts by shard at once, at least and at most: 8 and 64 MB of them."""

HELD_PER_SHARD = 64
"""References of each shard among them, so that batches stay batches however many shards there are."""


def estimate_growth(
    summary: Summary, settings: DatasetSettings, shown: bool = False, reuse: Sequence[ReusableDataset] = ()
) -> tuple[float, Sample | None]:
    """Bytes of a record for each byte of its source, from converting the summary's sample; and the sample, if any.

    Without functions of `images.function` and `keep`, it is 1.0 where bytes are stored untouched, or where it decides
    no number of shards and is not even `shown`. It is 1.0, too, where no image of the sample can be converted.
    JPEGs that keep their sampling are taken for smaller than they are, as version 0.1 made them: the estimate decides
    the number of shards, and that the plan's id.

    Images are converted also where only the price of the run depends on it.
    """
    decides = settings.hooks or (settings.images.reencode != "never" and (shown or not settings.shards.ignores_growth))
    if not decides and not shown and summary.references < PRICED_FROM:
        return 1.0, None
    try:
        sample = convert_sample(summary, settings, reuse, as_before=True)
    except FunctionError:
        if decides:
            raise
        return 1.0, None  # the run will say so
    return sample.growth if decides else 1.0, sample


def plan_dataset(
    summary: Summary, selection: SplitCutoffs, settings: DatasetSettings, recipe: Recipe, run: RunSettings
) -> Plan:
    """Plans the dataset, as if the output were empty."""
    growth, sample, price = 1.0, None, None
    if summary.boxes and not run.names_convention and not ExampleLayout(settings).stores_boxes:
        problem = explain_unstored_boxes(f"the input has {format_count(summary.boxes, 'box')}")
        summary = replace(summary, problems=[problem], problems_found=1)
    reuse, notes = find_reusable(run.reuse, describe_settings(settings, recipe))
    if not summary.problems:
        try:
            growth, sample = estimate_growth(summary, settings, run.preview, reuse)
        except FunctionError as error:
            summary = replace(summary, problems=[str(error)], problems_found=1)
    plan = make_plan(summary, selection, settings, recipe, growth)
    if sample and plan.action == "convert" and (run.preview or summary.references >= PRICED_FROM):
        processes = run.processes if summary.references >= run.fewest_for_processes else 1
        if sample.has_reencoded and settings.images.subsampling == "auto":
            sample = convert_sample(summary, settings, reuse)
        with suppress(OSError):  # of the temporary folder
            price = price_run(sample, summary, settings, processes)
    return replace(plan, reuse=reuse, run_notes=notes, price=price)


def count_held(shards: int) -> int:
    """How many references to sort at once for this number of shards."""
    least, most = HELD_REFERENCES
    return min(max(least, HELD_PER_SHARD * shards), most)


def assign_shard(ref: ImageRef, plan: Plan, splitter: ImageSplitter) -> ShardId | None:
    """The shard of a reference; None for what is ignored or left out.

    What was rejected when it was listed goes along, so that the sidecars hold every rejected thing.
    """
    if not isinstance(ref, Notice):
        hashes, split, left_out = splitter.place(ref)
        return None if left_out else (split, range_of(plan.starts[split], hashes.order))
    if ref.status == "fatal":  # which no plan of ours converts
        raise ValueError(f"{ref.uri}: {ref.detail}")
    if ref.status != "rejected":
        return None
    split = next(iter(plan.starts))
    return split, range_of(plan.starts[split], order_of(splitter.seed, ref.key))


@dataclass
class PlanShards(beam.PTransform):
    """Plans the dataset of a PCollection of summaries (of one element).

    Attributes:
        settings: what the dataset is.
        recipe: what the plan's id stands for.
        run: where and how this run works.
        selection: the `SplitCutoffs`, as a side input.
    """

    settings: DatasetSettings
    recipe: Recipe
    run: RunSettings
    selection: Any

    def expand(self, summary: beam.PCollection[Summary]) -> beam.PCollection[Plan]:
        """PCollection[Summary] -> PCollection[Plan] of exactly one element."""
        return summary | beam.Map(plan_dataset, self.selection, self.settings, self.recipe, self.run).with_output_types(
            Plan
        )


@dataclass
class ShuffleReferences(beam.PTransform):
    """Groups a PCollection of batches of references by shard: the one shuffle, and only references are in it.

    Attributes:
        settings: what the dataset is.
        plan: the `Plan`, as a side input.
    """

    settings: DatasetSettings
    plan: Any

    def expand(self, batches: beam.PCollection[ReferenceBatch]) -> beam.PCollection[Any]:
        """PCollection[ReferenceBatch] -> PCollection[((split, index), batches)]; empty unless it is to convert."""
        return (
            batches
            | "AssignShards" >> beam.ParDo(_AssignShards(self.settings), self.plan)
            | "GroupByShard" >> beam.GroupByKey()
        )


class _AssignShards(beam.DoFn):
    """Sorts the references of a bundle by shard, some thousands at a time."""

    def __init__(self, settings: DatasetSettings) -> None:
        self._settings = settings

    def start_bundle(self) -> None:
        self._held = 0
        self._by_shard: defaultdict[ShardId, list[ImageRef]] = defaultdict(list)

    def process(self, batch: ReferenceBatch, plan: Plan) -> Iterator[tuple[ShardId, ReferenceBatch]]:
        if plan.action != "convert":
            return
        splitter = ImageSplitter(self._settings.seed, self._settings.splits, plan.selection)
        for ref in (*batch.refs, *batch.notices):
            shard = assign_shard(ref, plan, splitter)
            if shard is not None:
                self._by_shard[shard].append(ref)
        self._held += len(batch)
        if self._held >= count_held(plan.shard_count):
            yield from self._let_go()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield from map(GlobalWindows.windowed_value, self._let_go())

    def _let_go(self) -> Iterator[tuple[ShardId, ReferenceBatch]]:
        for shard, refs in self._by_shard.items():
            yield shard, ReferenceBatch.of(refs)
        self.start_bundle()
