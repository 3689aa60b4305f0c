import pytest

from recordmill.schemas.reference_boxes import boxes_of
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.tfrecord_input.example_boxes import read_boxes

SIDES = {"xmin": [0.0, 0.25], "ymin": [0.5, 0.5], "xmax": [0.5, 1.0], "ymax": [1.0, 0.75]}
BOXES = [(0.0, 0.5, 0.5, 1.0), (0.25, 0.5, 1.0, 0.75)]


def name_of(text, number):
    return text or f"class {number}"


def test_sides_become_boxes():
    fields = {**SIDES, "box_label_texts": [b"cat", b"dog"], "box_labels": [1, 2], "is_crowd": [0, 1], "area": [2.0]}
    expected = boxes_of(BOXES, ["cat", "dog"], values={"is_crowd": [0, 1]}, fractions=True)
    assert read_boxes(fields, name_of) == expected


def test_boxes_in_one_list_are_top_left_bottom_right():
    fields = {"bbox": [0.5, 0.0, 1.0, 0.5, 0.5, 0.25, 0.75, 1.0], "box_labels": [1, 2]}
    assert read_boxes(fields, name_of) == boxes_of(BOXES, ["class 1", "class 2"], fractions=True)


def test_no_boxes_are_boxes_and_no_features_are_none():
    empty = {side: [] for side in SIDES}
    assert read_boxes({**empty, "is_crowd": []}, name_of) == boxes_of([], [], values={"is_crowd": []}, fractions=True)
    assert read_boxes({"encoded": b"x"}, name_of) == {}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"bbox": [0.0] * 5}, "its boxes have 5 sides, which is not a multiple of 4"),
        ({**SIDES, "xmax": [0.5]}, "its lists of boxes' sides differ in length"),
        ({**SIDES, "xmax": None}, "differ in length"),
        ({**SIDES, "box_labels": [1]}, "it has 2 boxes and 1 labels of boxes"),
        ({**SIDES, "box_label_texts": [b"a"] * 3}, "it has 2 boxes and 3 classes' names of boxes"),
        (SIDES, "it has 2 boxes without labels"),
        ({**SIDES, "box_label_texts": [b"a", b"\xff"]}, "the class of a box is not UTF-8"),
    ],
)
def test_mismatched_lists_are_reported(fields, message):
    with pytest.raises(Rejected, match=message):
        read_boxes({key: value for key, value in fields.items() if value is not None}, name_of)
