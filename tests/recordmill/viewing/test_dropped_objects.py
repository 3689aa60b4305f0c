"""Objects that are in no record are shown on their image: which, where and why."""

import json

import pytest

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

SETTINGS = {
    "source__kind": "coco",
    "convention": "tf_object_detection",
    "masks": "png",
    "splits__fractions": {"all": 1.0},
    "report": False,
    "shards__count": 2,
    "max_rejected__boxes__share": 1,
    "max_rejected__masks__share": 1,
}


def box(number, sides, image=0, outline=(), category=1):
    return {
        "id": number,
        "image_id": image,
        "category_id": category,
        "iscrowd": 0,
        "area": 9,
        "bbox": sides,
        "segmentation": [list(outline)] if outline else [],
    }


SQUARE = (2, 2, 8, 2, 8, 8, 2, 8)
OBJECTS = [
    box(0, [2, 2, 6, 6], outline=SQUARE),
    box(1, [60, 2, 6, 6]),  # outside the image
    box(2, [10, 2, 0, 6]),  # of no width
    box(3, [20, 4, 10, 8], outline=(1, 1, 2, 2)),  # its outline is no polygon
    box(4, [4, 4, 8, 8], image=3),
    box(5, [5, 5, float("inf"), 8], image=3),
]


@pytest.fixture
def collection(tmp_path, draw):
    """Six images of 40 x 20 pixels: two have objects that are dropped."""
    root = tmp_path / "ships"
    (root / "train").mkdir(parents=True)
    (root / "annotations").mkdir()
    for number in range(6):
        (root / f"train/{number}.jpg").write_bytes(draw(number, (40, 20)))
    images = [
        {"id": number, "file_name": f"{number}.jpg", "width": 40, "height": 20}
        for number in range(6)
    ]
    names = [{"id": 1, "name": "ship"}]
    content = {"images": images, "annotations": OBJECTS, "categories": names}
    place = root / "annotations/instances_train.json"
    place.write_text(json.dumps(content).replace("Infinity", "1e999"), encoding="utf-8")
    return root


DROPPED = {
    ("boxes", "empty"): [("train/0.jpg", 3, [0.25, 0.1, 0.25, 0.4])],
    ("boxes", "not_finite"): [("train/3.jpg", 2, None)],
    ("boxes", "outside"): [("train/0.jpg", 2, [1.5, 0.1, 1.65, 0.4])],
    ("masks", "bad_polygon"): [("train/0.jpg", 4, pytest.approx([0.5, 0.2, 0.75, 0.6]))],
}


def shown(found):
    return {
        (group["what"], group["reason"]): [
            (each["key"], each["place"], each["sides"]) for each in group["objects"]
        ]
        for group in found["dropped_objects"]
    }


def test_dropped_objects_are_found_with_their_places_and_reasons(
    collection, converting, serving, tmp_path
):
    dataset = converting(collection, tmp_path / "dataset", **SETTINGS)
    with serving(str(dataset)) as browser:
        browser.enter()
        found = browser.rows(part="findings")
        cells = browser.rows(part="images", first=0, count=20)["images"]
        numbers = {each["key"]: each["number"] for each in cells}
        image = browser.rows(part="image", image=numbers["train/0.jpg"])
    assert shown(found) == DROPPED
    assert found["dropped"] == 2
    assert {
        each["class_name"] for group in found["dropped_objects"] for each in group["objects"]
    } == {"ship"}
    dropped = [
        (each["kind"], each["class_name"], each["reason"], each["sides"])
        for each in image["shapes"]
        if each["reason"]
    ]
    assert dropped == [
        ("dropped boxes", "ship", "outside", [1.5, 0.1, 1.65, 0.4]),
        ("dropped boxes", "ship", "empty", [0.25, 0.1, 0.25, 0.4]),
        ("dropped masks", "ship", "bad_polygon", pytest.approx([0.5, 0.2, 0.75, 0.6])),
    ]
    assert sum(each["reason"] is None for each in image["shapes"]) == 4


def test_dropped_objects_are_found_after_an_update(collection, converting, serving, tmp_path):
    dataset = converting(collection, tmp_path / "dataset", **SETTINGS)
    settings = [
        f"--set={key.replace('__', '.')}={json.dumps(each)}" for key, each in SETTINGS.items()
    ]
    flags = [f"--input={collection}", f"--output={dataset}", "--update", "--set=seed=0", *settings]
    (collection / "train/5.jpg").unlink()
    assert launch([*flags, "--set=max_rejected.share=1"], build) == 0
    with serving(str(dataset)) as browser:
        browser.enter()
        assert shown(browser.rows(part="findings")) == DROPPED


def test_dropped_objects_of_a_dataset_without_their_places_are_counted(
    collection, converting, serving, tmp_path
):
    dataset = converting(collection, tmp_path / "dataset", **SETTINGS)
    (dataset / "records.versions").unlink()
    with serving(str(dataset)) as browser:
        browser.enter()
        found = browser.rows(part="findings")
    assert (found["dropped"], found["dropped_objects"]) == (2, [])


def test_dropped_objects_of_a_failed_run_are_found(collection, serving, tmp_path):
    settings = {**SETTINGS, "expect__lost_boxes": 0}
    flags = [f"--set={key.replace('__', '.')}={json.dumps(each)}" for key, each in settings.items()]
    output = tmp_path / "dataset"
    assert launch([f"--input={collection}", f"--output={output}", *flags], build) in (3, 4)
    with serving(str(output)) as browser:
        browser.enter()
        assert shown(browser.rows(part="findings")) == DROPPED
