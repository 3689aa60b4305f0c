import hashlib
import random
from collections import Counter

import pytest
from sidecar_lines import rejected, written

from recordmill.schemas.dataset.json_values import from_json, to_json
from recordmill.schemas.dataset.side_files import row_from_json
from recordmill.schemas.dataset.totals import (
    AnnotationCounts,
    AnnotationTotals,
    ImageTotals,
    LostExample,
    Reencoded,
    RowAnnotations,
    RowTotals,
)

PARTS = [
    AnnotationTotals(
        dropped={"outside": Counter({"cat": 2, "dog": 1}), "cropped_away": Counter({"cat": 4})},
        faulty={"outside": Counter({"cat": 2, "dog": 1})},
        emptied={"outside": Counter({"dog": 1})},
        bare=Counter({"all_dropped": 1, "no_file": 3}),
        examples={"outside": LostExample("b.jpg", 1, "box 1 of 2")},
    ),
    AnnotationTotals(
        dropped={"outside": Counter({"cat": 1}), "unknown_class": Counter({"7": 2})},
        faulty={"outside": Counter({"cat": 1}), "unknown_class": Counter({"7": 2})},
        bare=Counter({"no_file": 1, "no_objects": 2}),
        examples={
            "outside": LostExample("a.jpg", 10, "box 10"),
            "unknown_class": LostExample("c.jpg", 1, "box 1"),
        },
    ),
    AnnotationTotals(),
]


EXPECTED_ANNOTATIONS = AnnotationTotals(
    dropped={
        "outside": Counter({"cat": 3, "dog": 1}),
        "cropped_away": Counter({"cat": 4}),
        "unknown_class": Counter({"7": 2}),
    },
    faulty={"outside": Counter({"cat": 3, "dog": 1}), "unknown_class": Counter({"7": 2})},
    emptied={"outside": Counter({"dog": 1})},
    bare=Counter({"all_dropped": 1, "no_file": 4, "no_objects": 2}),
    examples={
        "outside": LostExample("a.jpg", 10, "box 10"),
        "unknown_class": LostExample("c.jpg", 1, "box 1"),
    },
)


def test_totals_are_added_up_in_any_order_and_leave_the_parts_alone():
    stored = to_json(PARTS)
    for seed in range(6):
        totals = AnnotationTotals()
        for part in random.Random(seed).sample(PARTS, 3):
            totals.merge(part)
        assert totals == EXPECTED_ANNOTATIONS
    assert to_json(PARTS) == stored


def test_totals_come_back_from_json():
    read = from_json(AnnotationTotals, to_json(EXPECTED_ANNOTATIONS))
    assert read == EXPECTED_ANNOTATIONS
    assert {type(each) for each in (read.bare, *read.dropped.values())} == {Counter}


ROWS = [
    {
        "key": "a",
        "record": "ab" * 32,
        "bytes": 10,
        "class": "cat",
        "changes": ["rotated"],
        "annotations": {"boxes": {"listed": 2, "written": 1, "dropped": {"empty": 1}}},
        "classes": ["cat"],
    },
    {
        "key": "b",
        "bytes": 5,
        "class": None,
        "changes": [],
        "annotations": {
            "boxes": {"listed": 1, "written": 0, "dropped": {"outside": 1}},
            "masks": {"listed": 1, "written": 1, "noted": {"new": 1}, "further": 7},
        },
    },
    {"key": "c", "bytes": 7, "class": "dog", "changes": ["rotated", "resized"]},
    {
        "key": "d",
        "rejected": "truncated",
        "stage": "decode",
        "boxes": {"listed": 3, "with_rejected_images": 3},
    },
    {"key": "e", "rejected": "truncated", "stage": "list"},
]
EXPECTED = RowTotals(
    records=3,
    input_bytes=22,
    classes=Counter({"cat": 1, "": 1, "dog": 1}),
    rejected=Counter(truncated=2),
    rejected_when_listed=1,
    changes=Counter(rotated=2, resized=1),
    annotations={
        "boxes": RowAnnotations(
            AnnotationCounts(6, 1, Counter(empty=1, outside=1, with_rejected_images=3)),
            dropped_of_records=Counter(empty=1, outside=1),
            dropped_of_bare=Counter(outside=1),
            bare=1,
        ),
        "masks": RowAnnotations(AnnotationCounts(1, 1, noted=Counter(new=1))),
    },
    instances=Counter(cat=1),
    fingerprints={"cat": hashlib.sha256(b"train\0" + b"ab" * 32 + b"\0a").hexdigest()},
)


@pytest.mark.parametrize("cut", range(len(ROWS) + 1))
def test_rows_add_up_in_any_parts(cut):
    one, other = RowTotals(), RowTotals()
    one.add(map(row_from_json, ROWS[:cut]), "train")
    other.add(map(row_from_json, ROWS[cut:]), "train")
    one.merge(other)
    assert one == EXPECTED


def test_fingerprints_are_added_modulo_2_to_the_256th():
    one, other = (
        RowTotals(fingerprints={"cat": "f" * 64, "dog": "1"}),
        RowTotals(fingerprints={"cat": f"{3:064x}"}),
    )
    one.merge(other)
    assert one.fingerprints == {"cat": f"{2:064x}", "dog": "1"}


def images_of(rows):
    totals = ImageTotals()
    for row in rows:
        totals.add(row_from_json(row))
    return totals


def test_what_is_worth_knowing_of_images_is_summed_in_the_shards_order():
    shards = [
        [
            written("a", width=8, height=6),
            rejected("x"),
            written("b", width=1, height=1, channels=1),
        ],
        [written("c", width=8, height=6), rejected("y", "truncated"), rejected("z")],
    ]
    whole = ImageTotals.sum_of(map(images_of, shards))
    assert whole == images_of([row for rows in shards for row in rows])
    assert (whole.sizes, whole.channels) == (((8, 6), (1, 1)), (3, 1))
    assert ImageTotals.sum_of([]) == ImageTotals()
    assert from_json(ImageTotals, to_json(whole)) == whole


def test_of_many_sizes_two_are_kept():
    assert images_of([written(f"{side}", width=side, height=1) for side in range(1, 9)]).sizes == (
        (1, 1),
        (2, 1),
    )
    assert images_of([written("a"), written("b")]).sizes == ((8, 6),)


def test_images_that_lost_exactness_are_counted_by_their_names():
    changed = ["a.png", "b.PNG", "c/d.tiff", "e.bmp", "f.jpg", "png"]
    rows = [written(key, changes=["reencoded"]) for key in changed] + [
        written("same.png"),
        rejected("x.png"),
    ]
    found = images_of(rows)
    assert found.lossless == Reencoded(images=4, before=400, after=36)
    assert found.reencoded == Reencoded(images=6, before=600, after=54)


def test_rows_without_pictures_have_no_sizes():
    rows = [
        {
            key: value
            for key, value in written("a").items()
            if key not in ("height", "width", "channels")
        }
    ]
    assert images_of(rows) == ImageTotals()
