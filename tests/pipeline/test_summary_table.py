import io
import json

import pytest
from rich.console import Console

from recordmill.pipeline.terminal import summary_tables
from recordmill.schemas.dataset.outcome import (
    DatasetNumbers,
    FailedNumbers,
    Outcome,
    PlannedNumbers,
)

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

LEDGER = {
    "listed": 1300,
    "written": 1234,
    "rejected": {"empty": 2, "truncated": 1},
    "ignored": {"system_file": 63},
    "left_out": {},
}
NUMBERS = {
    "unit": "image",
    "splits": {
        "train": {"images": 1200, "shards": 3, "bytes": 3 * 2**20},
        "test": {"images": 34, "shards": 1, "bytes": 2**19},
    },
    "classes": 1000,
    "ledger": LEDGER,
    "changes": {"rotated": 4},
    "input_bytes": 7 * 2**20,
    "output_bytes": 7 * 2**19,
}
PLANNED = {key: NUMBERS[key] for key in ("unit", "splits", "classes", "input_bytes")}
PLANNED["ledger"] = {key: LEDGER[key] for key in ("listed", "rejected", "ignored", "left_out")}


def shown(status, numbers):
    rest = {"message": "", "exit_code": 0, "plan_id": "", "notes": []}
    outcome = Outcome.from_json({"status": status, **rest, "numbers": numbers})
    stream = io.StringIO()
    console = Console(file=stream, width=200)
    for table in summary_tables(outcome, "out"):
        console.print(table)
    return [" ".join(line.split()) for line in stream.getvalue().splitlines() if line.strip()]


def test_a_finished_dataset():
    assert shown("published", NUMBERS) == [
        "split images shards bytes",
        "train 1,200 3 3.0 MiB",
        "test 34 1 512.0 KiB",
        "total 1,234 4 3.5 MiB",
        "listed 1,300 = 1,234 written + 3 rejected + 63 ignored",
        "rejected empty: 2, truncated: 1",
        "ignored system file: 63",
        "classes 1,000",
        "changed rotated: 4",
        "bytes 3.5 MiB of TFRecords from 7.0 MiB of images (50%)",
        "also written out/recordmill.json (metadata), README.md (data card), labels.txt, "
        "config.yaml, sidecars/, rejected.jsonl",
    ]


def test_sizes_of_a_plan_are_called_estimates():
    lines = shown("planned", PLANNED)
    assert "train 1,200 3 about 3.0 MiB" in lines
    assert "listed 1,300 = 1,234 to convert + 3 rejected + 63 ignored" in lines


LOST = {"unit": "box", "listed": 3, "written": 1, "dropped": {"no_class": 2}}


def test_a_run_that_rejected_too_much():
    numbers = {"ledger": LEDGER, "lost_classes": ["cat"], "annotations": {"boxes": LOST}}
    assert shown("failed", numbers) == [
        "listed 1,300 = 1,234 written + 3 rejected + 63 ignored",
        "rejected empty: 2, truncated: 1",
        "ignored system file: 63",
        "boxes listed: 3, no class: 2, written: 1",
    ]


def test_nothing_to_say():
    assert shown("failed", {}) == []


SAME = {"groups": 2, "images": 3, "across_splits": 1, "conflicting": 0}
ALIKE = {"pairs": 1, "across_splits": 1, "conflicting": 1, "bits": 5, "complete": True}
NONE = {"groups": 0, "images": 0, "across_splits": 0, "conflicting": 0}


@pytest.mark.parametrize(
    ("same", "alike", "line"),
    [
        (
            SAME,
            None,
            "duplicates 2 repeated images (1 in several splits, 0 in several classes): see "
            "duplicates.jsonl",
        ),
        (
            {**NONE, "groups": 1, "images": 1},
            ALIKE,
            "duplicates 1 repeated image (0 in several splits, 0 in several classes); "
            "1 near-duplicate pair (1 in several splits, 1 in several classes): see "
            "duplicates.jsonl",
        ),
        (
            {"groups": 3, "images": 3, "across_splits": 1, "conflicting": 2},
            None,
            "duplicates 3 repeated images (1 in several splits, 2 in several classes): see "
            "duplicates.jsonl",
        ),
        (
            NONE,
            {**ALIKE, "pairs": 1200, "conflicting": 0, "complete": False},
            "duplicates at least 1,200 near-duplicate pairs (1 in several splits, 0 in several "
            "classes): "
            "see duplicates.jsonl",
        ),
    ],
)
def test_duplicates_are_one_line(same, alike, line):
    numbers = {**NUMBERS, "duplicates": {"same_bytes": same, "look_alike": alike}}
    lines = shown("published", numbers)
    assert [each for each in lines if each.startswith("duplicates")] == [line]


@pytest.mark.parametrize("alike", [None, {**ALIKE, "pairs": 0}])
def test_without_duplicates_there_is_no_line(alike):
    numbers = {**NUMBERS, "duplicates": {"same_bytes": NONE, "look_alike": alike}}
    assert shown("published", numbers) == shown("published", NUMBERS)


def test_the_report_is_pointed_at():
    lines = shown("kept", {**NUMBERS, "report": "report.html"})
    assert lines[-2] == "report out/report.html"


def test_what_is_worth_a_look_is_a_line_each():
    lines = shown("published", {**NUMBERS, "remarks": ["test has no cat.", "All [one] size."]})
    at = lines.index("worth a look test has no cat.")
    assert lines[at + 1] == "All [one] size."


def test_rows_are_called_rows():
    numbers = {**NUMBERS, "unit": "row", "duplicates": {"same_bytes": SAME, "look_alike": None}}
    lines = shown("published", numbers)
    assert lines[0] == "split rows shards bytes"
    assert (
        "duplicates 2 repeated rows (1 in several splits, 0 in several classes): see "
        "duplicates.jsonl" in lines
    )
    assert "bytes 3.5 MiB of TFRecords from 7.0 MiB of rows (50%)" in lines


PRICE = {
    "cpu_seconds": 12.34,
    "memory": 400 * 2**20,
    "bytes_read": 3 * 2**30,
    "bytes_shuffled": 2**20,
    "bytes_written": 2**30,
    "minutes": 0.25,
}


def test_a_plan_names_its_price():
    (line,) = [
        line
        for line in shown("planned", {**PLANNED, "price": {"predicted": PRICE}})
        if "price" in line
    ]
    assert line == (
        "price cpu seconds: about 12.34, memory: about 400.0 MiB, bytes read: about 3.0 GiB, "
        "bytes shuffled: about 1.0 MiB, bytes written: about 1.0 GiB, minutes: about 0.25"
    )


def test_a_run_shows_how_wrong_its_price_was():
    measured = {key: 2 * value for key, value in PRICE.items() if key != "bytes_shuffled"}
    numbers = {**NUMBERS, "price": {"predicted": PRICE, "measured": measured}}
    lines = shown("published", numbers)
    (at,) = [number for number, line in enumerate(lines) if line.startswith("price")]
    assert " ".join(lines[at : at + 2]) == (
        "price cpu seconds: about 12.34 (24.68 measured), memory: about 400.0 MiB (800.0 MiB "
        "measured), bytes read: about 3.0 GiB (6.0 GiB measured), bytes written: about 1.0 GiB "
        "(2.0 GiB measured), minutes: about 0.25 (0.50 measured)"
    )


@pytest.mark.parametrize(
    ("flags", "settings", "kind"),
    [
        (("--plan",), {}, PlannedNumbers),
        ((), {}, DatasetNumbers),
        pytest.param(
            ("--writer=beam",),
            {"shards.count": 2},
            DatasetNumbers,
            marks=(pytest.mark.runner, pytest.mark.slow),
        ),
        (("--versions",), {}, DatasetNumbers),
        ((), {"max_rejected": {"count": 0, "share": 0}}, FailedNumbers),
    ],
)
def test_all_numbers_of_a_run_have_a_type(photos, convert, tmp_path, flags, settings, kind):
    (photos / "cat/empty.jpg").touch()
    path = tmp_path / "outcome.json"
    convert(photos, *flags, f"--outcome-file={path}", settings=settings)
    outcome = json.loads(path.read_bytes())
    read = Outcome.from_json(outcome)
    assert type(read.numbers) is kind
    assert read.plain_numbers() == outcome["numbers"]
