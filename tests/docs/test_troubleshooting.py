"""docs/troubleshooting.md quotes messages of the product."""

import re
from pathlib import Path

from scripts.messages import messages

TEXT = (Path(__file__).parents[2] / "docs/troubleshooting.md").read_text(encoding="utf-8")
ROWS = [line.split(" | ") for line in TEXT.splitlines() if line.startswith("| ")]
QUOTED = [
    quoted for row in ROWS for quoted in re.findall(r"`([^`]+)`", row[0]) if " " in quoted[3:]
]


def test_the_messages_exist():
    said = [text for _, text in messages()]
    for quoted in QUOTED:
        words = re.escape(quoted).replace("\\ ", r"[ {}]+")
        is_command = quoted.startswith("recordmill ")
        assert is_command or any(re.search(words, text) for text in said), quoted


def test_each_row_has_a_symptom_a_cause_and_a_remedy():
    assert len(ROWS) > 20
    assert {len(row) for row in ROWS} == {3}
