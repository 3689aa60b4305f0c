from collections import Counter
from dataclasses import replace

import pytest
from make_settings import make_settings

from recordmill.annotations.annotation import ListedAnnotations
from recordmill.schemas.conventions import Convention, ConventionFeature
from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.dataset.totals import (
    AnnotationCounts,
    AnnotationTotals,
    BareImages,
    FinishedShards,
    LostExample,
    RowAnnotations,
    RowTotals,
)
from recordmill.schemas.settings.rejection_limits import LossLimits, RejectionLimits
from recordmill.transforms.inputs.sources.manifest import Manifest
from recordmill.transforms.inputs.sources.yolo import Yolo
from recordmill.transforms.inputs.tables.manifest_columns import Columns
from recordmill.transforms.planning.summary import Summary
from recordmill.transforms.publishing.verdicts import (
    check_annotations,
    describe_annotations,
)


def summary(**totals):
    return Summary(annotations={kind: ListedAnnotations(each) for kind, each in totals.items()})


def shards(annotations=None, **counts):
    rows = {kind: RowAnnotations(each) for kind, each in counts.items()}
    splits = {"train": RowTotals(annotations=rows)}
    return FinishedShards(splits=splits, annotations=annotations or {})


def test_a_marker_says_nothing_of_annotations_where_there_are_none():
    assert describe_annotations(Summary(), FinishedShards()) == {}
    assert describe_annotations(summary(labels=0), shards(labels=AnnotationCounts())) == {}


def test_a_marker_accounts_for_annotations_of_each_kind():
    totals = AnnotationTotals(
        dropped={"outside": {"dog": 1, "cat": 2}, "cropped_away": {"cat": 4}},
        emptied={"outside": {"dog": 1}},
        bare=Counter(all_dropped=1),
    )
    finished = shards(
        {"boxes": totals},
        labels=AnnotationCounts(3, 3, Counter(unknown_label=0)),
        boxes=AnnotationCounts(9, 2, Counter(outside=3, cropped_away=4), Counter(clipped=1)),
    )
    described = describe_annotations(summary(labels=3, boxes=9), finished)
    assert list(described) == ["boxes", "labels"]
    assert to_json(described) == {
        "boxes": {
            "unit": "box",
            "listed": 9,
            "written": 2,
            "dropped": {"cropped_away": 4, "outside": 3},
            "noted": {"clipped": 1},
            "dropped_classes": {"cropped_away": {"cat": 4}, "outside": {"cat": 2, "dog": 1}},
            "images_without": {
                "no_file": 0,
                "no_objects": 0,
                "all_dropped": 1,
                "dropped": {"outside": {"dog": 1}},
            },
        },
        "labels": {"unit": "label", "listed": 3, "written": 3, "dropped": {}},
    }


def test_images_without_any_are_in_the_ledger_even_if_nothing_was_listed():
    finished = FinishedShards(annotations={"boxes": AnnotationTotals(bare=Counter(no_file=2))})
    (entry,) = describe_annotations(Summary(), finished).values()
    assert (entry.listed, entry.images_without) == (0, BareImages(no_file=2))


YOLO = make_settings(source=Yolo(), convention="tf_object_detection")


def finished(faulty, written, spared=None):
    dropped = {**faulty, **(spared or {})}
    examples = dict.fromkeys(faulty, LostExample("a.jpg", 2, "box 2 of 3 of a.jpg (class cat)"))
    totals = AnnotationTotals(dropped=dropped, faulty=faulty, examples=examples)
    return FinishedShards(
        splits={"train": RowTotals(instances=Counter(written))}, annotations={"boxes": totals}
    )


TOLERANT = replace(YOLO, max_rejected=RejectionLimits(boxes=LossLimits(share=1, count=10**6)))
SUCH = "such as box 2 of 3 of a.jpg (class cat)"
KEEP = ", or list the classes to keep in labels.classes"


@pytest.mark.parametrize(
    ("faulty", "written", "spared", "said"),
    [
        ({}, {}, {"cropped_away": {"cat": 9}}, None),
        ({"outside": {"cat": 10}}, {"cat": 1}, {}, None),
        ({"outside": {"cat": 11}}, {"cat": 1089}, {}, None),
        (
            {"outside": {"cat": 8}, "empty": {"dog": 3}},
            {"cat": 1000, "dog": 88},
            {},
            f"11 of 1,099 boxes (1.00%) were dropped (8 outside: cat; 3 empty: dog), {SUCH}, which "
            "is over max_rejected.boxes.count (10) and max_rejected.boxes.share (1.00%); correct "
            "such boxes, or add --set max_rejected.boxes.count=11 to do without them",
        ),
        ({"outside": {"cat": 1}}, {"dog": 1}, {"cropped_away": {"cat": 1}}, None),
    ],
)
def test_faulty_boxes_are_limited_and_others_are_not(faulty, written, spared, said):
    assert check_annotations(finished(faulty, written, spared), YOLO, {}) == [said] * bool(said)


@pytest.mark.parametrize(
    ("faulty", "written", "settings", "said"),
    [
        (
            {"unknown_class": {"0": 12, "1": 6}},
            {},
            TOLERANT,
            f"all boxes of 2 classes (0, 1) were dropped (18 unknown_class: 0, 1), {SUCH}, which "
            "no limit allows: "
            f"name such classes in data.yaml or source.names{KEEP}",
        ),
        (
            {"not_finite": {"cat": 1}},
            {},
            TOLERANT,
            f"all boxes of 1 class (cat) were dropped (1 not_finite: cat), {SUCH}, which no limit "
            "allows: "
            f"correct such boxes{KEEP}",
        ),
        (
            {"unknown_class": {"7": 1}},
            {"cat": 10**6, "emu": 1},
            TOLERANT,
            f"all boxes of 1 class (7) were dropped (1 unknown_class: 7), {SUCH}, which no limit "
            "allows: "
            "name such classes in data.yaml or source.names, or add --set "
            "'labels.classes=[cat, emu]' to keep only the other classes",
        ),
        (
            {"unknown_class": {"2": 4}},
            {"dog": 4},
            TOLERANT,
            f"all boxes of 1 class (2) were dropped (4 unknown_class: 2), {SUCH}, which no limit "
            "allows: name such classes in data.yaml or source.names, or if the numbers begin with "
            "1, write a name for 0 before the other names",
        ),
        (
            {"outside": {"dog": 2}},
            {"cat": 10**6},
            TOLERANT,
            f"all boxes of 1 class (dog) were dropped (2 outside: dog), {SUCH}, which no limit "
            "allows: "
            "correct such boxes, or add --set 'labels.classes=[cat]' to keep only the other "
            "classes",
        ),
    ],
)
def test_all_boxes_or_all_of_a_class_are_never_lost_whatever_the_limits(
    faulty, written, settings, said
):
    assert check_annotations(finished(faulty, written), settings, {}) == [said] * bool(said)


def test_boxes_and_labels_that_the_convention_has_no_place_for_are_not_limited():
    settings = replace(YOLO, convention="default")
    assert check_annotations(finished({"unknown_class": {"7": 99}}, {}), settings, {}) == []
    lost = shards(labels=AnnotationCounts(99, 0, Counter(unknown_label=99)))
    assert check_annotations(lost, settings, {}) == []


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"unknown_label": 10, "written": 1}, None),
        (
            {"unknown_label": 11, "written": 1089, "not_chosen": 10**6, "with_rejected_images": 40},
            None,
        ),
        (
            {"unknown_label": 11, "written": 1088},
            "11 of 1,099 labels (1.00%) were without an id (unknown_label), such as a.jpg (why), "
            "which is over max_rejected.labels.count (10) and max_rejected.labels.share (1.00%); "
            "add such labels to the source's names of classes, or add --set "
            "max_rejected.labels.count=11 to do without them",
        ),
    ],
)
def test_labels_without_an_id_are_limited(labels, said):
    texts = ConventionFeature(field="label_texts", type="bytes", shape=(None,))
    settings = make_settings(
        source=Manifest(columns=Columns(uri="a", labels="b")),
        convention=Convention(features={"t": texts}),
    )
    written, dropped = labels.pop("written"), Counter(labels)
    lost = shards(labels=AnnotationCounts(written + dropped.total(), written, dropped))
    found = check_annotations(lost, settings, {"unknown_label": "a.jpg (why)"})
    assert found == [said] * bool(said)
