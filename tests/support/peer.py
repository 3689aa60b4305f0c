"""A reader of datasets and of other people's annotations that shares no code with Recordmill.

It knows TFRecord's framing, the wire format of `tf.train.Example`, and each annotation format by
its own few lines. It gives a `Found` for each image of a dataset, and for each of a collection, to
be compared.
"""

import csv
import gzip
import hashlib
import io
import json
import posixpath
import re
import struct
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

import google_crc32c
import numpy as np
import yaml
from PIL import Image, ImageOps

Box = tuple[str, float, float, float, float]
"""The class, then left, top, right and bottom in fractions of the image."""

IMAGES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp"}


@dataclass(frozen=True)
class Found:
    """One image: the SHA-256 of its source, its split, its class and its boxes, sorted."""

    sha256: str
    split: str
    label: str
    boxes: tuple[Box, ...]


def differences(found: Iterable[Found], expected: Iterable[Found]) -> list[str]:
    """What differs, image by image; boxes may by what a float of 32 bits rounds."""
    one, other = (
        sorted(
            each,
            key=lambda image: (
                image.sha256,
                image.split,
                image.label,
                len(image.boxes),
                image.boxes,
            ),
        )
        for each in (found, expected)
    )
    problems = [f"{len(one)} images instead of {len(other)}"] if len(one) != len(other) else []
    return problems + [
        f"{a} instead of {b}" for a, b in zip(one, other, strict=False) if not is_like(a, b)
    ]


def is_like(one: Found, other: Found) -> bool:
    """Whether two images are the same, and their boxes nearly."""
    if replace(one, boxes=()) != replace(other, boxes=()) or len(one.boxes) != len(other.boxes):
        return False
    pairs = zip(one.boxes, other.boxes, strict=True)
    return all(
        a[0] == b[0] and all(abs(x - y) < 1e-5 for x, y in zip(a[1:], b[1:], strict=True))
        for a, b in pairs
    )


def read_dataset(folder: Path) -> list[Found]:
    """All images of a dataset."""
    return [found for found, _ in walk_dataset(folder)]


def walk_dataset(folder: Path) -> Iterator[tuple[Found, dict[str, list]]]:
    """Each record as `Found`, and its features by key. The sidecar says which source a record was
    made from."""
    marker = json.loads((folder / "recordmill.json").read_text())
    class_of = {class_id: name for name, class_id in marker["labels"].items()}
    for split, described in marker["splits"].items():
        for shard in described["shards"]:
            rows = [
                json.loads(line) for line in (folder / shard["sidecar"]).read_text().splitlines()
            ]
            sources = {
                row["offset"]: row["sha256"] for row in rows if row.get("offset") is not None
            }
            for offset, record in read_records(folder / shard["name"]):
                features = read_example(record)
                label = (features.get("image/class/text") or [b""])[0].decode()
                label = label or class_of.get(features.get("label", [None])[0], "")
                names = [each.decode() for each in features.get("image/object/class/text", [])]
                sides = [
                    features.get(f"image/object/bbox/{side}", [])
                    for side in ("xmin", "ymin", "xmax", "ymax")
                ]
                boxes = tuple(
                    sorted(as_box(name, *box) for name, *box in zip(names, *sides, strict=True))
                )
                yield Found(sources.pop(offset), split, label, boxes), features
            assert not sources, f"{shard['name']} lacks records that its sidecar lists"


def as_box(name: str, *sides: float) -> Box:
    left, top, right, bottom = (min(1.0, max(0.0, side)) for side in sides)
    return name, left, top, right, bottom


def read_records(path: Path) -> Iterator[tuple[int, bytes]]:
    data, at = path.read_bytes(), 0
    while at < len(data):
        (length,), (check,) = (
            struct.unpack_from("<Q", data, at),
            struct.unpack_from("<I", data, at + 8),
        )
        assert check == masked(data[at : at + 8])
        record = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length) == (masked(record),)
        yield at, record
        at += 16 + length


def masked(data: bytes) -> int:
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read_example(record: bytes) -> dict[str, list]:
    """Example -> Features -> map<string, Feature> -> bytes (1), float (2) or int64 (3) lists."""
    features = {}
    for _, whole in messages(record):
        for _, entry in messages(whole):
            parts = dict(messages(entry))
            for kind, values in messages(parts[2]):
                features[parts[1].decode()] = [
                    READERS[kind](each) for each in flatten(kind, values)
                ]
    return features


READERS: dict[int, Callable] = {1: bytes, 2: float, 3: int}


def flatten(kind: int, values: bytes) -> Iterator:
    for _, value in fields(values):
        if kind == 1 or isinstance(value, int):
            yield value
        elif kind == 2:
            yield from struct.unpack(f"<{len(value) // 4}f", value)
        else:
            at = 0
            while at < len(value):
                number, at = varint(value, at)
                yield number - (1 << 64) if number >> 63 else number


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a message in which none is a number."""
    for number, value in fields(data):
        assert isinstance(value, bytes)
        yield number, value


def fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    value: bytes | int
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        match tag & 7:
            case 0:
                value, at = varint(data, at)
            case 2:
                length, at = varint(data, at)
                value, at = data[at : at + length], at + length
            case 5:
                value, at = data[at : at + 4], at + 4
        yield tag >> 3, value


def varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return number, at


def compare_pixels(folder: Path, sources: dict[str, bytes]) -> float:
    """The largest mean difference between a stored image and its source, of all records that hold
    an encoded image."""
    worst = 0.0
    for found, features in walk_dataset(folder):
        encoded = features.get("image/encoded")
        if encoded and encoded[0] != sources[found.sha256]:
            stored = np.asarray(Image.open(io.BytesIO(encoded[0])).convert("RGB"), np.int16)
            source = ImageOps.exif_transpose(Image.open(io.BytesIO(sources[found.sha256]))).convert(
                "RGB"
            )
            assert stored.shape[:2] == (source.height, source.width)
            worst = max(worst, float(np.abs(stored - np.asarray(source, np.int16)).mean()))
    return worst


# What the collections' own authors meant: one function a layout, from a folder to `Found`s whose
# split may be "".


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def size_of(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


def images_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGES)


def class_folders(folder: Path) -> Iterator[Found]:
    splits = {path.name for path in folder.iterdir()} <= {
        "train",
        "test",
        "val",
        "valid",
        "TRAIN",
        "TEST",
        "VALIDATION",
    }
    for path in images_below(folder):
        parts = path.relative_to(folder).parts
        yield Found(
            digest(path), name_split(parts[0]) if splits else "", parts[1 if splits else 0], ()
        )


def name_split(word: str) -> str:
    """The split that a folder or file is named after."""
    return {"val": "validation", "valid": "validation", "t10k": "test"}.get(
        word.lower(), word.lower()
    )


def voc(folder: Path) -> Iterator[Found]:
    splits: dict[str, str] = {}
    for name in ("train", "val", "test"):
        listed = folder / "ImageSets" / "Main" / f"{name}.txt"
        splits |= (
            {line.split()[0]: name_split(name) for line in listed.read_text().splitlines()}
            if listed.exists()
            else {}
        )
    # Then any other folder.
    images = sorted(images_below(folder), key=lambda path: path.parent.name != "JPEGImages")
    for path in sorted(folder.rglob("*.xml")):
        tree = ElementTree.parse(path).getroot()
        name = posixpath.basename(tree.findtext("filename", "").replace("\\", "/"))
        image = next(each for each in images if each.name == name or each.stem == path.stem)
        width, height = size_of(image)
        boxes = []
        for each in tree.iter("object"):
            left, top, right, bottom = (
                float(each.findtext(f"bndbox/{k}", "")) for k in ("xmin", "ymin", "xmax", "ymax")
            )
            if left < right and top < bottom:  # others cover nothing: they are dropped, and counted
                boxes.append(
                    as_box(
                        each.findtext("name", ""),
                        left / width,
                        top / height,
                        right / width,
                        bottom / height,
                    )
                )
        first = path.relative_to(folder).parts[0]
        split = splits.get(
            path.stem, name_split(first) if first in ("train", "val", "valid", "test") else ""
        )
        yield Found(digest(image), split, "", tuple(sorted(boxes)))


def coco(folder: Path) -> Iterator[Found]:
    for path in sorted(folder.rglob("*.json")):
        data = json.loads(path.read_text())
        names = {each["id"]: each["name"] for each in data["categories"]}
        boxes = defaultdict(list)
        sizes = {each["id"]: (each["width"], each["height"]) for each in data["images"]}
        for each in data["annotations"]:
            (left, top, width, height), (w, h) = each["bbox"], sizes[each["image_id"]]
            box = as_box(
                names[each["category_id"]],
                left / w,
                top / h,
                (left + width) / w,
                (top + height) / h,
            )
            boxes[each["image_id"]].append(box)
        first = path.relative_to(folder).parts[0]
        split = name_split(first) if first in ("train", "val", "valid", "test") else ""
        for each in data["images"]:
            image = path.parent / each["file_name"]
            yield Found(digest(image), split, "", tuple(sorted(boxes[each["id"]])))


def yolo(folder: Path) -> Iterator[Found]:
    names = yaml.safe_load((folder / "data.yaml").read_text())["names"]
    for path in images_below(folder):
        parts = list(path.relative_to(folder).parts)
        labels = folder.joinpath(
            *["labels" if part == "images" else part for part in parts]
        ).with_suffix(".txt")
        split = next(part for part in parts if part in ("train", "val", "valid", "test"))
        yield Found(digest(path), name_split(split), "", tuple(sorted(read_yolo(labels, names))))


def darknet(folder: Path) -> Iterator[Found]:
    names = (folder / "obj.names").read_text().split()
    for path in images_below(folder):
        yield Found(
            digest(path), "train", "", tuple(sorted(read_yolo(path.with_suffix(".txt"), names)))
        )


def read_yolo(path: Path, names: list[str]) -> Iterator[Box]:
    for line in path.read_text().splitlines() if path.exists() else ():
        number, *words = line.split()
        values = [float(each) for each in words]
        if len(values) > 5:  # a polygon
            xs, ys = values[::2], values[1::2]
            yield as_box(names[int(number)], min(xs), min(ys), max(xs), max(ys))
        elif values:
            x, y, width, height = values[:4]
            yield as_box(
                names[int(number)], x - width / 2, y - height / 2, x + width / 2, y + height / 2
            )


def labelme(folder: Path) -> Iterator[Found]:
    for path in sorted(folder.rglob("*.json")):
        data = json.loads(path.read_text())
        image = path.parent / posixpath.basename(data["imagePath"].replace("\\", "/"))
        width, height = size_of(image)
        boxes = []
        for shape in data["shapes"]:
            xs, ys = zip(*shape["points"], strict=True)
            boxes.append(
                as_box(
                    shape["label"],
                    min(xs) / width,
                    min(ys) / height,
                    max(xs) / width,
                    max(ys) / height,
                )
            )
        yield Found(digest(image), "", "", tuple(sorted(boxes)))


def boxes_csv(folder: Path) -> Iterator[Found]:
    for path in sorted(folder.rglob("*.csv")):
        boxes = defaultdict(list)
        for row in csv.DictReader(path.read_text().splitlines()):
            width, height = int(row["width"]), int(row["height"])
            left, top, right, bottom = (int(row[side]) for side in ("xmin", "ymin", "xmax", "ymax"))
            box = as_box(row["class"], left / width, top / height, right / width, bottom / height)
            boxes[row["filename"]].append(box)
        word = re.match("train|valid|val|test", path.stem) or re.match(
            "train|valid|val|test", path.parent.name
        )
        assert word is not None, f"{path} names no split"
        for name, found in boxes.items():
            image = next(each for each in images_below(folder) if each.name == name)
            yield Found(digest(image), name_split(word[0]), "", tuple(sorted(found)))


def split_lists(folder: Path) -> Iterator[Found]:
    for path in sorted(folder.glob("*.txt")):
        for line in path.read_text().splitlines():
            name, label = (each.strip() for each in line.split(",")[:2])
            yield Found(digest(folder / name), name_split(path.stem), label, ())


def idx(folder: Path) -> Iterator[Found]:
    for path in sorted(folder.glob("*images*.gz")):
        pixels = gzip.decompress(path.read_bytes())
        labels = gzip.decompress(
            (folder / path.name.replace("images-idx3", "labels-idx1")).read_bytes()
        )[8:]
        count, height, width = struct.unpack_from(">III", pixels, 4)
        assert len(labels) == count
        for number, label in enumerate(labels):
            image = pixels[16 + number * height * width :][: height * width]
            yield Found(
                hashlib.sha256(image).hexdigest(),
                name_split(path.name.split("-")[0]),
                str(label),
                (),
            )


def webdataset(folder: Path) -> Iterator[Found]:
    for path in sorted(folder.glob("*.tgz")):
        samples: dict[str, dict[str, bytes]] = defaultdict(dict)
        with tarfile.open(path) as archive:
            for member in archive:
                if (file := archive.extractfile(member)) is not None:
                    stem, _, ending = member.name.partition(".")
                    samples[stem][ending] = file.read()
        for sample in samples.values():
            image = next(data for ending, data in sample.items() if f".{ending}" in IMAGES)
            yield Found(
                hashlib.sha256(image).hexdigest(), "", sample.get("cls", b"").decode().strip(), ()
            )


LAYOUTS: dict[str, Callable[[Path], Iterator[Found]]] = {
    each.__name__: each
    for each in (
        boxes_csv, class_folders, coco, darknet, idx, labelme, split_lists, voc, webdataset, yolo
    )
}  # fmt: skip
