"""Names of classes that may be meant as one, and classes that a convention cannot store."""

import json
from pathlib import Path

import pytest
from paired_inputs import photo
from peer import read_dataset
from printed_commands import write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

CLASSES = {
    f"{name}/{number}.jpg": photo((name, number)) for name in ("cat", "dog") for number in "12"
}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("Cat", "cat"), "The classes 'Cat' and 'cat' differ in case or blanks only"),
        (("dog ", "dog"), "The classes 'dog' and 'dog ' differ in case or blanks only"),
        (
            ("polar bear", "PolarBear"),
            "The classes 'PolarBear' and 'polar bear' differ in case or blanks only",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["folders", "table"])
def test_classes_that_differ_in_case_or_blanks_are_kept_and_noted(
    names, said, kind, tmp_path, run_in
):
    files = {f"{name}/{number}.jpg": photo((name, number)) for name in names for number in "12"}
    if kind == "table":
        rows = [f'images/{at}.jpg,"{name}"' for at, name in enumerate([*names, *names])]
        files = {f"images/{at}.jpg": photo(at) for at, _ in enumerate(rows)}
        files["list.csv"] = "\n".join(["path,class", *rows]).encode()
    write_files(tmp_path / "in", files)
    code, out, err = run_in(["--input", "in"])
    assert code == 0, err
    assert f"{said}: they may be meant as one." in json.loads(out)["remarks"]
    assert {each.label for each in read_dataset(Path("out"))} == {*names}


def coco(categories, used):
    images = [
        {"id": at, "file_name": f"{at}.jpg", "width": 24, "height": 16} for at, _ in enumerate(used)
    ]
    boxes = [
        {"id": at, "image_id": at, "category_id": category, "bbox": [6, 4, 12, 8], "area": 96}
        for at, category in enumerate(used)
    ]
    content = {"images": images, "categories": categories, "annotations": boxes}
    files = {f"train/{at}.jpg": photo(at) for at, _ in enumerate(used)}
    return {**files, "train/_annotations.coco.json": json.dumps(content).encode()}


PROJECT = {"id": 0, "name": "raccoon", "supercategory": "none"}
RACCOON = {"id": 1, "name": "raccoon", "supercategory": "raccoon"}
TREE = {"id": 2, "name": "tree", "supercategory": "raccoon"}


@pytest.mark.parametrize(
    ("categories", "used", "left_out", "boxes"),
    [
        ([PROJECT, RACCOON], [1, 1], (0, 1), ["raccoon", "raccoon"]),
        ([RACCOON, TREE, PROJECT], [1, 2], (0, 1), ["raccoon", "tree"]),
        ([PROJECT, RACCOON], [0, 0], (1, 0), ["raccoon", "raccoon"]),
    ],
)
def test_an_unused_category_with_the_name_of_another_is_left_out_with_a_note(
    categories, used, left_out, boxes, tmp_path, run_in
):
    write_files(tmp_path / "in", coco(categories, used))
    code, out, err = run_in(["--input", "in"])
    assert code == 0, err
    unused, kept = left_out
    note = (
        f"category {unused} is left out: no annotation has it, and category {kept} has the same "
        "name, 'raccoon'"
    )
    assert any(each.endswith(note) for each in json.loads(out)["notes"])
    found = sorted(label for each in read_dataset(Path("out")) for label, *_ in each.boxes)
    assert found == boxes


def test_two_categories_in_use_with_one_name_are_refused_by_their_ids(tmp_path, run_in):
    write_files(tmp_path / "in", coco([PROJECT, RACCOON], [0, 1]))
    code, _, err = run_in(["--input", "in"])
    assert code == 3
    assert "categories 0 and 1 are both called 'raccoon', and both have annotations" in err


@pytest.mark.parametrize(
    "files",
    [
        CLASSES,
        {f"train/{path}": data for path, data in CLASSES.items()},
        {
            **{f"images/{at}.jpg": photo(at) for at in "12"},
            "list.csv": b"path,class\nimages/1.jpg,cat\nimages/2.jpg,dog\n",
        },
    ],
    ids=["class folders", "a split of class folders", "a table"],
)
def test_a_convention_of_boxes_alone_refuses_classes_of_images(files, tmp_path, run_in):
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in", "--set", "convention=tf_object_detection"])
    assert code == 2
    assert "stores the classes of boxes only, and the images have a class and no boxes" in err
    assert not Path("out/recordmill.json").exists()
    code, _, err = run_in(["--input", "in", "--set", "convention=default"])  # as advised
    assert code == 0, err
    assert {each.label for each in read_dataset(Path("out"))} == {"cat", "dog"}
