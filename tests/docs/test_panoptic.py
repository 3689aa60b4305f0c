"""docs/panoptic.md: both commands convert a collection in COCO's panoptic format."""

import json
import shutil
from pathlib import Path

import pytest
from documented_inputs import count_records

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run_page):
    folder = tmp_path_factory.mktemp("panoptic")
    shutil.copytree(ROOT / "tests/golden/inputs/coco_panoptic", folder / "coco")
    run_page("docs/panoptic.md", folder)
    return folder


@pytest.mark.parametrize(
    ("name", "count", "kinds"),
    [("dataset-classes", 4, {"segmentation"}), ("dataset-things", 8, {"boxes", "masks"})],
)
def test_both_commands_store_what_the_page_says(folder, name, count, kinds):
    assert count_records(folder / name) == {"train": count, "validation": 1}
    marker = json.loads((folder / name / "recordmill.json").read_bytes())
    assert marker["annotations"].keys() == kinds
