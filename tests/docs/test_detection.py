import json

import pytest
from PIL import Image


@pytest.fixture
def pets(tmp_path):
    for split, count in (("train", 8), ("val", 2)):
        for number in range(count):
            image = tmp_path / "pets" / "images" / split / f"{number}.jpg"
            text = tmp_path / "pets" / "labels" / split / f"{number}.txt"
            image.parent.mkdir(parents=True, exist_ok=True)
            text.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (120, 80), (20 * number, 90, 90)).save(image)
            text.write_text("0 0.5 0.5 0.25 0.5\n1 0.05 0.5 0.1 0.5\n", encoding="utf-8")
    (tmp_path / "pets" / "data.yaml").write_text("names: [cat, dog]", encoding="utf-8")
    return tmp_path


def test_the_page_does_what_it_says(pets, run_page):
    run_page("docs/detection.md", pets)

    def boxes(name):
        return json.loads((pets / name / "recordmill.json").read_text(encoding="utf-8"))["boxes"]

    assert boxes("pets-dataset") == {"listed": 20, "written": 20}
    assert boxes("pets-square") == {"cropped_away": 10, "listed": 20, "written": 10}
