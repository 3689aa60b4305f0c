from collections import Counter

import pytest

from recordmill.schemas.row_totals import RowTotals

ROWS = [
    {
        "bytes": 10,
        "class": "cat",
        "changes": ["rotated"],
        "boxes": {"listed": 2, "written": 1, "empty": 1},
        "classes": ["cat"],
    },
    {"bytes": 5, "class": None, "changes": [], "boxes": {"listed": 1, "outside": 1}},
    {"bytes": 7, "class": "dog", "changes": ["rotated", "resized"]},
    {"rejected": "truncated", "stage": "decode", "boxes": {"listed": 3, "image_rejected": 3}},
    {"rejected": "truncated", "stage": "list"},
]
EXPECTED = RowTotals(
    records=3,
    input_bytes=22,
    classes=Counter({"cat": 1, "": 1, "dog": 1}),
    rejected=Counter(truncated=2),
    rejected_when_listed=1,
    changes=Counter(rotated=2, resized=1),
    boxes=Counter(listed=6, written=1, empty=1, outside=1, image_rejected=3),
    instances=Counter(cat=1),
    boxes_of_records=Counter(listed=3, written=1, empty=1, outside=1),
    boxes_of_bare=Counter(listed=1, outside=1),
    bare=1,
)


@pytest.mark.parametrize("cut", range(len(ROWS) + 1))
def test_rows_add_up_in_any_parts(cut):
    one, other = RowTotals(), RowTotals()
    for row in ROWS[:cut]:
        one.add(row)
    for row in ROWS[cut:]:
        other.add(row)
    one.merge(other)
    assert one == EXPECTED
