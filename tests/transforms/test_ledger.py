from collections import Counter

import pytest

from schemas.label_map import LabelMap
from schemas.shard_report import ShardReport
from transforms.dataset_settings import RejectionLimits
from transforms.ledger import Ledger, LedgerError, balance_ledger, check_limits, lost_classes
from transforms.summary import SplitSummary, Summary


def report(records=0, rejected=None, classes=None):
    return ShardReport("train", 0, 0, records, 0, "", "", 0, classes or {}, rejected or {}, {})


def summary(listed, **splits):
    split = SplitSummary(classes=Counter(splits))
    return Summary(listed, Counter(hidden=2), Counter(), Counter(limit=3), {"train": split})


def ledger(written, **rejected):
    return Ledger(0, written, rejected, {}, {})


def test_everything_listed_is_accounted_for():
    reports = [report(4, {"truncated": 1, "empty": 2}), report(5, {"truncated": 1})]
    assert balance_ledger(summary(18), reports).as_dict() == {
        "listed": 18,
        "written": 9,
        "rejected": {"empty": 2, "truncated": 2},
        "ignored": {"hidden": 2},
        "left_out": {"limit": 3},
    }


@pytest.mark.parametrize("listed", [17, 19])
def test_a_ledger_that_does_not_add_up_raises(listed):
    reports = [report(4, {"truncated": 1, "empty": 2}), report(5, {"truncated": 1})]
    with pytest.raises(LedgerError, match=f"{listed} references were listed and 18 are accounted for: {{'listed'"):
        balance_ledger(summary(listed), reports)


LABELS = LabelMap({"cat": 0, "dog": 1, "other": 2}, catch_all="other")


def test_a_class_is_lost_when_it_was_listed_and_none_of_it_is_written():
    assert lost_classes(summary(0, cat=3, dog=2), [report(classes={"cat": 1})], LABELS) == ["dog"]
    assert lost_classes(summary(0, cat=3), [report(classes={"cat": 1})], LABELS) == []


def test_unlisted_labels_count_as_the_catch_all():
    assert lost_classes(summary(0, stray=3), [], LABELS) == ["other"]
    assert lost_classes(summary(0, stray=3), [], LabelMap({"cat": 0})) == []


def test_images_without_a_label_are_no_class():
    assert lost_classes(summary(0, **{"": 3}), [report(classes={"": 3})], LABELS) == []


TOLERANT = RejectionLimits(share=0.5, count=10, lost_classes=1)


@pytest.mark.parametrize(
    ("ledger", "lost", "expected"),
    [
        (ledger(100), [], ""),
        (
            ledger(10, bad=11),
            [],
            "11 of 21 images were rejected (11 bad), which is over "
            "max_rejected.count (10) and max_rejected.share (50.00%)",
        ),
        (ledger(1, bad=10), [], ""),
        (ledger(11, bad=11), [], ""),
        (
            ledger(1000, empty=400, truncated=700),
            [],
            "1,100 of 2,100 images were rejected (700 truncated, 400 empty), which is over "
            "max_rejected.count (10) and max_rejected.share (50.00%)",
        ),
        (ledger(0, bad=3), ["a"], "nothing is left: all 3 images were rejected (3 bad)"),
        (ledger(5), ["a"], ""),
        (ledger(5), ["a", "b"], "all images of 2 classes were rejected (a, b), and max_rejected.lost_classes is 1"),
        (
            ledger(5),
            list("abcdef"),
            "all images of 6 classes were rejected (a, b, c, d, e, ...), and max_rejected.lost_classes is 1",
        ),
    ],
)
def test_the_limits_and_their_sentences(ledger, lost, expected):
    assert check_limits(ledger, lost, TOLERANT) == expected
