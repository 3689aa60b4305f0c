"""Small copies of collections that people bring: their folders, file names and annotations.

Each has an expectation for every dataset that is right: the images' bytes with split, class and
boxes. A split is empty where fractions choose it.
"""

import io
import json
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from golden_inputs import as_tfrecord
from paired_inputs import counted, digit, mask, masks, photo, photos
from peer import Found
from PIL import Image

Files = dict[str, bytes]
Dataset = list[Found]

BOX = (6, 4, 18, 12)
"""Left, top, right and bottom, in pixels of images of 24 x 16."""

SPLITS = {"train": "train", "val": "validation", "test": "test"}
N = counted(6)


@dataclass(frozen=True)
class Collection:
    """A collection, and the datasets that are right.

    Attributes:
        files: the contents by path.
        datasets: one for each way that a message may offer, or the only one.
        notes: parts of what is said about things that are not stored.
        flags: what the user adds to the command.
    """

    files: Files
    datasets: Sequence[Dataset]
    notes: Sequence[str] = ()
    flags: Sequence[str] = ()


def image(data: bytes, split: str = "", label: str = "", boxes: Iterable[str] = ()) -> Found:
    """An image, with `BOX` for each of these classes."""
    sides = (BOX[0] / 24, BOX[1] / 16, BOX[2] / 24, BOX[3] / 16)
    return Found(
        sha256(data).hexdigest(), split, label, tuple((name, *sides) for name in sorted(boxes))
    )


def first_folder(path: str) -> str:
    return SPLITS.get(path.split("/")[0], "")


def unlabeled(files: Mapping[str, bytes], *, splits: bool = False) -> Dataset:
    """These images without labels."""
    return [image(data, first_folder(path) if splits else "") for path, data in files.items()]


def cvat(names: Iterable[str]) -> bytes:
    """An XML file with one cat in each image."""
    sides = " ".join(
        f'{name}="{side:.2f}"' for name, side in zip(("xtl", "ytl", "xbr", "ybr"), BOX, strict=True)
    )
    images = [
        f'  <image id="{number}" name="{name}" width="24" height="16">\n'
        f'    <box label="cat" source="manual" occluded="0" {sides} z_order="0">\n'
        '      <attribute name="breed">persian</attribute>\n'
        "    </box>\n  </image>\n"
        for number, name in enumerate(names)
    ]
    head = '<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n'
    return f"{head}{''.join(images)}</annotations>\n".encode()


def coco(names: Sequence[str], key_points: int = 0, **more: object) -> bytes:
    """A JSON file with one cat in each image, whose categories come first."""
    category = {"id": 1, "name": "cat", "keypoints": [f"key_point_{n}" for n in range(key_points)]}
    annotations = [
        {
            "id": number,
            "image_id": number,
            "category_id": 1,
            "bbox": [BOX[0], BOX[1], BOX[2] - BOX[0], BOX[3] - BOX[1]],
            "iscrowd": 0,
            "keypoints": [8, 6, 2] * key_points,
            **more,
        }
        for number, _ in enumerate(names, 1)
    ]
    listed = [
        {"id": number, "file_name": name, "width": 24, "height": 16}
        for number, name in enumerate(names, 1)
    ]
    return json.dumps(
        {"categories": [category], "annotations": annotations, "images": listed}
    ).encode()


def voc(name: str, label: str = "cat") -> bytes:
    sides = "".join(
        f"<{side}>{value}</{side}>"
        for side, value in zip(("xmin", "ymin", "xmax", "ymax"), BOX, strict=True)
    )
    return (
        f"<annotation><filename>{name}</filename><size><width>24</width><height>16</height></size>"
        f"<object><name>{label}</name><bndbox>{sides}</bndbox></object></annotation>"
    ).encode()


def tar(members: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def parquet(rows: Sequence[Mapping[str, object]], features: Mapping[str, object]) -> bytes:
    """A table as Hugging Face writes it."""
    table = pa.Table.from_pylist([dict(row) for row in rows])
    told = json.dumps({"info": {"features": features}})
    stream = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({"huggingface": told}), stream)
    return stream.getvalue()


def _key_points() -> Collection:
    files = {f"{name}.jpg": photo(name) for name in N}
    polygon = [[6, 4, 18, 4, 18, 12, 6, 12]]
    listed = coco(list(files), key_points=90, segmentation=polygon)
    dataset = [image(data, boxes=["cat"]) for data in files.values()]
    return Collection(
        files | {"test_coco.json": listed},
        [dataset],
        ["keypoints listed: 540, written: 540", "masks (6)"],
    )


def _panoptic() -> Collection:
    files: Files = {}
    for split in SPLITS:
        pictures = photos(f"images/{split}", N)
        names = [path.rpartition("/")[2] for path in pictures]
        files |= pictures | masks(f"annotations/panoptic_{split}", N)
        files[f"annotations/instances_{split}.json"] = coco(names)
        files[f"annotations/panoptic_{split}.json"] = coco(names)
    dataset = [
        image(data, SPLITS[path.split("/")[1]], boxes=["cat"])
        for path, data in files.items()
        if path.startswith("images/")
    ]
    return Collection(files, [dataset], ["files of panoptic masks (3)"])


def _segmented_voc() -> Collection:
    pictures = photos("JPEGImages", N)
    files = pictures | masks("SegmentationClass", N, "P") | masks("SegmentationObject", N, "P")
    files |= {f"Annotations/{name}.xml": voc(f"{name}.jpg") for name in N}
    lists = {"train": N[:4], "val": N[4:]}
    for folder in ("Main", "Segmentation"):
        files |= {
            f"ImageSets/{folder}/{word}.txt": "".join(f"{name}\n" for name in names).encode()
            for word, names in lists.items()
        }
    dataset = [
        image(pictures[f"JPEGImages/{name}.jpg"], SPLITS[word], boxes=["cat"])
        for word, names in lists.items()
        for name in names
    ]
    return Collection(files, [dataset], ["masks (6)", "semantic masks (6)"])


def _label_studio() -> Collection:
    pictures = photos("images", N)
    line = b"1 0.5 0.5 0.5 0.5\n"
    files = pictures | {f"labels/{name}.txt": line for name in N}
    files |= {"classes.txt": b"bus\ncat\n", "notes.json": b'{"categories": [], "info": {}}'}
    return Collection(files, [[image(data, boxes=["cat"]) for data in pictures.values()]])


def _cvat_task() -> Collection:
    pictures = photos("images", N)
    files = pictures | {"train.xml": cvat([path.rpartition("/")[2] for path in pictures])}
    dataset = [image(data, boxes=["cat"]) for data in pictures.values()]
    return Collection(files, [dataset], [])


def _boxes_csv(header: str) -> Collection:
    pictures = {f"{name}.jpg": photo(name) for name in N}
    sides = ",".join(map(str, BOX))
    rows = {
        "train": [f"{name}.jpg,{sides},cat\n" for name in N[:4] for _ in (1, 2)],
        "test": [f"{name}.jpg,{sides},dog\n" for name in N[4:]],
    }
    files = pictures | {
        f"{word}-export.csv": "".join([f"{header}\n", *lines]).encode()
        for word, lines in rows.items()
    }
    dataset = [
        image(data, *(("train", "", ["cat"] * 2) if name[:3] in N[:4] else ("test", "", ["dog"])))
        for name, data in pictures.items()
    ]
    return Collection(files, [dataset])


def _street_signs() -> Collection:
    pictures = [photo(name) for name in N]
    examples = [
        {
            "image/encoded": [data],
            "image/format": [b"jpeg"],
            "image/text": [b"Rue X"],
            "image/unpadded_class": [1, 2, 3],
        }
        for data in pictures
    ]
    dataset = [image(data) for data in pictures]
    return Collection(
        {
            "fsns-00000-of-00001": as_tfrecord(*examples),
            "charset_size=134.txt": "0\t \n1\tl\n2\té\n".encode(),
            "links.txt": b"http://example.com/fsns-00000-of-00001\n",
        },
        [dataset],
        ["image/text (6)"],
    )


def _detection_records() -> Collection:
    pictures = [photo(name) for name in N]
    sides = zip(("xmin", "ymin", "xmax", "ymax"), BOX, (24, 16, 24, 16), strict=True)
    box = {f"image/object/bbox/{side}": [value / size] for side, value, size in sides}
    examples = [
        {"image/encoded": [data], **box, "image/object/class/label": [2]} for data in pictures
    ]
    files = {
        "train.tfrecord": as_tfrecord(*examples[:4]),
        "test.tfrecord": as_tfrecord(*examples[4:]),
        "label_map.pbtxt": b"item { id: 1 name: 'bus' }\nitem { id: 2 name: 'cat' }\n",
    }
    splits = ["train"] * 4 + ["test"] * 2
    pairs = list(zip(pictures, splits, strict=True))
    with_boxes = [image(data, split, boxes=["cat"]) for data, split in pairs]
    return Collection(files, [with_boxes, [image(data, split) for data, split in pairs]])


def _samples_with_masks() -> Collection:
    pictures = {name: photo(name, "PNG") for name in N}
    members: Files = {}
    for name, data in pictures.items():
        members |= {f"{name}.png": data, f"{name}.seg.png": mask(name), f"{name}.txt": b"a cat"}
    dataset = [image(data, "train") for data in pictures.values()]
    return Collection({"train-000.tar": tar(members)}, [dataset], [".seg.png (6)"])


def _samples_in_folders() -> Collection:
    members: Files = {}
    dataset = []
    for number, name in enumerate(N):
        label = ("cat", "dog")[number % 2]
        members |= {f"part1/{name}.jpg": photo(name), f"part1/{name}.cls": label.encode()}
        dataset.append(image(photo(name), "train", label))
    return Collection({"train-000.tar": tar(members)}, [dataset])


def _overview() -> Collection:
    pictures = photos("crack/Imgs", N) | photos("hole/Imgs", N)
    dataset = [image(data, label=path.split("/")[0]) for path, data in pictures.items()]
    return Collection({"overview.jpg": photo("all")} | pictures, [dataset])


def _written_names() -> Collection:
    classes = ("кошки", "猫", "été", "a#b", "x%20y")
    pictures = {f"{each}/{n} #1 %20.jpg": photo((each, n)) for each in classes for n in N}
    dataset = [image(data, label=path.split("/")[0]) for path, data in pictures.items()]
    return Collection(pictures, [dataset])


def _no_class() -> Collection:
    pictures = photos("jpg", [f"image_{name}" for name in N])
    return Collection(pictures, [unlabeled(pictures)], ["No image has a label."])


def _deep_images() -> Collection:
    """16 bits of which 12 are used, and stacks of pages."""
    files: Files = {}
    for label in ("a", "b"):
        for name in N[:3]:
            values = np.arange(384, dtype=np.uint16).reshape(16, 24) * 9 + int(name)
            stream, stack = io.BytesIO(), io.BytesIO()
            Image.fromarray(values).save(stream, "PNG")
            pages = [Image.new("L", (24, 16), shade + int(name)) for shade in (10, 20, 30)]
            pages[0].save(stack, "TIFF", save_all=True, append_images=pages[1:])
            files |= {
                f"{label}/{name}.png": stream.getvalue(),
                f"{label}/s{name}.tif": stack.getvalue(),
            }
    dataset = [image(data, label=path.split("/")[0]) for path, data in files.items()]
    notes = ["set images.bits=12", "6 documents have further pages: 12 pages are not stored"]
    return Collection(files, [dataset], notes)


RIGHT = {
    "COCO with key points first (mmpose)": _key_points(),
    "COCO with panoptic masks (CamVid)": _panoptic(),
    "VOC with masks": _segmented_voc(),
    "YOLO (Label Studio)": _label_studio(),
    "CVAT's XML (task)": _cvat_task(),
    "VoTT": _boxes_csv("image,xmin,ymin,xmax,ymax,label"),
    "boxes in x1, y1, x2, y2 (Kaggle)": _boxes_csv("image_name,x1,y1,x2,y2,label_name"),
    "TFRecords of others (FSNS)": _street_signs(),
    "WebDataset with masks": _samples_with_masks(),
    "WebDataset in folders of the tar": _samples_in_folders(),
    "an image above class folders (magnetic tiles)": _overview(),
    "names in other scripts": _written_names(),
    "a folder that names no class (Oxford flowers)": _no_class(),
    "16 bits and stacks": _deep_images(),
}
"""Collections that are converted right at the first try."""


def _regression() -> Collection:
    files: Files = {}
    dataset = []
    for folder, split in (("training", "train"), ("test", "test")):
        pictures = photos(folder, N)
        files |= pictures
        header = "," + ",".join(map(str, range(12)))
        lines = [
            f"{path.rpartition('/')[2]},{','.join(f'{n + at / 2}' for n in range(12))}"
            for at, path in enumerate(pictures)
        ]
        files[f"{folder}_frames_keypoints.csv"] = "\n".join([header, *lines, ""]).encode()
        dataset += [image(data, split) for data in pictures.values()]
    with_points = [replace(each, boxes=(("object", 0.0, 0.0, 1.0, 1.0),)) for each in dataset]
    return Collection(files, [dataset, with_points])


def _via() -> Collection:
    pictures = photos("train", N) | photos("val", counted(6, 6))
    via = json.dumps({"000.jpg1": {"filename": "000.jpg", "size": 1, "regions": []}}).encode()
    files = pictures | {f"{split}/via_region_data.json": via for split in ("train", "val")}
    return Collection(files, [unlabeled(pictures, splits=True)])


def _cvat_beside_table() -> Collection:
    pictures = photos("images", N)
    rows = "".join(f"{n},{path}\n" for n, path in enumerate(pictures))
    files = pictures | {"list.csv": f",image\n{rows}".encode(), "annotations.xml": cvat(pictures)}
    with_boxes = [image(data, boxes=["cat"]) for data in pictures.values()]
    return Collection(files, [with_boxes, unlabeled(pictures)])


def _membrane() -> Collection:
    train = photos("train/image", N, "png")
    test = photos("test", counted(6, 6), "png")
    files = train | test | masks("train/label", N) | masks("test", counted(6, 6), after="_predict")
    # Test images have predictions, and no masks to learn from.
    return Collection(files, [unlabeled(train, splits=True)])


def _oriented_boxes() -> Collection:
    pictures = photos("images", [f"P{name}" for name in N], "png")
    line = b"imagesource:GoogleEarth\ngsd:0.1\n6 4 18 4 18 12 6 12 plane 0\n"
    return Collection(
        pictures | {f"labelTxt/P{name}.txt": line for name in N}, [unlabeled(pictures)]
    )


def _lanes() -> Collection:
    pictures = photos("image", N, "png")
    files = pictures | masks("gt_binary_image", N) | masks("gt_instance_image", N)
    return Collection(files, [unlabeled(pictures)])


def _faces() -> Collection:
    pictures = {f"{who}/{n}.pgm": digit((who, n)) for who in ("s1", "s2") for n in N}
    pictures = {path: _as_pgm(data) for path, data in pictures.items()}
    names = "".join(f"{path};{path[1]}\n" for path in pictures).encode()
    others = {
        "config": b"{}",
        "csv.ext": names,
        "facedata.yml": b"%YAML:1.0\nlabels: [1, 2]\n",
        "haarcascade.xml": b"<?xml version='1.0'?><opencv_storage/>",
        "lbp.cpp": b"int main() {}\n",
        "train.txt": names,
    }
    dataset = [image(data, label=path.split("/")[0]) for path, data in pictures.items()]
    return Collection(pictures | others, [dataset])


def _as_pgm(data: bytes) -> bytes:
    stream = io.BytesIO()
    Image.open(io.BytesIO(data)).save(stream, "PPM")
    return stream.getvalue()


def _attributes() -> Collection:
    pictures = photos("Img/img_celeba", N)
    names = [path.rpartition("/")[2] for path in pictures]
    boxes = "".join(f"{name} 6 4 12 8\n" for name in names)
    signs = "".join(f"{name} 1 -1\n" for name in names)
    files = pictures | {
        "Anno/list_bbox_celeba.txt": f"6\nimage_id x_1 y_1 width height\n{boxes}".encode(),
        "Anno/list_attr_celeba.txt": f"6\nSmiling Young\n{signs}".encode(),
    }
    return Collection(files, [unlabeled(pictures)])


def _many_hot() -> Collection:
    pictures = photos("images", N)
    names = [path.rpartition("/")[2] for path in pictures]
    rows = "".join(f"{name},{n % 2},1,0\n" for n, name in enumerate(names))
    files = pictures | {"ann.csv": f"image_name,dog,cat,person\n{rows}".encode()}
    return Collection(files, [unlabeled(pictures)])


def _image_columns() -> Collection:
    pictures, seconds = [photo(name) for name in N], [mask(name) for name in N]
    rows = [
        {"image": {"bytes": one, "path": None}, "mask": {"bytes": two, "path": None}}
        for one, two in zip(pictures, seconds, strict=True)
    ]
    told = {"image": {"_type": "Image"}, "mask": {"_type": "Image"}}
    return Collection(
        {"data/all.parquet": parquet(rows, told)},
        [[image(data) for data in pictures], [image(data) for data in seconds]],
    )


def _two_classes() -> Collection:
    pictures = [photo(name) for name in N]
    rows = [
        {"img": {"bytes": data, "path": None}, "fine_label": n % 3, "coarse_label": n % 2}
        for n, data in enumerate(pictures)
    ]
    told = {
        "img": {"_type": "Image"},
        "fine_label": {"names": ["a", "b", "c"], "_type": "ClassLabel"},
        "coarse_label": {"names": ["x", "y"], "_type": "ClassLabel"},
    }
    without = [image(data) for data in pictures]
    fine = [image(data, label="abc"[n % 3]) for n, data in enumerate(pictures)]
    coarse = [image(data, label="xy"[n % 2]) for n, data in enumerate(pictures)]
    return Collection({"all.parquet": parquet(rows, told)}, [without, fine, coarse])


def _birds() -> Collection:
    pictures = {
        f"images/{folder}/{folder[4:]}_{n}.jpg": photo((folder, n))
        for folder in ("001.Black", "002.Laysan")
        for n in N
    }
    numbered = {str(n): path.partition("/")[2] for n, path in enumerate(pictures, 1)}
    files = pictures | {
        "images.txt": "".join(f"{n} {path}\n" for n, path in numbered.items()).encode(),
        "image_class_labels.txt": "".join(f"{n} {p[2]}\n" for n, p in numbered.items()).encode(),
        "train_test_split.txt": "".join(f"{n} {int(n) % 2}\n" for n in numbered).encode(),
        "bounding_boxes.txt": "".join(f"{n} 6.0 4.0 12.0 8.0\n" for n in numbered).encode(),
        "classes.txt": b"1 001.Black\n2 002.Laysan\n",
    }
    dataset = [image(data, label=path.split("/")[1]) for path, data in pictures.items()]
    return Collection(files, [dataset])


def _matlab_labels() -> Collection:
    pictures = photos("jpg", [f"image_{name}" for name in N])
    array = b"MATLAB 5.0 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\1IM"
    files = pictures | {"imagelabels.mat": array, "setid.mat": array}
    return Collection(files, [unlabeled(pictures)])


def _named_labels() -> Collection:
    pictures = {f"{label}.{n}.jpg": photo((label, n)) for label in ("cat", "whale") for n in N}
    labeled = [image(data, label=name.split(".")[0]) for name, data in pictures.items()]
    return Collection(pictures, [labeled, unlabeled(pictures)])


def _text_boxes() -> Collection:
    """KITTI: a text file for each image."""
    pictures = photos("training/image_2", N, "png")
    line = b"Car 0.00 0 -1.57 6.00 4.00 18.00 12.00 1.5 1.6 3.7 1.0 1.5 8.4 -1.56\n"
    files = pictures | {f"training/label_2/{name}.txt": line for name in N}
    return Collection(files, [[image(data, "train") for data in pictures.values()]])


def _words() -> Collection:
    """ICDAR: a list of words in the folder of a split."""
    pictures = photos("train", [f"word_{n}" for n in N], "png")
    names = [path.rpartition("/")[2] for path in pictures]
    words = "".join(f'{name}, "Word"\n' for name in names).encode()
    return Collection(pictures | {"train/gt.txt": words}, [unlabeled(pictures, splits=True)])


def _chosen_classes() -> Collection:
    """Label Studio: a choice of each image."""
    pictures = photos("images", N)
    tasks = [
        {
            "data": {"image": f"/data/local-files/?d={path}"},
            "annotations": [{"result": [{"type": "choices", "value": {"choices": [label]}}]}],
        }
        for path, label in _with_labels(pictures)
    ]
    dataset = [image(pictures[path], label=label) for path, label in _with_labels(pictures)]
    return Collection(pictures | {"export.json": json.dumps(tasks).encode()}, [dataset])


def _tagged_classes() -> Collection:
    """CVAT: a tag of each image."""
    pictures = photos("images", N)
    images = "".join(
        f'<image id="{n}" name="{path[7:]}" width="24" height="16"><tag label="{label}"/></image>'
        for n, (path, label) in enumerate(_with_labels(pictures))
    )
    xml = f"<annotations><version>1.1</version>{images}</annotations>".encode()
    dataset = [image(pictures[path], label=label) for path, label in _with_labels(pictures)]
    return Collection(pictures | {"annotations.xml": xml}, [dataset])


def _with_labels(paths: Iterable[str]) -> list[tuple[str, str]]:
    return [(path, ("cat", "dog")[n % 2]) for n, path in enumerate(paths)]


ASKED = {
    "choices (Label Studio)": _chosen_classes(),
    "tags (CVAT)": _tagged_classes(),
    "136 targets (Udacity)": _regression(),
    "VIA in split folders (kudzu)": _via(),
    "CVAT's XML beside a CSV (garbage)": _cvat_beside_table(),
    "pairs and a flat split (unet)": _membrane(),
    "oriented boxes (DOTA)": _oriented_boxes(),
    "several masks (lanenet)": _lanes(),
    "files of a program (faceretrack)": _faces(),
    "lists of attributes (CelebA)": _attributes(),
    "a column for each class (Kaggle)": _many_hot(),
    "two columns of images (Hugging Face)": _image_columns(),
    "two columns of classes (Hugging Face)": _two_classes(),
    "lists of classes, boxes and splits (CUB-200)": _birds(),
    "labels in MATLAB's arrays (Oxford flowers)": _matlab_labels(),
    "labels in names (Dogs vs. Cats)": _named_labels(),
    "text files of boxes (KITTI)": _text_boxes(),
    "a list of words (ICDAR)": _words(),
    "TFRecords with a label map (Object Detection API)": _detection_records(),
}
"""Collections that stop a run, whose printed commands make one of these datasets each."""
