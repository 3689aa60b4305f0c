"""Collections of drawn objects whose masks, key points and semantic masks are known to the pixel.

Outlines are rectangles and runs, whose pixels need no rasterizer, so that readers can be compared
in environments without one.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 40, 24
CATEGORIES = {"cat": 1, "dog": 2}
POINTS = ("nose", "left_eye", "right_eye")
CLASSES = 5
"""Ids of semantic masks are below it, or 255."""

_OBJECTS = (5, 0, 1, 3, 2)
"""The objects of each image; the last images are for validation."""

_SPLITS = ("train", "train", "train", "val", "val")


@dataclass(frozen=True)
class DrawnObject:
    """An object and what readers should say of it."""

    name: str
    mask: np.ndarray
    segmentation: object
    points: list[tuple[float, float, int]]

    @property
    def box(self) -> list[int]:
        """Left, top, width and height."""
        rows, columns = np.nonzero(self.mask)
        left, top = int(columns.min()), int(rows.min())
        return [left, top, int(columns.max()) + 1 - left, int(rows.max()) + 1 - top]

    @property
    def sides(self) -> np.ndarray:
        """Ymin, xmin, ymax, xmax, in fractions."""
        left, top, width, height = self.box
        sides = np.array([top, left, top + height, left + width], np.float32)
        return sides / np.array([HEIGHT, WIDTH, HEIGHT, WIDTH], np.float32)

    @property
    def fractions(self) -> np.ndarray:
        """X and y in fractions, and visibility, of each key point."""
        found = [(x / WIDTH, y / HEIGHT, seen) if seen else (0, 0, 0) for x, y, seen in self.points]
        return np.array(found, np.float32)


def draw_objects() -> list[list[DrawnObject]]:
    """Returns the objects of each image, the same ones at each call."""
    random = np.random.default_rng(38)
    return [[_draw(random, place) for place in range(count)] for count in _OBJECTS]


def _draw(random: np.random.Generator, place: int) -> DrawnObject:
    left, top = (int(random.integers(0, side - 8)) for side in (WIDTH, HEIGHT))
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    segmentation: object
    if place % 2 == 0:
        right, bottom = left + int(random.integers(3, 9)), top + int(random.integers(3, 9))
        mask[top:bottom, left:right] = 1
        segmentation = [[left, top, right, top, right, bottom, left, bottom]]
    else:
        mask[top : top + 7, left : left + 7] = random.integers(0, 2, (7, 7))
        mask[top, left] = mask[top + 6, left + 6] = 1
        segmentation = {"size": [HEIGHT, WIDTH], "counts": _count_runs(mask)}
    points = [
        (float(random.integers(0, WIDTH)), float(random.integers(0, HEIGHT)), seen)
        for seen in random.permutation(3).tolist()
    ]
    return DrawnObject(["cat", "dog"][place % 2], mask, segmentation, points)


def _count_runs(mask: np.ndarray) -> list[int]:
    pixels = np.concatenate([[0], mask.ravel("F"), [0]])
    borders = np.flatnonzero(np.diff(pixels))
    return np.diff([0, *borders, mask.size]).tolist()


def write_objects(folder: Path) -> Path:
    """Writes the images and COCO's annotations of their objects."""
    objects = draw_objects()
    (folder / "annotations").mkdir(parents=True)
    categories = [
        {"id": number, "name": name, "keypoints": list(POINTS)}
        for name, number in CATEGORIES.items()
    ]
    for split in dict.fromkeys(_SPLITS):
        images: list[dict[str, object]] = []
        annotations: list[dict[str, object]] = []
        for number in (at for at, own in enumerate(_SPLITS) if own == split):
            _write_image(folder / split / f"{number}.jpg", number)
            image = {"file_name": f"{number}.jpg", "width": WIDTH, "height": HEIGHT}
            images.append({"id": number, **image})
            for each in objects[number]:
                flat = [side for x, y, seen in each.points for side in (x, y, seen)]
                labeled = sum(seen > 0 for *_, seen in each.points)
                annotation = {
                    "id": 10 * number + len(annotations) + 1,
                    "image_id": number,
                    "category_id": CATEGORIES[each.name],
                    "bbox": each.box,
                    "area": int(each.mask.sum()),
                    "iscrowd": 0,
                    "segmentation": each.segmentation,
                    "keypoints": flat,
                    "num_keypoints": labeled,
                }
                annotations.append(annotation)
        content = {"images": images, "categories": categories, "annotations": annotations}
        path = folder / f"annotations/instances_{split}2017.json"
        path.write_text(json.dumps(content), encoding="utf-8")
    return folder


def draw_ids() -> list[np.ndarray]:
    """Returns the ids of each pixel of some images, the same ones at each call."""
    random = np.random.default_rng(5)
    ids = random.integers(0, CLASSES, (6, HEIGHT, WIDTH), np.uint8)
    ids[:, :2] = 255
    return list(ids)


def write_ids(folder: Path) -> Path:
    """Writes images, their semantic masks, and a list of both; returns the list."""
    rows = ["image,mask"]
    (folder / "masks").mkdir(parents=True)
    for number, ids in enumerate(draw_ids()):
        _write_image(folder / f"images/{number}.jpg", number)
        Image.fromarray(ids).save(folder / f"masks/{number}.png")
        rows.append(f"images/{number}.jpg,masks/{number}.png")
    (folder / "list.csv").write_text("\n".join(rows), encoding="utf-8")
    return folder / "list.csv"


def _write_image(path: Path, number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (WIDTH, HEIGHT), (40 * number, 200, 90)).save(path)
