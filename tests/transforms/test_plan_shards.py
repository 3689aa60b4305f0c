import io
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.pvalue import AsSingleton
from apache_beam.testing.util import equal_to
from eager_beam import assert_that, new_pipeline
from make_settings import make_settings
from PIL import Image

from recordmill.imaging import ImageSettings
from recordmill.pipeline.configuration.resolve_settings import make_recipe
from recordmill.schemas.digests import hash_key
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import ShardSettings, SplitSettings
from recordmill.schemas.settings.images import Resize
from recordmill.transforms import plan_shards
from recordmill.transforms.plan_shards import (
    PlanShards,
    ShuffleReferences,
    assign_shard,
    plan_dataset,
)
from recordmill.transforms.planning.run_plan import OutputDecision, RunPlan, dataset_to_convert
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.planning.summary import Summary

SETTINGS = make_settings(
    shards=ShardSettings(count=2), splits=SplitSettings(fractions={"train": 0.5, "test": 0.3})
)
SETTINGS_OF_ONE = make_settings(
    splits=SplitSettings(fractions={"train": 1.0}), shards=ShardSettings(count=1)
)
REFS = [ImageRef(f"cat/{n}", f"/x/cat/{n}", 10, label="cat") for n in range(60)]
OTHERS = [
    ImageRef("r", "/x/r").notice("rejected", "no_class"),
    ImageRef(".i", "/x/.i").notice("ignored", "hidden"),
    ImageRef("w", "/x/w").notice("warning", "empty_folder", "the folder is empty"),
]


def summary_of(refs, settings=SETTINGS):
    summary = Summary()
    for ref in refs:
        summary.add(
            ReferenceBatch.of([ref]), ImageSplitter(settings.seed, settings.splits, SplitCutoffs())
        )
    return summary


def plan_run(summary, settings, run):
    return plan_dataset(summary, SplitCutoffs(), settings, make_recipe(settings), run)


def plan_from(summary, settings, run):
    return plan_run(summary, settings, run).dataset


def assigner_of(plan, settings):
    splitter = ImageSplitter(settings.seed, settings.splits, plan.selection)
    return lambda ref: assign_shard(ref, hash_key(settings.seed, ref.key), plan, splitter)


@pytest.fixture
def plan(run):
    return plan_from(summary_of(REFS + OTHERS), SETTINGS, run)


def test_every_image_goes_to_one_shard_of_its_split_and_no_shard_is_empty(plan):
    assign = assigner_of(plan, SETTINGS)
    splitter = ImageSplitter(0, SETTINGS.splits, SplitCutoffs())
    sizes = Counter()
    for ref in REFS:
        _, split, left_out = splitter.place(ref)
        shard = assign(ref)
        if left_out:
            assert shard is None
        else:
            assert shard[0] == split
            sizes[shard] += 1
    assert set(sizes) == {(split, index) for split in ("train", "test") for index in (0, 1)}
    assert sizes.total() == plan.summary.references


def test_rejected_things_go_along_and_others_stay(plan):
    assign = assigner_of(plan, SETTINGS)
    assert assign(OTHERS[0])[0] == "train"
    assert assign(OTHERS[1]) is assign(OTHERS[2]) is None


def test_a_group_that_is_moved_to_an_empty_split_is_written_there(run):
    settings = replace(
        SETTINGS, splits=SplitSettings(fractions={"train": 0.999999, "test": 0.000001})
    )
    plan = plan_from(summary_of(REFS[:5], settings), settings, run)
    assign = assigner_of(plan, settings)
    shards = [assign(ref) for ref in REFS[:5]]
    assert Counter(split for split, _ in shards) == {"train": 4, "test": 1}


@pytest.mark.parametrize("held", [1, 7, plan_shards.HELD_REFERENCES])
def test_the_shuffle_keeps_every_reference_exactly(plan, held, monkeypatch):
    monkeypatch.setattr(plan_shards, "HELD_REFERENCES", held)
    listed = REFS + OTHERS
    assign = assigner_of(plan, SETTINGS)
    expected = [(shard, ref) for ref in listed if (shard := assign(ref)) is not None]
    with new_pipeline() as root:
        side = AsSingleton(root | "Plan" >> beam.Create([plan]))
        batches = root | beam.Create(
            [ReferenceBatch.of(listed[at : at + 5]) for at in range(0, len(listed), 5)]
        )
        shards = batches | ShuffleReferences(SETTINGS, side)
        assert_that(
            shards
            | beam.FlatMapTuple(
                lambda shard, found: [(tuple(shard), ref) for each in found for ref in each.refs]
            ),
            equal_to(expected),
        )


@pytest.mark.parametrize("action", ["preview", "finish", "keep", "refuse", "fail"])
def test_nothing_is_shuffled_unless_the_run_is_to_convert(plan, action):
    assert dataset_to_convert(RunPlan(plan, OutputDecision("convert"))) is plan
    nothing = dataset_to_convert(RunPlan(plan, OutputDecision(action)))
    with new_pipeline() as root:
        side = AsSingleton(root | "Plan" >> beam.Create([nothing]))
        assert_that(
            root | beam.Create([ReferenceBatch.of(REFS)]) | ShuffleReferences(SETTINGS, side),
            equal_to([]),
        )


@pytest.mark.runner
def test_plan_shards_plans_in_the_pipeline_what_plan_dataset_plans(run):
    plan = plan_run(summary_of(REFS + OTHERS), SETTINGS, run)
    with new_pipeline() as root:
        selection = AsSingleton(root | "SplitCutoffs" >> beam.Create([SplitCutoffs()]))
        summary = root | beam.Create([summary_of(REFS + OTHERS)])
        assert_that(
            summary | PlanShards(SETTINGS, make_recipe(SETTINGS), run, selection), equal_to([plan])
        )


def test_a_listing_that_makes_no_dataset_does_not_look_at_the_output(run):
    assert plan_run(Summary(), SETTINGS, run).decision.action == "fail"


@pytest.mark.parametrize(
    ("settings", "given", "processes", "notes"),
    [
        # Two splits with two shards, and what is left over goes to another one.
        (SETTINGS, True, 1000, ["--processes=1000 became 4: the dataset has 4 shards"]),
        (SETTINGS, True, 4, []),
        (SETTINGS_OF_ONE, True, 2, ["--processes=2 became 1: the dataset has 1 shard"]),
        (SETTINGS_OF_ONE, False, 8, []),  # a default may help with the images of a shard
    ],
)
def test_processes_that_a_user_gives_are_at_most_the_shards(run, settings, given, processes, notes):
    run = replace(run, processes=processes, gives_processes=given)
    plan = plan_run(summary_of(REFS, settings), settings, run)
    assert list(plan.notes) == notes


def test_a_price_counts_the_processes_that_work(pictures, run, monkeypatch):
    priced = []
    monkeypatch.setattr(
        plan_shards, "price_run", lambda *arguments: priced.append(arguments[3]) or None
    )
    refs = pictures(4)
    run = replace(run, preview=True, processes=6)
    for given, fewest in ((True, 0), (False, 0), (False, 10**6)):
        this = replace(run, gives_processes=given, fewest_for_processes=fewest)
        plan_from(summary_of(refs, SETTINGS_OF_ONE), SETTINGS_OF_ONE, this)
    assert priced == [1, 6, 1]


def test_without_images_there_is_no_price(run):
    plan = plan_run(summary_of(OTHERS), SETTINGS, replace(run, preview=True))
    assert (plan.decision.action, plan.price) == ("convert", None)


def estimate_growth(*arguments, **more):
    return plan_shards.estimate_growth(*arguments, **more)[0]


def sized(**shards):
    return replace(SETTINGS, shards=ShardSettings(**shards))


def test_growth_is_measured_on_the_sample(pictures):
    refs = pictures(6)
    growth = estimate_growth(summary_of(refs), sized(size="1KB"))
    stored = sum(ref.size for ref in refs)
    assert 1 < growth < (stored + 400 * len(refs)) / stored
    smaller = replace(sized(size="1KB"), images=ImageSettings(reencode="always", quality=1))
    assert estimate_growth(summary_of(refs), smaller) < growth


def test_growth_is_that_of_the_sampling_that_is_written(tmp_path):
    (tmp_path / "a.jpg").write_bytes(jpeg := draw_detail())
    summary = summary_of(
        [ImageRef("a", str(tmp_path / "a.jpg"), len(jpeg), label="cat")], SETTINGS_OF_ONE
    )
    keeping, full, least = (
        estimate_growth(
            summary,
            replace(
                sized(size="1KB"), images=ImageSettings(reencode="always", subsampling=subsampling)
            ),
        )
        for subsampling in ("auto", "4:4:4", "4:2:0")
    )
    assert keeping == full > least


def draw_detail():
    stream = io.BytesIO()
    Image.frombytes("RGB", (64, 64), random.Random(1).randbytes(64 * 64 * 3)).save(
        stream, "JPEG", subsampling=0
    )
    return stream.getvalue()


def test_growth_leaves_out_what_cannot_be_converted(pictures):
    refs = pictures(6)
    gone = replace(refs[0], key="cat/gone", uri=f"{refs[0].uri}.gone", size=10**9)
    kept = [ref for ref in refs if ImageSplitter(0, SETTINGS.splits, SplitCutoffs()).place(ref)[1]]
    assert estimate_growth(summary_of([*kept, gone]), sized(size="1KB")) == estimate_growth(
        summary_of(kept), sized(size="1KB")
    )
    assert estimate_growth(summary_of([gone]), sized(size="1KB")) == 1.0


@pytest.mark.parametrize("shards", [{"count": 3}, {"size": "1GB"}])
def test_growth_is_measured_wherever_it_is_shown(pictures, shards):
    summary = summary_of(pictures(6))
    assert (
        estimate_growth(summary, sized(**shards), shown=True)
        == estimate_growth(summary, sized(size="1KB"))
        > 1
    )


def test_no_image_is_read_where_its_size_decides_nothing(pictures):
    assert estimate_growth(summary_of(pictures(6)), sized(count=3)) == 1.0


def test_a_run_has_a_price_from_a_thousand_references_on(pictures, run):
    (ref,) = pictures(1)
    refs = [replace(ref, key=f"cat/{number}.jpg") for number in range(1_000)]
    few, many = (summary_of(refs[:count], SETTINGS_OF_ONE) for count in (999, 1_000))
    assert plan_run(few, SETTINGS_OF_ONE, run).price is None
    assert plan_run(many, SETTINGS_OF_ONE, run).price is not None


def test_nothing_is_read_where_bytes_are_stored_untouched():
    never = replace(SETTINGS, images=ImageSettings(reencode="never"))
    assert estimate_growth(summary_of(REFS), never) == 1.0


def test_a_preview_has_the_shards_of_the_run(pictures, run, run_steps):
    # Small images that are enlarged: what was listed would fit one shard four times.
    refs = pictures(40)
    settings = make_settings(
        splits=SplitSettings(fractions={"train": 1.0}),
        shards=ShardSettings(size="150KB"),
        images=ImageSettings(resize=Resize(exact=(256, 256))),
    )
    assert sum(ref.size for ref in refs) * 4 < 150_000
    previewed = run_steps(settings, replace(run, preview=True))
    assert not Path(run.output).exists()
    done = run_steps(settings, run)
    assert (previewed["status"], done["status"]) == ("planned", "published")
    assert previewed["plan_id"] == done["plan_id"]
    assert (
        previewed["numbers"]["splits"]["train"]["shards"]
        == done["numbers"]["splits"]["train"]["shards"]
        > 1
    )
    expected, written = (each["numbers"]["splits"]["train"]["bytes"] for each in (previewed, done))
    assert abs(written - expected) < expected * 0.2
