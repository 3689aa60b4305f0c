"""The collections that the goldens are made of: functions that give contents by path, and the
folders in `tests/golden/inputs`. Add to them, never change one."""

import csv
import io
import json
import struct
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from crc32c import crc32c
from frozen_pictures import (
    draw_image,
    draw_jpeg,
    draw_pixels,
    draw_png,
    encode,
    exif_of,
    gray_profile,
    store_in_gzip,
    swapped_profile,
)
from PIL import Image

from recordmill.schemas.features import Example

Files = dict[str, bytes]

FOLDERS = Path(__file__).parents[1] / "golden" / "inputs"

SPLITS = ("train", "validation", "test")


def folder_names() -> list[str]:
    """The folders in `tests/golden/inputs`, each named after a shipped configuration."""
    return sorted(path.name for path in FOLDERS.iterdir())


def read_folder(name: str) -> Files:
    """The files of one of these folders."""
    root = FOLDERS / name
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


def photos() -> Files:
    """Three classes of JPEGs; some images are of one subject by their names, some have the same
    bytes."""
    files = {
        f"{label}/{n}_subject{n % 4}.jpg": draw_jpeg(f"{label} {n}")
        for label in ("cat", "dog")
        for n in range(7)
    }
    files |= {f"émeu/{n}_subject{n}.jpg": draw_jpeg(f"emu {n}", (20 + n, 18)) for n in range(3)}
    return files | {
        "dog/copy_subject9.jpg": files["dog/1_subject1.jpg"],
        "cat/copy_subject8.jpg": files["cat/2_subject2.jpg"],
    }


def corrected_photos() -> Files:
    """The folder `photos`, and a list that corrects two of its images; it also has a file that has
    changed since, and one that is not there."""
    files = {f"photos/{path}": content for path, content in photos().items()}
    lines = ["key\tsha256\tclass"]
    for path, content, class_name in (
        ("cat/0_subject0.jpg", files["photos/cat/0_subject0.jpg"], "dog"),
        ("émeu/1_subject1.jpg", files["photos/émeu/1_subject1.jpg"], "cat"),
        ("dog/3_subject3.jpg", b"as it was before", "cat"),
        ("dog/gone.jpg", b"gone", "cat"),
    ):
        lines.append(f"{path}\t{sha256(content).hexdigest()}\t{class_name}")
    return files | {"corrections.tsv": "".join(f"{line}\n" for line in lines).encode()}


def formats() -> Files:
    """An image of each form that is stored in a way of its own, and files that are rejected or
    ignored."""
    files = {
        "jpeg/plain.jpg": draw_jpeg("plain"),
        "jpeg/420.jpg": draw_jpeg("420", subsampling="4:2:0"),
        "jpeg/422.jpg": draw_jpeg("422", subsampling="4:2:2", quality=70),
        "jpeg/progressive.jpg": draw_jpeg("progressive", progressive=True),
        "jpeg/gray.jpg": draw_jpeg("gray", mode="L"),
        "jpeg/cmyk.jpg": encode(draw_image("cmyk", mode="CMYK"), "JPEG", quality=90),
        "jpeg/profile.jpg": draw_jpeg("profile", icc_profile=swapped_profile()),
        "jpeg/bad_profile.jpg": draw_jpeg("bad profile", icc_profile=b"not a profile"),
        "jpeg/large.jpg": draw_jpeg("large", (75, 50), subsampling="4:2:0"),
        "png/plain.png": draw_png("png"),
        "png/gray.png": draw_png("gray png", mode="L"),
        "png/alpha.png": draw_png("alpha", mode="RGBA"),
        "png/gray_alpha.png": draw_png("gray alpha", mode="LA"),
        "png/palette.png": draw_png("palette", mode="P"),
        "png/transparent_palette.png": draw_png("transparent palette", mode="P", transparency=3),
        "png/16_bits.png": draw_png("16 bits", mode="I;16"),
        "png/1_bit.png": draw_png("1 bit", mode="1"),
        "png/profile.png": draw_png("png profile", icc_profile=swapped_profile()),
        "other/one.gif": encode(draw_image("gif", mode="P"), "GIF"),
        "other/animated.gif": encode(
            draw_image("frame 0", mode="P"),
            "GIF",
            save_all=True,
            append_images=[draw_image("frame 1", mode="P")],
        ),
        "other/lossy.webp": encode(draw_image("webp"), "WEBP", quality=80),
        "other/alpha.webp": encode(draw_image("alpha webp", mode="RGBA"), "WEBP", lossless=True),
        "other/plain.bmp": encode(draw_image("bmp"), "BMP"),
        "other/plain.tif": encode(draw_image("tiff"), "TIFF"),
        "other/lab.tif": encode(draw_image("lab", mode="LAB"), "TIFF"),
        "other/16_bits.tif": encode(draw_image("tiff 16", mode="I;16"), "TIFF"),
        "other/pages.tif": encode(
            draw_image("page 0"),
            "TIFF",
            save_all=True,
            append_images=[draw_image("page 1", (8, 8))],
        ),
        "other/plain.ppm": encode(draw_image("ppm"), "PPM"),
        "other/16_bits.pgm": b"P5 24 16 65535\n" + draw_pixels("pgm", channels=2),
        "bad/text.jpg": b"not a picture",
        "bad/empty.jpg": b"",
        "bad/cut.jpg": draw_jpeg("cut", (60, 40))[:-200],
        "bad/good.jpg": draw_jpeg("good"),
        "png/.hidden.png": b"",
        "png/Thumbs.db": b"made by a system",
    }
    return files | {f"turned/{n}.jpg": draw_jpeg(f"turned {n}", orientation=n) for n in range(2, 9)}


def metadata() -> Files:
    """Images with a position, a comment and more, one of them turned."""
    exif = Image.Exif()
    exif[0x010F] = "maker"
    exif.get_ifd(0x8825).update({1: "N", 2: (48.0, 8.0, 0.0)})
    turned = Image.Exif()
    turned.load(exif.tobytes())
    turned[0x0112] = 6
    files = {"a/plain.jpg": draw_jpeg("no metadata")}
    for name, each in (("upright", exif), ("turned", turned)):
        files[f"a/{name}.jpg"] = (
            encode(draw_image(name), "JPEG", exif=each, comment=b"comment") + b"a motion photo"
        )
        files[f"b/{name}.png"] = draw_png(name, exif=each)
        files[f"b/{name}.webp"] = encode(
            draw_image(name), "WEBP", lossless=True, exif=each, xmp=b"<x/>"
        )
    return files


def optional_formats() -> Files:
    """Formats that are accepted only where they are named."""
    avif = {"quality": 80, "max_threads": 1}
    return {
        "avif/plain.avif": encode(draw_image("avif"), "AVIF", **avif),
        "avif/alpha.avif": encode(draw_image("alpha avif", mode="RGBA"), "AVIF", **avif),
        "avif/turned.avif": encode(draw_image("turned avif"), "AVIF", exif=exif_of(6), **avif),
        "jpeg2000/plain.jp2": encode(draw_image("jp2"), "JPEG2000"),
        "jpeg2000/16_bits.jp2": encode(draw_image("deep jp2", mode="I;16"), "JPEG2000"),
        "jpeg2000/codestream.j2k": encode(draw_image("j2k"), "JPEG2000", no_jp2=True),
    }


def rare_formats() -> Files:
    """Forms that few collections have."""
    samples = draw_pixels("samples", channels=1)
    numbers = " ".join(map(str, samples)).encode()
    frames = {"save_all": True, "append_images": [draw_image("next frame")]}
    turned: dict[str, Any] = {"exif": exif_of(6)}
    first_of_16_bits = int.from_bytes(draw_pixels("transparent 16", channels=2)[:2], "little")
    return {
        "deep/float.tif": encode(draw_image("float", mode="F"), "TIFF"),
        "deep/32_bits.tif": encode(draw_image("32 bits", mode="I"), "TIFF"),
        "deep/transparent.png": draw_png(
            "transparent 16", mode="I;16", transparency=first_of_16_bits
        ),
        "deep/maximum.pgm": b"P5 24 16 300\n"
        + b"".join(struct.pack(">H", each) for each in samples),
        "netpbm/plain.pgm": b"P2\n# a comment\n24 16\n255\n" + numbers,
        "netpbm/plain.ppm": b"P3 8 16 255 " + numbers,
        "netpbm/plain.pbm": b"P1 24 16\n" + b" ".join(b"%d" % (each & 1) for each in samples),
        "netpbm/packed.pbm": b"P4 24 16\n" + samples[:48],
        "netpbm/maximum.pgm": b"P5 24 16 100\n" + bytes(each % 101 for each in samples),
        "frames/animated.png": encode(draw_image("first frame"), "PNG", **frames),
        "frames/animated.webp": encode(draw_image("first frame"), "WEBP", lossless=True, **frames),
        "frames/two.mpo": encode(draw_image("first frame"), "MPO", **frames),
        "colour/rgb.jpg": draw_jpeg("rgb", keep_rgb=True),
        "colour/gray_profile.jpg": draw_jpeg("gray profile", mode="L", icc_profile=gray_profile()),
        "colour/key.png": draw_png("key", transparency=tuple(draw_pixels("key")[:3])),
        "colour/cmyk.tif": encode(draw_image("cmyk tiff", mode="CMYK"), "TIFF"),
        "turned/turned.png": draw_png("turned png", **turned),
        "turned/turned.webp": encode(draw_image("turned webp"), "WEBP", **turned),
        "turned/turned_422.jpg": draw_jpeg(
            "turned 422", (33, 17), orientation=6, subsampling="4:2:2"
        ),
        "large/wide.jpg": draw_jpeg("wide", (330, 110), subsampling="4:2:0"),
        "large/tall.png": draw_png("tall", (90, 260)),
        "large/tiny.png": draw_png("tiny", (1, 1)),
    }


def split_folders() -> Files:
    return {
        f"{split}/{label}/{n}.jpg": draw_jpeg(f"{split} {label} {n}")
        for split in ("train", "val", "extra")
        for label in ("a", "b")
        for n in range(3)
    }


def labels_in_names() -> Files:
    return {f"img_{n:03}_{n % 3 + 4}.jpg": draw_jpeg(f"name {n}") for n in range(12)}


def synsets_in_names() -> Files:
    return {
        f"n0144{n % 3}_{('tench', 'gar', 'eel')[n % 3]}.{n}.JPEG": draw_jpeg(f"synset {n}")
        for n in range(9)
    }


# Tables

ROWS = [
    (f"p/{n}.jpg", ("cat", 'dog, "big"')[n % 2], SPLITS[n % 3], None if n == 4 else n)
    for n in range(9)
]
NAMES = ("path", "class", "split", "age")


def as_csv(
    rows: Iterable[Iterable[object]], names: Iterable[str] = (), delimiter: str = ","
) -> bytes:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerows([names, *rows] if names else rows)
    return stream.getvalue().encode()


def as_jsonl(rows: Iterable[Iterable[object]], names: Iterable[str]) -> bytes:
    return "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows).encode()


def as_parquet(rows: Iterable[Iterable[object]], names: Iterable[str]) -> bytes:
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])
    stream = io.BytesIO()
    pq.write_table(table, stream, row_group_size=4, compression="none")
    return stream.getvalue()


def named_images(count: int = 9) -> Files:
    return {f"p/{n}.jpg": draw_jpeg(f"named {n}") for n in range(count)}


def manifest() -> Files:
    return named_images() | {"manifest.csv": as_csv(ROWS, NAMES)}


def manifest_jsonl() -> Files:
    return named_images() | {"manifest.jsonl.gz": store_in_gzip(as_jsonl(ROWS, NAMES))}


def manifest_parquet() -> Files:
    rows = [(draw_jpeg(f"named {n}"), *rest, path) for n, (path, *rest) in enumerate(ROWS)]
    return {"manifest.parquet": as_parquet(rows, ("data", *NAMES[1:], "name"))}


def manifest_of_several_labels() -> Files:
    tags = ("fur|cat", "", "dog|fur", "cat", "dog", "fur|dog|cat")
    return named_images(6) | {
        "manifest.csv": as_csv(
            [(f"p/{n}.jpg", each) for n, each in enumerate(tags)], ("path", "tags")
        )
    }


def manifest_of_blank_labels() -> Files:
    rows = [(f"p/{n}.jpg", "" if n % 3 == 0 else f" c{n % 2}") for n in range(9)]
    return named_images() | {"manifest.csv": as_csv(rows, ("path", "class"))}


def manifest_of_box_lists() -> Files:
    boxes = [[[2 / 24, 0.25, 0.5, 1.0], [0, 0, 1, 0.125 * (n + 1)]][: n % 3] for n in range(6)]
    rows = [
        (f"p/{n}.jpg", json.dumps(each), "|".join(("cat", "dog")[: len(each)]))
        for n, each in enumerate(boxes)
    ]
    return named_images(6) | {"manifest.csv": as_csv(rows, ("path", "boxes", "names"))}


def manifest_of_everything() -> Files:
    """Keys, groups and digests; image names are made of two columns."""
    images = {f"p/{n}.jpg": draw_jpeg(f"everything {n}") for n in range(10)}
    rows = [
        (
            *path.partition(".")[0].split("/"),
            f"key {n}",
            f"g{n % 4}",
            sha256(data).hexdigest(),
            n % 3,
            f"{n};{n + 1}",
        )
        for n, (path, data) in enumerate(images.items())
    ]
    names = ("folder", "id", "key", "patient", "sha256", "class", "scores")
    return images | {"rows.csv": as_csv(rows, names)}


def manifest_of_masks() -> Files:
    """Semantic masks of 0, 255 and other values, of images that are turned and that are not.

    Of the last masks, one is smaller than its image, one is no image, and one does not exist.
    """
    pixels = np.arange(30 * 20, dtype=np.uint8).reshape(20, 30)
    files, rows = {}, []
    for n in range(10):
        files[f"images/{n}.jpg"] = draw_jpeg(f"masks {n}", (30, 20), orientation=1 + n % 8)
        mask = (pixels + n).T if n % 8 >= 4 else pixels + n
        files[f"masks/{n}.png"] = encode(Image.fromarray(np.ascontiguousarray(mask)), "PNG")
        rows.append((f"images/{n}.jpg", f"masks/{n}.png", "test" if n % 2 else "train"))
    files["masks/7.png"] = encode(Image.fromarray(pixels[:10]), "PNG")
    files["masks/8.png"] = b"no image"
    del files["masks/9.png"]
    return files | {"rows.csv": as_csv(rows, ("image", "mask", "split"))}


def pairs_of_images() -> Files:
    """Second images in another folder, turned and not, and next to the first ones.

    One is damaged, one is missing, and one has no first image.
    """
    files = {}
    for n in range(6):
        files[f"A/{n}.jpg"] = draw_jpeg(f"first {n}", (30, 20), orientation=1 + n)
        files[f"A/{n}x2.jpg"] = draw_jpeg(f"low {n}", (15, 10), orientation=1 + n)
        picture = Image.open(io.BytesIO(draw_jpeg(f"second {n}", (30, 20))))
        files[f"B/{n}.png"] = encode(picture, "PNG")
    files["B/1.png"] = files["B/1.png"][:300]
    del files["A/2x2.jpg"], files["A/3.jpg"]
    return files


def manifest_of_wide_masks() -> Files:
    """Semantic masks of ids over 255, in 16 bits and in colors, one of them over 65,535."""
    pixels = np.arange(30 * 20, dtype=np.uint16).reshape(20, 30) * 109
    files, rows = {}, []
    for n in range(6):
        files[f"images/{n}.jpg"] = draw_jpeg(f"wide masks {n}", (30, 20), orientation=1 + n)
        mask = pixels + n
        files[f"masks/{n}.png"] = encode(Image.fromarray(mask), "PNG")
        rows.append((f"images/{n}.jpg", f"masks/{n}.png"))
    colors = np.stack([pixels & 255, pixels >> 8, pixels * 0], axis=-1).astype(np.uint8)
    files["masks/1.png"] = encode(Image.fromarray(colors), "PNG")
    files["masks/2.png"] = encode(Image.fromarray(colors + 1), "PNG")
    return files | {"rows.csv": as_csv(rows, ("image", "mask"))}


def manifest_of_points() -> Files:
    """Two tables, each with a folder; the column of paths has no name, and numbers are missing."""
    images = {f"{at}/{n}.jpg": draw_jpeg(f"points {at} {n}") for at in "pq" for n in range(5)}
    rows = [(f"{n}.jpg", f"c{n % 2}", n / 2, n, "" if n == 3 else n * n) for n in range(5)]
    table = as_csv(rows, ("", "class", "x", "y1", "y2"))
    return images | {"one.csv": table, "two.csv": table}


def manifest_of_other_text() -> Files:
    """UTF-16 without a header, cells between semicolons, some in single quotes."""
    text = "".join(f"'p/{n}.jpg';'größer; als {n % 2}'\n" for n in range(9))
    return named_images() | {"list.txt": text.encode("utf-16")}


def lists() -> Files:
    files = named_images() | {"README.txt": b"Photographs\n"}
    for split, form in (("train", "{}, {}\n"), ("val", "{}\t{}\n"), ("test", "{} {}\n")):
        named = [(path, label[:3]) for path, label, given, _ in ROWS if given.startswith(split)]
        files[f"{split}.txt"] = "".join(form.format(*each) for each in named).encode()
    return files


def kaggle() -> Files:
    files = {f"images/{n}.{'png' if n == 2 else 'jpg'}": draw_jpeg(f"id {n}") for n in range(6)}
    return files | {
        "train.csv": as_csv([(n, ("cat", "dog")[n % 2]) for n in range(6)], ("id", "label"))
    }


def vertex() -> Files:
    lines = [
        {
            "imageGcsUri": f"p/{n}.jpg",
            "classificationAnnotation": {"displayName": label},
            "dataItemResourceLabels": {
                "aiplatform.googleapis.com/ml_use": split.replace("train", "training")
            },
        }
        for n, (_, label, split, _) in enumerate(ROWS)
    ]
    return named_images() | {
        "import.jsonl": "".join(json.dumps(line) + "\n" for line in lines).encode()
    }


def automl() -> Files:
    return named_images() | {
        "import.csv": as_csv([(split.upper(), path, label) for path, label, split, _ in ROWS])
    }


def imagefolder() -> Files:
    files = {}
    for split in SPLITS:
        rows = [(f"in/{n}.jpg", ("cat", "dog")[n % 2], f"größer als {n}") for n in range(3)]
        files[f"{split}/metadata.csv"] = as_csv(rows, ("file_name", "label", "text"))
        files |= {f"{split}/in/{n}.jpg": draw_jpeg(f"{split} {n}") for n in range(4)}
    return files


def imagefolder_of_objects() -> Files:
    objects = [
        {"bbox": [[2, 1, 8, 9], [0, 5, 20, 5]][:count], "categories": [1, 0][:count]}
        for count in (2, 0, 1, 2)
    ]
    rows = [(f"{n}.jpg", each) for n, each in enumerate(objects)]
    return {f"{n}.jpg": draw_jpeg(f"object {n}") for n in range(4)} | {
        "metadata.jsonl": as_jsonl(rows, ("file_name", "objects"))
    }


OBSERVATIONS = [(n % 3 == 0, n, ("cat", "dog", "hen")[n % 3], n / 8 - 1) for n in range(20)]
COLUMNS = ("feature0", "feature1", "feature2", "feature3")


def observations() -> Files:
    return {
        "observations.csv": as_csv(
            [(str(row[0]).lower(), *row[1:]) for row in OBSERVATIONS], COLUMNS
        )
    }


def observations_jsonl() -> Files:
    rows = [(*row, [row[3], 2.5], f"row {row[1]}") for row in OBSERVATIONS]
    return {"observations.jsonl": as_jsonl(rows, (*COLUMNS, "embedding", "id"))}


def observations_of_types() -> Files:
    rows = [
        (
            f"r{n}",
            ("low", "high", "")[n % 3],
            n * 2**40,
            "" if n == 5 else n / 3,
            f"s{n % 3}",
            f"g{n % 5}",
            f"[{n}, {n + 1}]",
        )
        for n in range(15)
    ]
    return {
        "rows.tsv": as_csv(
            rows, ("id", "quality", "size", "share", "part", "owner", "counts"), "\t"
        )
    }


def observations_parquet() -> Files:
    return {"observations.parquet": as_parquet(OBSERVATIONS, COLUMNS)}


# Boxes

SIZES = {"a": (40, 20, 1), "b": (30, 60, 1), "c": (40, 20, 6), "d": (20, 20, 1), "e": (24, 24, 1)}
"""Width, height and orientation; c is 20 x 40 as people see it."""

BOXES = {
    "a": [("cat", (0, 0, 10, 10)), ("dog", (10, 5, 40, 20))],
    "b": [("dog", (3, 6, 27, 54))],
    "c": [("cat", (5, 10, 15, 40))],
    "d": [],
    "e": [("cat", (12, 3, 36, 9)), ("dog", (4, 4, 4, 9)), ("dog", (1, 2, 9, 8))],
}
"""By image; of e's the first sticks out, and the second is empty."""


def shown(name: str) -> tuple[int, int]:
    """Width and height of an image as people see it."""
    width, height, orientation = SIZES[name]
    return (height, width) if orientation > 4 else (width, height)


def drawn(pattern: str = "{}.jpg") -> Files:
    """The images that have boxes."""
    return {
        pattern.format(name): draw_jpeg(f"boxes {name}", (width, height), orientation=orientation)
        for name, (width, height, orientation) in SIZES.items()
    }


def coco() -> Files:
    files: Files = {}
    for split, names in (("train", "abc"), ("val", "de")):
        images: list[dict[str, object]] = []
        annotations: list[dict[str, object]] = []
        for name in names:
            number = ord(name)
            width, height = shown(name)
            images.append(
                {"id": number, "file_name": f"{name}.jpg", "width": width, "height": height}
            )
            for label, (left, top, right, bottom) in BOXES[name]:
                box, category = [left, top, right - left, bottom - top], {"cat": 3, "dog": 7}[label]
                area = (right - left) * (bottom - top) / 2
                annotations.append(
                    {
                        "id": len(annotations),
                        "image_id": number,
                        "category_id": category,
                        "bbox": box,
                    }
                    | {"iscrowd": int(label == "dog"), "area": area}
                )
        categories = [{"id": 3, "name": "cat"}, {"id": 7, "name": "dog"}, {"id": 9, "name": "hen"}]
        text = json.dumps({"images": images, "annotations": annotations, "categories": categories})
        files[f"annotations/instances_{split}2017.json"] = text.encode()
        files |= {
            path: data for path, data in drawn(f"{split}/{{}}.jpg").items() if path[-5] in names
        }
    return files


def coco_outlines() -> Files:
    """The same with outlines: polygons of one and two parts, runs, a tiny one, and none."""
    files = coco()
    for path in [each for each in files if each.endswith(".json")]:
        content = json.loads(files[path])
        sizes = {each["id"]: (each["width"], each["height"]) for each in content["images"]}
        for number, each in enumerate(content["annotations"]):
            outline = _outline(number, each["bbox"], sizes[each["image_id"]])
            if outline is not None:
                each["segmentation"] = outline
        files[path] = json.dumps(content).encode()
    return files


def coco_key_points() -> Files:
    """The same with key points: cats and dogs share one name of three, and one point is outside."""
    files = coco()
    names = {"cat": ["nose", "ear"], "dog": ["nose", "tail"]}
    for path in [each for each in files if each.endswith(".json")]:
        content = json.loads(files[path])
        for each in content["categories"]:
            each["keypoints"] = names.get(each["name"], [])
            each["skeleton"] = [[2, 1]]
        for number, each in enumerate(content["annotations"]):
            x, y, width, height = each["bbox"]
            points = [
                x + width / 4,
                y + height / 2,
                2 - number % 2,
                x + width,
                y - number,
                number % 3,
            ]
            each["keypoints"] = points if number % 4 < 3 else [0] * 6
        files[path] = json.dumps(content).encode()
    return files


def coco_attributes() -> Files:
    """The same with attributes: truth values, numbers, words, several values, and none."""
    files = coco()
    for path in [each for each in files if each.endswith(".json")]:
        content = json.loads(files[path])
        for number, each in enumerate(content["annotations"]):
            own: dict[str, object] = {"occluded": number % 2 == 0, "age": number, "rotation": 0.0}
            own["color"] = ["red", "dark blue", True][number % 3]
            each["attributes"] = own | {"tags": ["a", "b"]} if number % 4 else {}
            each["truncated"] = number % 3 // 2
        files[path] = json.dumps(content).encode()
    return files


def _outline(number: int, box: list[float], size: tuple[int, int]) -> object:
    x, y, width, height = box
    diamond = [x + width / 2, y, x + width, y + height / 2, x + width / 2, y + height]
    match number % 4:
        case 0:
            return [[*diamond, x, y + height / 2]]
        case 1:
            return [diamond, [x, y, x + 4, y, x, y + 4.5]]
        case 2:
            columns = size[0] // 2 * size[1]
            return {
                "size": [size[1], size[0]],
                "counts": [5, columns, size[0] * size[1] - columns - 5],
            }
        case _:
            return (
                [[x + 0.1, y + 0.1, x + 0.3, y + 0.1, x + 0.3, y + 0.3]]
                if number % 8 == 3
                else None
            )


def voc() -> Files:
    files = drawn("JPEGImages/{}.jpg")
    for name, boxes in BOXES.items():
        objects = "".join(
            f"<object><name>{label}</name><difficult>{index}</difficult><bndbox><xmin>{left}</xmin><ymin>{top}</ymin>"
            f"<xmax>{right}</xmax><ymax>{bottom}</ymax></bndbox></object>"
            for index, (label, (left, top, right, bottom)) in enumerate(boxes)
        )
        size = "<size><width>{}</width><height>{}</height></size>".format(*shown(name))
        text = f"<annotation><filename>{name}.jpg</filename>{size}{objects}</annotation>"
        files[f"Annotations/{name}.xml"] = text.encode()
    return files


def voc_sets() -> Files:
    return voc() | {"ImageSets/Main/train.txt": b"a\nb\n", "ImageSets/Main/val.txt": b"c\nd\n"}


def voc_masks() -> Files:
    """As `voc`, with masks of the objects but those of b; those of a are swapped.

    Around the objects, there is void.
    """
    files = voc()
    for name in "acde":
        width, height = shown(name)
        ids = np.full((height, width), 255, np.uint8)
        for number, (_, (left, top, right, bottom)) in enumerate(BOXES[name], start=1):
            ids[max(0, top) : bottom, max(0, left) : right] = number
        if name == "a":
            ids = np.where(ids == 255, 255, 3 - ids).astype(np.uint8)
        image = Image.fromarray(ids, "P")
        image.putpalette(bytes(range(256)) * 3)
        stream = io.BytesIO()
        image.save(stream, "PNG")
        files[f"SegmentationObject/{name}.png"] = stream.getvalue()
    return files


def voc_everything() -> Files:
    """As `voc_masks` with the numbers of a in order, semantic masks, and lists without b.

    The semantic mask of c has the colors of VOC's palette: (64, 0, 0) for cat.
    """
    files, ids_of = voc_masks(), {"cat": 8, "dog": 12}
    for name in "acde":
        numbers = np.asarray(Image.open(io.BytesIO(files[f"SegmentationObject/{name}.png"])))
        if name == "a":
            numbers = np.where(numbers == 255, 255, 3 - numbers).astype(np.uint8)
            files["SegmentationObject/a.png"] = encode(Image.fromarray(numbers), "PNG")
        ids = np.where(numbers == 255, 255, 0).astype(np.uint8)
        for number, (label, _) in enumerate(BOXES[name], start=1):
            ids[numbers == number] = ids_of[label]
        mask = Image.fromarray(ids)
        if name == "c":
            colors = np.zeros((256, 3), np.uint8)
            colors[[8, 255]] = (64, 0, 0), (224, 224, 192)
            mask = Image.fromarray(colors[ids])
        files[f"SegmentationClass/{name}.png"] = encode(mask, "PNG")
    lists = {"train": b"a\nc\n", "val": b"d\ne\n"}
    return files | {f"ImageSets/Segmentation/{word}.txt": text for word, text in lists.items()}


def _yolo_lines(name: str) -> bytes:
    width, height = shown(name)
    return "".join(
        f"{['cat', 'dog'].index(label)} {(left + right) / 2 / width} {(top + bottom) / 2 / height}"
        f" {(right - left) / width} {(bottom - top) / height}\n"
        for label, (left, top, right, bottom) in BOXES[name]
    ).encode()


def yolo() -> Files:
    files: Files = {"data.yaml": b"names: [cat, dog]"}
    for path, data in drawn().items():
        split = "val" if path[0] in "de" else "train"
        files[f"images/{split}/{path}"] = data
        files[f"labels/{split}/{path[0]}.txt"] = _yolo_lines(path[0])
    files["labels/train/a.txt"] += b"1 0.1 0.2 0.4 0.1 0.3 0.6\n"  # a polygon
    return files


def yolo_beside() -> Files:
    return (
        drawn("obj/{}.jpg")
        | {f"obj/{name}.txt": _yolo_lines(name) for name in "abc"}
        | {"obj.names": b"cat\ndog\n"}
    )


def labelme_masks() -> Files:
    shapes = [
        {"label": "dog", "points": [[2, 3], [9, 8]], "shape_type": "mask"},
        {"label": "cat", "points": [[12, 8], [15, 12]], "shape_type": "circle"},
        {"label": "cat", "points": [[3, 3]], "shape_type": "point"},
        {"label": "cat", "points": [[0, 1], [20, 12], [23, 5]], "shape_type": "linestrip"},
    ]
    files = {f"{n}.jpg": draw_jpeg(f"mask {n}") for n in range(4)}
    return files | {
        f"{n}.json": json.dumps({"imagePath": f"{n}.jpg", "shapes": shapes[n : n + 2]}).encode()
        for n in range(4)
    }


def yolo_poses() -> Files:
    """As `yolo`, with key points after each box, and a confidence in one line."""
    files = yolo() | {"data.yaml": b"names: {0: cat, 1: dog}\nkpt_shape: [2, 3]\n"}
    files["labels/train/a.txt"] = b"0 0.5 0.5 0.5 0.5 0.3 0.4 2 0.6 0.6 1\n"
    files["labels/train/b.txt"] = b"1 0.25 0.5 0.25 0.5 0 0 0 0.125 0.5 2\n"
    files["labels/train/c.txt"] = b""
    return files | {"labels/val/e.txt": b"1 0.75 0.5 0.5 0.25 0.5 0.5 1 0 0 0\n"}


def boxes_csv() -> Files:
    rows: list[tuple[object, ...]] = [
        (f"{name}.jpg", *shown(name), label, *sides)
        for index in range(3)
        for name, boxes in BOXES.items()
        for label, sides in boxes[index : index + 1]
    ]
    rows.append(("d.jpg", 20, 20, "", "", "", "", ""))
    names = ("filename", "width", "height", "class", "xmin", "ymin", "xmax", "ymax")
    return drawn() | {"boxes.csv": as_csv(rows, names)}


def retinanet() -> Files:
    rows = [
        (f"{name}.jpg", *sides, label) for name, boxes in BOXES.items() for label, sides in boxes
    ]
    return drawn() | {"annotations.csv": as_csv([*rows, ("d.jpg", "", "", "", "", "")])}


def landmarks() -> Files:
    """Two landmarks in each row; some are missing or outside, and EXIF data turn an image."""
    rows: list[tuple[object, ...]] = []
    for number, name in enumerate(BOXES):
        width, height = shown(name)
        tail = (width + number, 2) if number % 2 else ("", "")
        rows.append((f"{name}.jpg", width / 4, height / 2, *tail))
    return drawn() | {"points.csv": as_csv(rows, ("file", "nose_x", "nose_y", "tail_x", "tail_y"))}


# Archives, arrays, records


def as_tar(files: Files) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def as_zip(files: Files, method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name)
            member.external_attr = 0o644 << 16
            # Level 0 stores blocks as they are: other versions of zlib would pack them differently.
            archive.writestr(member, content, method, 0)
    return stream.getvalue()


def in_classes() -> Files:
    return {
        f"{label}/{n}.jpg": draw_jpeg(f"packed {label} {n}")
        for label in ("rose", "tulip")
        for n in range(6)
    }


def archive_zip() -> Files:
    return {"flowers.zip": as_zip(in_classes() | {"notes.txt": b"notes"}, zipfile.ZIP_DEFLATED)}


def archive_tar() -> Files:
    return {"flowers.tar": as_tar(in_classes() | {"rose/bad.jpg": b"text"})}


def archive_tar_gz() -> Files:
    return {
        "flowers.tar.gz": store_in_gzip(
            as_tar({f"flowers/{name}": each for name, each in in_classes().items()})
        )
    }


def webdataset() -> Files:
    files = {}
    for split in ("train", "val"):
        members: Files = {}
        for n in range(5):
            members |= {f"{n:03}.jpg": draw_jpeg(f"{split} {n}"), f"{n:03}.cls": b"%d" % (n % 3)}
            members |= {f"{n:03}.txt": b"number %d" % n, f"{n:03}.json": b'{"score": 0.%d}' % n}
        files[f"{split}-000000.tar"] = as_tar(members)
    return files


def webdataset_of_json() -> Files:
    """Samples whose label is in JSON, with two images each."""
    members: Files = {}
    for n in range(6):
        members |= {
            f"a/{n}.png": draw_png(f"sample {n}"),
            f"a/{n}.seg.png": draw_png(f"mask {n}", mode="L"),
        }
        members[f"a/{n}.json"] = json.dumps({"kind": ("cat", "dog")[n % 2], "score": n}).encode()
    return {"samples.tar": as_tar(members)}


def _array(name: str, *shape: int) -> np.ndarray:
    pixels = b"".join(
        draw_pixels(f"{name} {n}", shape[2], shape[1], shape[3]) for n in range(shape[0])
    )
    return np.frombuffer(pixels, np.uint8).reshape(shape)


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.ascontiguousarray(array), version=(1, 0))
    return stream.getvalue()


def arrays() -> Files:
    members = {}
    for split, count in (("train", 8), ("test", 4)):
        members[f"x_{split}.npy"] = _npy(_array(split, count, 9, 12, 3))
        members[f"y_{split}.npy"] = _npy(np.arange(count, dtype=np.int64) % 3)
    return {"data.npz": as_zip(members)}


def arrays_planar() -> Files:
    images = _array("planar", 6, 9, 12, 3).transpose(0, 3, 1, 2)
    return {"x_train.npy": _npy(images), "y_train.npy": _npy(np.array([["cat"], ["dog"]] * 3))}


def cifar10() -> Files:
    names = [f"class {n}" for n in range(10)]
    files = {"batches.meta.txt": ("\n".join(names) + "\n\n").encode(), "readme.html": b"<html>"}
    for name in ("data_batch_1", "data_batch_2", "test_batch"):
        records = [bytes([n]) + draw_pixels(f"{name} {n}", 32, 96, 1) for n in range(0, 10, 2)]
        files[f"{name}.bin"] = b"".join(records)
    return files


def cifar100() -> Files:
    files = {"fine_label_names.txt": "".join(f"fine {n}\n" for n in range(100)).encode()}
    files["coarse_label_names.txt"] = "".join(f"coarse {n}\n" for n in range(20)).encode()
    for name in ("train", "test"):
        records = [bytes([n, 99 - n]) + draw_pixels(f"{name} {n}", 32, 96, 1) for n in range(5)]
        files[f"{name}.bin"] = b"".join(records)
    return files


def own_records() -> Files:
    """Files with a header, of records with two label bytes and pixels side by side."""
    return {
        f"{split}_{n}.dat": b"a header of 16 b"
        + b"".join(bytes([i % 2, i]) + draw_pixels(f"{split} {n} {i}", 6, 5) for i in range(4))
        for split in ("train", "test")
        for n in range(2)
    }


def idx() -> Files:
    files = {}
    for name, count in (("train", 8), ("t10k", 4)):
        pixels = b"".join(draw_pixels(f"{name} {n}", 12, 9, 1) for n in range(count))
        files[f"{name}-images-idx3-ubyte.gz"] = store_in_gzip(
            struct.pack(">IIII", 2051, count, 9, 12) + pixels
        )
        files[f"{name}-labels-idx1-ubyte"] = struct.pack(">II", 2049, count) + bytes(
            n % 3 for n in range(count)
        )
    return files


def as_tfrecord(*examples: Mapping[str, object]) -> bytes:
    content = b""
    for values in examples:
        example = Example()
        for key, value in values.items():
            entry = example.features.feature[key]
            value = value if isinstance(value, list) else [value]
            kind = {bytes: entry.bytes_list, float: entry.float_list, int: entry.int64_list}[
                type(value[0])
            ]
            kind.value.extend(value)
        record = example.SerializeToString(deterministic=True)
        length = struct.pack("<Q", len(record))
        content += length + _checksum(length) + record + _checksum(record)
    return content


def _checksum(data: bytes) -> bytes:
    plain = crc32c(data)
    return struct.pack("<I", ((plain >> 15 | plain << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def tfrecords() -> Files:
    def example(split: str, n: int) -> dict[str, object]:
        text = ("cat", "dog")[n % 2].encode()
        return {
            "image/encoded": draw_jpeg(f"{split} {n}"),
            "image/format": b"jpg",
            "image/height": 16,
            "image/width": 24,
            "image/class/label": n % 2 + 1,
            "image/class/text": text,
            "image/filename": f"{split}_{n}.jpg".encode(),
            "image/caption": b"number %d" % n,
            "scores": [n / 4, 1.0],
        }

    return {
        f"{split}-0000{index}-of-00002.tfrecord": as_tfrecord(
            *(example(split, 3 * index + n) for n in range(3))
        )
        for split in ("train", "test")
        for index in range(2)
    }


def tfrecords_of_tfds() -> Files:
    records = [{"image": draw_png(f"tfds {n}"), "label": n % 3} for n in range(6)]
    return {"digits-train.tfrecord-00000-of-00001": as_tfrecord(*records)}


def tfrecords_of_ones_own() -> Files:
    """Raw pixels and numbered classes under keys of one's own, gzipped, with a file that names the
    classes."""
    records = [
        {"pixels": draw_pixels(f"own {n}", 8, 6), "target": n % 3 + 1, "who": f"r{n}".encode()}
        for n in range(8)
    ]
    return {
        "part.tfrecord.gz": store_in_gzip(as_tfrecord(*records)),
        "labels.txt": b"1:cat\n2:dog\n3:hen\n",
    }


def tfrecords_of_ids() -> Files:
    """Classes by numbers that are not consecutive, and splits named in the records."""
    records = [
        {
            "image": draw_png(f"ids {n}"),
            "label": (2, 5, 9)[n % 3],
            "part": (b"learn", b"try")[n % 2],
        }
        for n in range(9)
    ]
    return {"all.tfrecord": as_tfrecord(*records)}


def tfrecords_of_vectors() -> Files:
    records = [
        {"sha256": b"%064d" % n, "feature": [n / 4, 1.5, -2.0], "label": n % 2} for n in range(8)
    ]
    return {
        "train_shard_0": as_tfrecord(*records[:5]),
        "validation_shard_0": as_tfrecord(*records[5:]),
    }


def tfrecords_of_boxes() -> Files:
    def example(n: int) -> dict[str, object]:
        sides = {"xmin": [0.0, 0.25], "ymin": [0.125, 0.0], "xmax": [0.5, 1.0], "ymax": [1.0, 0.5]}
        return {
            f"image/object/bbox/{side}": values[: n % 2 + 1] for side, values in sides.items()
        } | {
            "image/encoded": draw_jpeg(f"boxes in records {n}"),
            "image/format": b"jpeg",
            "image/height": 16,
            "image/width": 24,
            "image/filename": b"%d.jpg" % n,
            "image/source_id": b"%d" % n,
            "image/object/class/text": [b"cat", b"dog"][: n % 2 + 1],
            "image/object/class/label": [1, 2][: n % 2 + 1],
        }

    return {"train.record": as_tfrecord(*map(example, range(6)))}


def draw_mask(seed: int, values: Iterable[int], size: tuple[int, int] = (24, 16)) -> bytes:
    """A mask of blocks with these values."""
    width, height = size
    table = np.array([*values], np.uint8)
    at = np.arange(width)[None, :] // 5 + np.arange(height)[:, None] // 3 * (seed + 2)
    return encode(Image.fromarray(table[at % len(table)]), "PNG")


def masks_in_folders(values: Iterable[int] = range(4)) -> Files:
    """Images and masks in parallel folders; one of each is alone, and one mask is smaller."""
    files = {f"images/{n}.jpg": draw_jpeg(f"segmented {n}") for n in range(8)}
    files |= {f"masks/{n}.png": draw_mask(n, [*values]) for n in range(1, 9)}
    return files | {"masks/3.png": draw_mask(3, [*values], (12, 8))}


def masks_of_two_levels() -> Files:
    return masks_in_folders((0, 255))


def camvid() -> Files:
    files: Files = {}
    for split in ("train", "val", "test"):
        for n in range(3):
            files[f"{split}/{split}_{n}.png"] = draw_png(f"camvid {split} {n}", (24, 16))
            files[f"{split}annot/{split}_{n}.png"] = draw_mask(n, range(12))
        lines = (f"/CamVid/{split}/{n}.png /CamVid/{split}annot/{n}.png\n" for n in range(3))
        files[f"{split}.txt"] = "".join(lines).encode()
    return files


def cityscapes() -> Files:
    files: Files = {}
    for split, city in (("train", "aachen"), ("train", "bochum"), ("val", "lindau")):
        for n in range(2):
            stem = f"{split}/{city}/{city}_{n:06}_000019"
            files[f"leftImg8bit/{stem}_leftImg8bit.png"] = draw_png(stem, (24, 16))
            files[f"gtFine/{stem}_gtFine_labelIds.png"] = draw_mask(n, range(34))
            files[f"gtFine/{stem}_gtFine_instanceIds.png"] = draw_mask(n, range(24))
            files[f"gtFine/{stem}_gtFine_color.png"] = draw_png(f"{stem} color", (24, 16))
            files[f"gtFine/{stem}_gtFine_polygons.json"] = b'{"objects": []}'
    return files


def cityscapes_objects() -> Files:
    """As `cityscapes`, with two cars that touch, a person, and a group of cars in each image."""
    files = cityscapes()
    for at, path in enumerate(path for path in files if path.endswith("_instanceIds.png")):
        ids = np.full((16, 24), 7, np.uint16)
        ids[:4] = 26
        ids[5:9, 2:8], ids[5:9, 8:12], ids[6 : 12 + at % 2, 15:18] = 26_000, 26_001, 24_000
        files[path] = encode(Image.fromarray(ids), "PNG")
    return files


def oxford_pets() -> Files:
    files = {f"images/Bengal_{n}.jpg": draw_jpeg(f"pets {n}") for n in range(7)}
    files |= {f"annotations/trimaps/Bengal_{n}.png": draw_mask(n, (1, 2, 3)) for n in range(7)}
    lists = {"trainval": range(4), "test": range(4, 6), "list": range(7)}
    for name, own in lists.items():
        text = "".join(f"Bengal_{n} 6 1 2\n" for n in own)
        files[f"annotations/{name}.txt"] = text.encode()
    return files | {"annotations/xmls/Bengal_0.xml": b"<annotation></annotation>"}


def voc_segmentation() -> Files:
    """A tree of VOC2012, of which six images have masks, and five of them are on lists."""
    files = {f"JPEGImages/2007_{n}.jpg": draw_jpeg(f"voc masks {n}") for n in range(8)}
    for n in range(6):
        mask = Image.open(io.BytesIO(draw_mask(n, (0, 15, 20, 255)))).convert("L")
        indices = Image.frombytes("P", mask.size, mask.tobytes())
        indices.putpalette(bytes(range(256)) * 3)
        files[f"SegmentationClass/2007_{n}.png"] = encode(indices, "PNG")
        files[f"SegmentationObject/2007_{n}.png"] = encode(indices, "PNG")
    for n in range(8):
        files[f"Annotations/2007_{n}.xml"] = b"<annotation></annotation>"
    lists = {"train": range(3), "val": range(3, 5), "trainval": range(5)}
    for name, own in lists.items():
        text = "".join(f"2007_{n}\n" for n in own)
        files[f"ImageSets/Segmentation/{name}.txt"] = text.encode()
    return files | {"ImageSets/Main/train.txt": b"2007_0\n2007_7\n"}
