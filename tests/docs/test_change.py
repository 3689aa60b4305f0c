"""docs/change.md: its commands run."""

import json

from documented_inputs import draw_collections

PAGE = "docs/change.md"


def test_the_commands_run(run_page, tmp_path):
    first, second = run_page(PAGE, draw_collections(tmp_path))
    for done in (first, second):
        assert json.loads(done.stdout)["status"] == "published"
