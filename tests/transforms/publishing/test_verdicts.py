from collections import Counter
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace

import pytest

from recordmill.annotations.annotation import ListedAnnotations
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.dataset.marker import Ledger
from recordmill.schemas.dataset.totals import (
    AnnotationCounts,
    FinishedShards,
    RowAnnotations,
    RowTotals,
    ShardReport,
)
from recordmill.schemas.digests import digest_of
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap, LabelSettings
from recordmill.schemas.reference_batch import ShardBatch
from recordmill.schemas.settings.rejection_limits import RejectionLimits
from recordmill.transforms.convert_shards import gather_reports
from recordmill.transforms.planning.summary import SplitSummary, Summary
from recordmill.transforms.publishing.excess import Excess
from recordmill.transforms.publishing.verdicts import (
    LedgerError,
    balance_annotations,
    balance_ledger,
    find_excesses,
    lost_classes,
    lost_labels,
    lost_splits,
)
from recordmill.transforms.shards.shard_files import fingerprint

REFS = [ImageRef(f"cat/{n}.jpg", f"/x/cat/{n}.jpg", 5, label="cat") for n in range(13)]


def report(records=0, rejected=None, classes=None, refs=(), index=0, split="train", boxes=None):
    digest = fingerprint(ShardBatch.of(refs, 0)).digest
    rows = RowTotals(records, classes=Counter(classes), rejected=Counter(rejected))
    if boxes is not None:
        rows.annotations["boxes"] = RowAnnotations(AnnotationCounts(**boxes))
    return ShardReport(split, index, len(refs), rows, {}, digest, records)


def summary(listed, **splits):
    split = SplitSummary(classes=Counter(splits))
    planned = sum(map(digest_of, REFS)) % 2**256
    return Summary(
        listed,
        Counter(hidden=2),
        Counter(),
        Counter(limit=3),
        {"train": split},
        planned_digest=planned,
    )


def reports_of(first=tuple(REFS[:7]), second=tuple(REFS[7:])):
    return [
        report(4, {"truncated": 1, "empty": 2}, refs=first),
        report(5, {"truncated": 1}, refs=second, index=1),
    ]


def balance(listed, reports):
    return balance_ledger(listed, gather_reports(reports))


def ledger(written, **rejected):
    return Ledger(0, written, rejected, {}, {})


def test_everything_listed_is_accounted_for():
    assert to_json(balance(summary(18), reports_of())) == {
        "listed": 18,
        "written": 9,
        "rejected": {"empty": 2, "truncated": 2},
        "ignored": {"hidden": 2},
        "left_out": {"limit": 3},
    }


@pytest.mark.parametrize("listed", [17, 19])
def test_a_ledger_that_does_not_add_up_raises(listed):
    with pytest.raises(
        LedgerError, match=f"{listed} references were listed and 18 are accounted for: {{'listed'"
    ):
        balance(summary(listed), reports_of())


def test_the_order_of_the_reports_and_what_went_where_have_no_say():
    assert balance(summary(18), reports_of()[::-1]) == balance(summary(18), reports_of())
    balance(summary(18), reports_of(REFS[::-1][:7], REFS[::-1][7:]))


STRANGER = ImageRef("cat/99.jpg", "/x/cat/99.jpg", 5, label="cat")


@pytest.mark.parametrize(
    "second",
    [
        [STRANGER, *REFS[8:]],
        [REFS[0], *REFS[8:]],
        [REFS[8], *REFS[8:]],
        [replace(REFS[7], label="dog"), *REFS[8:]],
        [replace(REFS[7], size=6), *REFS[8:]],
    ],
    ids=["never listed", "another shard's", "twice", "of another class", "of another size"],
)
def test_one_reference_in_anothers_place_raises_though_they_are_as_many(second):
    assert len(second) == 6
    with pytest.raises(LedgerError) as caught:
        balance(summary(18), reports_of(second=second))
    assert str(caught.value) == (
        "the references that were written are not those that were listed, though they are as many"
    )


def test_a_shard_reported_twice_in_anothers_place_raises():
    # As many records as were listed, and one shard of them is missing.
    first, _ = reports_of()
    with pytest.raises(LedgerError, match=r"though they are as many|are accounted for"):
        balance(summary(18), [first, first])


def test_one_index_in_two_splits_is_two_shards():
    first, second = reports_of()
    assert balance(summary(18), [first, replace(second, split="test", index=0)]).written == 9


LABELS = LabelMap({"cat": 0, "dog": 1, "other": 2}, catch_all="other")


def test_a_class_is_lost_when_it_was_listed_and_none_of_it_is_written():
    assert lost_classes(summary(0, cat=3, dog=2), {"cat": 1}, LABELS) == ["dog"]
    assert lost_classes(summary(0, cat=3), {"cat": 1}, LABELS) == []


def test_a_split_is_lost_when_it_was_listed_and_none_of_it_is_written():
    listed = summary(0, cat=3)
    listed.splits |= {"test": SplitSummary(classes=Counter(cat=2)), "spare": SplitSummary()}
    assert lost_splits(listed, gather_reports(reports_of())) == ["test"]
    assert lost_splits(listed, gather_reports([report(split="test")])) == ["test", "train"]


def test_unlisted_labels_count_as_the_catch_all():
    assert lost_classes(summary(0, stray=3), {}, LABELS) == ["other"]
    assert lost_classes(summary(0, stray=3), {}, LabelMap({"cat": 0})) == []


def test_images_without_a_label_are_not_a_class():
    assert lost_classes(summary(0, **{"": 3}), {"": 3}, LABELS) == []


TOLERANT = RejectionLimits(share=0.5, count=10, lost_classes=1)


def settings(limits=TOLERANT, unit="image", files=(), remedies=MappingProxyType({})):
    return SimpleNamespace(
        max_rejected=limits,
        unit=unit,
        source=SimpleNamespace(files=files, remedies=remedies),
        labels=LabelSettings(),
    )


OVER = "which is over max_rejected.count (10) and max_rejected.share (50.00%)"
CORRECT = "correct what was rejected"


@pytest.mark.parametrize(
    ("ledger", "lost", "expected"),
    [
        (ledger(100), [], []),
        (
            ledger(10, bad=11),
            [],
            [
                Excess(
                    f"11 of 21 images (52.38%) were rejected (11 bad), {OVER}",
                    CORRECT,
                    {"max_rejected.count": 11},
                )
            ],
        ),
        (ledger(1, bad=10), [], []),
        (ledger(11, bad=11), [], []),
        (
            ledger(1000, empty=400, truncated=7000),
            [],
            [
                Excess(
                    "7,400 of 8,400 images (88.10%) were rejected (7,000 truncated, 400 empty), "
                    f"{OVER}",
                    CORRECT,
                    {"max_rejected.count": 7400},
                )
            ],
        ),
        (ledger(0, bad=3), ["a"], [Excess("nothing is left: all 3 images were rejected (3 bad)")]),
        (
            ledger(0, no_class=1200),
            [],
            [Excess("nothing is left: all 1,200 images were rejected (1,200 no_class)")],
        ),
        (
            ledger(0, no_class=2, bad=1),
            [],
            [Excess("nothing is left: all 3 images were rejected (2 no_class, 1 bad)")],
        ),
        (ledger(5), ["a"], []),
        (
            ledger(5),
            list("abcdef"),
            [
                Excess(
                    "all images of 6 classes were rejected (a, b, c, d, e, ...), and "
                    "max_rejected.lost_classes is 1",
                    None,
                    {"max_rejected.lost_classes": 6},
                )
            ],
        ),
        (
            ledger(1, bad=11),
            ["a", "b"],
            [
                Excess(
                    f"11 of 12 images (91.67%) were rejected (11 bad), {OVER}",
                    CORRECT,
                    {"max_rejected.count": 11},
                ),
                Excess(
                    "all images of 2 classes were rejected (a, b), and max_rejected.lost_classes "
                    "is 1",
                    CORRECT,
                    {"max_rejected.lost_classes": 2},
                ),
            ],
        ),
    ],
)
def test_the_limits_and_what_accepts_the_loss(ledger, lost, expected):
    assert find_excesses(ledger, lost, settings(), {}) == expected
    for excess in find_excesses(ledger, lost, settings(unit="row"), {}):
        assert "rows" in excess.problem


CONVERT = "convert such files first"
ADD = "add such labels to labels.classes, or let labels.catch_all take them"


@pytest.mark.parametrize(
    ("reason", "remedy"), [("format_not_allowed", CONVERT), ("unknown_label", ADD)]
)
@pytest.mark.parametrize("written", [0, 1])
def test_the_remedy_for_the_most_frequent_reason_is_given(reason, remedy, written):
    (excess,) = find_excesses(ledger(written, bad=2, **{reason: 9}), [], settings(), {})
    assert excess.remedy == remedy


def test_one_image_is_singular():
    (excess,) = find_excesses(
        ledger(5, bad=1), [], settings(RejectionLimits(count=0), "row", files=("*.csv",)), {}
    )
    assert excess.problem == (
        "1 of 6 rows (16.67%) was rejected (1 bad), which is over max_rejected.count (0) and "
        "max_rejected.share (1.00%)"
    )


def test_the_missing_files_of_a_lost_class_come_first():
    tables = settings(RejectionLimits(), files=("*.csv",))
    (excess,) = find_excesses(ledger(5, vanished=2), ["a"], tables, {})
    assert excess.remedy == "add the missing files or correct their names"


def test_a_single_thing_of_everything_is_singular():
    (one,) = find_excesses(ledger(0, no_class=1), [], settings(), {})
    assert one.problem == "nothing is left: the only image was rejected (1 no_class)"
    (one,) = find_excesses(ledger(0, bad_labels=1), [], settings(), {})
    assert one.problem == "nothing is left: the only file was rejected (1 bad_labels)"


BOXES = [
    {
        "listed": 5,
        "written": 3,
        "dropped": Counter(empty=2),
        "noted": Counter(clipped=2),
    },
    {"listed": 4, "written": 1, "dropped": Counter(with_rejected_images=3)},
]


def listing(boxes):
    return Summary(annotations={"boxes": ListedAnnotations(boxes)})


def test_annotations_have_a_ledger_of_their_own():
    finished = gather_reports(report(boxes=boxes) for boxes in BOXES)
    balanced = balance_annotations(listing(9), finished)
    dropped = Counter(empty=2, with_rejected_images=3)
    assert balanced == {"boxes": AnnotationCounts(9, 4, dropped, Counter(clipped=2))}
    assert balance_annotations(Summary(), gather_reports(reports_of())) == {}


@pytest.mark.parametrize(
    ("listed", "more"),
    [(8, {}), (9, {"dropped": Counter(empty=3)}), (9, {"written": 0}), (9, {"listed": 6})],
)
def test_annotations_that_do_not_add_up_raise(listed, more):
    finished = gather_reports([report(boxes=BOXES[0] | more), report(boxes=BOXES[1])])
    with pytest.raises(LedgerError, match=f"{listed} boxes were listed"):
        balance_annotations(listing(listed), finished)


SEVERAL = FinishedShards(
    # The two without a class have four labels.
    splits={
        "train": RowTotals(classes=Counter({"": 2, "cat": 3}), instances=Counter(cat=4, dog=3)),
        "test": RowTotals(classes=Counter({"dog": 1}), instances=Counter(dog=1)),
    }
)
SINGLE = FinishedShards(splits={"train": RowTotals(classes=Counter({"": 2, "cat": 3}))})


@pytest.mark.parametrize(
    ("finished", "summary", "stored", "count"),
    [
        (SEVERAL, Summary(), {"label", "encoded"}, 4),
        (SEVERAL, Summary(), {"label_texts"}, 0),
        (SEVERAL, Summary(), {"box_labels"}, 0),
        (SEVERAL, listing(8), {"label"}, 0),
        (SINGLE, Summary(), {"label"}, 0),
    ],
)
def test_labels_without_a_place_are_counted(finished, summary, stored, count):
    assert lost_labels(finished, summary, stored) == count


def test_what_the_source_advises_follows_the_reason():
    remedies = {"no_class": "move them", "unknown_label": "rename it"}
    advising = settings(remedies=remedies)
    (nothing,) = find_excesses(ledger(0, no_class=2, bad=1), [], advising, {})
    assert nothing.remedy == "move them"
    (some,) = find_excesses(ledger(1, unknown_label=19), [], advising, {})
    assert some.remedy == "rename it"
