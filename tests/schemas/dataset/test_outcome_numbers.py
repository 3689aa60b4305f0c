"""The numbers of outcomes; tests/pipeline/test_summary_table.py reads those that runs write."""

from dataclasses import fields

import pytest
from make_marker import make_marker

from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.dataset.outcome_numbers import (
    DatasetNumbers,
    FailedNumbers,
    PlannedNumbers,
    read_numbers,
)

SPLITS = {"train": {"images": 3, "shards": 1, "bytes": 99}}
FATES = {"rejected": {"empty": 1}, "ignored": {"hidden": 2}, "left_out": {"limit": 3}}
COST = {"cpu_seconds": 1.5, "memory": 2, "bytes_read": 3, "bytes_written": 4, "minutes": 0.5}
WHOLE = {
    "unit": "image",
    "splits": SPLITS,
    "classes": 2,
    "ledger": {"listed": 9, "written": 3, **FATES},
    "named": {"images": 3, "files": 1},
    "boxes": {"listed": 2},
    "dropped_boxes": {"empty": {"cat": 1}},
    "images_without_boxes": {"no_file": 1, "no_objects": 0, "all_dropped": 0, "dropped": {}},
    "labels_of_images": {"listed": 4},
    "gps_positions": 1,
    "changes": {"resized": 3},
    "duplicates": {
        "same_bytes": {"groups": 1, "images": 1, "across_splits": 0, "conflicting": 0},
        "look_alike": {
            "pairs": 1,
            "across_splits": 0,
            "conflicting": 0,
            "bits": 5,
            "complete": True,
        },
    },
    "input_bytes": 100,
    "output_bytes": 90,
    "remarks": ["One class has one image."],
    "price": {"predicted": {**COST, "bytes_shuffled": 5}, "measured": COST},
    "report": "report.html",
    "version": "3f0a9c41d2b7e856-2",
    "analysis": "analyzed",
}
PLANNED = {
    "unit": "row",
    "splits": SPLITS,
    "ledger": {"listed": 9, **FATES},
    "named": {"images": 3, "files": 1},
    "classes": 2,
    "input_bytes": 100,
    "price": {"predicted": COST},
}
LOST = {"ledger": WHOLE["ledger"], "lost_classes": ["cat"], "boxes": {"listed": 2}}


@pytest.mark.parametrize(
    ("status", "numbers", "kind"),
    [
        ("published", WHOLE, DatasetNumbers),
        ("kept", {**WHOLE, "analysis": "kept"}, DatasetNumbers),
        ("failed", WHOLE, DatasetNumbers),
        ("planned", PLANNED, PlannedNumbers),
        ("failed", LOST, FailedNumbers),
    ],
)
def test_every_key_has_a_type(status, numbers, kind):
    assert {each.name for each in fields(kind)} == numbers.keys()
    read = read_numbers(status, numbers)
    assert type(read) is kind
    assert to_json(read) == numbers


def test_the_numbers_of_a_marker_are_those_of_a_dataset():
    numbers = make_marker().numbers()
    assert to_json(read_numbers("published", numbers)) == numbers


def test_an_outcome_without_numbers():
    assert read_numbers("submitted", {}) is None
