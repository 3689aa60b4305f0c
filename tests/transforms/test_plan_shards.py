from collections import Counter
from dataclasses import replace

import apache_beam as beam
import pytest
from apache_beam.pvalue import AsSingleton
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to

from schemas.image_ref import ImageRef
from transforms.dataset_settings import DatasetSettings, ShardSettings
from transforms.imaging import ImageSettings
from transforms.plan_shards import PlanShards, ShardAssigner, ShuffleReferences, estimate_growth, plan_dataset
from transforms.splitting import ImageSplitter, Selection, SplitSettings
from transforms.summary import Summary

SETTINGS = DatasetSettings(shards=ShardSettings(count=2), splits=SplitSettings(fractions={"train": 0.5, "test": 0.3}))
REFS = [ImageRef(f"cat/{n}", f"/x/cat/{n}", 10, label="cat") for n in range(60)]
OTHERS = [
    ImageRef("r", "/x/r", status="rejected", reason="no_class"),
    ImageRef(".i", "/x/.i", status="ignored", reason="hidden"),
    ImageRef("w", "/x/w", status="warning", reason="empty_folder", detail="the folder is empty"),
]


def summary_of(refs, settings=SETTINGS):
    summary = Summary()
    for ref in refs:
        summary.add(ref, ImageSplitter(settings.seed, settings.splits, Selection()))
    return summary


@pytest.fixture
def plan(run):
    return plan_dataset(summary_of(REFS + OTHERS), Selection(), SETTINGS, run)


def test_every_image_goes_to_one_shard_of_its_split_and_no_shard_is_empty(plan):
    assigner = ShardAssigner(plan, SETTINGS)
    splitter = ImageSplitter(0, SETTINGS.splits, Selection())
    sizes = Counter()
    for ref in REFS:
        _, split, left_out = splitter.place(ref)
        assigned = list(assigner.assign(ref))
        if left_out:
            assert assigned == []
        else:
            ((shard, same),) = assigned
            assert same is ref
            assert shard[0] == split
            sizes[shard] += 1
    assert set(sizes) == {(split, index) for split in ("train", "test") for index in (0, 1)}
    assert sizes.total() == plan.summary.references


def test_rejected_things_go_along_and_others_stay(plan):
    assigner = ShardAssigner(plan, SETTINGS)
    ((shard, ref),) = assigner.assign(OTHERS[0])
    assert shard[0] == "train"
    assert ref is OTHERS[0]
    assert list(assigner.assign(OTHERS[1])) == list(assigner.assign(OTHERS[2])) == []


def test_a_group_that_is_moved_to_an_empty_split_is_written_there(run):
    settings = replace(SETTINGS, splits=SplitSettings(fractions={"train": 0.999999, "test": 0.000001}))
    plan = plan_dataset(summary_of(REFS[:5], settings), Selection(), settings, run)
    shards = [shard for ref in REFS[:5] for shard, _ in ShardAssigner(plan, settings).assign(ref)]
    assert Counter(split for split, _ in shards) == {"train": 4, "test": 1}


def test_the_shuffle_keeps_every_reference_exactly(plan):
    expected = [pair for ref in REFS + OTHERS for pair in ShardAssigner(plan, SETTINGS).assign(ref)]
    with beam.Pipeline(runner=FnApiRunner()) as root:
        side = AsSingleton(root | "Plan" >> beam.Create([plan]))
        shards = root | beam.Create(REFS + OTHERS) | ShuffleReferences(SETTINGS, side)
        flat = shards | beam.FlatMapTuple(lambda shard, refs: [(tuple(shard), ref) for ref in refs])
        assert_that(flat, equal_to(expected))


@pytest.mark.parametrize("action", ["preview", "finish", "keep", "refuse", "fail"])
def test_nothing_is_shuffled_unless_the_plan_is_to_convert(plan, action):
    with beam.Pipeline(runner=FnApiRunner()) as root:
        side = AsSingleton(root | "Plan" >> beam.Create([replace(plan, action=action)]))
        assert_that(root | beam.Create(REFS) | ShuffleReferences(SETTINGS, side), equal_to([]))


def test_plan_shards_plans_in_the_pipeline_what_plan_dataset_plans(plan, run):
    with beam.Pipeline(runner=FnApiRunner()) as root:
        selection = AsSingleton(root | "Selection" >> beam.Create([Selection()]))
        summary = root | beam.Create([summary_of(REFS + OTHERS)])
        assert_that(summary | PlanShards(SETTINGS, run, selection), equal_to([plan]))


def test_a_preview_writes_nothing_and_says_so(run, tmp_path):
    plan = plan_dataset(summary_of(REFS), Selection(), SETTINGS, replace(run, preview=True))
    assert plan.action == "preview"
    assert plan.sentence == f"nothing was written; without --plan the dataset would be in {run.output}"
    assert list(tmp_path.iterdir()) == []


def test_a_preview_finishes_no_switch_that_was_cut(plan, run, tmp_path):
    staging = tmp_path / "out" / f".staging-{plan.plan_id}"
    staging.mkdir(parents=True)
    (staging / "recordmill.json").write_text('{"switch": {"moves": [], "removes": []}}')
    assert plan_dataset(summary_of(REFS + OTHERS), Selection(), SETTINGS, run).action == "finish"
    previewed = plan_dataset(summary_of(REFS + OTHERS), Selection(), SETTINGS, replace(run, preview=True))
    assert previewed.action == "preview"


def test_a_listing_that_makes_no_dataset_does_not_look_at_the_output(run):
    assert plan_dataset(Summary(), Selection(), SETTINGS, run).action == "fail"


def sized(**shards):
    return replace(SETTINGS, shards=ShardSettings(**shards))


def test_growth_is_measured_on_the_sample(pictures):
    refs = pictures(6)
    growth = estimate_growth(summary_of(refs), sized(size="1KB"))
    stored = sum(ref.size for ref in refs)
    assert 1 < growth < (stored + 400 * len(refs)) / stored
    smaller = replace(sized(size="1KB"), images=ImageSettings(reencode="always", quality=1))
    assert estimate_growth(summary_of(refs), smaller) < growth


def test_growth_leaves_out_what_cannot_be_converted(pictures):
    refs = pictures(6)
    gone = replace(refs[0], key="cat/gone", uri=f"{refs[0].uri}.gone", size=10**9)
    kept = [ref for ref in refs if ImageSplitter(0, SETTINGS.splits, Selection()).place(ref)[1]]
    assert estimate_growth(summary_of([*kept, gone]), sized(size="1KB")) == estimate_growth(
        summary_of(kept), sized(size="1KB")
    )
    assert estimate_growth(summary_of([gone]), sized(size="1KB")) == 1.0


@pytest.mark.parametrize("shards", [{"count": 3}, {"size": "1GB"}])
def test_nothing_is_read_where_sizes_decide_nothing(shards):
    assert estimate_growth(summary_of(REFS), sized(**shards)) == 1.0
