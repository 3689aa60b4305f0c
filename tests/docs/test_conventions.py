import io
import json
import re
from pathlib import Path

import pytest
from PIL import Image
from stored_records import read_records

from recordmill.schemas.conventions import convention_names
from recordmill.schemas.features import Feature, parse_example

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

PAGE = Path(__file__).parents[2] / "docs" / "conventions.md"


@pytest.fixture
def photos(tmp_path):
    for number in range(6):
        for animal in ("cat", "dog"):
            (tmp_path / "photos" / animal).mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (16, 12), (40 * number, 90, 90)).save(
                tmp_path / "photos" / animal / f"{number}.jpg"
            )
    return tmp_path


def test_the_page_does_what_it_says(photos, run_page):
    run_page("docs/conventions.md", photos)
    slim = sorted(path.name for path in (photos / "flowers").glob("flowers_*"))
    assert slim == ["flowers_test_00000-of-00001.tfrecord", "flowers_train_00000-of-00001.tfrecord"]
    features = (
        Feature("pixels", "bytes", "", ""),
        Feature("target", "int64", "", ""),
        Feature("version", "int64", "", ""),
    )
    marker = json.loads((photos / "own" / "recordmill.json").read_text(encoding="utf-8"))
    assert (marker["convention"], marker["labels"]) == ("own", {"cat": 1, "dog": 2})
    count = marker["splits"]["test"]["records"]
    kaggle = sorted(path.name for path in (photos / "kaggle").glob("*.tfrec"))
    assert kaggle == [f"test-00-192x192-{count}.tfrec", f"train-00-192x192-{12 - count}.tfrec"]
    assert sum(int(re.search(r"-([0-9]*)\.", name)[1]) for name in kaggle) == 12
    assert sorted(read_flowers(photos / "kaggle")) == [
        *[(0, f"{number}.jpg".encode(), (192, 192)) for number in range(6)],
        *[(1, f"{number}.jpg".encode(), (192, 192)) for number in range(6)],
    ]
    found = []
    for split in ("train", "test"):
        path = photos / "own" / f"own.{split}.000.tfrecord"
        found += [parse_example(features, bytes(record)) for record in read_records(str(path))]
    assert sorted((each["target"], each["version"], each["pixels"][:2]) for each in found) == [
        *[(1, 3, b"\xff\xd8")] * 6,
        *[(2, 3, b"\xff\xd8")] * 6,
    ]


def read_flowers(folder):
    """As the notebooks on Kaggle's flowers do: class, id and size of each."""
    features = (
        Feature("image", "bytes", "", ""),
        Feature("class", "int64", "", ""),
        Feature("id", "bytes", "", ""),
    )
    for path in folder.glob("*.tfrec"):
        for record in read_records(str(path)):
            each = parse_example(features, bytes(record))
            yield each["class"], each["id"], Image.open(io.BytesIO(each["image"])).size


def test_every_convention_has_its_place_there():
    with open(PAGE, encoding="utf-8") as page:
        text = page.read()
    headed = re.findall(
        r"^## ([a-z_]+)$(?:(?!\n## ).)*?^<!-- features of \1 -->$", text, re.MULTILINE | re.DOTALL
    )
    assert sorted(headed) == list(convention_names())
