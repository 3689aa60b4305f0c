"""docs/analyze.md is true: its commands and its script are run, and its tables name what is
there."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

TEXT = (Path(__file__).parents[2] / "docs" / "analyze.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def done(tmp_path_factory, run_page):
    if not find_spec("tensorflow_transform"):
        pytest.skip("tensorflow-transform is not installed")
    folder = tmp_path_factory.mktemp("analyze")
    return folder, run_page("docs/analyze.md", folder)


@pytest.mark.slow
def test_the_commands_do_what_the_page_says(done):
    folder, (converted, analyzed, trained) = done
    assert json.loads(converted.stdout)["analysis"] == "analyzed"
    assert json.loads(analyzed.stdout)["status"] == "kept"
    # After the assertion that training and serving give the same scores.
    assert trained.stdout == "(1, 6)\n"
    assert (folder / "served" / "saved_model.pb").is_file()


@pytest.mark.slow
def test_the_note_holds_the_keys_of_the_table(done):
    note = json.loads((done[0] / "dataset" / "transform_fn" / "analysis.json").read_bytes())
    table = TEXT[TEXT.index("| property | meaning |") :].split("\n\n")[0]
    first_cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)} == set(note)
    assert note["size"] == [224, 224]
    assert len(note["height"]["quantiles"]) == 99
