"""Boxes and labels that are lost for their faults fail a run; those that the settings leave out do
not."""

import json
import re

import pytest
from marker_counts import counts_of

from recordmill.reading.dataset import open_dataset
from recordmill.reading.verify_dataset import verify_dataset
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

SETTINGS = {
    "source.kind": "yolo",
    "convention": "tf_object_detection",
    "splits.fractions": {"train": 1.0},
    "images.check": "header",
}


@pytest.fixture
def ships(tmp_path):
    """`ships({"a": "0 0.5 0.5 0.1 0.1"}, names)`: a collection in YOLO's layout."""

    def write(texts, names="names: [ship, boat]\n"):
        root = tmp_path / "ships"
        for folder in ("images", "labels"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (root / "images" / f"{name}.jpg").write_bytes(encode_picture(name))
            (root / "labels" / f"{name}.txt").write_text(text, encoding="utf-8")
        if names:
            (root / "data.yaml").write_text(names, encoding="utf-8")
        return root

    return write


GOOD, UNKNOWN, OUTSIDE = "0 0.5 0.5 0.5 0.5\n", "7 0.5 0.5 0.5 0.5\n", "0 2.5 0.5 0.5 0.5\n"
NO_LIMITS = {"max_rejected.boxes": {"share": 1, "count": 1000}}


def test_a_run_that_loses_every_box_publishes_nothing(convert, ships):
    done = convert(
        ships({"a": GOOD + UNKNOWN, "b": GOOD}, names=""), settings={**SETTINGS, **NO_LIMITS}
    )
    assert (done.code, done.line["exit_code"], (done.output / "recordmill.json").exists()) == (
        3,
        3,
        False,
    )
    error, page, report = done.errors
    assert page == "docs/fix_rejected.md has a remedy for each reason"
    assert report == f"{done.staging[0]}/report.html shows what was converted"
    assert error.startswith(
        "all boxes of 2 classes (0, 7) were dropped (3 unknown_class: 0, 7), such as box 1 of 2 of "
        "images/a.jpg "
        "(class 0), which no limit allows: name such classes in data.yaml or source.names"
    )
    assert done.line["boxes"] == {"listed": 3, "unknown_class": 3}


def test_boxes_of_images_without_a_split_are_in_the_ledger(convert, ships):
    root = ships({"a": GOOD, "b": GOOD * 2})
    (root / "images/train").mkdir()
    (root / "labels/train").mkdir()
    for name in ("images/a.jpg", "labels/a.txt"):
        (root / name).rename(root / f"{name.partition('/')[0]}/train/{name.partition('/')[2]}")
    settings = {name: value for name, value in SETTINGS.items() if name != "splits.fractions"}
    done = convert(root, settings={**settings, "splits.from_source": {"train": "train"}})
    assert (done.code, done.marker["ledger"]["rejected"]) == (0, {"no_split": 1})
    assert counts_of(done.marker, "boxes") == {"listed": 3, "with_rejected_images": 2, "written": 1}


def test_a_number_without_a_name_is_a_class_of_its_own_and_never_lost(convert, ships):
    root = ships({"a": GOOD * 5 + UNKNOWN, "b": GOOD})
    done = convert(root, settings={**SETTINGS, **NO_LIMITS})
    assert done.code == 3
    assert done.errors[0].startswith(
        "all boxes of 1 class (7) were dropped (1 unknown_class: 7), such as box 6 of 6"
    )
    chosen = convert(root, settings={**SETTINGS, "labels.classes": ["ship"]})
    assert (chosen.code, counts_of(chosen.marker, "boxes")) == (
        0,
        {"listed": 7, "unknown_class": 1, "written": 6},
    )


def test_names_chosen_from_nothing_leave_no_box_out(convert, ships):
    done = convert(
        ships({"a": GOOD, "b": GOOD}, names=""), settings={**SETTINGS, "labels.classes": ["ship"]}
    )
    assert (done.code, done.errors[0][:45]) == (3, "all boxes of 1 class (0) were dropped (2 unkn")


def test_faulty_boxes_over_both_limits_fail_and_a_higher_limit_goes_on(convert, ships):
    root = ships({"a": GOOD * 5 + OUTSIDE * 2, "b": GOOD})
    done = convert(root, settings={**SETTINGS, "max_rejected.boxes.count": 1})
    assert done.code == 3
    assert done.errors[0].startswith(
        "2 of 8 boxes (25.00%) were dropped (2 outside: ship), such as box 6 of 7 of images/a.jpg "
        "(class ship), which is over "
        "max_rejected.boxes.count (1) and max_rejected.boxes.share (1.00%); correct such boxes, or "
        "add --set max_rejected.boxes.count=2 to do without them"
    )
    allowed = convert(root, settings={**SETTINGS, "max_rejected.boxes.count": 2})
    assert (allowed.code, allowed.marker["run"]["shards_reused"]) == (0, 1)
    assert counts_of(allowed.marker, "boxes") == {"listed": 8, "outside": 2, "written": 6}
    assert allowed.marker["plan"]["id"] == done.line["plan_id"]


@pytest.mark.parametrize(
    ("texts", "names"),
    [({"a": GOOD + UNKNOWN, "b": UNKNOWN}, "names: [ship]"), ({"a": GOOD, "b": UNKNOWN}, "")],
)
def test_a_plan_foresees_boxes_of_unknown_classes_as_the_run_finds_them(
    convert, ships, texts, names
):
    root = ships(texts, names)
    planned = convert(root, "--plan", settings=SETTINGS)
    assert (planned.code, planned.line["status"], planned.output.exists()) == (3, "planned", False)
    done = convert(root, settings=SETTINGS)
    assert done.code == 3
    *lines, report = done.line["message"].splitlines()
    assert report == f"{done.staging[0]}/report.html shows what was converted"
    expected = re.sub(r", such as box .*?\)", "", "\n".join(lines))
    assert planned.line["message"] == f"this run would fail: {expected}"


def test_a_plan_foresees_no_loss_of_classes_that_are_not_chosen(convert, ships):
    root = ships({"a": GOOD + "1 0.5 0.5 0.5 0.5\n"})
    assert convert(root, "--plan", settings={**SETTINGS, "labels.classes": ["ship"]}).code == 0


@pytest.fixture
def pets(tmp_path):
    """`pets([[18], [77, 18]])`: a collection in COCO's layout; for each image the categories of its
    boxes."""

    def write(categories):
        root = tmp_path / "pets"
        for folder in ("annotations", "train"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        images, boxes = [], []
        for number, own in enumerate(categories):
            (root / "train" / f"{number}.jpg").write_bytes(encode_picture(str(number)))
            images.append({"id": number, "file_name": f"{number}.jpg"})
            boxes += [
                {"image_id": number, "category_id": each, "bbox": [1, 1, 4, 4]} for each in own
            ]
        annotations = [{"id": number, **box} for number, box in enumerate(boxes)]
        data = {
            "images": images,
            "annotations": annotations,
            "categories": [{"id": 18, "name": "dog"}],
        }
        (root / "annotations" / "instances_train2017.json").write_text(
            json.dumps(data), encoding="utf-8"
        )
        return root

    return write


OF_COCO = {**SETTINGS, "source.kind": "coco"}


def test_boxes_of_categories_that_a_coco_file_does_not_list_are_lost_boxes(convert, pets):
    done = convert(pets([[77], [0, 77], []]), settings={**OF_COCO, **NO_LIMITS})
    assert (done.code, done.line["boxes"]) == (3, {"listed": 3, "unknown_class": 3})
    assert done.errors[0].startswith(
        "all boxes of 2 classes (0, 77) were dropped (3 unknown_class: 77, 0), such as box 1 of 1 "
        "of train/0.jpg "
        "(class 77), which no limit allows: name such classes in the categories of the annotations"
    )
    root = pets([[18], [18, 77], [77], []])
    done = convert(root, settings={**OF_COCO, **NO_LIMITS})
    assert (done.code, done.line["boxes"]) == (3, {"listed": 4, "unknown_class": 2, "written": 2})
    assert done.errors[0].startswith(
        "all boxes of 1 class (77) were dropped (2 unknown_class: 77), such as box 2 of 2"
    )
    chosen = convert(root, settings={**OF_COCO, "labels.classes": ["dog"]})
    assert (chosen.code, counts_of(chosen.marker, "boxes")) == (
        0,
        {"listed": 4, "unknown_class": 2, "written": 2},
    )
    causes = "1 has an annotation without objects, 1 lost all boxes (unknown_class: 77)"
    assert f"2 images have no box: {causes}." in chosen.marker["remarks"]


TAGS = {
    "source": {"kind": "manifest", "columns": {"uri": "path", "labels": "tags"}},
    "splits.fractions": {"train": 1.0},
    "labels.ids": "integers",
    "max_rejected.count": 5,
    "convention": {"features": {
        "encoded": {"field": "encoded", "type": "bytes"},
        "labels": {"field": "labels", "type": "int64", "shape": [None]},
    }},
}  # fmt: skip


def test_labels_without_an_id_fail_a_run_by_a_limit_of_their_own(convert, tmp_path):
    root = tmp_path / "tagged"
    root.mkdir()
    tags = {"a": "1|2", "b": "2", "c": "1|red|blue|green"}
    for name in tags:
        (root / f"{name}.jpg").write_bytes(encode_picture(name))
    rows = "".join(f"{name}.jpg,{words}\n" for name, words in tags.items())
    (root / "list.csv").write_text(f"path,tags\n{rows}", encoding="utf-8")
    done = convert(root, settings={**TAGS, "max_rejected.labels.count": 2})
    assert done.code == 3
    assert done.errors[0].startswith(
        "3 of 6 labels (50.00%) were without an id (unknown_label), such as c.jpg (the label "
        "'red' is not one of the classes), "
        "which is over max_rejected.labels.count (2) and max_rejected.labels.share (1.00%); "
        "set labels.ids=names, or add --set max_rejected.labels.count=3 to do without them"
    )
    allowed = convert(root, settings={**TAGS, "max_rejected.labels.count": 3})
    assert allowed.code == 0
    assert counts_of(allowed.marker, "labels") == {
        "listed": 7, "unknown_label": 3, "with_rejected_images": 1, "written": 3
    }  # fmt: skip


def test_boxes_of_text_files_without_an_image_are_lost(convert, ships, tmp_path):
    root = ships({"a": GOOD * 5, "b": GOOD, "gone": GOOD + GOOD.replace("0 ", "1 ", 1)})
    (root / "images/gone.jpg").unlink()
    (root / "labels/blank.txt").write_text("\n")
    (root / "labels/classes.txt").write_text("ship\nboat\n")
    (root / "labels/a.json").write_text("{}")
    done = convert(root, settings={**SETTINGS, **NO_LIMITS})
    assert (done.code, done.line["ledger"]["rejected"]) == (3, {"no_image": 1})
    assert done.line["boxes"] == {"listed": 8, "without_image": 2, "written": 6}
    assert done.errors[0].startswith(
        "all boxes of 1 class (boat) were dropped (2 without_image: boat, ship), such as box 1 of "
        "2 of labels/gone.txt (class ship), which no limit allows: add the missing images or "
        "correct their names, or add --set 'labels.classes=[ship]' to keep only the other classes"
    )
    settings = {**SETTINGS, "labels.classes": ["ship"]}
    chosen = convert(root, settings=settings)
    assert (chosen.code, chosen.marker["annotations"]["boxes"]["dropped_classes"]) == (
        0,
        {"without_image": {"boat": 1, "ship": 1}},
    )
    assert chosen.marker["ledger"]["ignored"] == {"class_names": 2, "read_only_with_images": 2}
    assert verify_dataset(open_dataset(str(chosen.output)), "files").findings == ()
    strict, other = {**settings, "max_rejected.boxes.count": 0}, tmp_path / "other"
    planned = convert(root, "--plan", output=other, settings=strict)
    over = convert(root, output=other, settings=strict)
    assert (planned.code, over.code) == (3, 3)
    assert "1 of 7 boxes (14.29%) was dropped (1 without_image: ship)" in planned.line["message"]
    assert over.errors[0].startswith(
        "1 of 7 boxes (14.29%) was dropped (1 without_image: ship), such as"
    )
    left_out = convert(
        root,
        "--overwrite",
        settings={**SETTINGS, "ignore": ["/labels/gone.txt"], "max_rejected.boxes.count": 0},
    )
    assert (left_out.code, counts_of(left_out.marker, "boxes")) == (0, {"listed": 6, "written": 6})


@pytest.mark.parametrize(
    ("image", "text", "place"),
    [
        ("d\u00e9cran 1.jpg", "d%C3%A9cran%201.txt", "labels"),
        ("e\u0301.jpg", "\u00e9.txt", "beside"),
        ("\u00e9.jpg", "e\u0301.txt", "labels"),
        ("IMG_1.JPG", "img_1.txt", "beside"),
        ("img_1.jpg", "IMG_1.TXT", "labels"),
    ],
)
def test_a_text_file_is_matched_to_its_image_in_spite_of_its_spelling(
    convert, ships, image, text, place
):
    root = ships({"b": GOOD})
    texts = root / ("images" if place == "beside" else "labels")
    (root / "labels/b.txt").rename(texts / "b.txt")
    (root / "images" / image).write_bytes(encode_picture("x"))
    (texts / text).write_text(GOOD * 3)
    done = convert(root, settings={**SETTINGS, "source.text_files": place})
    assert (done.code, counts_of(done.marker, "boxes")) == (0, {"listed": 4, "written": 4})
    assert done.marker["ledger"]["rejected"] == {}
    (note,) = (each for each in done.marker["notes"] if "named otherwise" in each)
    assert note.startswith("1 image is named otherwise in the annotations, such as ")


def test_a_text_file_that_two_images_may_mean_is_matched_to_none(convert, ships):
    root = ships({"b": GOOD * 99})
    for name in ("IMG.jpg", "Img.jpg"):
        (root / "images" / name).write_bytes(encode_picture(name))
    (root / "labels/img.txt").write_text(GOOD)
    done = convert(root, settings=SETTINGS)
    assert (done.code, counts_of(done.marker, "boxes")) == (
        0,
        {"listed": 100, "without_image": 1, "written": 99},
    )
    assert done.marker["ledger"]["rejected"] == {"no_image": 1}
    assert done.marker["annotations"]["boxes"]["images_without"]["no_file"] == 2


VOC = (
    "<annotation><filename>{}</filename><object><name>ship</name><bndbox><xmin>1</xmin>"
    "<ymin>2</ymin><xmax>9</xmax><ymax>8</ymax></bndbox></object></annotation>"
)


def test_boxes_of_xml_files_without_an_image_are_lost(convert, tmp_path):
    root = tmp_path / "xml"
    for folder in ("JPEGImages", "Annotations"):
        (root / folder).mkdir(parents=True)
    for name in "abc":
        (root / f"Annotations/{name}.xml").write_text(VOC.format(f"C:\\ships\\{name}.png"))
        if name != "c":
            (root / f"JPEGImages/{name}.jpg").write_bytes(encode_picture(name))
    settings = {
        "source.kind": "voc",
        "convention": "tf_object_detection",
        "splits.fractions": {"train": 1.0},
    }
    done = convert(root, settings=settings)
    assert (done.code, counts_of(done.marker, "boxes")) == (
        0,
        {"listed": 3, "without_image": 1, "written": 2},
    )
    assert any(each.startswith("2 images are named otherwise") for each in done.marker["notes"])
    strict = {**settings, "max_rejected.boxes.count": 0}
    over = convert(root, output=tmp_path / "other", settings=strict)
    assert (over.code, over.errors[0][:67]) == (
        3,
        "1 of 3 boxes (33.33%) was dropped (1 without_image: ship), such as ",
    )
