"""docs/beam_writer.md: its commands run and do what the page says."""

import json
import re
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import get_type_hints

import pytest
from documented_inputs import draw_collections

from recordmill.pipeline.configuration.config import load_settings
from recordmill.pipeline.configuration.idle_settings import find_idle
from recordmill.pipeline.configuration.options import _NOT_BEAMS as FLAGS
from recordmill.schemas.idle_settings import IdleIf, marks_of, without_marker
from recordmill.schemas.settings.dataset import DatasetSettings

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

ROOT = Path(__file__).parents[2]
PAGE = "docs/beam_writer.md"


@pytest.mark.runner
def test_the_commands_do_what_the_page_says(run_page, tmp_path):
    folder = draw_collections(tmp_path)
    converted, verified = run_page(PAGE, folder)
    line = json.loads(converted.stdout)
    assert line["status"] == "written"
    files = [
        f"{split}-0000{index}-of-00002.tfrecord" for split in ("test", "train") for index in (0, 1)
    ]
    assert sorted(path.name for path in (folder / "composed").iterdir()) == ["labels.txt", *files]
    assert json.loads(verified.stdout)["exit_code"] == 0


def refused_settings():
    """The paths of the settings that have no effect with `--writer=beam`."""
    overrides = {
        "shards": {"count": 2, "cuts": "fixed"},
        "images": {"moments": True, "near_duplicates": True},
        "expect": {"rejected": 0.5},
        **{"index_files": True, "exclude": "x", "license": "x", "creator": "x"},
        **{"version": "1.2.0", "citation": "x", "corrections": "x"},
    }
    settings = load_settings(None, [], keywords=overrides).settings
    analyzed = replace(settings, analyze=True)
    assert find_idle(settings) == []
    return {each.path for each in (*find_idle(settings, True), *find_idle(analyzed, True))}


def test_each_mark_is_tried():
    kinds = (DatasetSettings, *(each for each in get_type_hints(DatasetSettings).values()))
    marked = [
        name
        for kind in kinds
        if is_dataclass(kind)
        for name, marks in marks_of(kind, IdleIf).items()
        if any(mark.rule is without_marker for mark in marks)
    ]
    assert set(marked) <= {path.rpartition(".")[2] for path in refused_settings()}
    assert len(marked) == 10


def test_the_page_names_what_is_refused():
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    refused = re.split(r"\.\s", text[text.index("These settings and flags are refused") :])[0]
    keys = {"shards.size", *refused_settings(), *(f"--{flag}" for flag in FLAGS)}
    assert set(re.findall(r"`([\w.-]+)`", refused)) - {"together"} == keys
