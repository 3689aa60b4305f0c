import random
from collections import Counter
from dataclasses import replace
from operator import attrgetter

from apache_beam import coders

from recordmill.schemas.dataset.json_values import from_json, to_json
from recordmill.schemas.dataset.totals import (
    AnnotationTotals,
    FinishedShards,
    LostExample,
    RowTotals,
    ShardReport,
)
from recordmill.transforms import convert_shards  # noqa: F401  # registers the coder
from recordmill.transforms.convert_shards import gather_reports


def report(split, index, classes, **rows):
    counts = {
        "records": 9,
        "input_bytes": 50,
        "rejected": {"empty": 1},
        "changes": {"rotated": 2},
        **rows,
    }
    totals = from_json(RowTotals, {**counts, "classes": classes})
    return ShardReport(split, index, 10, totals, {}, "ab", 9, 100, "cd", "ef")


REPORTS = [
    report("train", 0, {"cat": 2, "dog": 1}),
    report("train", 1, {"cat": 3}),
    report("test", 0, {"dog": 4, "": 1}),
    report("test", 1, {}),
]


def test_it_comes_back_from_json():
    examples = {"outside": LostExample("a.jpg", 1, "a box")}
    totals = AnnotationTotals(faulty={"outside": Counter({"ü": 1})}, examples=examples)
    annotations = {"boxes": totals}
    whole = replace(
        REPORTS[2], annotations=annotations, missing=Counter(area=1), reused=True, problem="no room"
    )
    assert from_json(ShardReport, to_json(whole)) == whole


def test_beam_carries_it_with_its_types():
    registered = coders.registry.get_coder(ShardReport)
    assert isinstance(registered, coders.PickleCoder)
    carried = registered.decode(registered.encode(REPORTS[0]))
    assert (carried, type(carried.rows.classes)) == (REPORTS[0], Counter)


def test_rows_are_added_up_by_split_and_kept_by_no_report():
    finished = gather_reports(REPORTS)
    assert finished.splits == {
        "train": RowTotals(18, 100, Counter(cat=5, dog=1), Counter(empty=2), 0, Counter(rotated=4)),
        "test": RowTotals(
            18, 100, Counter({"dog": 4, "": 1}), Counter(empty=2), 0, Counter(rotated=4)
        ),
    }
    assert finished.rows == RowTotals(
        36, 200, Counter({"cat": 5, "dog": 5, "": 1}), Counter(empty=4), 0, Counter(rotated=8)
    )
    assert finished.reports == [replace(each, rows=RowTotals()) for each in REPORTS]
    assert REPORTS[0].rows.records == 9


def test_boxes_or_labels_count_as_classes_where_there_are_any():
    assert gather_reports(REPORTS).rows.class_counts == {"cat": 5, "dog": 5, "": 1}
    reports = [
        report("train", 0, {"cat": 2}, instances={"cat": 7}),
        report("test", 0, {}, instances={"cat": 1}),
    ]
    assert gather_reports(reports).rows.class_counts == {"cat": 8}


def test_annotation_counts_are_added_up_and_removed_from_reports():
    totals = {"boxes": AnnotationTotals(dropped={"outside": Counter(cat=2)})}
    finished = gather_reports([replace(each, annotations=totals) for each in REPORTS[:2]])
    finished.merge(gather_reports([replace(REPORTS[2], annotations=totals)]))
    added = AnnotationTotals(dropped={"outside": Counter(cat=6)})
    assert finished.annotations == {"boxes": added}
    assert [each.annotations for each in finished.reports] == [{}] * 3
    assert totals["boxes"].dropped == {"outside": Counter(cat=2)}


def test_parts_merge_to_the_same_in_any_order():
    whole = gather_reports(REPORTS)
    for seed in range(20):
        shuffled = random.Random(seed).sample(REPORTS, 4)
        cut = seed % 5
        total = FinishedShards()
        for part in (shuffled[:cut], shuffled[cut:]):
            total.merge(gather_reports(part))
        assert total.splits == whole.splits
        assert sorted(total.reports, key=attrgetter("place")) == sorted(
            whole.reports, key=attrgetter("place")
        )


def test_memory_does_not_grow_with_the_classes_of_each_shard():
    finished = FinishedShards()
    for index in range(50):
        finished.merge(
            gather_reports([report("train", index, {f"class{number}": 1 for number in range(300)})])
        )
    assert sum(len(each.rows.classes) for each in finished.reports) == 0
    assert set(finished.splits["train"].classes.values()) == {50}
    assert len(finished.splits["train"].classes) == 300
