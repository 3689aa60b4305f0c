import random
from functools import reduce
from operator import add

from apache_beam import coders

from recordmill.schemas.annotation_totals import AnnotationTotals

PARTS = [
    AnnotationTotals(
        dropped={"outside": {"cat": 2, "dog": 1}, "cropped_away": {"cat": 4}},
        faulty={"outside": {"cat": 2, "dog": 1}},
        emptied={"outside": {"dog": 1}},
        without_boxes={"all_dropped": 1, "no_file": 3},
        labels={"listed": 5, "written": 5},
        examples={"outside": "box 1 of 2 of b.jpg (class cat)"},
    ),
    AnnotationTotals(
        dropped={"outside": {"cat": 1}, "unknown_class": {"7": 2}},
        faulty={"outside": {"cat": 1}, "unknown_class": {"7": 2}},
        without_boxes={"no_file": 1, "no_objects": 2},
        labels={"listed": 2, "with_rejected_images": 1, "unknown_label": 1},
        examples={"outside": "box 3 of 3 of a.jpg (class cat)", "unknown_class": "box 1 of 1 of c.jpg (class 7)"},
    ),
    AnnotationTotals(),
]


def test_totals_are_added_up_in_any_order():
    expected = AnnotationTotals(
        dropped={"outside": {"cat": 3, "dog": 1}, "cropped_away": {"cat": 4}, "unknown_class": {"7": 2}},
        faulty={"outside": {"cat": 3, "dog": 1}, "unknown_class": {"7": 2}},
        emptied={"outside": {"dog": 1}},
        without_boxes={"all_dropped": 1, "no_file": 4, "no_objects": 2},
        labels={"listed": 7, "written": 5, "with_rejected_images": 1, "unknown_label": 1},
        examples={"outside": "box 1 of 2 of b.jpg (class cat)", "unknown_class": "box 1 of 1 of c.jpg (class 7)"},
    )
    for seed in range(6):
        assert reduce(add, random.Random(seed).sample(PARTS, 3)) == expected


def test_beam_carries_them():
    coder = coders.registry.get_coder(AnnotationTotals)
    assert [coder.decode(coder.encode(each)) for each in PARTS] == PARTS
