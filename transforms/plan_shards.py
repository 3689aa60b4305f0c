"""PlanShards and ShuffleReferences: the summary becomes a plan, and every reference goes to its shard."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from threading import BoundedSemaphore
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from recordmill.schemas.dataset.file_names import STAGING_PREFIX
from recordmill.schemas.formatting import format_count
from recordmill.schemas.image_ref import ImageRef, Notice
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.example_layout import ExampleLayout, explain_unstored_boxes
from recordmill.schemas.settings.recipe import Recipe
from recordmill.storage.output_errors import describe_output_error
from recordmill.storage.record_reader import FRAMING_BYTES
from recordmill.transforms.planning.hash_histogram import range_of
from recordmill.transforms.planning.key_hashes import hash_key
from recordmill.transforms.planning.output_lock import claim_output, release_claim
from recordmill.transforms.planning.output_state import OutputState, decide_action, make_room, read_output
from recordmill.transforms.planning.plan import Action, Plan, class_numbers, make_plan
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.planning.summary import SAMPLE_SIZE, Summary
from recordmill.transforms.publishing.publish_staged import publish_staged
from recordmill.transforms.records.convert_image import convert_image
from recordmill.transforms.records.features.compute import FeatureFunctionError
from recordmill.transforms.run_settings import RunSettings
from recordmill.transforms.shards.progress import PROGRESS
from recordmill.transforms.shards.read_ahead import ReadAhead, default_threads

ShardId = tuple[str, int]

HELD_REFERENCES = (16_384, 131_072)
"""References that a worker's thread sorts by shard at once, at least and at most: 8 and 64 MB of them."""

HELD_PER_SHARD = 64
"""References of each shard among them, so that batches stay batches however many shards there are."""


def estimate_growth(summary: Summary, settings: DatasetSettings, shown: bool = False) -> float:
    """Bytes of a record for each byte of its source, from converting the summary's sample.

    1.0 where bytes are stored untouched, where the number of shards is given and sizes are not even `shown`, or where
    no image of the sample can be converted. The sample is chosen by hash: the same images give the same estimate.
    JPEGs that keep their sampling are taken for smaller than they are, as version 0.1 made them: the estimate decides
    the number of shards, and that the plan's id.
    """
    if settings.images.subsampling == "auto":
        settings = replace(settings, images=replace(settings.images, subsampling="by_format"))
    if settings.images.reencode == "never" or (settings.shards.count is not None and not shown):
        return 1.0
    numbers = class_numbers(summary, settings)
    labels = {*numbers, *(ref.label for _, _, ref in summary.sample)}
    label_map = LabelMap(dict.fromkeys(labels, 0), numbers=numbers)
    decoding, layout = BoundedSemaphore(default_threads()), ExampleLayout(settings)

    def measure(ref: ImageRef) -> tuple[int, int]:
        record = convert_image(ref, layout, label_map, decoding).record
        return (0, 0) if record is None else (ref.expected_bytes, len(record) + FRAMING_BYTES)

    refs = [ref for _, _, ref in summary.sample]
    with closing(ReadAhead(SAMPLE_SIZE, batch_items=1)) as pool:  # reads may wait for a network
        sizes = list(pool.map(measure, refs, lambda ref: ref.expected_bytes, lambda _: 0))
    before, after = (sum(each) for each in zip((0, 0), *sizes, strict=True))
    return after / before if before else 1.0


def plan_dataset(
    summary: Summary, selection: SplitCutoffs, settings: DatasetSettings, recipe: Recipe, run: RunSettings
) -> Plan:
    """Plans the dataset, and looks at the output to see what may be done there."""
    growth = 1.0
    if summary.boxes and not run.names_convention and not ExampleLayout(settings).stores_boxes:
        problem = explain_unstored_boxes(f"the input has {format_count(summary.boxes, 'box')}")
        summary = replace(summary, problems=[problem], problems_found=1)
    if not summary.problems:
        try:
            growth = estimate_growth(summary, settings, run.preview)
        except FeatureFunctionError as error:
            summary = replace(summary, problems=[str(error)], problems_found=1)
    plan = make_plan(summary, selection, settings, recipe, growth)
    if plan.action == "convert":
        plan = _look_at_output(plan, run)
    PROGRESS.planned = plan.summary.references + plan.summary.rejected.total()
    PROGRESS.enter("converting" if plan.action == "convert" else "finishing")
    return plan


def _look_at_output(plan: Plan, run: RunSettings) -> Plan:
    try:
        state, action, sentence = _decide(plan, run)
        if state.cut and not state.busy and not run.preview:
            plan.run_notes.extend(_publish_cut(state))
            state, action, sentence = _decide(plan, run)
        if action == "convert" and not run.preview:
            claim_output(run.output, plan.plan_id, run.run_id)
            # A run that began at the same time has seen this claim, or is seen now; or has even published the dataset.
            state, action, sentence = _decide(plan, run)
            if action == "convert":
                plan.run_notes.extend(make_room(state))
            else:
                release_claim(run.output, plan.plan_id, run.run_id)
    except ValueError as error:
        what = f"{run.output} holds a dataset whose publishing was cut and cannot be completed"
        advice = "delete it with --discard, or choose another output"
        return replace(plan, action="refuse", sentence=f"{what}: {error}: {advice}")
    except OSError as error:
        with suppress(OSError):
            release_claim(run.output, plan.plan_id, run.run_id)
        return replace(plan, action="fail", sentence=describe_output_error(error, run.output))
    if action == "keep" and _has_other_versions(state, plan):
        plan.notes.append(
            "files have other modification times than when this dataset was made: --overwrite rebuilds it"
        )
    if action == "convert" and state.marker is not None:
        plan.notes.extend(_renumbered(state.marker.labels, plan.label_map.ids))
    if run.preview and action in ("convert", "finish"):
        replaced = ", in place of the one that is there" if state.marker is not None else ""
        sentence = f"nothing was written; without --plan the dataset would be in {run.output}{replaced}"
        action = "preview"
    found_run = state.marker.run.id if state.marker else ""
    return replace(plan, action=action, sentence=sentence, found_run=found_run)


def _decide(plan: Plan, run: RunSettings) -> tuple[OutputState, Action, str]:
    """What the output holds, and what may be done there."""
    state = read_output(run.output, plan.plan_id)
    action, sentence = decide_action(state, plan.plan_id, plan.recipe, run.overwrite)
    if action == "keep" and run.overwrite and _has_other_versions(state, plan):
        return state, "convert", ""
    return state, action, sentence


def _publish_cut(state: OutputState) -> list[str]:
    """Finishes the interrupted publishing of other plans, half in the output maybe; a note on each.

    Raises:
        OSError: a file cannot be renamed.
        ValueError: a dataset cannot be read; one sentence.
    """
    notes = []
    for each in state.cut:
        publish_staged(state.output, each.name.removeprefix(STAGING_PREFIX))
        notes.append(f"{each.name} held a complete dataset, whose publishing had been cut: it is now in place")
    return notes


def _has_other_versions(state: OutputState, plan: Plan) -> bool:
    """Whether files have changed their times since the dataset that is there was made."""
    return state.marker is not None and state.marker.run.versions != f"{plan.summary.versions:064x}"


def _renumbered(old: Mapping[str, int], new: dict[str, int]) -> list[str]:
    """A note where classes of the dataset that is replaced get other ids, which models trained on it know."""
    moved = [f"{name} {old[name]} -> {new[name]}" for name in sorted(old.keys() & new.keys()) if old[name] != new[name]]
    if not moved:
        return []
    shown = ", ".join(moved[:3]) + (", ..." if len(moved) > 3 else "")
    return [
        f"{len(moved)} classes have other ids than in the dataset that is replaced ({shown}): labels.classes fixes them"
    ]


def count_held(shards: int) -> int:
    """How many references to sort at once for this number of shards."""
    least, most = HELD_REFERENCES
    return min(max(least, HELD_PER_SHARD * shards), most)


class ShardAssigner:
    """Says which shard each reference goes to."""

    def __init__(self, plan: Plan, settings: DatasetSettings) -> None:
        self.plan = plan
        self._seed = settings.seed
        self._splitter = ImageSplitter(settings.seed, settings.splits, plan.selection)
        self._rejected_go_to = next(iter(plan.starts), "")

    def assign(self, ref: ImageRef) -> ShardId | None:
        """The shard of a reference; None for what is ignored or left out.

        What was rejected when it was listed goes along, so that the sidecars hold every rejected thing.
        """
        if isinstance(ref, Notice):
            if ref.status != "rejected":
                return None
            split, order = self._rejected_go_to, hash_key(self._seed, ref.key).order
        else:
            hashes, split, left_out = self._splitter.place(ref)
            order = hashes.order
            if left_out:
                return None
        return split, range_of(self.plan.starts[split], order)


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
        self._assigner: ShardAssigner | None = None

    def start_bundle(self) -> None:
        self._held = 0
        self._by_shard: defaultdict[ShardId, list[ImageRef]] = defaultdict(list)

    def process(self, batch: ReferenceBatch, plan: Plan) -> Iterator[tuple[tuple[str, int], ReferenceBatch]]:
        if plan.action != "convert":
            return
        if self._assigner is None or self._assigner.plan is not plan:
            self._assigner = ShardAssigner(plan, self._settings)
            self._most_held = count_held(sum(map(len, plan.starts.values())))
        for ref in (*batch.refs, *batch.notices):
            shard = self._assigner.assign(ref)
            if shard is not None:
                self._by_shard[shard].append(ref)
        self._held += len(batch)
        if self._held >= self._most_held:
            yield from self._let_go()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield from map(GlobalWindows.windowed_value, self._let_go())

    def _let_go(self) -> Iterator[tuple[ShardId, ReferenceBatch]]:
        for shard, refs in self._by_shard.items():
            yield shard, ReferenceBatch.of(refs)
        self.start_bundle()
