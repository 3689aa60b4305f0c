"""What holds for masks of any image: two formats give one mask, and boxes fit their masks."""

import json
import math

import numpy as np
import pytest
from PIL import Image
from stored_records import read_records

from recordmill.imaging.masks.mask_file import decode_mask
from recordmill.schemas.features import Example
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

WIDTH, HEIGHT = 160, 120
SETTINGS = {
    "convention": "tf_object_detection",
    "masks": "png",
    "splits.fractions": {"train": 1},
    "report": False,
}
LARGE = 1_000
"""Pixels of a mask whose overlap is compared."""

RESIZES = {
    "as it is": {},
    "smaller": {"images.resize.longest": 100},
    "cropped": {"images.resize.exact": [96, 96]},
    "padded": {"images.resize.exact": [110, 110], "images.resize.fit": "pad"},
    "enlarged": {"images.resize.exact": [150, 200]},
}


def draw_blobs(seed):
    """Three round polygons of 20 to 40 corners: sharp corners may cover no pixel."""
    random = np.random.default_rng(seed)
    blobs = []
    for middle in ((45, 45), (110, 50), (80, 85)):
        count = int(random.integers(20, 40))
        angles = np.linspace(0, 2 * math.pi, count, endpoint=False)
        radii = 25 + 4 * np.cos(2 * angles + random.uniform(0, 6))
        xs = middle[0] + radii * np.cos(angles)
        ys = middle[1] + radii * np.sin(angles)
        blobs.append(np.stack((xs, ys), axis=1).round(2))
    return blobs


def write_image(path, orientation):
    """Writes an image that is displayed with the size of the drawings."""
    path.parent.mkdir(parents=True)
    size = (HEIGHT, WIDTH) if orientation > 4 else (WIDTH, HEIGHT)
    path.write_bytes(encode_picture(orientation, size))
    with Image.open(path) as image:
        exif = Image.Exif()
        exif[0x0112] = orientation
        image.save(path, quality=95, exif=exif)


def write_coco(root, blobs, orientation):
    write_image(root / "train/0.jpg", orientation)
    (root / "annotations").mkdir()
    annotations = []
    for number, blob in enumerate(blobs):
        (left, top), (right, bottom) = blob.min(axis=0).tolist(), blob.max(axis=0).tolist()
        annotations.append(
            {
                "id": number,
                "image_id": 0,
                "category_id": 1,
                "iscrowd": 0,
                "area": 9,
                "bbox": [left, top, right - left, bottom - top],
                "segmentation": [blob.ravel().tolist()],
            }
        )
    content = {
        "images": [{"id": 0, "file_name": "0.jpg", "width": WIDTH, "height": HEIGHT}],
        "annotations": annotations,
        "categories": [{"id": 1, "name": "blob"}],
    }
    place = root / "annotations/instances_train.json"
    place.write_text(json.dumps(content), encoding="utf-8")


def write_yolo(root, blobs, orientation):
    write_image(root / "images/0.jpg", orientation)
    (root / "labels").mkdir()
    lines = [
        f"0 {' '.join(f'{side:.6f}' for side in (blob / (WIDTH, HEIGHT)).ravel())}"
        for blob in blobs
    ]
    (root / "labels/0.txt").write_text("\n".join(lines), encoding="utf-8")
    (root / "data.yaml").write_text("names: [blob]\n", encoding="utf-8")


def read_objects(done):
    """The boxes in pixels of the stored image, of shape (objects, 4), and the masks."""
    assert done.code == 0, done.stderr
    (record,) = [each for path in done.shards() for each in read_records(path)]
    features = Example.FromString(bytes(record)).features.feature
    (width,), (height,) = (features[f"image/{side}"].int64_list.value for side in SIDES)
    masks = [
        decode_mask(each, (width, height)).values
        for each in features["image/object/mask"].bytes_list.value
    ]
    boxes = np.array(
        [features[f"image/object/bbox/{side}"].float_list.value for side in BOX_SIDES]
    ).T
    return boxes * (width, height, width, height), masks


SIDES = ("width", "height")
BOX_SIDES = ("xmin", "ymin", "xmax", "ymax")


@pytest.mark.parametrize(
    ("resize", "orientation"), [*zip(RESIZES, (1, 3, 6, 7, 6), strict=True)], ids=str
)
def test_coco_and_yolo_give_one_mask_and_boxes_fit_it(resize, orientation, convert, tmp_path):
    settings, found = SETTINGS | RESIZES[resize], {}
    for seed, (kind, write) in enumerate((("coco", write_coco), ("yolo", write_yolo))):
        root = tmp_path / kind
        write(root, draw_blobs(orientation), orientation)
        given = settings | {"source.kind": kind}
        found[kind] = read_objects(convert(root, settings=given, output=tmp_path / f"{seed}"))
    (boxes, masks), (other_boxes, others) = found["coco"], found["yolo"]
    assert boxes == pytest.approx(other_boxes, abs=0.01)
    assert len(masks) == len(others) == 3
    for box, mask, other in zip(boxes, masks, others, strict=True):
        overlap = np.count_nonzero(mask & other) / np.count_nonzero(mask | other)
        assert overlap >= 0.98 or np.count_nonzero(mask) < LARGE
        rows, columns = np.nonzero(mask)
        drawn = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
        assert drawn == pytest.approx(box, abs=1.01)
