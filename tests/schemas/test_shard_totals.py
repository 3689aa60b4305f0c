import random
from dataclasses import replace

from recordmill.schemas.annotation_totals import AnnotationTotals
from recordmill.schemas.shard_report import ShardReport
from recordmill.schemas.shard_totals import FinishedShards
from tests.support.gather_reports import gather_reports


def report(split, index, classes):
    return ShardReport(split, index, 9, "ab", 9, 100, "cd", "ef", 50, classes, {"empty": 1}, {"rotated": 2})


REPORTS = [
    report("train", 0, {"cat": 2, "dog": 1}),
    report("train", 1, {"cat": 3}),
    report("test", 0, {"dog": 4, "": 1}),
    report("test", 1, {}),
]


def test_classes_are_added_up_by_split_and_kept_by_no_report():
    finished = gather_reports(REPORTS)
    assert finished.classes == {"train": {"cat": 5, "dog": 1}, "test": {"dog": 4, "": 1}}
    assert finished.class_totals == {"cat": 5, "dog": 5, "": 1}
    assert finished.reports == [report(each.split, each.index, {}) for each in REPORTS]


def test_boxes_and_labels_are_added_up_too():
    reports = [replace(each, instances={"cat": 7}) if each.split == "train" else each for each in REPORTS]
    finished = FinishedShards()
    finished.merge(gather_reports(reports[:1]))
    finished.merge(gather_reports(reports[1:]))
    assert finished.instances == {"train": {"cat": 14}}
    assert finished.class_counts == {"cat": 14}
    assert {len(each.instances) for each in finished.reports} == {0}


def test_annotation_counts_are_added_up_and_removed_from_reports():
    totals = AnnotationTotals(dropped={"outside": {"cat": 2}})
    finished = gather_reports([replace(each, annotations=totals) for each in REPORTS[:2]])
    finished.merge(gather_reports([replace(REPORTS[2], annotations=totals)]))
    assert finished.annotations == AnnotationTotals(dropped={"outside": {"cat": 6}})
    assert {len(each.annotations.dropped) for each in finished.reports} == {0}


def test_no_class_is_not_counted():
    assert (FinishedShards().classes, FinishedShards().class_totals) == ({}, {})
    assert gather_reports(REPORTS).instances == {}
    assert gather_reports(REPORTS).class_counts == {"cat": 5, "dog": 5, "": 1}


def test_parts_merge_to_the_same_in_any_order():
    whole = gather_reports(REPORTS)
    for seed in range(20):
        shuffled = random.Random(seed).sample(REPORTS, 4)
        cut = seed % 5
        total = FinishedShards()
        for part in (shuffled[:cut], shuffled[cut:]):
            total.merge(gather_reports(part))
        assert total.classes == whole.classes
        assert sorted(total.reports, key=lambda each: (each.split, each.index)) == sorted(
            whole.reports, key=lambda each: (each.split, each.index)
        )


def test_memory_does_not_grow_with_the_classes_of_each_shard():
    finished = FinishedShards()
    for index in range(50):
        finished.merge(gather_reports([report("train", index, {f"class{number}": 1 for number in range(300)})]))
    assert sum(len(each.classes) for each in finished.reports) == 0
    assert len(finished.classes["train"]) == 300
    assert set(finished.classes["train"].values()) == {50}
