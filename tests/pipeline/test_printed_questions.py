"""Inputs that may be meant in several ways: every command of the question ends right on them."""

import json
from collections import Counter
from pathlib import Path

import pytest
from packed_inputs import packed
from paired_inputs import photo
from peer import read_dataset
from printed_commands import follow, printed_flags, write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

NAMES = ("1", "2", "3", "4")
BOX = b"0 0.5 0.5 0.5 0.5\n"


def images(*folders, names=NAMES):
    return {f"{at}/{name}.jpg": photo((at, name)) for at in folders for name in names}


def voc(name):
    return (
        f"<annotation><folder>x</folder><filename>{name}</filename><size><width>24</width>"
        "<height>16</height></size><object><name>cat</name><bndbox><xmin>6</xmin><ymin>4</ymin>"
        "<xmax>18</xmax><ymax>12</ymax></bndbox></object></annotation>"
    ).encode()


def coco(names):
    listed = [
        {"id": at, "file_name": name, "width": 24, "height": 16} for at, name in enumerate(names)
    ]
    boxes = [
        {"id": at, "image_id": at, "category_id": 7, "bbox": [6, 4, 12, 8], "area": 96}
        for at, _ in enumerate(names)
    ]
    categories = [{"id": 7, "name": "bird"}]
    return json.dumps({"images": listed, "annotations": boxes, "categories": categories}).encode()


YOLO = {
    **images("images"),
    **{f"labels/{name}.txt": BOX for name in NAMES},
    "data.yaml": b"names: [cat]\nnc: 1\n",
}
TWO_SIDES = {
    f"{name}.{part}": data
    for name in NAMES
    for part, data in (
        ("left.jpg", photo(("left", name))),
        ("right.jpg", photo(("right", name))),
        ("cls", b"0" if name == "1" else b"1"),
    )
}
CLASSES = {"cat": 4, "dog": 4}

WAYS = {
    "classes or VOC": (
        {
            **images("cat", "dog"),
            **{f"{at}/{name}.xml": voc(f"{name}.jpg") for at in ("cat", "dog") for name in NAMES},
        },
        [(CLASSES, {}), ({"": 8}, {"cat": 8})],
    ),
    "COCO or YOLO": (
        {**YOLO, "annotations/instances_default.json": coco([f"{name}.jpg" for name in NAMES])},
        [({"": 4}, {"bird": 4}), ({"": 4}, {"cat": 4})],
    ),
    "VOC or YOLO": (
        {
            **images("images"),
            **{f"labels/{name}.txt": BOX for name in NAMES},
            "classes.txt": b"dog\n",
            **{f"Annotations/{name}.xml": voc(f"{name}.jpg") for name in NAMES},
        },
        [({"": 4}, {"cat": 4}), ({"": 4}, {"dog": 4})],
    ),
    "COCO or a table": (
        {
            **images("images"),
            "annotations.json": coco([f"{name}.jpg" for name in NAMES]),
            "labels.csv": b"filename,label\n"
            + b"".join(f"{name}.jpg,cat\n".encode() for name in NAMES),
        },
        [({"": 4}, {"bird": 4}), ({"cat": 4}, {})],
    ),
    "classes or no labels in names": (
        {f"{kind}.{name}.jpg": photo((kind, name)) for kind in ("cat", "dog") for name in "12345"},
        [({"": 10}, {}), ({"cat": 5, "dog": 5}, {})],
    ),
    "one of two images of a sample": (
        {"train-000.tar": packed(TWO_SIDES, ".tar")},
        [({"0": 1, "1": 3}, {})] * 2,
    ),
    "folders in folders of an archive": (
        {"photos.zip": packed(images("red/cat", "blue/cat", "red/dog", "blue/dog"), ".zip")},
        [({"cat": 8, "dog": 8}, {}), ({"blue": 8, "red": 8}, {}), ({"": 16}, {})],
    ),
}
"""Files, and for each way through the questions the images by class, and the boxes by class."""


def said_by(dataset):
    labels = Counter(each.label for each in dataset)
    boxes = Counter(label for each in dataset for label, *_ in each.boxes)
    return dict(sorted(labels.items())), dict(boxes)


@pytest.mark.parametrize("name", WAYS)
def test_each_way_that_a_question_offers_makes_the_dataset_that_it_names(name, tmp_path, run_in):
    files, expected = WAYS[name]
    write_files(tmp_path / "in", files)
    found = []
    for end in follow(["--input", "in"], run_in):
        assert (end.codes[0], end.code) == (2, 0), (end.arguments, end.message)
        found.append(said_by(read_dataset(Path("out"))))
    assert sorted(found, key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("name", ["COCO or YOLO", "VOC or YOLO", "COCO or a table"])
def test_each_way_leaves_out_the_annotations_of_the_other(name, tmp_path, run_in):
    files, _ = WAYS[name]
    write_files(tmp_path / "in", files)
    _, _, err = run_in(["--input", "in"])
    ways = list(printed_flags(err.splitlines()[0]))
    assert [run_in(["--input", "in", *flags])[0] for flags in ways] == [0, 0]


def test_inputs_of_different_layouts_are_converted_by_the_printed_flags(tmp_path, run_in):
    write_files(tmp_path / "my pets", images("cat", "dog"))
    write_files(tmp_path / "boxes", YOLO)
    given = ["--input", "a=my pets", "--input", "b=boxes"]
    code, _, err = run_in(given)
    assert code == 2
    assert "my pets looks like class_folders, boxes looks like yolo" in err
    assert [*printed_flags(err)] == [["--input", "my pets"], ["--input", "boxes"]]
    found = []
    for end in follow(given, run_in):
        assert end.code == 0, end.message
        found.append(said_by(read_dataset(Path("out"))))
    assert found == [(CLASSES, {}), ({"": 4}, {"cat": 4})]


def test_a_choice_between_kinds_keeps_the_check_of_unread_files(tmp_path, run_in):
    coco_and_yolo, _ = WAYS["COCO or YOLO"]
    write_files(tmp_path / "in", {**coco_and_yolo, "marks.mat": b"MATLAB 5.0 MAT-file"})
    _, _, err = run_in(["--input", "in"])
    ways = list(printed_flags(err.splitlines()[0]))
    assert len(ways) == 2
    for flags in ways:
        code, _, err = run_in(["--input", "in", *flags])
        assert code == 2, err
        assert "marks.mat" in err
    ends = list(follow(["--input", "in"], run_in))
    assert [end.code for end in ends] == [0, 0], ends
    for end in ends:
        assert any("/marks.mat" in each for each in end.arguments if each.startswith("ignore="))


def test_folders_are_not_offered_as_classes_of_images_that_a_table_names(tmp_path, run_in):
    rows = "".join(f"{at}/{name}.jpg,{at}s\n" for at in ("cat", "dog") for name in NAMES)
    table = f"filename,label\n{rows}".encode()
    write_files(tmp_path / "in", {**images("cat", "dog"), "labels.csv": table})
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    assert Counter(each.label for each in read_dataset(Path("out"))) == {"cats": 4, "dogs": 4}


def test_each_file_of_coco_that_a_question_offers_is_read_alone(tmp_path, run_in):
    first, second = NAMES[:2], NAMES[2:]
    files = {
        **images("pictures"),
        "one/first.json": coco([f"{name}.jpg" for name in first]),
        "two/second.json": coco([f"{name}.jpg" for name in second]),
    }
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 2
    assert "it is not clear which of one/first.json, two/second.json to read" in err
    assert "..." not in err.splitlines()[0]
    found = set()
    for end in follow(["--input", "in"], run_in):
        assert end.code == 0, end
        found.add((end.marker["ledger"]["written"], end.marker["annotations"]["boxes"]["written"]))
    assert found == {(2, 2)}


def test_json_files_of_segment_anything_are_not_taken_for_coco(tmp_path, run_in):
    text = b'{"image": {"image_id": 1, "file_name": "1.jpg"}, "annotations": [{"id": 1}]}'
    for name in NAMES:
        write_files(tmp_path / "in", {f"{name}.jpg": photo(name), f"{name}.json": text})
    code, _, err = run_in(["--input", "in"])
    assert code == 2
    assert "4 annotations such as 1.json (Segment Anything's JSON)" in err
    (end,) = follow(["--input", "in"], run_in)
    assert end.code == 0, end
    assert end.marker["ledger"]["written"] == 4
    assert end.arguments[-1].startswith("ignore=")
