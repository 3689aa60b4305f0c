"""docs/change.md: its commands run, and print what it shows."""

import json
from pathlib import Path

from documented_inputs import draw_collections

PAGE = "docs/change.md"


def test_the_commands_run(run_page, tmp_path):
    yesterday, _, today, differ, same, cleared, absent, *nights = run_page(PAGE, draw_collections(tmp_path))
    assert json.loads(cleared.stdout)["ledger"]["left_out"] == {"excluded": 1}
    assert "1 line of removed.txt fits nothing" in cleared.stderr
    assert json.loads(absent.stdout)["findings"] == []
    for done in (yesterday, today, cleared, *nights):
        assert json.loads(done.stdout)["status"] == "published"
    text = (Path(__file__).parents[2] / PAGE).read_text(encoding="utf-8")
    shown = text.split("The first comparison exits with 1, the second with 0:\n\n```\n")[1].partition("```")[0]
    assert differ.stderr + same.stderr == shown
    assert (differ.returncode, same.returncode) == (1, 0)
