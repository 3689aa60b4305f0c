"""docs/recipes.md: every command runs and does what the page says."""

import json
import re
from pathlib import Path

import pytest
from documented_inputs import count_records, draw_collections

from recordmill.pipeline.configuration.config import load_settings

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

PAGE = "docs/recipes.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run_page):
    folder = draw_collections(tmp_path_factory.mktemp("recipes"))
    run_page(PAGE, folder)
    return folder


def rows(dataset):
    for sidecar in sorted((dataset / "sidecars").iterdir()):
        for line in sidecar.read_text(encoding="utf-8").splitlines():
            yield sidecar.name.split("-")[0], json.loads(line)


def test_each_recipe_does_what_it_says(folder):
    assert not (folder / "dataset-planned").exists()
    assert count_records(folder / "dataset-given") == {"train": 32, "validation": 8}
    assert count_records(folder / "dataset-digits") == {"train": 20}
    assert (folder / "dataset-digits" / "train.record").is_file()
    assert sum(count_records(folder / "dataset-unlabeled").values()) == 20
    assert (folder / "dataset-unlabeled" / "labels.txt").read_text(encoding="utf-8") == ""
    renamed = [row["class"] for _, row in rows(folder / "dataset-renamed") if "left_out" not in row]
    assert renamed == ["feline"] * 20
    assert count_records(folder / "dataset-stratified") == {
        "train": 20,
        "validation": 10,
        "test": 10,
    }
    assert sum(count_records(folder / "dataset-small").values()) == 20
    balanced = [row["class"] for _, row in rows(folder / "dataset-balanced")]
    assert sorted(balanced) == ["cat"] * 10 + ["dog"] * 10
    assert sum(count_records(folder / "dataset-both").values()) == 80
    assert sum(count_records(folder / "dataset-tutorial").values()) == 40
    exact = list(rows(folder / "dataset-exact"))
    assert [row["changes"] for _, row in exact] == [[]] * 20
    assert sum(count_records(folder / "dataset-avif").values()) == 40
    assert sum(count_records(folder / "dataset-private").values()) == 40
    splits = {}
    for split, row in rows(folder / "dataset-grouped"):
        splits.setdefault(re.search("p[0-9]+", row["key"]).group(), set()).add(split)
    assert sorted(map(len, splits.values())) == [1] * 20


def test_the_configuration_is_valid(tmp_path):
    text = (Path(__file__).parents[2] / PAGE).read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "own.yaml").write_text(block, encoding="utf-8")
    settings = load_settings(str(tmp_path / "own.yaml"), []).settings
    assert settings.labels.catch_all == "other"
