import json

import pytest
from PIL import Image

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


@pytest.fixture
def photos(tmp_path):
    for number in range(40):
        for animal in ("cat", "dog"):
            image = tmp_path / "photos" / animal / f"{number:02d}.jpg"
            image.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (16, 12), (6 * (number // 2), 90 * (animal == "dog"), 90)).save(image)
    return tmp_path


def test_the_page_does_what_it_says(photos, run_page):
    pytest.importorskip("tensorflow")
    *_, cross_validation = run_page("docs/splits.md", photos)

    def marker(name):
        return json.loads((photos / name / "recordmill.json").read_text(encoding="utf-8"))

    assert sum(split["records"] for split in marker("by-hash")["splits"].values()) == 80
    assert marker("stratified")["splits"]["test"]["classes"] == {"cat": 4, "dog": 4}
    assert marker("grouped")["ledger"]["written"] == 80
    assert (
        marker("together")["ledger"]["written"] == marker("look-alikes")["ledger"]["written"] == 80
    )
    assert marker("dropped")["ledger"]["left_out"] == {"duplicate": 40}
    assert {name: split["classes"] for name, split in marker("folds")["splits"].items()} == {
        f"fold{number}": {"cat": 8, "dog": 8} for number in range(5)
    }
    others = "fold0+fold1+fold2+fold3+fold4"
    assert cross_validation.stdout.splitlines() == [
        f"fold{number} 64 16 {others.replace(f'fold{number}', '').replace('++', '+').strip('+')}"
        for number in range(5)
    ]
