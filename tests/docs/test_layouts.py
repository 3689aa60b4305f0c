"""Every row of docs/layouts.md, made small and converted in one try with what the row says."""

import io
import json
import random
import re
import shlex
import struct
from pathlib import Path

import golden_inputs as of
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from marker_counts import counts_of
from packed_inputs import packed
from PIL import Image

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


VOC_CLASSES = [
    *("background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair"),
    *("cow", "diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa"),
    *("train", "tvmonitor"),
]


def encode_picture(seed):
    """A JPEG of 24 x 16 pixels, another one for each seed."""
    stream = io.BytesIO()
    Image.frombytes("RGB", (6, 4), random.Random(seed).randbytes(72)).resize((24, 16)).save(
        stream, "JPEG"
    )
    return stream.getvalue()


def encode_segments():
    """A PNG of 24 x 16 pixels, all of them of the segment 1."""
    stream = io.BytesIO()
    Image.new("RGB", (24, 16), (1, 0, 0)).save(stream, "PNG")
    return stream.getvalue()


SEGMENTS = encode_segments()
PAGE = (Path(__file__).parents[2] / "docs/layouts.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| ([^|`]+) \| [^|]+ \| `(--[^|]+)` \|$", PAGE, re.MULTILINE))
BOX = "0 0.5 0.5 0.5 0.5\n"
VOC = (
    "<annotation><folder>x</folder><filename>{}</filename><size><width>24</width><height>16</height></size><object>"
    "<name>cat</name><bndbox><xmin>6</xmin><ymin>4</ymin><xmax>18</xmax><ymax>12</ymax></bndbox></object></annotation>"
)
SIDES = "filename,width,height,class,xmin,ymin,xmax,ymax\n"
LABELME = {
    "version": "5.0.1",
    "flags": {},
    "shapes": [{"label": "cat", "points": [[6, 4], [18, 12]], "shape_type": "rectangle"}],
    "imageWidth": 24,
    "imageHeight": 16,
}


def coco(*names):
    images = [
        {"id": number, "file_name": name, "width": 24, "height": 16}
        for number, name in enumerate(names, 1)
    ]
    annotations = [
        {"id": each["id"], "image_id": each["id"], "category_id": 1, "bbox": [6, 4, 12, 8]}
        for each in images
    ]
    return json.dumps(
        {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "cat"}]}
    )


def panoptic(stem):
    segment = {"id": 1, "category_id": 7, "bbox": [6, 4, 12, 8], "area": 96, "iscrowd": 0}
    annotation = {"image_id": 1, "file_name": f"{stem}.png", "segments_info": [segment]}
    return json.dumps(
        {
            "images": [{"id": 1, "file_name": f"{stem}.jpg", "width": 24, "height": 16}],
            "annotations": [annotation],
            "categories": [{"id": 7, "name": "cat", "isthing": 1}],
        }
    )


def label_studio_task(name):
    value = {"x": 25, "y": 25, "width": 50, "height": 50, "rotation": 0}
    region = {
        "original_width": 24,
        "original_height": 16,
        "type": "rectanglelabels",
        "value": value | {"rectanglelabels": ["cat"]},
    }
    return {"data": {"image": name}, "annotations": [{"result": [region]}]}


def images(*paths):
    return {path: encode_picture(path) for path in paths}


def idx(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def parquet(rows):
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), stream)
    return stream.getvalue()


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


GRAY = np.arange(2 * 4 * 4, dtype=np.uint8).reshape(2, 4, 4)
TWO = np.array([0, 1], np.uint8)
NAMES = "names: [cat]\n"
SPLITS = ("train", "valid", "test")

CLASSES = {"cat": 0, "dog": 1}
MADE = {
    "class folders": (images("cat/1.jpg", "cat/2.jpg", "dog/3.jpg"), None, CLASSES),
    "split folders around class folders (ImageNet, torchvision)": (
        images("train/cat/1.jpg", "train/dog/1.jpg", "val/cat/2.jpg"),
        {"train": 2, "validation": 1},
        CLASSES,
    ),
    "images without labels": (images("a.jpg", "b.jpg", "c.jpg"), None, {}),
    "labels in names": (
        images("img_001_3.jpg", "img_002_3.jpg", "img_003_7.jpg"),
        None,
        {"3": 3, "7": 7},
    ),
    "a CSV of paths and classes": (
        {
            **images("images/1.jpg", "images/2.jpg"),
            "list.csv": "path,class\nimages/1.jpg,cat\nimages/2.jpg,dog\n",
        },
        None,
        CLASSES,
    ),
    "Kaggle: a CSV of ids and classes": (
        {
            **images("train/1.jpg", "train/2.jpg", "test/3.jpg"),
            "train.csv": "id,label\n1,cat\n2,dog\n",
            "test.csv": "id\n3\n",
            "sample_submission.csv": "id,label\n3,cat\n",
        },
        None,
        CLASSES,
    ),
    "one table and folder per split": (
        {
            **images("train/1.jpg", "train/2.jpg", "val/1.jpg"),
            "train.csv": "id,label\n1,cat\n2,dog\n",
            "val.csv": "id,label\n1,cat\n",
        },
        {"train": 2, "validation": 1},
        CLASSES,
    ),
    "pandas: a CSV with an index": (
        {
            **images("images/1.jpg", "images/2.jpg"),
            "list.csv": ",path,class\n0,images/1.jpg,cat\n1,images/2.jpg,dog\n",
        },
        None,
        CLASSES,
    ),
    "Open Images: boxes": (
        {
            **images("train/1.jpg", "train/2.jpg"),
            "class-descriptions-boxable.csv": "/m/01yrx,Cat\n",
            "train-annotations-bbox.csv": "ImageID,LabelName,XMin,XMax,YMin,YMax\n"
            "1,/m/01yrx,0.25,0.75,0.25,0.75\n2,/m/01yrx,0.25,0.75,0.25,0.75\n",
        },
        {"train": 2},
        {"Cat": 1},
    ),
    "Kaggle: a CSV of file names and classes": (
        {
            **images("train_images/1.jpg", "train_images/2.jpg", "test_images/3.jpg"),
            "train.csv": "image_id,label\n1.jpg,cat\n2.jpg,dog\n",
            "sample_submission.csv": "image_id,label\n3.jpg,cat\n",
        },
        None,
        CLASSES,
    ),
    "one table per split": (
        {
            **images("images/1.jpg", "images/2.jpg"),
            "train.csv": "path,class\nimages/1.jpg,cat\n",
            "val.csv": "path,class\nimages/2.jpg,dog\n",
        },
        {"train": 1, "validation": 1},
        CLASSES,
    ),
    "Hugging Face: imagefolder": (
        {
            **images("train/1.jpg", "test/2.jpg"),
            "train/metadata.csv": "file_name,text\n1.jpg,a cat\n",
            "test/metadata.csv": "file_name,text\n2.jpg,a dog\n",
        },
        {"train": 1, "test": 1},
        {},
    ),
    "Hugging Face: Parquet": (
        {
            "train.parquet": parquet(
                [
                    {"image": {"bytes": encode_picture(label), "path": None}, "label": label}
                    for label in CLASSES
                ]
            )
        },
        None,
        CLASSES,
    ),
    "an archive of class folders": (
        {"photos.zip": packed(images("photos/cat/1.jpg", "photos/dog/2.jpg"), ".zip")},
        None,
        CLASSES,
    ),
    "WebDataset": (
        {
            f"{word}-000.tar": packed({"0.jpg": encode_picture(word), "0.cls": b"7"}, ".tar")
            for word in ("train", "val")
        },
        {"train": 1, "validation": 1},
        {"7": 7},
    ),
    "MNIST": (
        {
            f"{word}-{name}": idx(array)
            for word in ("train", "t10k")
            for name, array in (("images-idx3-ubyte", GRAY), ("labels-idx1-ubyte", TWO))
        },
        {"train": 2, "test": 2},
        {"0": 0, "1": 1},
    ),
    "CIFAR-10, binary version": (
        {
            "data_batch_1.bin": b"".join(
                bytes([label]) + bytes([9 + label]) * 3072 for label in (0, 1)
            ),
            "test_batch.bin": bytes([1]) + bytes(3072),
            "batches.meta.txt": "cat\ndog\n",
        },
        {"train": 2, "test": 1},
        CLASSES,
    ),
    "numpy": (
        {"mnist.npz": npz(x_train=GRAY, y_train=TWO, x_test=GRAY[:1], y_test=TWO[:1])},
        {"train": 2, "test": 1},
        {"0": 0, "1": 1},
    ),
    "Roboflow: YOLO": (
        {
            **images(*(f"{word}/images/{word}.jpg" for word in SPLITS)),
            **{f"{word}/labels/{word}.txt": BOX for word in SPLITS},
            "data.yaml": f"train: ../train/images\nval: ../valid/images\nnc: 1\n{NAMES}",
            "README.roboflow.txt": "x",
        },
        {"train": 1, "validation": 1, "test": 1},
        {"cat": 1},
    ),
    "Roboflow: COCO": (
        {
            **images(*(f"{word}/{word}.jpg" for word in SPLITS)),
            **{f"{word}/_annotations.coco.json": coco(f"{word}.jpg") for word in SPLITS},
            "README.dataset.txt": "x",
        },
        {"train": 1, "validation": 1, "test": 1},
        {"cat": 1},
    ),
    "Roboflow: Pascal VOC": (
        {
            **images(*(f"{word}/{word}.jpg" for word in SPLITS)),
            **{f"{word}/{word}.xml": VOC.format(f"{word}.jpg") for word in SPLITS},
            "README.dataset.txt": "x",
        },
        {"train": 1, "validation": 1, "test": 1},
        {"cat": 1},
    ),
    "Roboflow: TensorFlow CSV": (
        {
            **images(*(f"{word}/{word}.jpg" for word in SPLITS)),
            **{
                f"{word}/_annotations.csv": f"{SIDES}{word}.jpg,24,16,cat,6,4,18,12\n"
                for word in SPLITS
            },
        },
        {"train": 1, "validation": 1, "test": 1},
        {"cat": 1},
    ),
    "Ultralytics": (
        {
            **images("images/train/1.jpg", "images/val/2.jpg"),
            **{"labels/train/1.txt": BOX, "labels/val/2.txt": BOX},
            "data.yaml": f"path: x\ntrain: images/train\nval: images/val\n{NAMES}",
        },
        {"train": 1, "validation": 1},
        {"cat": 1},
    ),
    "YOLO next to images (LabelImg, Darknet)": (
        {**images("1.jpg", "2.jpg"), "1.txt": BOX, "2.txt": BOX, "classes.txt": "cat\n"},
        None,
        {"cat": 1},
    ),
    "Label Studio: YOLO": (
        {
            **images("images/1.jpg", "images/2.jpg"),
            **{"labels/1.txt": BOX, "labels/2.txt": BOX, "classes.txt": "cat\n"},
            "notes.json": json.dumps(
                {"categories": [{"id": 0, "name": "cat"}], "info": {"year": 2024}}, indent=2
            ),
        },
        None,
        {"cat": 1},
    ),
    "CVAT: YOLO 1.1": (
        {
            **images("obj_train_data/1.jpg", "obj_train_data/2.jpg"),
            **{"obj_train_data/1.txt": BOX, "obj_train_data/2.txt": BOX, "obj.names": "cat\n"},
            **{
                "obj.data": "classes = 1\n",
                "train.txt": "data/obj_train_data/1.jpg\ndata/obj_train_data/2.jpg\n",
            },
        },
        None,
        {"cat": 1},
    ),
    "CVAT: images 1.1": (
        {
            **images("images/1.jpg", "images/2.jpg"),
            "annotations.xml": "<annotations><version>1.1</version>"
            + "".join(
                f'<image id="{number}" name="{number}.jpg" width="24" height="16">'
                '<box label="cat" xtl="6" ytl="4" xbr="18" ybr="12"/></image>'
                for number in (1, 2)
            )
            + "</annotations>",
        },
        None,
        {"cat": 1},
    ),
    "Label Studio: JSON": (
        {
            **images("images/1.jpg", "images/2.jpg"),
            "export.json": json.dumps([label_studio_task(f"{number}.jpg") for number in (1, 2)]),
        },
        None,
        {"cat": 1},
    ),
    "CVAT: COCO": (
        {
            **images("images/train/1.jpg", "images/val/2.jpg"),
            "annotations/instances_train.json": coco("1.jpg"),
            "annotations/instances_val.json": coco("2.jpg"),
        },
        {"train": 1, "validation": 1},
        {"cat": 1},
    ),
    "COCO": (
        {
            **images("train2017/1.jpg", "val2017/2.jpg"),
            "annotations/instances_train2017.json": coco("1.jpg"),
            "annotations/instances_val2017.json": coco("2.jpg"),
            "annotations/captions_val2017.json": "{}",
        },
        {"train": 1, "validation": 1},
        {"cat": 1},
    ),
    "COCO: panoptic": (
        {
            **images("train2017/1.jpg", "val2017/2.jpg"),
            "annotations/panoptic_train2017.json": panoptic("1"),
            "annotations/panoptic_train2017/1.png": SEGMENTS,
            "annotations/panoptic_val2017.json": panoptic("2"),
            "annotations/panoptic_val2017/2.png": SEGMENTS,
        },
        {"train": 1, "validation": 1},
        {"cat": 0},
    ),
    "Pascal VOC": (
        {
            **images("JPEGImages/1.jpg", "JPEGImages/2.jpg"),
            **{f"Annotations/{number}.xml": VOC.format(f"{number}.jpg") for number in (1, 2)},
            **{"ImageSets/Main/train.txt": "1\n", "ImageSets/Main/val.txt": "2\n"},
            **{"ImageSets/Main/trainval.txt": "1\n2\n", "ImageSets/Main/cat_train.txt": "1  1\n"},
        },
        {"train": 1, "validation": 1},
        {"cat": 1},
    ),
    "LabelImg: Pascal VOC": (
        {**images("1.jpg", "2.jpg"), "1.xml": VOC.format("1.jpg"), "2.xml": VOC.format("2.jpg")},
        None,
        {"cat": 1},
    ),
    "VOC under other names": (
        {
            **images("images/1.jpg", "images/2.jpg"),
            **{f"annots/{number}.xml": VOC.format(f"{number}.jpg") for number in (1, 2)},
        },
        None,
        {"cat": 1},
    ),
    "VOC, images by split": (
        {
            **images("images/train/1.jpg", "images/val/2.jpg"),
            **{f"annotations/{number}.xml": VOC.format(f"{number}.jpg") for number in (1, 2)},
        },
        {"train": 1, "validation": 1},
        {"cat": 1},
    ),
    "LabelMe": (
        {
            **images("1.jpg", "2.jpg"),
            **{
                f"{number}.json": json.dumps({**LABELME, "imagePath": f"{number}.jpg"})
                for number in (1, 2)
            },
        },
        None,
        {"cat": 1},
    ),
    "a CSV with one box per row (TensorFlow's tutorial)": (
        {
            **images("1.jpg", "2.jpg"),
            "boxes.csv": f"{SIDES}1.jpg,24,16,cat,6,4,18,12\n2.jpg,24,16,cat,6,4,18,12\n",
        },
        None,
        {"cat": 1},
    ),
    "RetinaNet's CSV": (
        {**images("1.jpg", "2.jpg"), "boxes.csv": "1.jpg,6,4,18,12,cat\n2.jpg,6,4,18,12,cat\n"},
        None,
        {"cat": 1},
    ),
    "images with semantic masks": (
        {
            **images(*(f"{word}/images/{word}{n}.jpg" for word in ("train", "val") for n in "12")),
            **{
                f"{word}/masks/{word}{n}.png": of.draw_mask(int(n), range(4))
                for word in ("train", "val")
                for n in "12"
            },
        },
        {"train": 2, "validation": 2},
        {},
    ),
    "Cityscapes": (of.cityscapes(), {"train": 4, "validation": 2}, {}),
    "Pascal VOC: semantic masks": (
        of.voc_segmentation(),
        {"train": 3, "validation": 2},
        {name: number for number, name in enumerate(VOC_CLASSES)},
    ),
    "LabelMe: Pascal VOC's masks": (
        {
            **images(*(f"JPEGImages/{n}.jpg" for n in "123")),
            **{f"SegmentationClass/{n}.png": of.draw_mask(int(n), range(2)) for n in "123"},
            **images(*(f"SegmentationClassVisualization/{n}.jpg" for n in "123")),
            **{f"SegmentationClassNpy/{n}.npy": b"" for n in "123"},
            "class_names.txt": "_background_\ncat\n",
        },
        None,
        {"_background_": 0, "cat": 1},
    ),
    "CamVid": (of.camvid(), {"train": 3, "validation": 3, "test": 3}, {}),
}
"""The files of each row, the images of each split (None: of fractions), and the class ids."""


def test_every_row_is_tried():
    assert set(ROWS) == {*MADE, "TFRecords"}


def run(arguments, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    code = launch([*shlex.split(arguments), "--output=out", "--set=report=false"], build)
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return json.loads((folder / "out/recordmill.json").read_bytes()), captured


def write(folder, files):
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data if isinstance(data, bytes) else data.encode())


@pytest.mark.parametrize("name", MADE)
def test_what_the_page_says_converts_it_in_one_try(name, tmp_path, monkeypatch, capsys):
    files, splits, labels = MADE[name]
    write(tmp_path / "in", files)
    marker, captured = run(ROWS[name], tmp_path, monkeypatch, capsys)
    found = {split: said["records"] for split, said in marker["splits"].items()}
    assert found == splits if splits else set(found) == {"train", "test"}
    assert (marker["labels"], marker["ledger"]["rejected"]) == (labels, {})
    if labels == {"cat": 1}:
        assert counts_of(marker, "boxes") == {
            "listed": sum(found.values()),
            "written": sum(found.values()),
        }
    if "--config" not in ROWS[name]:
        assert json.loads(captured.out)["recognized"]["flags"] in captured.err
        assert (tmp_path / "out/config.yaml").read_text().startswith("# Recognized ")


def test_tfrecords(tmp_path, monkeypatch, capsys):
    write(tmp_path / "first", images("train/cat/1.jpg", "test/dog/2.jpg"))
    monkeypatch.chdir(tmp_path)
    assert launch(["--input=first", "--output=in", "--set=report=false"], build) == 0
    capsys.readouterr()
    marker, _ = run(ROWS["TFRecords"], tmp_path, monkeypatch, capsys)
    assert {split: said["records"] for split, said in marker["splits"].items()} == {
        "train": 1,
        "test": 1,
    }
    assert marker["labels"] == CLASSES


@pytest.mark.parametrize("name", ["Roboflow: COCO", "one table per split"])
def test_the_suggested_flags_produce_the_same_bytes(name, tmp_path, monkeypatch, capsys):
    write(tmp_path / "in", MADE[name][0])
    made, flags = [], "--config auto"
    for folder in ("auto", "flags"):
        (tmp_path / folder).mkdir()
        marker, captured = run(f"--input ../in {flags}", tmp_path / folder, monkeypatch, capsys)
        shards = {
            path.name: path.read_bytes()
            for path in (tmp_path / folder / "out").rglob("*.tfrecord*")
        }
        made.append((marker["plan"]["id"], shards))
        flags = json.loads(captured.out).get("recognized", {"flags": ""})["flags"]
    assert flags == ""
    assert made[0] == made[1]
    assert made[0][1]


@pytest.mark.parametrize("config", ["yolo", "coco", "voc"])
def test_roboflows_exports_need_no_setting_but_the_configuration(
    config, tmp_path, monkeypatch, capsys
):
    name = {"yolo": "YOLO", "coco": "COCO", "voc": "Pascal VOC"}[config]
    write(tmp_path / "in", MADE[f"Roboflow: {name}"][0])
    marker, _ = run(f"--input in --config configs/{config}.yaml", tmp_path, monkeypatch, capsys)
    assert {split: said["records"] for split, said in marker["splits"].items()} == {
        "train": 1, "validation": 1, "test": 1
    }  # fmt: skip
    assert counts_of(marker, "boxes") == {"listed": 3, "written": 3}


def test_lists_that_were_read_are_not_ignored(tmp_path, monkeypatch, capsys):
    write(tmp_path / "in", MADE["Pascal VOC"][0])
    marker, _ = run("--input in --config auto", tmp_path, monkeypatch, capsys)
    ignored = {"known_sibling": 1}  # cat_train.txt
    assert marker["ledger"] == {
        "listed": 3,
        "written": 2,
        "rejected": {},
        "ignored": ignored,
        "left_out": {},
    }


def test_fractions_of_ones_own_take_the_place_of_splits_that_are_there(
    tmp_path, monkeypatch, capsys
):
    write(tmp_path / "in", MADE["Roboflow: COCO"][0])
    fractions = "--set 'splits.fractions={all: 1.0}'"
    marker, _ = run(f"--input in {fractions}", tmp_path, monkeypatch, capsys)
    assert {split: said["records"] for split, said in marker["splits"].items()} == {"all": 3}


def test_the_page_runs(tmp_path, run_page):
    write(tmp_path / "pets", MADE["Roboflow: YOLO"][0])
    (done,) = run_page("docs/layouts.md", tmp_path)
    assert "recognized yolo: YOLO's folders test/images, test/labels" in done.stderr
