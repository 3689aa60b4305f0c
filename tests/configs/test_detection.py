"""One collection of images and boxes in whatever form gives the same Examples."""

import json

import pytest
from marker_counts import counts_of

import recordmill
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.outcome import DatasetNumbers

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

SIZES = {"a.jpg": (40, 20, 1), "b.jpg": (30, 60, 1), "c.jpg": (40, 20, 6), "d.jpg": (20, 20, 1)}
"""Width, height and orientation; c is 20 x 40 as people see it."""

BOXES = {
    "a.jpg": [("cat", (0, 0, 10, 10)), ("dog", (10, 5, 40, 20))],
    "b.jpg": [("dog", (3, 6, 27, 54))],
    "c.jpg": [("cat", (5, 10, 15, 40))],
    "d.jpg": [],
}
EXPECTED = {  # ymin, xmin, ymax, xmax of each, in fractions of the upright image
    "a.jpg": [(0, 0, 0.5, 0.25), (0.25, 0.25, 1, 1)],
    "b.jpg": [(0.1, 0.1, 0.9, 0.9)],
    "c.jpg": [(0.25, 0.25, 1, 0.75)],
    "d.jpg": [],
}


def shown(name):
    width, height, orientation = SIZES[name]
    return (height, width) if orientation > 4 else (width, height)


def write(folder, path, data):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(data if isinstance(data, bytes) else data.encode())


def write_coco(folder, picture):
    for split, names in (("train", ["a.jpg", "b.jpg", "c.jpg"]), ("val", ["d.jpg"])):
        images, annotations = [], []
        for name in names:
            write(folder, f"{split}/{name}", picture(name, SIZES[name][:2], SIZES[name][2]))
            width, height = shown(name)
            images.append({"id": name, "file_name": name, "width": width, "height": height})
            for label, (left, top, right, bottom) in BOXES[name]:
                box = [left, top, right - left, bottom - top]
                category = {"cat": 1, "dog": 2}[label]
                annotations.append(
                    {
                        "id": len(annotations),
                        "image_id": name,
                        "category_id": category,
                        "bbox": box,
                        "iscrowd": 0,
                    }
                )
        categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
        text = json.dumps({"images": images, "annotations": annotations, "categories": categories})
        write(folder, f"annotations/instances_{split}2017.json", text)
    return folder


def write_voc(folder, picture):
    for name, (width, height, orientation) in SIZES.items():
        write(folder, f"JPEGImages/{name}", picture(name, (width, height), orientation))
        objects = "".join(
            f"<object><name>{label}</name><bndbox><xmin>{left}</xmin><ymin>{top}</ymin>"
            f"<xmax>{right}</xmax><ymax>{bottom}</ymax></bndbox></object>"
            for label, (left, top, right, bottom) in BOXES[name]
        )
        size = "<size><width>{}</width><height>{}</height></size>".format(*shown(name))
        text = f"<annotation><filename>{name}</filename>{size}{objects}</annotation>"
        write(folder, f"Annotations/{name[0]}.xml", text)
    return folder


def write_yolo(folder, picture):
    write(folder, "data.yaml", "names: [cat, dog]")
    for name, (width, height, orientation) in SIZES.items():
        split = "val" if name == "d.jpg" else "train"
        write(folder, f"images/{split}/{name}", picture(name, (width, height), orientation))
        width, height = shown(name)
        lines = (
            f"{['cat', 'dog'].index(label)} {(left + right) / 2 / width} "
            f"{(top + bottom) / 2 / height}"
            f" {(right - left) / width} {(bottom - top) / height}\n"
            for label, (left, top, right, bottom) in BOXES[name]
        )
        write(folder, f"labels/{split}/{name[0]}.txt", "".join(lines))
    return folder


def write_labelme(folder, picture):
    for name, (width, height, orientation) in SIZES.items():
        write(folder, f"street/{name}", picture(name, (width, height), orientation))
        width, height = shown(name)
        shapes = [
            {
                "label": label,
                "points": [[right, top], [left, bottom]],
                "shape_type": "rectangle",
                "group_id": None,
            }
            for label, (left, top, right, bottom) in BOXES[name]
        ]
        said = {
            "version": "7.1.0",
            "imagePath": name,
            "imageData": "QUJD",
            "imageWidth": width,
            "imageHeight": height,
        }
        write(folder, f"street/{name[0]}.json", json.dumps({**said, "shapes": shapes}))
    return folder


def write_boxes_csv(folder, picture):
    """Rows of one image do not follow each other."""
    rows = ["filename,width,height,class,xmin,ymin,xmax,ymax"]
    for index in range(2):
        for name, boxes in BOXES.items():
            size = ",".join(map(str, shown(name)))
            rows += [
                f"{name},{size},{label},{','.join(map(str, sides))}"
                for label, sides in boxes[index : index + 1]
            ]
    for name, (width, height, orientation) in SIZES.items():
        write(folder, name, picture(name, (width, height), orientation))
    write(folder, "_annotations.csv", "\n".join([*rows, "d.jpg,20,20,,,,,"]))
    return folder


def write_retinanet(folder, picture):
    rows = [
        f"{name},{','.join(map(str, sides))},{label}"
        for name, boxes in BOXES.items()
        for label, sides in boxes
    ]
    for name, (width, height, orientation) in SIZES.items():
        write(folder, name, picture(name, (width, height), orientation))
    write(folder, "annotations.csv", "\n".join([*rows, "d.jpg,,,,,"]))
    return folder


@pytest.mark.parametrize(
    ("config", "write_collection", "splits", "ignored", "files"),
    [
        ("coco.yaml", write_coco, {"train": 3, "validation": 1}, {}, 2),
        ("boxes_csv.yaml", write_boxes_csv, None, {}, 1),
        ("retinanet.yaml", write_retinanet, None, {}, 1),
        ("labelme.yaml", write_labelme, None, {}, 4),
        ("voc.yaml", write_voc, None, {}, 4),
        ("yolo.yaml", write_yolo, {"train": 3, "validation": 1}, {"class_names": 1}, None),
    ],
)
def test_every_form_gives_the_same_boxes(
    config, write_collection, splits, ignored, files, tmp_path, picture, convert
):
    marker, examples = convert(config, write_collection(tmp_path / "collection", picture))
    if splits:
        assert {split: len(found) for split, found in examples.items()} == splits
    assert marker["labels"] == {"cat": 1, "dog": 2}
    assert counts_of(marker, "boxes") == {"listed": 4, "written": 4}
    counted = [split.get("instances", split["classes"]) for split in marker["splits"].values()]
    assert {
        name: sum(counts.get(name, 0) for counts in counted) for name in ("cat", "dog", "")
    } == {
        "cat": 2,
        "dog": 2,
        "": 0,
    }
    assert (marker["ledger"]["written"], marker["ledger"]["ignored"]) == (4, ignored)
    assert marker["ledger"]["listed"] == 4 + sum(ignored.values())
    assert marker.get("named", {}) == ({} if files is None else {"images": 4, "files": files})
    found = {
        each["image/filename"][0].decode(): each for part in examples.values() for each in part
    }
    assert set(found) == set(SIZES)
    for name, example in found.items():
        width, height = shown(name)
        assert (example["image/width"], example["image/height"]) == ([width], [height])
        bbox = [example[f"image/object/bbox/{side}"] for side in ("ymin", "xmin", "ymax", "xmax")]
        assert list(zip(*bbox, strict=True)) == [
            pytest.approx(box, abs=1e-6) for box in EXPECTED[name]
        ]
        texts = [label.encode() for label, _ in BOXES[name]]
        assert example["image/object/class/text"] == texts
        assert example["image/object/class/label"] == [
            {b"cat": 1, b"dog": 2}[text] for text in texts
        ]
        if SIZES[name][2] == 1:
            assert example["image/encoded"] == [picture(name, SIZES[name][:2])]


def test_images_without_annotation_are_counted_separately(tmp_path, picture, convert, monkeypatch):
    folder = write_voc(tmp_path / "collection", picture)
    for name in ("new.jpg", "sub/new.PNG"):
        write(folder, f"JPEGImages/{name}", picture(name))
    write(folder, "README.md", "Photographs\n")
    monkeypatch.chdir(tmp_path)  # annotations and a listing may spell one path in two ways
    marker, _ = convert("voc.yaml", "./collection")
    ignored = {"description": 1, "without_annotation": 2}
    assert marker["ledger"] == {
        "listed": 7,
        "written": 4,
        "rejected": {},
        "ignored": ignored,
        "left_out": {},
    }
    assert marker["named"] == {"images": 4, "files": 4}
    assert "2 images have no usable annotation, and are ignored" in marker["notes"]


def test_names_on_vocs_lists_are_those_of_images(tmp_path, picture, convert):
    folder = write_voc(tmp_path / "collection", picture)
    write(folder, "ImageSets/Main/train.txt", "\ufeffa\r\nb.jpg\r\n")
    write(folder, "ImageSets/Main/val.txt", "c.JPG\nx.jpg\ny\n")
    write(folder, "Annotations/e.xml", "")
    write(folder, "JPEGImages/e.jpg", picture("e"))
    sets = ["source.sets=ImageSets/Main", "splits.from_source={train: train, val: validation}"]
    marker, examples = convert("voc.yaml", folder, *(f"--set={each}" for each in sets))
    names = {
        split: sorted(each["image/filename"][0] for each in found)
        for split, found in examples.items()
    }
    assert names == {"train": [b"a.jpg", b"b.jpg"], "validation": [b"c.jpg"]}
    assert marker["ledger"] == {
        "listed": 7,
        "written": 3,
        "rejected": {},
        "ignored": {"in_no_set": 2, "without_annotation": 2},
        "left_out": {},
    }
    assert [note for note in marker["notes"] if "match" in note or "ignored" in note] == [
        "ImageSets/Main/val.txt: no XML file matches 2 names in it, such as 'x.jpg': "
        "correct the list, or leave it out with --set 'ignore=[\"/ImageSets/Main/val.txt\"]'",
        "2 images have no usable annotation, and are ignored",
    ]


def test_a_list_of_other_names_is_refused(tmp_path, picture, convert, capsys):
    folder = write_voc(tmp_path / "collection", picture)
    write(folder, "ImageSets/Main/train.txt", "a\nb\nc")
    write(folder, "ImageSets/Main/val.txt", "d.x\n")
    flags = [f"--input={folder}", f"--output={tmp_path / 'output'}"]
    assert launch(flags, build) == 1
    problem = (
        "no XML file matches 1 name in it, such as 'd.x': correct the list, or leave it out with "
        "--set 'ignore=[\"/ImageSets/Main/val.txt\"]'"
    )
    assert f"error: {folder}/ImageSets/Main/val.txt: {problem}\n" in capsys.readouterr().err
    assert launch([*flags, '--set=ignore=["/ImageSets/Main/val.txt"]'], build) == 0
    assert "note: 1 image has no usable annotation, and is ignored\n" in capsys.readouterr().err


def test_yolo_text_files_without_an_image_are_counted_separately(tmp_path, picture, convert):
    folder = write_yolo(tmp_path / "collection", picture)
    write(folder, "labels/train/gone.txt", "0 0.5 0.5 0.1 0.1\n")
    write(folder, "labels/train/blank.txt", "")
    marker, _ = convert("yolo.yaml", folder)
    assert marker["ledger"]["ignored"] == {"class_names": 1, "read_only_with_images": 1}
    assert marker["ledger"]["rejected"] == {"no_image": 1}
    assert marker["annotations"]["boxes"]["dropped"]["without_image"] == 1
    assert marker["annotations"]["boxes"]["dropped_classes"] == {"without_image": {"cat": 1}}


def test_the_number_of_classes_is_the_same_everywhere(tmp_path, picture, convert):
    folder = write_coco(tmp_path / "collection", picture)
    path = folder / "annotations/instances_train2017.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    data["categories"].append({"id": 3, "name": "emu"})
    path.write_text(json.dumps(data), encoding="utf-8")
    marker, _ = convert("coco.yaml", folder)
    output = tmp_path / "dataset-of-coco.yaml"
    page = (output / "report.html").read_text(encoding="utf-8")
    card = (output / "README.md").read_text(encoding="utf-8")
    assert (len(marker["labels"]), DatasetNumbers.of(Marker.from_json(marker)).classes) == (3, 3)
    assert ("4 images in 3 classes" in card, "4 images in 3 classes" in page) == (True, True)
    assert "1 of 3 classes has no box at all: emu." in marker["remarks"]


def test_a_convention_without_boxes_is_reported(tmp_path, picture, convert):
    marker, _ = convert(
        "voc.yaml", write_voc(tmp_path / "collection", picture), "--set", "convention=default"
    )
    assert [
        note
        for note in marker["notes"]
        if note.startswith("4 boxes are in no Example: the convention (")
    ]
    for convention in ("tfds", "tf_object_detection"):
        marker, _ = convert(
            "voc.yaml", tmp_path / "collection", "--set", f"convention={convention}", "--overwrite"
        )
        assert not [note for note in marker["notes"] if "boxes" in note]


def test_boxes_of_tfrecords_need_a_configured_convention(tmp_path, picture, convert, capsys):
    convert("voc.yaml", write_voc(tmp_path / "collection", picture))
    first, again = tmp_path / "dataset-of-voc.yaml", tmp_path / "again"
    flags = [f"--input={first}", f"--output={again}"]
    assert launch(flags, build) == 1
    problem = "convention is not set: the input has 4 boxes, and the default convention stores none"
    assert f"error: {problem}: add --set convention=" in capsys.readouterr().err
    with pytest.raises(recordmill.ConversionError) as raised:
        recordmill.convert(first, again, quiet=True)
    assert str(raised.value) == (
        f"{problem}: add convention=tf_object_detection or convention=tfds; convention=default "
        "leaves the boxes out"
    )
    assert launch([*flags, "--set=convention=default"], build) == 0
    assert "4 boxes are in no Example" in capsys.readouterr().err
    assert launch([*flags, "--set=convention=tfds", "--overwrite"], build) == 0
    assert (
        json.loads((again / "recordmill.json").read_bytes())["annotations"]["boxes"]["written"] == 4
    )


def test_boxes_that_stick_out_or_are_of_no_class_are_counted(tmp_path, picture, convert):
    folder = write_yolo(tmp_path / "collection", picture)
    polygon, pose = "1 0.1 0.2 0.4 0.1 0.3 0.6", "0 0.5 0.5 0.5 0.5 0.3 0.4 2 0.6 0.6 1 0 0 0"
    lines = ["0 0.9 0.5 0.4 0.4", "7 0.5 0.5 0.1 0.1", "1 0.5 0.5 0 0.1", pose, polygon]
    write(folder, "labels/train/a.txt", "\n".join(lines))
    write(folder, "labels/val/d.txt", "0 0.5 0.5\n")
    settings = [
        "splits.from_source={train: train}",
        "max_rejected.count=9",
        "labels.classes=[cat, dog]",
    ]
    marker, examples = convert("yolo.yaml", folder, *(f"--set={each}" for each in settings))
    assert counts_of(marker, "boxes") == {
        "clipped": 1,
        "empty": 1,
        "enclosed": 1,
        "listed": 7,
        "unknown_class": 1,
        "written": 5,
    }
    assert marker["ledger"]["rejected"] == {"bad_annotations": 1}
    (a,) = (each for each in examples["train"] if each["image/filename"] == [b"a.jpg"])
    assert a["image/object/bbox/xmax"] == pytest.approx([1.0, 0.75, 0.4])
    assert a["image/object/bbox/ymax"] == pytest.approx([0.7, 0.75, 0.6])
    assert a["image/object/class/text"] == [b"cat", b"cat", b"dog"]


def test_images_without_a_box_are_counted_by_cause(tmp_path, picture, convert):
    folder = write_yolo(tmp_path / "collection", picture)
    (folder / "labels/train/a.txt").unlink()
    write(folder, "labels/train/b.txt", "7 0.5 0.5 0.1 0.1\n0 2 0.5 0.1 0.1\n7 0.5 0.5 0.1 0.1\n")
    marker, _ = convert("yolo.yaml", folder, "--set=labels.classes=[cat, dog]")
    assert counts_of(marker, "boxes") == {
        "listed": 4,
        "outside": 1,
        "unknown_class": 2,
        "written": 1,
    }
    assert marker["annotations"]["boxes"]["dropped_classes"] == {
        "outside": {"cat": 1},
        "unknown_class": {"7": 2},
    }
    assert marker["annotations"]["boxes"]["images_without"] == {
        "no_file": 1,  # a
        "no_objects": 1,  # d
        "all_dropped": 1,  # b
        "dropped": {"outside": {"cat": 1}, "unknown_class": {"7": 2}},
    }
    card = (tmp_path / "dataset-of-yolo.yaml" / "README.md").read_text(encoding="utf-8")
    why = "1 has no annotation file, 1 has an annotation without objects, 1 lost all boxes"
    assert f"3 images have no box: {why} (unknown\\_class: 7; outside: cat)." in card


def test_labelme_shapes_move_with_resized_pixels_and_are_counted(tmp_path, picture, convert):
    folder = write_labelme(tmp_path / "collection", picture)

    def annotate(name, shapes, **more):
        shapes = [{"label": "dog", "points": points, "shape_type": kind} for kind, points in shapes]
        write(
            folder,
            f"street/{name}.json",
            json.dumps({"shapes": shapes, "imagePath": f"{name}.jpg", **more}),
        )

    shapes = [("polygon", [[10, 20], [40, 5], [25, 12]]), ("circle", [[38, 10], [38, 14]])]
    annotate(
        "a",
        [*shapes, ("point", [[3, 3]]), ("mask", [[0, 0], [9, 9]]), ("line", [[50, 1], [60, 9]])],
    )
    annotate("b", [], imageWidth=31, imageHeight=60)
    annotate("lost", [])
    write(folder, "street/d.json", '{"shapes": [')
    settings = [
        "images.resize={exact: [20, 80], fit: pad}",
        "max_rejected.count=9",
        "splits.fractions={train: 1.0}",
    ]
    marker, examples = convert("labelme.yaml", folder, *(f"--set={each}" for each in settings))
    assert counts_of(marker, "boxes") == {
        "clipped": 1,
        "empty": 1,
        "listed": 6,
        "outside": 1,
        "written": 4,
    }
    assert marker["ledger"]["rejected"] == {"bad_annotations": 1, "size_mismatch": 1, "vanished": 1}
    assert marker["ledger"]["ignored"] == {"without_annotation": 1}
    assert "1 image has no usable annotation, and is ignored" in marker["notes"]
    found = {each["image/filename"][0]: each for each in examples["train"]}
    assert set(found) == {b"a.jpg", b"c.jpg"}
    a = found[b"a.jpg"]
    assert (a["image/width"], a["image/height"]) == ([80], [20])
    bbox = [a[f"image/object/bbox/{side}"] for side in ("ymin", "xmin", "ymax", "xmax")]
    polygon, circle, mask = (0.25, 0.375, 1, 0.75), (0.3, 0.675, 0.7, 0.75), (0, 0.25, 0.5, 0.375)
    assert list(zip(*bbox, strict=True)) == [
        pytest.approx(box, abs=1e-6) for box in (polygon, circle, mask)
    ]


def test_each_row_with_a_box_is_checked_against_its_image_and_a_bad_row_rejects_it(
    tmp_path, picture, convert
):
    folder = write_boxes_csv(tmp_path / "collection", picture)
    text = (folder / "_annotations.csv").read_text(encoding="utf-8")
    text = text.replace("b.jpg,30,60,", "b.jpg,31,60,").replace(
        "c.jpg,20,40,cat,5,", "c.jpg,20,40,cat,five,"
    )
    write(folder, "_annotations.csv", text)
    settings = ["splits.fractions={train: 1.0}", "max_rejected.count=9"]
    marker, examples = convert("boxes_csv.yaml", folder, *(f"--set={each}" for each in settings))
    assert marker["ledger"]["rejected"] == {"bad_row": 1, "size_mismatch": 1}
    assert counts_of(marker, "boxes") == {"listed": 3, "with_rejected_images": 1, "written": 2}
    assert {each["image/filename"][0] for each in examples["train"]} == {b"a.jpg", b"d.jpg"}


def test_two_labelme_files_of_one_image_are_refused(tmp_path, picture, convert):
    folder = write_labelme(tmp_path / "collection", picture)
    write(folder, "again/a.json", json.dumps({"shapes": [], "imagePath": "../street/a.jpg"}))
    with pytest.raises(AssertionError, match=r"the image 'street/a.jpg' is listed twice"):
        convert("labelme.yaml", folder)
