from collections import Counter

import pytest

from recordmill.schemas.dataset.totals import AnnotationCounts, BareImages, show_dropped
from recordmill.schemas.formatting import most_frequent

SHIPS = BareImages(no_file=88, all_dropped=33, dropped={"unknown_class": {"1": 28, "2": 13}})


@pytest.mark.parametrize(
    ("without", "said"),
    [
        (
            SHIPS,
            "121 images have no box: 88 have no annotation file, 33 lost all boxes (unknown_class: "
            "1, 2)",
        ),
        (BareImages(no_file=1), "1 image has no box: 1 has no annotation file"),
        (
            BareImages(no_objects=2_000),
            "2,000 images have no box: 2,000 have annotations without objects",
        ),
        (BareImages(), None),
    ],
)
def test_images_without_boxes_are_explained(without, said):
    assert without.explain("box") == said


def test_they_are_explained_for_any_kind_and_record():
    said = SHIPS.explain("label", "row")
    assert said.startswith("121 rows have no label: ")
    assert "33 lost all labels" in said


def test_counts_of_an_image_are_a_row_and_add_up():
    counts = AnnotationCounts(4, 2, Counter(outside=2, empty=0), Counter(clipped=1))
    row = {"listed": 4, "written": 2, "dropped": {"outside": 2}, "noted": {"clipped": 1}}
    assert counts.as_row() == row
    assert AnnotationCounts(1, 1).as_row() == {"listed": 1, "written": 1}
    total = AnnotationCounts()
    total.add_row(row)
    total.add_row({"listed": 1, "written": 1})
    assert total == AnnotationCounts(5, 3, Counter(outside=2), Counter(clipped=1))
    assert total.adds_up
    assert not AnnotationCounts(2, 1).adds_up


def test_the_most_frequent_reasons_and_classes_come_first_and_few_are_named():
    assert show_dropped({"other_shape": {"": 3}}) == "other_shape"
    numbered = {str(number): 1 for number in range(9)}
    assert show_dropped({"empty": {"cat": 1, "dog": 2}, "unknown_class": numbered}) == (
        "unknown_class: 0, 1, 2, 3, 4, ...; empty: dog, cat"
    )
    assert most_frequent({"b": 1, "a": 1, "c": 2}) == ["c", "a", "b"]
