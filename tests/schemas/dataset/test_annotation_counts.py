import pytest

from recordmill.schemas.dataset.totals import ImagesWithoutBoxes, show_dropped
from recordmill.schemas.formatting import most_frequent

SHIPS = ImagesWithoutBoxes(
    no_file=88, all_dropped=33, dropped={"unknown_class": {"1": 28, "2": 13}}
)


@pytest.mark.parametrize(
    ("without", "said"),
    [
        (
            SHIPS,
            "121 images have no box: 88 have no annotation file, 33 lost all boxes (unknown_class: "
            "1, 2)",
        ),
        (ImagesWithoutBoxes(no_file=1), "1 image has no box: 1 has no annotation file"),
        (
            ImagesWithoutBoxes(no_objects=2_000),
            "2,000 images have no box: 2,000 have annotations without objects",
        ),
        (ImagesWithoutBoxes(), None),
    ],
)
def test_images_without_boxes_are_explained(without, said):
    assert without.explain() == said


def test_the_most_frequent_reasons_and_classes_come_first_and_few_are_named():
    assert show_dropped({"other_shape": {"": 3}}) == "other_shape"
    numbered = {str(number): 1 for number in range(9)}
    assert show_dropped({"empty": {"cat": 1, "dog": 2}, "unknown_class": numbered}) == (
        "unknown_class: 0, 1, 2, 3, 4, ...; empty: dog, cat"
    )
    assert most_frequent({"b": 1, "a": 1, "c": 2}) == ["c", "a", "b"]
