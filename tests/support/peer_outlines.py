"""A reader of other people's masks and key points that shares no code with Recordmill.

It gives an `Outlined` for each object, or for each image with a semantic mask, of a dataset and of
a collection.
"""

import hashlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from faster_coco_eval import COCO  # type: ignore[import-untyped]
from peer import digest, images_below, walk_dataset
from PIL import Image

SIDES = ("xmin", "ymin", "xmax", "ymax")


@dataclass(frozen=True)
class Outlined:
    """An object, or a whole image: the SHA-256 of its source, its class, and its pixels' digest.

    Attributes:
        points: the name and the visibility of each key point that was placed.
        numbers: the sides of the box in pixels, then x and y of these points.
    """

    sha256: str
    label: str
    pixels: str
    points: tuple[tuple[str, int], ...] = ()
    numbers: tuple[float, ...] = ()


def differ(found: Iterator[Outlined], expected: Iterator[Outlined]) -> list[str]:
    """What differs, object by object; numbers may by a hundredth of a pixel."""
    one, other = (sorted(each, key=_key_of) for each in (found, expected))
    problems = [f"{len(one)} objects instead of {len(other)}"] if len(one) != len(other) else []
    return problems + [
        f"{a} instead of {b}"
        for a, b in zip(one, other, strict=False)
        if _key_of(a)[:4] != _key_of(b)[:4] or not np.allclose(a.numbers, b.numbers, atol=0.01)
    ]


def _key_of(each: Outlined) -> tuple:
    return each.sha256, each.label, each.pixels, each.points, each.numbers


def hash_pixels(pixels: np.ndarray) -> str:
    return hashlib.sha256(pixels.astype(np.uint8).tobytes()).hexdigest()


def read_outlines(output: Path) -> Iterator[Outlined]:
    for found, features in walk_dataset(output):
        for mask in features.get("image/segmentation/class/encoded", ()):
            yield Outlined(found.sha256, "", hash_pixels(np.asarray(open_gray(mask))))
        scale = Image.open(io.BytesIO(features["image/encoded"][0])).size
        names = [each.decode() for each in features.get("image/object/class/text", ())]
        sides = [features.get(f"image/object/bbox/{side}", []) for side in SIDES]
        x, y, visibility, text = (
            split_evenly(features.get(f"image/object/keypoint/{key}", []), len(names))
            for key in ("x", "y", "visibility", "text")
        )
        for at, name in enumerate(names):
            mask = np.asarray(open_gray(features["image/object/mask"][at]))
            box = [side[at] * size for side, size in zip(sides, scale * 2, strict=True)]
            points = zip(text[at], visibility[at], x[at], y[at], strict=True)
            placed = [(t.decode(), v, px * scale[0], py * scale[1]) for t, v, px, py in points if v]
            yield outlined(found.sha256, name, mask, box, placed)


def open_gray(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    assert image.mode == "L"
    return image


def split_evenly(values: Sequence, count: int) -> list[Sequence]:
    size = len(values) // max(count, 1)
    return [values[at * size : (at + 1) * size] for at in range(count)]


def outlined(
    sha256: str, label: str, mask: np.ndarray, box: Sequence[float], placed: Sequence[tuple]
) -> Outlined:
    numbers = [*box, *(value for each in placed for value in each[2:])]
    points = tuple((name, int(visibility)) for name, visibility, *_ in placed)
    return Outlined(sha256, label, hash_pixels(mask), points, tuple(map(float, numbers)))


# What the collections' own authors meant: one function a layout, from a folder to `Outlined`s.


def coco(folder: Path) -> Iterator[Outlined]:
    images = {path.name: path for path in images_below(folder)}
    for path in sorted(folder.rglob("*.json")):
        contents = COCO(str(path))
        for each in contents.anns.values():
            image = contents.imgs[each["image_id"]]
            category = contents.cats[each["category_id"]]
            size = image["width"], image["height"]
            mask = np.zeros(size[::-1], np.uint8)
            if each.get("segmentation"):
                mask = contents.annToMask(each)
            names = category.get("keypoints") or [str(n) for n in range(1, 1000)]
            points = split_evenly(each.get("keypoints", []), len(each.get("keypoints", [])) // 3)
            placed = [(name, v, x, y) for name, (x, y, v) in zip(names, points, strict=False) if v]
            sha256 = digest(images[image["file_name"].rpartition("/")[2]])
            yield outlined(sha256, category["name"], mask, clip(each["bbox"], size), placed)


def clip(box: Sequence[float], size: Sequence[int]) -> list[float]:
    left, top, width, height = box
    sides = left, top, left + width, top + height
    return [min(max(side, 0), most) for side, most in zip(sides, (*size, *size), strict=True)]


def panoptic(folder: Path, of_classes: bool) -> Iterator[Outlined]:
    """Segments as panopticapi's `rgb2id` tells them apart."""
    images = {path.name: path for path in images_below(folder)}
    for path in sorted(folder.glob("panoptic_*.json")):
        contents = json.loads(path.read_text())
        classes = sorted(contents["categories"], key=lambda each: each["id"])
        order = {each["id"]: at for at, each in enumerate(classes)}
        for each in contents["annotations"]:
            colors = np.asarray(Image.open(path.with_suffix("") / each["file_name"]), np.int64)
            ids = colors @ [1, 256, 256 * 256]
            sha256 = digest(images[each["file_name"].replace(".png", ".jpg")])
            mask = np.full(ids.shape, 255)
            for segment in each["segments_info"]:
                pixels = ids == segment["id"]
                mask[pixels] = order[segment["category_id"]]
                category = classes[order[segment["category_id"]]]
                if category["isthing"] and not of_classes:
                    box = clip(segment["bbox"], ids.shape[::-1])
                    yield outlined(sha256, category["name"], pixels, box, [])
            if of_classes:
                yield Outlined(sha256, "", hash_pixels(mask))


def masks(folder: Path, images: str, drawn: str, threshold: int = 0) -> Iterator[Outlined]:
    """Masks in parallel folders: `train` and `trainannot`, or `image` and `label`."""
    for path in sorted(folder.glob(f"*{drawn}/*.png")):
        mask = np.asarray(Image.open(path))
        image = folder / f"{path.parent.name.removesuffix(drawn)}{images}" / path.name
        yield Outlined(digest(image), "", hash_pixels(mask >= threshold if threshold else mask))


LAYOUTS: dict[str, Callable[[Path], Iterator[Outlined]]] = {
    "coco": coco,
    "panoptic_classes": partial(panoptic, of_classes=True),
    "panoptic_things": partial(panoptic, of_classes=False),
    "camvid": partial(masks, images="", drawn="annot"),
    "two_levels": partial(masks, images="image", drawn="label", threshold=128),
}
