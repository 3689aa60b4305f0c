"""A small collection in COCO's format, whose objects have boxes, outlines and key points."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.pipeline.conftest import encode_picture

IMAGES = 8
CATEGORIES = [{"id": 1, "name": "cat", "keypoints": ["ear", "tail"], "skeleton": [[1, 2]]}]


def objects_of(number: int) -> list[dict[str, Any]]:
    """Two objects in the image of a number."""
    return [
        {
            "id": 10 * number + place,
            "image_id": number,
            "category_id": 1,
            "bbox": [2, 3, 9 + place, 8],
            "iscrowd": 0,
            "area": 9,
            "segmentation": [[2, 3, 11, 3, 11, 9 + place]],
            "keypoints": [3, 4, 2, 5 + place, 6, 1],
            "num_keypoints": 2,
        }
        for place in range(2)
    ]


def write_animals(root: Path, objects: Iterable[Sequence[Mapping[str, Any]]]) -> Path:
    """Writes eight images with the objects of each; images that are there stay."""
    (root / "train").mkdir(parents=True, exist_ok=True)
    for number in range(IMAGES):
        path = root / "train" / f"{number}.jpg"
        if not path.exists():
            path.write_bytes(encode_picture(number, (24, 16)))
    images = [
        {"id": number, "file_name": f"{number}.jpg", "width": 24, "height": 16}
        for number in range(IMAGES)
    ]
    content = {
        "images": images,
        "annotations": [each for own in objects for each in own],
        "categories": CATEGORIES,
    }
    (root / "annotations").mkdir(exist_ok=True)
    place = root / "annotations/instances_train.json"
    place.write_text(json.dumps(content), encoding="utf-8")
    return root
