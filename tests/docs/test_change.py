"""docs/change.md: its commands run, and print what it shows."""

import json
import os
from pathlib import Path

import pytest
from documented_inputs import draw_collections

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

PAGE = "docs/change.md"


def test_the_commands_run(run_page, tmp_path):
    collections = draw_collections(tmp_path)
    for path in collections.rglob("*.*"):  # files that have just been written are read again
        os.utime(path, (1, 1))
    made, kept, reusing, *more = run_page(PAGE, collections)
    assert json.loads(kept.stdout)["status"] == "kept"
    marker = json.loads((tmp_path / "datasets/today/recordmill.json").read_bytes())
    assert marker["run"]["images_reused"] == marker["ledger"]["written"]
    (
        yesterday,
        _,
        today,
        differ,
        same,
        cleared,
        absent,
        corrected,
        *nights,
        old,
        _,
        new,
        verified,
        listed,
        back,
        kept_one,
        fixed,
        _,
        cut,
    ) = more
    assert json.loads(cleared.stdout)["ledger"]["left_out"] == {"excluded": 1}
    assert "lines of removed.txt that match nothing: 1" in cleared.stderr
    assert json.loads(absent.stdout)["findings"] == []
    assert json.loads(corrected.stdout)["ledger"]["corrections"] == {
        "corrected": 0,
        "stale": 1,
        "no_match": 0,
    }
    for done in (made, reusing, yesterday, today, cleared, *nights, old, new, fixed, cut):
        assert json.loads(done.stdout)["status"] == "published"
    names = [json.loads(each.stdout)["version"] for each in (old, new)]
    assert json.loads(verified.stdout)["path"] == f"nightly/{names[1]}"
    currents = [json.loads(each.stdout)["current"] for each in (listed, back, kept_one)]
    assert currents == [names[1], names[0], names[0]]
    assert [each["version"] for each in json.loads(kept_one.stdout)["versions"]] == names[:1]
    text = (Path(__file__).parents[2] / PAGE).read_text(encoding="utf-8")
    shown = text.split("The first comparison exits with 1, the second with 0:\n\n```\n")[
        1
    ].partition("```")[0]
    assert differ.stderr + same.stderr == shown
    assert (differ.returncode, same.returncode) == (1, 0)
