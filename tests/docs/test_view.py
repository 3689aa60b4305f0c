"""docs/view.md: its commands run, and its terms can be selected."""

import json
import re
from pathlib import Path

import pytest
from documented_inputs import draw_collections

from recordmill.pipeline import view
from recordmill.viewing.selection import parse_selection

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

PAGE = Path(__file__).parents[2] / "docs" / "view.md"


def test_the_commands_run(run_page, tmp_path):
    made, updated = run_page("docs/view.md", draw_collections(tmp_path))
    assert json.loads(made.stdout)["ledger"]["left_out"] == {}
    assert json.loads(updated.stdout)["ledger"]["left_out"] == {"excluded": 1}


def test_the_terms_can_be_selected():
    rows = re.findall(r"^\| (`.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    terms = [term for row in rows for term in re.findall(r"`([^`]+)`", row)]
    assert len(terms) == 11
    for term in terms:
        assert str(parse_selection(term)) == term


def test_the_flags_are_those_of_the_command(capsys):
    with pytest.raises(SystemExit):
        view.main(["--help"])
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    text = re.sub(r"^```sh.*?^```$", "", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert set(re.findall(r"`(--[a-z-]+)", text)) <= known
