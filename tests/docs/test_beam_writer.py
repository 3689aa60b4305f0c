"""docs/beam_writer.md: its commands run and do what the page says."""

import json
import re
from pathlib import Path

import pytest
from documented_inputs import draw_collections

from recordmill.pipeline.configuration.options import _NOT_BEAMS as FLAGS
from recordmill.pipeline.configuration.resolve_settings import _NOT_BEAMS as SETTINGS

ROOT = Path(__file__).parents[2]
PAGE = "docs/beam_writer.md"


@pytest.mark.runner
def test_the_commands_do_what_the_page_says(run_page, tmp_path):
    folder = draw_collections(tmp_path)
    converted, verified, composed = run_page(PAGE, folder)
    line = json.loads(converted.stdout)
    assert line["status"] == "written"
    files = [
        f"{split}-0000{index}-of-00002.tfrecord" for split in ("test", "train") for index in (0, 1)
    ]
    assert sorted(path.name for path in (folder / "composed").iterdir()) == ["labels.txt", *files]
    assert json.loads(verified.stdout)["exit_code"] == 0
    assert composed.stdout == f"{line['ledger']['written']} Examples are in own\n"


def test_the_page_names_what_is_refused():
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    refused = re.split(r"\.\s", text[text.index("These settings and flags are refused") :])[0]
    keys = {"shards.size", *SETTINGS, *(f"--{flag}" for flag in FLAGS)}
    assert set(re.findall(r"`([\w.-]+)`", refused)) - {"together"} == keys
