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
    _write_task_of_cvat(tmp_path / "task")
    _write_project_of_label_studio(tmp_path / "project")
    return tmp_path


def _draw_images(folder):
    (folder / "images").mkdir(parents=True)
    for number in range(4):
        image = Image.new("RGB", (40, 20), (90, 90, 20 * number))
        image.save(folder / "images" / f"{number}.jpg")


def _write_task_of_cvat(folder):
    _draw_images(folder)
    shapes = (
        '<box label="car" occluded="0" xtl="1" ytl="2" xbr="9" ybr="12"/>'
        '<polygon label="car" occluded="1" points="12,4;20,4;20,9"/>'
    )
    images = "".join(
        f'<image id="{number}" name="{number}.jpg" width="40" height="20">{shapes}</image>'
        for number in range(4)
    )
    text = f"<annotations><version>1.1</version>{images}</annotations>"
    (folder / "annotations.xml").write_text(text, encoding="utf-8")


def _write_project_of_label_studio(folder):
    _draw_images(folder)
    values = [
        {"x": 5, "y": 10, "width": 20, "height": 50, "rectanglelabels": ["car"]},
        {"points": [[30, 20], [50, 20], [50, 45]], "polygonlabels": ["car"]},
    ]
    size = {"original_width": 40, "original_height": 20}
    result = [{"id": f"r{at}", "value": value, **size} for at, value in enumerate(values)]
    tasks = [
        {"data": {"image": f"/data/upload/1/{number}.jpg"}, "annotations": [{"result": result}]}
        for number in range(4)
    ]
    (folder / "export.json").write_text(json.dumps(tasks), encoding="utf-8")


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
    for name in ("task-dataset", "project-dataset"):
        assert boxes(name) == {**whole, "listed": 8, "written": 8, "noted": {"enclosed": 4}}
        assert marker(name)["ledger"]["ignored"] == {}
    assert boxes("cats-dataset")["dropped"] == {"unknown_class": 10}
    assert boxes("cats-dataset")["dropped_classes"] == {"unknown_class": {"dog": 10}}
    assert boxes("pets-square")["dropped"] == {"cropped_away": 10}
