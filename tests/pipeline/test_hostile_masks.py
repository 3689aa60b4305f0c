"""Outlines that no tool writes: one object or image is rejected, whatever is in its file."""

import base64
import io
import json
import math

import numpy as np
import pytest
from PIL import Image

from recordmill.reading.verify_dataset import verify_dataset
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

SIZE = (24, 16)
SETTINGS = {
    "convention": "tf_object_detection",
    "masks": "png",
    "splits.fractions": {"train": 1},
    "report": False,
    "max_rejected.share": 1,
    "max_rejected.masks.share": 1,
    "max_rejected.boxes.share": 1,
}
HUGE, MANY = 10.0**300, 1_000_000
SQUARE = [2, 3, 9, 3, 9, 9, 2, 9]


def encode_bomb(side=12_000):
    """A PNG of 20 kB that would take 144 MB."""
    file = io.BytesIO()
    Image.new("1", (side, side)).save(file, "PNG")
    return file.getvalue()


BOMB = encode_bomb()
FAR = [value for number in range(MANY) for value in (number % 24, number % 16)]


def write_coco(root, hostile):
    (root / "annotations").mkdir()
    base = {"image_id": 0, "category_id": 1, "iscrowd": 0, "area": 9, "bbox": [2, 3, 7, 6]}
    outlines = [{"segmentation": [SQUARE]}, hostile]
    content = {
        "images": [{"id": 0, "file_name": "0.jpg", "width": 24, "height": 16}],
        "annotations": [{**base, "id": at, **each} for at, each in enumerate(outlines)],
        "categories": [{"id": 1, "name": "cat"}],
    }
    (root / "annotations/instances_train.json").write_text(json.dumps(content), encoding="utf-8")
    (root / "train").mkdir()
    return root / "train/0.jpg"


def write_labelme(root, hostile):
    shapes = [
        {"label": "cat", "points": np.reshape(SQUARE, (-1, 2)).tolist(), "shape_type": "polygon"},
        {"label": "cat", **hostile},
    ]
    content = {"shapes": shapes, "imagePath": "0.jpg", "imageWidth": 24, "imageHeight": 16}
    (root / "0.json").write_text(json.dumps(content), encoding="utf-8")
    return root / "0.jpg"


def write_cvat(root, hostile):
    points = ";".join(f"{x},{y}" for x, y in np.reshape(SQUARE, (-1, 2)))
    (root / "annotations.xml").write_text(
        "<?xml version='1.0'?><annotations><version>1.1</version>"
        f'<image id="0" name="0.jpg" width="24" height="16">'
        f'<polygon label="cat" points="{points}"/>{hostile}</image></annotations>',
        encoding="utf-8",
    )
    (root / "images").mkdir()
    return root / "images/0.jpg"


def write_label_studio(root, hostile):
    points = [[100 * x / 24, 100 * y / 16] for x, y in np.reshape(SQUARE, (-1, 2)).tolist()]
    values = [{"points": points, "polygonlabels": ["cat"]}, hostile]
    result = [
        {
            "id": str(at),
            "type": "polygonlabels",
            "value": value,
            "to_name": "image",
            "original_width": 24,
            "original_height": 16,
        }
        for at, value in enumerate(values)
    ]
    tasks = [{"data": {"image": "/data/upload/1/0.jpg"}, "annotations": [{"result": result}]}]
    (root / "export.json").write_text(json.dumps(tasks), encoding="utf-8")
    (root / "images").mkdir()
    return root / "images/0.jpg"


WRITERS = {
    "coco": write_coco,
    "labelme": write_labelme,
    "cvat": write_cvat,
    "label_studio": write_label_studio,
}


def in_base64(data):
    return base64.b64encode(data).decode()


MASKS = {  # of the second object, whose box is stored or not: its fate
    "coco: NaN": ("coco", {"segmentation": [[math.nan] * 8]}, "bad_polygon"),
    "coco: huge": ("coco", {"segmentation": [[HUGE, 1, -HUGE, 4, 5, 6]]}, "bad_polygon"),
    "coco: many points": ("coco", {"segmentation": [FAR]}, "bad_polygon"),
    "coco: a long border": ("coco", {"segmentation": [FAR[:900_000]]}, "bad_polygon"),
    "coco: negative runs": (
        "coco",
        {"segmentation": {"size": [16, 24], "counts": [400, -16]}},
        "bad_rle",
    ),
    "coco: runs beyond the image": (
        "coco",
        {"segmentation": {"size": [16, 24], "counts": [0, 2**62]}},
        "bad_rle",
    ),
    "coco: runs of a large image": (
        "coco",
        {"segmentation": {"size": [30_000, 30_000], "counts": [0, 900_000_000]}},
        "mask_size",
    ),
    "coco: many runs": (
        "coco",
        {"segmentation": {"size": [16, 24], "counts": [0] * 500_000}},
        "bad_rle",
    ),
    "coco: packed text": (
        "coco",
        {"segmentation": {"size": [16, 24], "counts": "P" * 1_000}},
        "bad_rle",
    ),
    "labelme: a bomb": (
        "labelme",
        {"points": [[2, 3], [9, 9]], "shape_type": "mask", "mask": in_base64(BOMB)},
        "mask_size",
    ),
    "labelme: no image": (
        "labelme",
        {"points": [[2, 3], [9, 9]], "shape_type": "mask", "mask": "AAAA"},
        "bad_mask",
    ),
    "labelme: far away": (
        "labelme",
        {"points": [[2, -HUGE], [9, 9]], "shape_type": "mask", "mask": in_base64(BOMB)},
        "bad_mask",
    ),
    "labelme: many points": (
        "labelme",
        {"points": [[4, 5], [9, 9]] * 50_000, "shape_type": "points"},
        "bad_polygon",
    ),
    "labelme: a huge circle": (
        "labelme",
        {"points": [[4, 5], [HUGE, 9]], "shape_type": "circle"},
        "bad_polygon",
    ),
    "cvat: NaN": ("cvat", '<polygon label="cat" points="nan,1;5,1;5,5"/>', None),
    "cvat: a huge ellipse": (
        "cvat",
        '<ellipse label="cat" cx="4" cy="4" rx="1e300" ry="3"/>',
        "bad_polygon",
    ),
    "cvat: rotated without end": (
        "cvat",
        '<box label="cat" xtl="1" ytl="1" xbr="5" ybr="5" rotation="inf"/>',
        None,
    ),
    "cvat: negative runs": (
        "cvat",
        '<mask label="cat" rle="10,-4" left="1" top="1" width="3" height="2"/>',
        "bad_rle",
    ),
    "cvat: runs beyond the mask": (
        "cvat",
        f'<mask label="cat" rle="0,{2**70}" left="1" top="1" width="3" height="2"/>',
        "bad_rle",
    ),
    "cvat: a large mask": (
        "cvat",
        '<mask label="cat" rle="0,900000000" left="0" top="0" width="30000" height="30000"/>',
        "mask_size",
    ),
    "label studio: a huge ellipse": (
        "label_studio",
        {"x": 9, "y": 9, "radiusX": HUGE, "radiusY": 4, "ellipselabels": ["cat"]},
        "bad_polygon",
    ),
    "label studio: an endless brush": (
        "label_studio",
        {"rle": [255] * 1_000, "brushlabels": ["cat"]},
        None,
    ),
    "label studio: NaN": (
        "label_studio",
        {"points": [[math.nan, 1], [5, 5], [9, 1]], "polygonlabels": ["cat"]},
        None,
    ),
}


@pytest.mark.parametrize("case", MASKS)
def test_a_hostile_outline_is_dropped_and_the_other_one_stored(case, convert, tmp_path):
    kind, hostile, reason = MASKS[case]
    root = tmp_path / "hostile"
    root.mkdir()
    WRITERS[kind](root, hostile).write_bytes(encode_picture(1, SIZE))
    done = convert(root, settings=SETTINGS | {"source.kind": kind})
    assert done.code == 0, done.stderr
    entry = done.marker["annotations"]["masks"]
    assert entry["written"] == 1
    assert entry["listed"] == sum((1, *entry["dropped"].values()))
    if reason:
        assert entry["dropped"] == {reason: 1}
    else:  # its box is not finite, either
        assert done.marker["annotations"]["boxes"]["dropped"] == {"not_finite": 1}
    assert verify_dataset(done.output, level="pixels").findings == ()


def test_a_mask_file_of_more_pixels_than_its_image_is_not_decoded(convert, tmp_path):
    root = tmp_path / "narrow"
    root.mkdir()
    (root / "0.png").write_bytes(encode_bomb(8_000))
    file = io.BytesIO()
    Image.new("RGB", (8_000, 1)).save(file, "PNG")
    (root / "0.jpg").write_bytes(file.getvalue())
    (root / "1.jpg").write_bytes(encode_picture(1, SIZE))
    Image.new("L", SIZE).save(root / "1.png")
    rows = ["image,mask", "0.jpg,0.png", "1.jpg,1.png"]
    (root / "list.csv").write_text("\n".join(rows), encoding="utf-8")
    settings = {
        "source": {"kind": "manifest", "columns": {"uri": "image", "mask": "mask"}},
        "convention": "deeplab",
        "splits.fractions": {"train": 1},
        "max_rejected.share": 1,
    }
    done = convert(root, settings=settings)
    assert done.code == 0, done.stderr
    assert done.marker["ledger"]["rejected"] == {"mask_size": 1}
    (row,) = [row for row in done.rows() if "rejected" in row]
    assert row["detail"] == "0.png: the mask has 8000 x 8000 pixels, and the image 8,000 pixels"
