from dataclasses import asdict

import pytest

from recordmill.schemas.annotation_totals import AnnotationTotals
from recordmill.transforms.publishing.annotation_ledger import (
    ImagesWithoutBoxes,
    describe_annotations,
    most_frequent,
    show_dropped,
)

SHIPS = ImagesWithoutBoxes(no_file=88, all_dropped=33, dropped={"unknown_class": {"1": 28, "2": 13}})


@pytest.mark.parametrize(
    ("without", "said"),
    [
        (SHIPS, "121 images have no box: 88 have no annotation file, 33 lost all boxes (unknown_class: 1, 2)"),
        (ImagesWithoutBoxes(no_file=1), "1 image has no box: 1 has no annotation file"),
        (ImagesWithoutBoxes(no_objects=2_000), "2,000 images have no box: 2,000 have annotations without objects"),
        (ImagesWithoutBoxes(), ""),
    ],
)
def test_images_without_boxes_are_explained(without, said):
    assert without.explain() == said


def test_they_come_back_from_a_marker_and_from_one_that_says_nothing():
    assert ImagesWithoutBoxes.from_marker({"images_without_boxes": asdict(SHIPS)}) == SHIPS
    assert ImagesWithoutBoxes.from_marker({"boxes": {"listed": 1, "written": 1}}).total == 0


def test_the_most_frequent_reasons_and_classes_come_first_and_few_are_named():
    assert show_dropped({"other_shape": {"": 3}}) == "other_shape"
    numbered = {str(number): 1 for number in range(9)}
    assert show_dropped({"empty": {"cat": 1, "dog": 2}, "unknown_class": numbered}) == (
        "unknown_class: 0, 1, 2, 3, 4, ...; empty: dog, cat"
    )
    assert most_frequent({"b": 1, "a": 1, "c": 2}) == ["c", "a", "b"]


def test_a_marker_says_nothing_of_annotations_where_there_are_none():
    assert describe_annotations(AnnotationTotals(), has_boxes=False) == {}


def test_a_marker_says_what_became_of_annotations():
    totals = AnnotationTotals(
        dropped={"outside": {"dog": 1, "cat": 2}, "cropped_away": {"cat": 4}},
        emptied={"outside": {"dog": 1}},
        without_boxes={"all_dropped": 1},
        labels={"written": 3, "listed": 3},
    )
    assert describe_annotations(totals, has_boxes=True) == {
        "dropped_boxes": {"cropped_away": {"cat": 4}, "outside": {"cat": 2, "dog": 1}},
        "images_without_boxes": {
            "no_file": 0,
            "no_objects": 0,
            "all_dropped": 1,
            "dropped": {"outside": {"dog": 1}},
        },
        "labels_of_images": {"listed": 3, "written": 3},
    }


def test_a_marker_lists_so_many_classes_and_counts_the_rest():
    totals = AnnotationTotals(dropped={"unknown_class": {str(number): 1 for number in range(1000, 1150)}})
    (listed,) = describe_annotations(totals, has_boxes=True)["dropped_boxes"].values()
    assert len(listed) == 101
    assert (listed["1000"], listed["1099"], listed["more"]) == (1, 1, 50)
