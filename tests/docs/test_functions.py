"""docs/functions.md: the commands do what the page says."""

import json
import sys

import numpy as np
import pytest
from PIL import Image

from recordmill.transforms.records.image_functions import find_function

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run_page):
    folder = tmp_path_factory.mktemp("functions")
    noise = np.random.default_rng(5).integers(0, 256, (12, 30, 40, 3), np.uint8)
    for label in ("cat", "dog"):
        (folder / "photos" / label).mkdir(parents=True)
        for number, image in enumerate(noise):
            Image.fromarray(image).save(folder / "photos" / label / f"{number}.png")
    Image.new("L", (40, 30), 99).save(folder / "photos/cat/gray.png")
    Image.new("RGB", (40, 30)).save(folder / "photos/dog/black.png")
    Image.fromarray(noise[0, :19]).save(folder / "photos/dog/small.png")
    run_page("docs/functions.md", folder)
    yield folder
    find_function.cache_clear()
    sys.modules.pop("my_images", None)


def test_images_are_prepared_and_filtered(folder):
    def ledger(name):
        return json.loads((folder / name / "recordmill.json").read_text(encoding="utf-8"))["ledger"]

    prepared = ledger("prepared")
    assert (prepared["written"], prepared["rejected"], prepared["left_out"]) == (
        25,
        {"function": 1},
        {"unwanted": 1},
    )
    rejected = json.loads((folder / "prepared/rejected.jsonl").read_text(encoding="utf-8"))
    assert (rejected["key"], rejected["detail"]) == ("dog/black.png", "the image is black")
    assert ledger("filtered")["left_out"] == {"too_blurred": 1, "too_dark": 1, "too_small": 1}
