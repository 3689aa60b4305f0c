import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.pvalue import AsSingleton
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that

from schemas.image_ref import ImageRef
from transforms.convert_image import convert_image
from transforms.dataset_settings import DatasetSettings, RejectionLimits, ShardSettings
from transforms.ledger import LedgerError
from transforms.plan_shards import ShardAssigner, plan_dataset
from transforms.publish_dataset import PublishDataset, publish
from transforms.shard_files import failed_report, staging_folder, write_shard
from transforms.splitting import ImageSplitter, Selection, SplitSettings
from transforms.summary import Summary

SETTINGS = DatasetSettings(splits=SplitSettings(fractions={"train": 1.0}), shards=ShardSettings(count=2))


def plan_of(refs, run, settings=SETTINGS):
    summary = Summary()
    for ref in refs:
        summary.add(ref, ImageSplitter(0, settings.splits, Selection()))
    return plan_dataset(summary, Selection(), settings, run)


def write_all(plan, refs, run, settings=SETTINGS):
    shards = {}
    for ref in refs:
        for shard, same in ShardAssigner(plan, settings).assign(ref):
            shards.setdefault(shard, []).append(same)
    staging = Path(staging_folder(run.output, plan.plan_id))
    staging.mkdir(parents=True, exist_ok=True)
    return [
        write_shard(
            str(staging),
            *shard,
            (convert_image(ref, settings, plan.label_map, nullcontext()) for ref in own),
            "m",
            "none",
        ).finish()
        for shard, own in sorted(shards.items())
    ]


@pytest.fixture
def refs(pictures):
    return [*pictures(8), ImageRef("r", "/x/r", 3, status="rejected", reason="no_class", detail="none")]


def test_a_published_dataset_is_its_files_and_nothing_else(refs, run, tree):
    plan = plan_of(refs, run)
    outcome = publish(write_all(plan, refs, run), plan, SETTINGS, run)
    assert (outcome.status, outcome.sentence, outcome.exit_code) == ("published", f"8 images are in {run.output}", 0)
    shards = [f"train-0000{index}-of-00002.tfrecord" for index in (0, 1)]
    files = tree(run.output)
    assert set(files) == {
        *shards,
        *(f"sidecars/{name}.jsonl" for name in shards),
        "labels.txt",
        "config.yaml",
        "rejected.jsonl",
        "recordmill.json",
    }
    assert (files["labels.txt"], files["config.yaml"]) == (b"0:cat\n1:dog\n", b"seed: 0\n")
    assert json.loads(files["rejected.jsonl"]) == {
        "uri": f"{run.inputs['']}/r",
        "stage": "list",
        "reason": "no_class",
        "detail": "none",
        "bytes": 3,
        "sha256": None,
        "class": None,
        "key": "r",
    }
    marker = json.loads(files["recordmill.json"])
    assert "switch" not in marker
    assert marker["plan"]["id"] == plan.plan_id
    assert marker["run"].items() >= {"id": "run", "runner": "FnApiRunner", "shards_reused": 0}.items()
    assert marker["ledger"]["written"] == 8
    told = json.loads(Path(run.outcome_file).read_bytes())
    assert told == {**json.loads(json.dumps(outcome.as_dict())), "run_id": "run"}


def test_publishing_what_is_there_keeps_it(refs, run, tree):
    plan = plan_of(refs, run)
    publish(write_all(plan, refs, run), plan, SETTINGS, run)
    before = tree(run.output)
    again = plan_of(refs, run)
    outcome = publish([], again, SETTINGS, run)
    assert (again.action, outcome.status, outcome.exit_code) == ("keep", "kept", 0)
    assert tree(run.output) == before


def test_an_overwritten_dataset_leaves_nothing_of_the_old(refs, run, tree):
    plan = plan_of(refs, run)
    publish(write_all(plan, refs, run), plan, SETTINGS, run)
    other = replace(SETTINGS, shards=ShardSettings(count=3))
    overwriting = replace(run, overwrite=True, recipe={"shards": 3})
    plan = plan_of(refs, overwriting, other)
    assert publish(write_all(plan, refs, overwriting, other), plan, other, overwriting).status == "published"
    assert {name for name in tree(run.output) if name.endswith(".tfrecord")} == {
        f"train-0000{index}-of-00003.tfrecord" for index in range(3)
    }
    assert len(tree(run.output)) == 10


def test_too_many_rejected_leave_the_output_as_it_was_and_say_why(refs, run, tree):
    strict = replace(SETTINGS, max_rejected=RejectionLimits(share=0, count=0))
    plan = plan_of(refs, run)
    outcome = publish(write_all(plan, refs, run), plan, strict, run)
    assert (outcome.status, outcome.exit_code) == ("failed", 3)
    assert outcome.sentence.startswith("1 of 9 images were rejected (1 no_class)")
    assert outcome.numbers["ledger"]["rejected"] == {"no_class": 1}
    assert all(name.startswith(f".staging-{plan.plan_id}/") for name in tree(run.output))
    assert f".staging-{plan.plan_id}/rejected.jsonl" in tree(run.output)


def test_a_problem_of_a_shard_fails_the_run_with_its_sentence(refs, run):
    plan = plan_of(refs, run)
    outcome = publish([failed_report("train", 0, refs, "the disk is full")], plan, SETTINGS, run)
    assert (outcome.status, outcome.exit_code) == ("failed", 1)
    assert outcome.sentence.startswith("the disk is full")


def test_a_lost_record_raises(refs, run):
    plan = plan_of(refs, run)
    with pytest.raises(LedgerError, match="9 references were listed and"):
        publish(write_all(plan, refs, run)[1:], plan, SETTINGS, run)


@pytest.mark.parametrize(
    ("action", "status", "code"), [("refuse", "refused", 1), ("fail", "failed", 1), ("preview", "planned", 0)]
)
def test_other_actions_write_only_the_outcome(refs, run, tmp_path, action, status, code):
    plan = replace(plan_of(refs, run), action=action, sentence="because")
    outcome = publish([], plan, SETTINGS, run)
    assert (outcome.status, outcome.sentence, outcome.exit_code) == (status, "because", code)
    assert not (tmp_path / "out").exists()
    assert json.loads(Path(run.outcome_file).read_bytes())["status"] == status


def test_in_a_pipeline_there_is_one_outcome_even_without_shards(refs, run):
    plan = replace(plan_of(refs, run), action="refuse", sentence="because")

    def check(outcomes):
        assert [(each.status, each.sentence) for each in outcomes] == [("refused", "because")]

    with beam.Pipeline(runner=FnApiRunner()) as root:
        side = AsSingleton(root | "Plan" >> beam.Create([plan]))
        assert_that(root | beam.Create([]) | PublishDataset(SETTINGS, run, side), check)
