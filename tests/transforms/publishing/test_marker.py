from collections import Counter
from dataclasses import replace

import pytest
from make_marker import EMPTY_RUN, make_marker
from make_settings import make_settings

from recordmill.schemas.dataset.json_values import as_json, to_json
from recordmill.schemas.dataset.marker import DuplicateCounts, Ledger, SameBytes
from recordmill.schemas.dataset.outcome import (
    DatasetNumbers,
    PlannedLedger,
    PlannedNumbers,
    SplitNumbers,
)
from recordmill.schemas.dataset.totals import (
    FinishedShards,
    RowTotals,
    ShardReport,
)
from recordmill.schemas.features import feature_schema
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.settings.dataset import ExampleLayout, ShardSettings, SplitSettings
from recordmill.transforms.convert_shards import gather_reports
from recordmill.transforms.planning.plan import DatasetPlan
from recordmill.transforms.planning.summary import SplitSummary, Summary
from recordmill.transforms.publishing.staged_dataset import (
    build_marker,
    check_names,
    name_shards,
    name_sidecars_without_records,
    preview_numbers,
)

SETTINGS = make_settings(name="pets")
DUPLICATE_NUMBERS = DuplicateCounts(SameBytes(groups=1), None)
DUPLICATES_STORED = to_json(DUPLICATE_NUMBERS)
ZERO = "0" * 64
LEDGER = Ledger(9, 6, {"empty": 1}, {"hidden": 1}, {"limit": 1})


def report(split, index, records, classes=None, **changes):
    classes = classes or {"cat": records}
    rows = RowTotals(records, 50, Counter(classes), changes=Counter(changes))
    return ShardReport(
        split,
        index,
        records,
        rows,
        {},
        "ab",
        records,
        100 * records,
        f"{split}{index}",
        "side",
    )


REPORTS = [
    report("train", 2, 3, {"dog": 1, "cat": 2}, rotated=1),
    report("test", 0, 1),
    report("train", 1, 0),
    report("train", 0, 2, rotated=2),
]


def make_plan(**changed):
    plan = DatasetPlan(
        "id",
        starts={"train": [0, 5], "test": [0]},
        label_map=LabelMap({"cat": 0, "dog": 1}),
        notes=("a note",),
        recipe={"seed": 0},
    )
    return replace(plan, **changed)


def test_shards_with_records_are_named_densely():
    named = [
        (shard.entry.name, shard.entry.sidecar, shard.report.index)
        for shard in name_shards(REPORTS, SETTINGS)
    ]
    assert named == [
        ("test-00000-of-00001.tfrecord", "sidecars/test-00000-of-00001.tfrecord.jsonl", 0),
        ("train-00000-of-00002.tfrecord", "sidecars/train-00000-of-00002.tfrecord.jsonl", 0),
        ("train-00001-of-00002.tfrecord", "sidecars/train-00001-of-00002.tfrecord.jsonl", 2),
    ]


def test_a_name_may_hold_the_number_of_records():
    settings = make_settings(
        shards=ShardSettings(name="{split}{index:02d}-192x192-{records}.tfrec")
    )
    assert [shard.entry.name for shard in name_shards(REPORTS, settings)] == [
        "test00-192x192-1.tfrec",
        "train00-192x192-2.tfrec",
        "train01-192x192-3.tfrec",
    ]


def marker():
    return build_marker(
        make_plan(),
        name_shards(REPORTS, SETTINGS),
        LEDGER,
        SETTINGS,
        gather_reports(REPORTS),
        DUPLICATE_NUMBERS,
    )


def test_the_marker_is_exact():
    built = to_json(marker())
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
        "recordmill": 3,
        "name": "pets",
        "plan": {"id": "id", "recipe": {"seed": 0}, "settings": {}},
        "convention": "default",
        "unit": "image",
        "features": to_json(feature_schema(ExampleLayout(SETTINGS).features)),
        "labels": {"cat": 0, "dog": 1},
        "ledger": to_json(LEDGER),
        "annotations": {},
        "made_from": [{"kind": "class_folders"}],
        "changes": {"rotated": 3},
        "duplicates": DUPLICATES_STORED,
        "input_bytes": 200,
        "output_bytes": 600,
        "files": [
            "labels.txt",
            "rejected.jsonl",
            "config.yaml",
            "duplicates.jsonl",
            "sidecars/rejected-00000.jsonl",
        ],
        "fingerprint": {"dataset": ZERO, "splits": {"train": ZERO, "test": ZERO}, "classes": {}},
        "index": "records.index",
        "notes": ["a note"],
        "remarks": [],
        "run": EMPTY_RUN,
    }


def test_sidecars_of_shards_without_records_are_numbered_in_the_shards_order():
    empty = [report("train", 10, 0), report("train", 9, 0), report("test", 3, 0)]
    assert name_sidecars_without_records([*REPORTS, *empty]) == {
        "sidecars/rejected-00000.jsonl": empty[2],
        "sidecars/rejected-00001.jsonl": REPORTS[2],
        "sidecars/rejected-00002.jsonl": empty[1],
        "sidecars/rejected-00003.jsonl": empty[0],
    }
    assert name_sidecars_without_records([REPORTS[0], REPORTS[1]]) == {}


@pytest.mark.parametrize(
    ("split", "pattern", "clash"),
    [
        ("labels", "{split}.txt", "labels.txt"),
        ("rejected", "{split}.jsonl", "rejected.jsonl"),
        ("config", "{split}.yaml", "config.yaml"),
        ("duplicates", "{split}.jsonl", "duplicates.jsonl"),
        ("recordmill", "{split}.json", "recordmill.json"),
        ("sidecars", "{split}", "sidecars"),
        ("transform_fn", "{split}", "transform_fn"),
    ],
)
def test_a_shard_named_like_another_file_of_the_dataset_is_an_error(split, pattern, clash):
    splits = SplitSettings(fractions={split: 1.0})
    settings = replace(SETTINGS, splits=splits, shards=ShardSettings(count=1, name=pattern))
    shards = name_shards([report(split, 0, 1)], settings)
    plan = make_plan(starts={split: [0]})
    described = build_marker(plan, shards, LEDGER, settings, FinishedShards(), DUPLICATE_NUMBERS)
    with pytest.raises(ValueError, match="two files") as caught:
        check_names(described)
    assert str(caught.value) == (
        f"two files or folders of the dataset would be called {clash}: change shards.name or the "
        "splits' names"
    )


def test_two_shards_with_one_name_are_an_error():
    # 1,000 files: more than settings alone can look at.
    settings = replace(
        SETTINGS,
        splits=SplitSettings(fractions={"a": 0.5, "a10": 0.5}),
        shards=ShardSettings(name="{split}{index}.record"),
    )
    reports = [report("a", index, 1) for index in range(101)] + [report("a10", 0, 1)]
    plan, finished = make_plan(starts={"a": [0], "a10": [0]}), gather_reports(reports)
    described = build_marker(
        plan, name_shards(reports, settings), LEDGER, settings, finished, DUPLICATE_NUMBERS
    )
    with pytest.raises(ValueError, match=r"would be called a100\.record: change shards\.name"):
        check_names(described)
    check_names(marker())


def test_the_order_of_the_reports_changes_no_byte():
    other = build_marker(
        make_plan(),
        name_shards(REPORTS[::-1], SETTINGS),
        LEDGER,
        SETTINGS,
        gather_reports(REPORTS[::-1]),
        DUPLICATE_NUMBERS,
    )
    assert as_json(to_json(other)) == as_json(to_json(marker()))


def test_an_outcome_repeats_the_numbers():
    assert to_json(DatasetNumbers.of(marker())) == {
        "unit": "image",
        "splits": {
            "train": {"images": 5, "shards": 2, "bytes": 500},
            "test": {"images": 1, "shards": 1, "bytes": 100},
        },
        "classes": 2,
        "ledger": to_json(LEDGER),
        "changes": {"rotated": 3},
        "duplicates": DUPLICATES_STORED,
        "input_bytes": 200,
        "output_bytes": 600,
        "remarks": [],
    }


def test_classes_are_those_of_the_label_map_everywhere():
    with_emu = replace(marker(), labels={"cat": 0, "dog": 1, "emu": 2})
    assert DatasetNumbers.of(with_emu).classes == len(with_emu.class_counts) == 3


def test_counts_are_of_images_boxes_or_labels():
    instances = {"splits": {"train": {"instances": {}}}}
    assert marker().counted_unit == "image"
    for kind, unit in (("boxes", "box"), ("labels", "label")):
        entry = {"unit": unit, "listed": 1, "written": 1, "dropped": {}}
        made = make_marker(**instances, annotations={kind: entry}, counted=kind)
        assert made.counted_unit == unit


def test_a_preview_tells_what_is_expected():
    summary = Summary(listed=4, splits={"train": SplitSummary(bytes=30)})
    summary.splits["train"].classes.update(cat=2, dog=1)
    summary.rejected["no_class"] = 1
    assert preview_numbers(
        make_plan(summary=summary, starts={"train": [0, 5]}, estimated_bytes={"train": 33}),
        make_settings(),
    ) == PlannedNumbers(
        unit="image",
        splits={"train": SplitNumbers(images=3, shards=2, bytes=33)},
        ledger=PlannedLedger(4, rejected={"no_class": 1}, ignored={}, left_out={}),
        classes=2,
        input_bytes=30,
    )


def test_boxes_are_counted_by_class_next_to_the_images():
    boxes = [
        replace(each, rows=replace(each.rows, instances=Counter(instances)))
        for each, instances in zip(REPORTS, ({"dog": 2, "cat": 4}, {"cat": 1}), strict=False)
    ]
    shards = name_shards(boxes, SETTINGS)
    splits = build_marker(
        make_plan(), shards, LEDGER, SETTINGS, gather_reports(boxes), DUPLICATE_NUMBERS
    ).splits
    own = {report.split: report for report in boxes}
    assert {name: split.instances for name, split in splits.items()} == {
        name: dict(sorted(own[name].rows.instances.items())) if name in own else {}
        for name in splits
    }
    assert [splits[name].class_counts for name in own] == [own[name].rows.instances for name in own]
    finished = gather_reports(REPORTS)
    plain = build_marker(
        make_plan(), name_shards(REPORTS, SETTINGS), LEDGER, SETTINGS, finished, DUPLICATE_NUMBERS
    ).splits
    assert all(
        split.class_counts == split.classes and split.instances is None for split in plain.values()
    )
