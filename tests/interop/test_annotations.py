"""Boxes, several labels and rows of tables, as TensorFlow Datasets gives them."""

import csv
import json

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from PIL import Image

REASON = "needs an environment of its own: make test-interop"
tfds = pytest.importorskip("tensorflow_datasets", reason=REASON)

CATEGORIES = {"cat": 1, "dog": 2, "Größe & co": 4}
WIDTH, HEIGHT = 40, 20
BOXES = [  # of each image: class, left, top, right, bottom
    [("cat", 0, 0, 10, 10), ("dog", 10, 5, 40, 20)],
    [],
    [("Größe & co", 1, 2, 31, 17)],
    [("dog", 4, 4, 8, 8), ("dog", 20, 10, 30, 15), ("cat", 0, 0, 40, 20)],
    [("cat", 7, 3, 9, 19)],
    [("dog", 30, 0, 40, 5)],
]
SPLIT_OF = ["train", "train", "train", "train", "val", "val"]


def draw(path, number):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (WIDTH, HEIGHT), (40 * number, 200, 90)).save(path)


def write_coco(folder):
    for split in ("train", "val"):
        numbers = [number for number, own in enumerate(SPLIT_OF) if own == split]
        for number in numbers:
            draw(folder / split / f"{number}.jpg", number)
        boxes = [(number, box) for number in numbers for box in BOXES[number]]
        content = {
            "images": [
                {"id": n, "file_name": f"{n}.jpg", "width": WIDTH, "height": HEIGHT}
                for n in numbers
            ],
            "categories": [{"id": number, "name": name} for name, number in CATEGORIES.items()],
            "annotations": [
                {
                    "id": place,
                    "image_id": number,
                    "category_id": CATEGORIES[name],
                    "bbox": [left, top, right - left, bottom - top],
                    "iscrowd": 0,
                }
                for place, (number, (name, left, top, right, bottom)) in enumerate(boxes)
            ],
        }
        (folder / "annotations").mkdir(exist_ok=True)
        (folder / f"annotations/instances_{split}2017.json").write_text(
            json.dumps(content), encoding="utf-8"
        )
    return folder


def write_voc(folder):
    (folder / "Annotations").mkdir(parents=True)
    for number, boxes in enumerate(BOXES):
        draw(folder / f"JPEGImages/{number}.jpg", number)
        objects = "".join(
            f"<object><name>{name.replace('&', '&amp;')}</name><bndbox>"
            f"<xmin>{left}</xmin><ymin>{top}</ymin>"
            f"<xmax>{right}</xmax><ymax>{bottom}</ymax></bndbox></object>"
            for name, left, top, right, bottom in boxes
        )
        size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height></size>"
        text = f"<annotation><filename>{number}.jpg</filename>{size}{objects}</annotation>"
        (folder / f"Annotations/{number}.xml").write_text(text, encoding="utf-8")
    return folder


def read(dataset, split):
    builder = tfds.builder_from_directory(str(dataset.folder))
    assert builder.info.supervised_keys is None
    assert builder.info.splits[split].num_examples == dataset.marker["splits"][split]["records"]
    return builder.info.features, list(tfds.as_numpy(builder.as_dataset(split=split)))


def number_of(example):
    return int(example["image/filename"].decode().partition(".")[0])


def sides_of(number):
    """Xmin, ymin, xmax, ymax of each box, in fractions."""
    size = np.array([WIDTH, HEIGHT, WIDTH, HEIGHT], np.float32)
    return np.array([box[1:] for box in BOXES[number]], np.float32).reshape(-1, 4) / size


@pytest.mark.parametrize(("kind", "write"), [("coco", write_coco), ("voc", write_voc)])
@pytest.mark.parametrize("convention", ["tf_object_detection", "tfds"])
def test_boxes_come_back(convert, tmp_path, kind, write, convention):
    config = [
        f"--config=configs/{kind}.yaml",
        f"--set=convention={convention}",
        "--set=shards.count=1",
    ]
    fractions = ["--set=splits={fractions: {train: 0.6, validation: 0.4}}"] if kind == "voc" else []
    dataset = convert(write(tmp_path / kind), convention, *config, *fractions)
    assert set(dataset.marker["splits"]) == {"train", "validation"}
    seen = []
    for split in dataset.marker["splits"]:
        features, examples = read(dataset, split)
        label = features["image/object/class/label" if convention != "tfds" else "objects/label"]
        assert {name: label.feature.str2int(name) for name in dataset.labels} == dataset.labels
        if kind == "coco":
            assert dataset.labels == CATEGORIES
            assert sorted(map(number_of, examples)) == (
                [0, 1, 2, 3] if split == "train" else [4, 5]
            )
        for example in examples:
            number = number_of(example)
            seen.append(number)
            sides, ids = sides_of(number), [dataset.labels[name] for name, *_ in BOXES[number]]
            if convention == "tfds":
                boxes = example["objects/bbox"]
                assert (boxes.shape, boxes.dtype) == ((len(ids), 4), np.float32)
                assert np.array_equal(boxes[:, [1, 0, 3, 2]], sides)
                assert example["objects/label"].tolist() == ids
                assert example["image"].shape == (HEIGHT, WIDTH, 3)
            else:
                names = ("xmin", "ymin", "xmax", "ymax")
                boxes = [example[f"image/object/bbox/{name}"] for name in names]
                assert all((side.shape, side.dtype) == ((len(ids),), np.float32) for side in boxes)
                assert np.array_equal(np.stack(boxes, axis=1), sides)
                assert example["image/object/class/label"].tolist() == ids
                assert read_label_map(dataset.folder / "label_map.pbtxt") == dataset.labels
                texts = [text.decode() for text in example["image/object/class/text"]]
                assert texts == [name for name, *_ in BOXES[number]]
                assert example["image/encoded"].shape == (HEIGHT, WIDTH, 3)
    assert sorted(seen) == list(range(len(BOXES)))


def test_several_labels_come_back(convert, tmp_path):
    labels = {
        f"{number}.jpg": sorted({name for name, *_ in boxes}) for number, boxes in enumerate(BOXES)
    }
    with (tmp_path / "list.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["path", "tags"])
        rows.writerows([path, json.dumps(names)] for path, names in labels.items())
    for number in range(len(BOXES)):
        draw(tmp_path / f"{number}.jpg", number)
    features = (
        "image: {type: bytes, field: encoded}, image/filename: {type: bytes, field: filename}"
    )
    features += ", labels: {type: int64, shape: [null], field: labels}"
    dataset = convert(
        tmp_path / "list.csv",
        "default",
        "--set=source={kind: manifest, columns: {uri: path, labels: tags}}",
        "--set=splits={fractions: {train: 1.0}}",
        f"--set=convention={{features: {{{features}}}}}",
    )
    features, examples = read(dataset, "train")
    assert {
        name: features["labels"].feature.str2int(name) for name in dataset.labels
    } == dataset.labels
    assert {
        example["image/filename"].decode(): example["labels"].tolist() for example in examples
    } == {path: [dataset.labels[name] for name in names] for path, names in labels.items()}


def read_label_map(path):
    """Ids by name, read as the Object Detection API's `label_map_util` does: by its message,
    without the id 0."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(
        text_format.Parse(
            """
            name: "string_int_label_map.proto" package: "object_detection.protos" syntax: "proto2"
            message_type { name: "StringIntLabelMapItem"
              field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
              field { name: "id" number: 2 type: TYPE_INT32 label: LABEL_OPTIONAL }
              field { name: "display_name" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL } }
            message_type { name: "StringIntLabelMap"
              field { name: "item" number: 1 label: LABEL_REPEATED
                type: TYPE_MESSAGE type_name: ".object_detection.protos.StringIntLabelMapItem" } }
            """,
            descriptor_pb2.FileDescriptorProto(),
        ).SerializeToString()
    )
    message = message_factory.GetMessageClass(
        pool.FindMessageTypeByName("object_detection.protos.StringIntLabelMap")
    )
    label_map = text_format.Parse(path.read_text(encoding="utf-8"), message())
    assert all(item.id > 0 for item in label_map.item)
    return {item.name: item.id for item in label_map.item}


def test_a_label_map_leaves_out_a_class_0_that_no_box_has(convert, tmp_path):
    folder = write_coco(tmp_path / "coco")
    for path in (folder / "annotations").glob("*.json"):
        described = json.loads(path.read_bytes())
        described["categories"].append({"id": 0, "name": "animals"})
        path.write_text(json.dumps(described), encoding="utf-8")
    dataset = convert(
        folder, "tf_object_detection", "--config=configs/coco.yaml", "--set=shards.count=1"
    )
    assert dataset.labels == {"animals": 0, **CATEGORIES}
    assert read_label_map(dataset.folder / "label_map.pbtxt") == CATEGORIES


def test_rows_with_missing_values_come_back(convert, tmp_path):
    rows = [
        (number, "" if number == 7 else number / 8, "" if number % 5 else "far")
        for number in range(20)
    ]
    with (tmp_path / "gaps.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("number", "share", "note"), *rows])
    flags = [
        "--set=source={kind: table}",
        "--set=convention=plain",
        "--set=splits={fractions: {train: 1.0}}",
    ]
    dataset = convert(tmp_path / "gaps.csv", "default", *flags)
    features, examples = read(dataset, "train")
    assert set(dataset.marker["features"]) == {"number", "share", "note"}
    # A text may be empty, a number is missing: the card names it.
    assert set(features) == {
        "number",
        "note",
    }
    found = sorted((int(example["number"]), example["note"].decode()) for example in examples)
    assert found == [(number, note) for number, _, note in rows]
    assert "share" in (dataset.folder / "README.md").read_text(encoding="utf-8")


def test_rows_of_a_table_come_back(convert, tmp_path):
    rows = [
        (number % 2 == 0, number, f"text {number} ü", number / 8, "abc"[number % 3])
        for number in range(30)
    ]
    with (tmp_path / "observations.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["feature0", "feature1", "feature2", "feature3", "kind"])
        table.writerows([str(truth).lower(), *rest] for truth, *rest in rows)
    dataset = convert(
        tmp_path / "observations.csv",
        "default",
        "--config=configs/observations.yaml",
        "--set=source.label=kind",
        "--set=convention={features: {label: {type: int64, field: label}}}",
    )
    found = []
    for split in ("train", "test"):
        builder = tfds.builder_from_directory(str(dataset.folder))
        assert builder.info.features["label"].names == ["a", "b", "c"]
        assert builder.info.supervised_keys is None
        found += tfds.as_numpy(builder.as_dataset(split=split))
    found.sort(key=lambda each: int(each["feature1"]))
    assert [int(each["label"]) for each in found] == [dataset.labels[kind] for *_, kind in rows]
    values = [tuple(each[f"feature{number}"] for number in range(4)) for each in found]
    assert [
        (bool(truth), int(count), text.decode(), float(share))
        for truth, count, text, share in values
    ] == [row[:4] for row in rows]
