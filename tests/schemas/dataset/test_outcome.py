"""Outcomes and their numbers; tests/pipeline/test_summary_table.py reads those that runs write."""

from dataclasses import fields

import pytest
from make_marker import make_marker

from recordmill.schemas.dataset.json_values import to_json
from recordmill.schemas.dataset.outcome import (
    ConversionError,
    DatasetNumbers,
    FailedNumbers,
    Outcome,
    PlannedNumbers,
    SplitNumbers,
)
from recordmill.schemas.errors import DONE, FAILED, NOT_AS_EXPECTED, TOO_MANY_REJECTED, WRONG_USAGE

SPLITS = {"train": {"images": 3, "shards": 1, "bytes": 99}}
FATES = {"rejected": {"empty": 1}, "ignored": {"hidden": 2}, "left_out": {"limit": 3}}
COST = {"cpu_seconds": 1.5, "memory": 2, "bytes_read": 3, "bytes_written": 4, "minutes": 0.5}
WHOLE = {
    "unit": "image",
    "splits": SPLITS,
    "classes": 2,
    "ledger": {"listed": 9, "written": 3, **FATES},
    "named": {"images": 3, "files": 1},
    "annotations": {
        "boxes": {
            "unit": "box",
            "listed": 2,
            "written": 1,
            "dropped": {"empty": 1},
            "dropped_classes": {"empty": {"cat": 1}},
            "images_without": {"no_file": 1, "no_objects": 0, "all_dropped": 0, "dropped": {}},
        },
        "labels": {"unit": "label", "listed": 4, "written": 4, "dropped": {}},
    },
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
NOT_IN_MARKERS = {"splits", "classes", "price", "report", "version", "analysis"}
EARLIER = {
    "boxes": {"empty": 1, "listed": 2, "written": 1},
    "dropped_boxes": {"empty": {"cat": 1}},
    "images_without_boxes": WHOLE["annotations"]["boxes"]["images_without"],
    "labels_of_images": {"listed": 4, "written": 4},
}
"""The counts of `WHOLE` by the keys of earlier versions."""

LOST = {"ledger": WHOLE["ledger"], "lost_classes": ["cat"], "annotations": WHOLE["annotations"]}
LOST |= {"report": "out/.staging-0/report.html"}


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
    outcome = Outcome.from_json(written(status, numbers))
    assert type(outcome.numbers) is kind
    plain = {**numbers, **(EARLIER if "annotations" in numbers else {})}
    assert outcome.plain_numbers() == plain
    assert outcome.to_object() == written(status, plain)
    assert Outcome.from_json(outcome.to_object()) == outcome


def test_outcomes_without_annotations_have_no_key_for_them():
    numbers = Outcome("kept", "", DONE, numbers=DatasetNumbers.of(make_marker())).plain_numbers()
    assert not {"annotations", *EARLIER} & numbers.keys()


def written(status, numbers):
    """What the outcome file has for an outcome with these numbers."""
    rest = {"message": "why", "exit_code": 0, "plan_id": "abc", "notes": ["a note"]}
    return {"status": status, **rest, "numbers": numbers}


def test_a_marker_has_the_numbers_of_its_dataset():
    values = {key: WHOLE[key] for key in WHOLE if key not in NOT_IN_MARKERS}
    marker = make_marker(**values, splits={"train": {"records": 3, "bytes": 99}})
    numbers = DatasetNumbers.of(marker)
    assert numbers.splits == {"train": SplitNumbers(3, len(marker.splits["train"].shards), 99)}
    rest = {key: value for key, value in to_json(numbers).items() if key not in NOT_IN_MARKERS}
    assert rest == values
    assert to_json(numbers).keys() == {*values, "splits", "classes"}


def test_an_outcome_without_numbers():
    outcome = Outcome("submitted", "it runs", DONE)
    assert outcome.to_object()["numbers"] == {}
    assert Outcome.from_json(outcome.to_object()) == outcome


def test_only_a_dataset_that_is_complete_in_the_output_is_found():
    numbers = DatasetNumbers.of(make_marker())
    found = {
        status: Outcome(status, "", DONE, numbers=numbers).dataset is numbers
        for status in ("published", "kept", "written", "failed")
    }
    assert found == {"published": True, "kept": True, "written": False, "failed": False}


def test_exit_codes_are_those_of_the_documentation():
    assert (DONE, FAILED, WRONG_USAGE, TOO_MANY_REJECTED, NOT_AS_EXPECTED) == (0, 1, 2, 3, 4)


def test_users_of_the_former_name_of_the_message_get_it():
    assert ConversionError(Outcome("failed", "why", FAILED)).outcome.sentence == "why"
