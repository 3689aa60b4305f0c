"""docs/change.md: its commands run."""

import json

from documented_inputs import draw_collections

PAGE = "docs/change.md"


def test_the_commands_run(run_page, tmp_path):
    lines = [json.loads(done.stdout) for done in run_page(PAGE, draw_collections(tmp_path))]
    assert [line["status"] for line in lines] == ["published", "kept", "published", "published", "published"]
    marker = json.loads((tmp_path / "datasets/today/recordmill.json").read_bytes())
    assert marker["run"]["images_reused"] == marker["ledger"]["written"]
