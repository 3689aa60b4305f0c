import io

import pytest
from rich.console import Console

from pipeline.summary_table import show_bytes, summary_tables
from schemas.outcome import Outcome

LEDGER = {
    "listed": 1300,
    "written": 1234,
    "rejected": {"empty": 2, "truncated": 1},
    "ignored": {"system_file": 63},
    "left_out": {},
}
NUMBERS = {
    "splits": {
        "train": {"images": 1200, "shards": 3, "bytes": 3 * 2**20},
        "test": {"images": 34, "shards": 1, "bytes": 2**19},
    },
    "ledger": LEDGER,
    "changes": {"rotated": 4},
    "input_bytes": 7 * 2**20,
    "output_bytes": 3.5 * 2**20,
}


def shown(outcome):
    stream = io.StringIO()
    console = Console(file=stream, width=200)
    for table in summary_tables(outcome, "out"):
        console.print(table)
    return [" ".join(line.split()) for line in stream.getvalue().splitlines() if line.strip()]


def test_a_finished_dataset():
    assert shown(Outcome("published", "", 0, "", NUMBERS)) == [
        "split images shards bytes",
        "train 1,200 3 3.0 MiB",
        "test 34 1 512.0 KiB",
        "together 1,234 4 3.5 MiB",
        "listed 1,300 = 1,234 written + 3 rejected + 63 ignored",
        "rejected 2 empty, 1 truncated",
        "ignored 63 system file",
        "changed 4 rotated",
        "bytes 7.0 MiB of images became 3.5 MiB of TFRecords, 0.50x",
        "beside them out/recordmill.json (what is in it), labels.txt, config.yaml, sidecars/, rejected.jsonl",
    ]


def test_sizes_of_a_plan_are_called_estimates():
    assert "train 1,200 3 about 3.0 MiB" in shown(Outcome("planned", "", 0, "", NUMBERS))


def test_nothing_to_say():
    assert shown(Outcome("failed", "", 1)) == []


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1024, "1.0 KiB"),
        (1.5 * 2**20, "1.5 MiB"),
        (2**40, "1.0 TiB"),
        (2**51, "2,048.0 TiB"),
    ],
)
def test_show_bytes(count, text):
    assert show_bytes(count) == text
