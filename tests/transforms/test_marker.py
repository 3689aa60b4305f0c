from dataclasses import replace

import orjson
import pytest

from schemas.features import feature_schema
from schemas.label_map import LabelMap
from schemas.shard_report import ShardReport
from transforms.dataset_settings import DatasetSettings
from transforms.ledger import Ledger
from transforms.marker import build_marker, name_shards, numbers_of, preview_numbers, settings_as_dict
from transforms.plan import Plan
from transforms.sources.filename_labels import FilenameLabels
from transforms.splitting import Selection
from transforms.summary import SplitSummary, Summary

SETTINGS = DatasetSettings(name="pets")
LEDGER = Ledger(9, 6, {"empty": 1}, {"hidden": 1}, {"limit": 1})


def report(split, index, records, classes=None, **changes):
    classes = classes or {"cat": records}
    return ShardReport(
        split, index, records, records, 100 * records, f"{split}{index}", "side", 50, classes, {}, changes
    )


REPORTS = [
    report("train", 2, 3, {"dog": 1, "cat": 2}, rotated=1),
    report("test", 0, 1),
    report("train", 1, 0),
    report("train", 0, 2, rotated=2),
]


def make_plan(**changed):
    plan = Plan(
        "id",
        "convert",
        "",
        Selection(),
        {"train": [0, 5]},
        LabelMap({"cat": 0, "dog": 1}),
        Summary(),
        ["a note"],
        {"seed": 0},
    )
    return replace(plan, **changed)


def test_shards_with_records_are_named_densely():
    named = [(shard.name, shard.sidecar, shard.report.index) for shard in name_shards(REPORTS, SETTINGS)]
    assert named == [
        ("test-00000-of-00001.tfrecord", "sidecars/test-00000-of-00001.tfrecord.jsonl", 0),
        ("train-00000-of-00002.tfrecord", "sidecars/train-00000-of-00002.tfrecord.jsonl", 0),
        ("train-00001-of-00002.tfrecord", "sidecars/train-00001-of-00002.tfrecord.jsonl", 2),
    ]


def marker():
    return build_marker(make_plan(), name_shards(REPORTS, SETTINGS), LEDGER, SETTINGS, REPORTS)


def test_the_marker_is_exact():
    built = marker()
    train = built["splits"]["train"]
    assert (train["records"], train["bytes"], train["classes"]) == (5, 500, {"cat": 4, "dog": 1})
    assert train["shards"][1] == {
        "name": "train-00001-of-00002.tfrecord",
        "records": 3,
        "bytes": 300,
        "sha256": "train2",
        "sidecar": "sidecars/train-00001-of-00002.tfrecord.jsonl",
        "sidecar_sha256": "side",
    }
    del built["splits"]
    assert built == {
        "recordmill": 1,
        "name": "pets",
        "plan": {"id": "id", "recipe": {"seed": 0}},
        "convention": "default",
        "features": feature_schema(SETTINGS.features),
        "labels": {"cat": 0, "dog": 1},
        "ledger": LEDGER.as_dict(),
        "changes": {"rotated": 3},
        "input_bytes": 200,
        "output_bytes": 600,
        "notes": ["a note"],
    }


def test_the_order_of_the_reports_changes_no_byte():
    other = build_marker(make_plan(), name_shards(REPORTS[::-1], SETTINGS), LEDGER, SETTINGS, REPORTS[::-1])
    assert orjson.dumps(other) == orjson.dumps(marker())


def test_an_outcome_repeats_the_numbers():
    assert numbers_of(marker()) == {
        "splits": {"train": {"images": 5, "shards": 2, "bytes": 500}, "test": {"images": 1, "shards": 1, "bytes": 100}},
        "ledger": LEDGER.as_dict(),
        "changes": {"rotated": 3},
        "input_bytes": 200,
        "output_bytes": 600,
    }


def test_a_preview_tells_what_is_expected():
    summary = Summary(listed=4, splits={"train": SplitSummary(bytes=30)})
    summary.splits["train"].classes.update(cat=2, dog=1)
    summary.rejected["no_class"] = 1
    numbers = preview_numbers(make_plan(summary=summary, estimated_bytes={"train": 33}))
    assert numbers["splits"] == {"train": {"images": 3, "shards": 2, "bytes": 33}}
    assert numbers["ledger"] == {"listed": 4, "rejected": {"no_class": 1}, "ignored": {}, "left_out": {}}
    assert (numbers["classes"], numbers["input_bytes"]) == (2, 30)


@pytest.mark.parametrize(("source", "kind"), [(FilenameLabels(features_from={}), "filename_labels")])
def test_settings_are_plain_values_in_the_shape_of_the_yaml(source, kind):
    plain = settings_as_dict(replace(SETTINGS, source=source), kind)
    assert plain["source"] == {"kind": kind, "pattern": source.pattern, "features_from": {}}
    assert plain["splits"]["fractions"] == {"train": 0.9, "test": 0.1}
    assert orjson.loads(orjson.dumps(plain))["images"]["quality"] == 95
