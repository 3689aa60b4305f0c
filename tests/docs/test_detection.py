import json

import pytest
from PIL import Image

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


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
    (tmp_path / "street").mkdir()
    for number in range(4):
        Image.new("RGB", (40, 20), (90, 20 * number, 90)).save(
            tmp_path / "street" / f"{number}.jpg"
        )
        shapes = [
            {"label": "car", "shape_type": "polygon", "points": [[1, 2], [9, 4], [5, 12]]},
            {
                "label": "car",
                "shape_type": "rectangle",
                "points": [[20, 9], [12, 4]],
                "group_id": 0,
            },
            {
                "label": "car",
                "shape_type": "rectangle",
                "points": [[30, 9], [22, 4]],
                "group_id": 0,
            },
        ]
        text = {"shapes": shapes, "imagePath": f"..\\before\\{number}.jpg", "imageData": None}
        (tmp_path / "street" / f"{number}.json").write_text(json.dumps(text), encoding="utf-8")
    return tmp_path


def test_the_page_does_what_it_says(pets, run_page):
    run_page("docs/detection.md", pets)

    def marker(name):
        return json.loads((pets / name / "recordmill.json").read_text(encoding="utf-8"))

    def boxes(name):
        return marker(name)["annotations"]["boxes"]

    whole = {"unit": "box", "listed": 20, "written": 20, "dropped": {}}
    assert boxes("pets-dataset") == whole
    assert marker("pets-dataset")["ledger"]["ignored"] == {"class_names": 1}
    assert boxes("street-dataset") == {**whole, "listed": 8, "written": 8}
    assert marker("street-dataset")["ledger"]["ignored"] == {}
    assert boxes("cats-dataset")["dropped"] == {"unknown_class": 10}
    assert boxes("cats-dataset")["dropped_classes"] == {"unknown_class": {"dog": 10}}
    assert boxes("pets-square")["dropped"] == {"cropped_away": 10}
