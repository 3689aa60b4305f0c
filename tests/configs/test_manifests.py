"""Manifests in every form give the same Examples."""

import csv
import gzip
import hashlib
import json
import os
import shlex
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from marker_counts import counts_of

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

CONFIGS = Path(__file__).parents[2] / "configs"
ROWS = [  # path, class, split, age
    ("cats/1.jpg", "cat", "train", 3),
    ("cats/2.jpg", "cat", "train", None),
    ("dogs/é 1.jpg", 'dog, "big"', "train", 7),
    ("dogs/2.jpg", 'dog, "big"', "validation", 12),
    ("3.jpg", "cat", "test", 0),
]
NAMES = ["path", "class", "split", "age"]
IDS = {"cat": 0, 'dog, "big"': 1}


@pytest.fixture
def images(tmp_path, picture):
    for path, *_ in ROWS:
        (tmp_path / "collection" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "collection" / path).write_bytes(picture(path))
    return tmp_path / "collection"


def write_csv(folder, rows=ROWS, names=NAMES, name="manifest.csv", encoding="utf-8", delimiter=","):
    with open(folder / name, "w", newline="", encoding=encoding) as file:
        csv.writer(file, delimiter=delimiter).writerows([names, *rows] if names else rows)
    return folder / name


def write_jsonl(folder, rows=ROWS, names=NAMES, name="manifest.jsonl"):
    lines = (json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    (folder / name).write_text("".join(lines), encoding="utf-8")
    return folder / name


def write_parquet(folder, rows=ROWS, names=NAMES, name="manifest.parquet", **more):
    table = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], **more)
    pq.write_table(table, folder / name, row_group_size=2)
    return folder / name


def check(marker, examples, picture):
    assert marker["labels"] == IDS
    assert marker["ledger"]["written"] == len(ROWS)
    assert marker["ledger"]["rejected"] == {}
    found = {
        (
            split,
            each["image/filename"][0].decode(),
            each["image/class/text"][0].decode(),
            each["image/age"][0],
        ): (each["image/class/label"], each["image/encoded"])
        for split, records in examples.items()
        for each in records
    }
    assert found == {
        (split, path.rpartition("/")[2], label, -1 if age is None else age): (
            [IDS[label]],
            [picture(path)],
        )
        for path, label, split, age in ROWS
    }


def gzipped(path):
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    return packed


def test_a_gzipped_manifest_gives_the_same(images, picture, convert):
    gzipped(write_jsonl(images))
    check(*convert("manifest.yaml", images, "--set", "max_rejected.count=0"), picture)


@pytest.mark.parametrize("write", [write_csv, write_jsonl, write_parquet])
def test_every_form_of_a_manifest_gives_the_same(write, images, picture, convert):
    check(*convert("manifest.yaml", write(images)), picture)


def test_the_flags_for_a_plain_table_stand_in_the_file(images, convert):
    flags = next(
        line
        for line in (CONFIGS / "manifest.yaml").read_text().splitlines()
        if line.startswith("#   --set")
    )
    manifest = write_csv(images, [row[:2] for row in ROWS], ["path", "label"])
    marker, _ = convert("manifest.yaml", manifest, *shlex.split(flags.removeprefix("#")))
    assert (marker["ledger"]["written"], marker["labels"]) == (5, IDS)
    assert set(marker["splits"]) == {"train", "test"}


def test_a_tsv_in_utf_16_without_a_header(images, picture, convert):
    manifest = write_csv(images, names=[], name="list.tsv", encoding="utf-16", delimiter="\t")
    names = "source.names=[path, class, split, age]"
    check(
        *convert("manifest.yaml", manifest, "--set", names, "--set", "source.encoding=utf-16"),
        picture,
    )


@pytest.mark.parametrize("form", ["parquet", "hugging face"])
def test_images_inside_the_table(form, images, picture, convert, tmp_path):
    folder = tmp_path / "tables"
    folder.mkdir()
    names = ["data", *NAMES[1:], "name"]

    def rows(pack):
        return [(pack(picture(path)), *rest, path) for path, *rest in ROWS]

    if form == "parquet":
        manifest = write_parquet(folder, rows(bytes), names)
    elif form == "hugging face":
        order = list(IDS)
        packed = [
            (cell, order.index(label), *more)
            for cell, label, *more in rows(lambda data: {"bytes": data})
        ]
        image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        features = {"info": {"features": {"class": {"names": order, "_type": "ClassLabel"}}}}
        kinds = (image, pa.int64(), pa.string(), pa.int64(), pa.string())
        schema = pa.schema(zip(names, kinds, strict=True), {"huggingface": json.dumps(features)})
        manifest = write_parquet(folder, packed, names, schema=schema)
    columns = "source.columns={bytes: data, label: class, split: split, key: name}"
    check(*convert("manifest.yaml", manifest, "--set", columns), picture)


@pytest.mark.parametrize("flags", [[], ["--set=source.unlabeled=reject"]])
def test_minus_one_of_a_class_label_is_not_a_label(tmp_path, picture, flags):
    features = {"info": {"features": {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    schema = pa.schema(
        [("image", image), ("label", pa.int64())], {"huggingface": json.dumps(features)}
    )
    (tmp_path / "in").mkdir()
    for split, labels in (("train", [0, 1, -1]), ("test", [-1, -1])):
        rows = [({"bytes": picture(f"{split}{n}")}, label) for n, label in enumerate(labels)]
        write_parquet(tmp_path / "in", rows, ["image", "label"], f"{split}.parquet", schema=schema)
    output = tmp_path / "out"
    code = launch([f"--input={tmp_path / 'in'}", f"--output={output}", *flags], build)
    assert code == (1 if flags else 0)
    if not flags:
        marker = json.loads((output / "recordmill.json").read_bytes())
        assert marker["labels"] == {"cat": 0, "dog": 1}
        classes = {name: split["classes"] for name, split in marker["splits"].items()}
        assert classes == {"train": {"cat": 1, "dog": 1, "": 1}, "test": {"": 2}}


def test_a_damaged_image_is_found_by_its_sha256(images, picture, convert):
    rows = [(*row, hashlib.sha256(picture(row[0])).hexdigest().upper()) for row in ROWS]
    damaged = bytearray(picture("cats/2.jpg"))
    damaged[-30] ^= 1
    (images / "cats" / "2.jpg").write_bytes(bytes(damaged))
    manifest = write_csv(images, rows, [*NAMES, "digest"])
    marker, examples = convert("manifest.yaml", manifest, "--set", "source.columns.sha256=digest")
    assert marker["ledger"]["rejected"] == {"wrong_sha256": 1}
    assert [each["image/filename"] for each in examples["train"]].count([b"2.jpg"]) == 0


def test_bad_rows_are_rejected_each_with_its_place(images, picture, convert, tmp_path):
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    (images / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    (images / "4.jpg").write_bytes(picture("4"))
    os.mkfifo(images / "pipe.jpg")
    bad = [
        ("../secret.jpg", "cat", "train", 1),
        (str(tmp_path / "secret.jpg"), "cat", "train", 1),
        ("link.jpg", "cat", "train", 1),
        ("https://example.com/1.jpg", "cat", "train", 1),
        ("file:///etc/passwd", "cat", "train", 1),
        ("gone.jpg", "cat", "train", 1),
        ("pipe.jpg", "cat", "train", 1),
        ("cats", "cat", "train", 1),
        ("cats/1.jpg", "", "train", 1),
        ("", "cat", "train", 1),
        ("cats/1.jpg", "cat", "train", "seven"),
        ("cats/1.jpg", "cat", "train"),
        ("4.jpg", "cat", "elsewhere", 1),
    ]
    manifest = write_csv(images, [*ROWS, *bad])
    marker, _ = convert("manifest.yaml", manifest, "--set", "max_rejected.count=13")
    assert marker["ledger"]["rejected"] == {
        "outside_root": 5,
        "vanished": 1,
        "not_a_file": 2,
        "bad_row": 4,
        "no_split": 1,
    }
    assert marker["ledger"]["listed"] == len(ROWS) + len(bad)
    lines = (
        (tmp_path / "dataset-of-manifest.yaml" / "rejected.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    details = {row["key"]: row["detail"] for row in map(json.loads, lines)}
    assert "secret" not in details["manifest.csv/000009"].replace("../secret.jpg", "").replace(
        "secret.jpg", ""
    )
    assert details["manifest.csv/000012"] == (
        "manifest.csv, row 12: column 'path': 'gone.jpg': no such file or directory"
    )
    assert details["manifest.csv/000013"] == (
        "manifest.csv, row 13: column 'path': 'pipe.jpg': it is a folder, a device or a pipe, not "
        "a file"
    )
    assert details["manifest.csv/000015"] == "manifest.csv, row 15: column 'class' is empty"
    assert details["manifest.csv/000017"] == (
        "manifest.csv, row 17: column 'age': 'seven' (str) is not a 64-bit integer"
    )
    assert (
        details["manifest.csv/000018"]
        == "manifest.csv, row 18: it has 3 cells, and the table has 4 columns"
    )


def test_the_root_does_not_change_the_plan(images, picture, convert, tmp_path, capsys):
    (tmp_path / "lists").mkdir()
    manifest = write_csv(tmp_path / "lists")
    check(*convert("manifest.yaml", manifest, "--set", f"source.root={images}"), picture)
    images.rename(tmp_path / "moved")
    capsys.readouterr()
    check(*convert("manifest.yaml", manifest, "--set", "source.root=../moved"), picture)
    assert json.loads(capsys.readouterr().out)["status"] == "kept"


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_rows_without_a_class_are_images_without_a_label_where_that_is_wanted(
    write, images, convert
):
    rows = [(path, None if split == "test" else label, split) for path, label, split, _ in ROWS]
    kept = (
        "source={kind: manifest, columns: {uri: path, label: class, split: split}, unlabeled: keep}"
    )
    splits = "splits={from_source: {train: train, validation: train, test: test}}"
    marker, examples = convert(
        "manifest.yaml",
        write(images, rows, ["path", "class", "split"]),
        "--set",
        kept,
        "--set",
        splits,
    )
    assert (marker["ledger"]["rejected"], marker["labels"]) == ({}, IDS)
    assert {split: part["classes"] for split, part in marker["splits"].items()}["test"] == {"": 1}
    assert [each["image/filename"] for each in examples["test"]] == [[b"3.jpg"]]
    assert "image/class/label" not in examples["test"][0]
    assert all("image/class/label" in each for each in examples["train"])


@pytest.mark.parametrize("write", [write_csv, write_jsonl])
def test_several_labels(write, images, picture, convert):
    tags = {"cats/1.jpg": ["fur", "cat"], "cats/2.jpg": [], "dogs/2.jpg": ["dog", "fur"]}
    rows = [
        (path, "|".join(words) if write is write_csv else words) for path, words in tags.items()
    ]
    convention = "convention={}".format(json.dumps({"features": {
        "encoded": {"field": "encoded", "type": "bytes"},
        "labels": {"field": "labels", "type": "int64", "shape": [None]},
        "texts": {"field": "label_texts", "type": "bytes", "shape": [None]},
    }}))  # fmt: skip
    source = "source={kind: manifest, columns: {uri: path, labels: tags}}"
    marker, examples = convert(
        "manifest.yaml",
        write(images, rows, ["path", "tags"]),
        "--set",
        source,
        "--set",
        "splits={}",
        "--set",
        convention,
    )
    ids = {"cat": 0, "dog": 1, "fur": 2}
    assert marker["labels"] == ids
    assert counts_of(marker, "labels") == {"listed": 4, "written": 4}
    found = {
        each["encoded"][0]: (each["labels"], each["texts"])
        for part in examples.values()
        for each in part
    }
    given = Counter(name for part in examples.values() for each in part for name in each["texts"])
    counted = sum(
        (Counter(split.get("instances", split["classes"])) for split in marker["splits"].values()),
        Counter(),
    )
    assert counted == {name.decode(): count for name, count in given.items()}
    assert found == {
        picture(path): ([ids[word] for word in words], [word.encode() for word in words])
        for path, words in tags.items()
    }


SIDES = [f"image/object/bbox/{side}" for side in ("xmin", "ymin", "xmax", "ymax")]


def boxes_of_examples(examples):
    return {
        each["image/filename"][0].decode(): [
            (text.decode(), *(round(each[side][index], 6) for side in SIDES))
            for index, text in enumerate(each["image/object/class/text"])
        ]
        for part in examples.values()
        for each in part
    }


@pytest.mark.parametrize(
    ("write", "unit"),
    [(write_csv, "fraction"), (write_jsonl, "pixels"), (write_parquet, "fraction")],
)
def test_boxes(unit, write, images, convert):
    boxes = [[2, 1, 10, 10], [0, 5, 20, 10]]  # of 20 x 10 pixels
    if unit == "fraction":
        boxes = [
            [left / 20, top / 10, right / 20, bottom / 10] for left, top, right, bottom in boxes
        ]
    labels = ["cat", "dog"]
    rows = [("cats/1.jpg", boxes, labels), ("3.jpg", [], [])]
    if write is write_csv:
        rows = [(path, json.dumps(found), "|".join(names)) for path, found, names in rows]
    source = (
        f"source={{kind: manifest, boxes_unit: {unit}, columns: {{uri: path, boxes: boxes, "
        f"box_labels: names}}}}"
    )
    more = ("--set", source, "--set", "splits={}", "--set", "convention=tf_object_detection")
    marker, examples = convert(
        "manifest.yaml", write(images, rows, ["path", "boxes", "names"]), *more
    )
    assert counts_of(marker, "boxes") == {"listed": 2, "written": 2}
    assert boxes_of_examples(examples) == {
        "1.jpg": [("cat", 0.1, 0.1, 0.5, 1.0), ("dog", 0.0, 0.5, 1.0, 1.0)],
        "3.jpg": [],
    }


def vertex_line(folder, path, use, **annotations):
    said = {"imageGcsUri": f"{folder}/{path}", **annotations}
    return (
        json.dumps({**said, "dataItemResourceLabels": {"aiplatform.googleapis.com/ml_use": use}})
        + "\n"
    )


def test_vertex_ai(images, picture, convert):
    uses = {"train": "training", "validation": "validation", "test": "test"}
    lines = [
        vertex_line(images, path, uses[split], classificationAnnotation={"displayName": label})
        for path, label, split, _ in ROWS
    ]
    (images / "import.jsonl").write_text("".join(lines), encoding="utf-8")
    marker, examples = convert("vertex.yaml", images / "import.jsonl")
    assert {split: len(found) for split, found in examples.items()} == {
        "train": 3,
        "validation": 1,
        "test": 1,
    }
    found = {
        each["image/encoded"][0]: each["image/class/text"]
        for part in examples.values()
        for each in part
    }
    assert found == {picture(path): [label.encode()] for path, label, *_ in ROWS}
    assert marker["labels"] == IDS
    assert marker["notes"] == []


def test_labels_that_an_example_cannot_store_are_reported(images, convert):
    (images / "import.csv").write_text(
        "".join(f"{path},{label},red,round\n" for path, label, *_ in ROWS[:2])
    )
    marker, examples = convert(
        "automl.yaml", images / "import.csv", "--set=splits={from_source: {'': train}}"
    )
    assert [each for each in examples["train"] if "image/class/label" in each] == []
    assert marker["notes"] == [
        "6 labels of images with several are in no Example: the convention (slim's keys plus class "
        "text, file name and "
        "digest) stores one, a mapping with the field label_texts all of them"
    ]


def test_boxes_of_vertex_ai_and_automl(images, convert, tmp_path):
    box = {"displayName": "cat", "xMin": 0.1, "yMin": 0.1, "xMax": 0.5, "yMax": 1}
    other = {"displayName": "dog", "xMin": 0, "yMin": 0.5, "xMax": 1, "yMax": 1}
    lines = [
        vertex_line(images, "cats/1.jpg", "training", boundingBoxAnnotations=[box, other]),
        vertex_line(images, "3.jpg", "training", boundingBoxAnnotations=[]),
    ]
    (images / "import.jsonl").write_text("".join(lines), encoding="utf-8")
    (images / "import.csv").write_text(
        "TRAIN,cats/1.jpg,cat,0.1,0.1,,,0.5,1,,\nTRAIN,cats/1.jpg,dog,0,0.5,1,0.5,1,1,0,1\n"
        "TRAIN,3.jpg,,,,,,,,,\n",
        encoding="utf-8",
    )
    detection = ("--set", "convention=tf_object_detection")
    for config, name in (("vertex.yaml", "import.jsonl"), ("automl.yaml", "import.csv")):
        words = "splits={from_source: {training: train, TRAIN: train}}"
        marker, examples = convert(config, images / name, *detection, "--set", words)
        assert counts_of(marker, "boxes") == {"listed": 2, "written": 2}
        assert boxes_of_examples(examples) == {
            "1.jpg": [("cat", 0.1, 0.1, 0.5, 1.0), ("dog", 0.0, 0.5, 1.0, 1.0)],
            "3.jpg": [],
        }


def test_automl(images, picture, convert):
    lines = [
        f'{split.upper()},{path},"{label.replace(chr(34), chr(34) * 2)}"\n'
        for path, label, split, _ in ROWS
    ]
    (images / "import.csv").write_text("".join(lines), encoding="utf-8")
    marker, examples = convert("automl.yaml", images / "import.csv")
    assert {split: len(found) for split, found in examples.items()} == {
        "train": 3,
        "validation": 1,
        "test": 1,
    }
    found = {
        each["image/encoded"][0]: each["image/class/text"]
        for part in examples.values()
        for each in part
    }
    assert found == {picture(path): [label.encode()] for path, label, *_ in ROWS}
    assert marker["labels"] == IDS


@pytest.mark.parametrize("write", [write_csv, write_jsonl, write_parquet])
def test_imagefolder(write, tmp_path, picture, convert):
    rows = {
        "train": [("1.jpg", "cat", "a cat"), ("in/2.jpg", "dog", "")],
        "validation": [("1.jpg", "dog", "größer, älter")],
    }
    rows["test"] = [("1.jpg", "cat", "b")]
    ending = write.__name__.removeprefix("write_")
    for split, named in rows.items():
        folder = tmp_path / "folder" / split
        for path in (*(row[0] for row in named), "unnamed.jpg"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(picture(f"{split}/{path}"))
        write(folder, named, ["file_name", "label", "text"], f"metadata.{ending}")
    captions = "source.features_from={image/caption: {column: text, default: none}}"
    marker, examples = convert("imagefolder.yaml", tmp_path / "folder", "--set", captions)
    assert marker["ledger"] == {
        "listed": 7,
        "written": 4,
        "rejected": {},
        "ignored": {"without_annotation": 3},
        "left_out": {},
    }
    assert marker["named"] == {"images": 4, "files": 3}
    assert "3 images have no usable annotation, and are ignored" in marker["notes"]
    assert {
        split: sorted(
            (each["image/encoded"][0], each["image/class/text"][0], each["image/caption"][0])
            for each in part
        )
        for split, part in examples.items()
    } == {
        split: sorted(
            (picture(f"{split}/{path}"), label.encode(), (text or "none").encode())
            for path, label, text in named
        )
        for split, named in rows.items()
    }


@pytest.mark.parametrize("form", ["jsonl", "jsonl of structs", "parquet", "csv"])
def test_objects_of_imagefolder(form, images, convert):
    """As https://huggingface.co/docs/datasets/image_dataset has them; an image is 20 x 10
    pixels."""
    numbers = {"cat": 0, "dog": 1}
    there = [("dog", [2.0, 1.0, 8.0, 9.0]), ("cat", [0.0, 5.0, 20.0, 5.0])]
    rows = [("cats/1.jpg", there), ("3.jpg", [])]
    classes = ["--set", "source.class_names=[cat, dog]"]
    if form == "jsonl of structs":
        rows = [
            (path, [{"bbox": box, "category": name} for name, box in found]) for path, found in rows
        ]
    else:
        rows = [
            (
                path,
                {
                    "bbox": [box for _, box in found],
                    "categories": [numbers[name] for name, _ in found],
                },
            )
            for path, found in rows
        ]
    if form == "parquet":  # states the names itself
        categories = {"feature": {"names": list(numbers), "_type": "ClassLabel"}, "_type": "List"}
        said = {
            "info": {"features": {"objects": {"bbox": {"_type": "List"}, "categories": categories}}}
        }
        kind = pa.struct(
            [("bbox", pa.list_(pa.list_(pa.float32(), 4))), ("categories", pa.list_(pa.int64()))]
        )
        schema = pa.schema(
            [("file_name", pa.string()), ("objects", kind)], {"huggingface": json.dumps(said)}
        )
        write_parquet(images, rows, ["file_name", "objects"], "metadata.parquet", schema=schema)
        classes = []
    elif form == "csv":
        write_csv(
            images,
            [(path, json.dumps(found)) for path, found in rows],
            ["file_name", "objects"],
            "metadata.csv",
        )
    else:
        write_jsonl(images, rows, ["file_name", "objects"], "metadata.jsonl")
    source = "source={kind: imagefolder, objects: objects}"
    more = (
        "--set",
        source,
        *classes,
        "--set",
        "splits={}",
        "--set",
        "convention=tf_object_detection",
    )
    marker, examples = convert("imagefolder.yaml", images, *more)
    assert counts_of(marker, "boxes") == {"listed": 2, "written": 2}
    assert marker["labels"] == {"cat": 1, "dog": 2}
    assert boxes_of_examples(examples) == {
        "1.jpg": [("dog", 0.1, 0.1, 0.5, 1.0), ("cat", 0.0, 0.5, 1.0, 1.0)],
        "3.jpg": [],
    }


def test_one_list_a_split_with_a_path_and_a_class_in_each_line(images, picture, convert):
    """Grocery Store's lists have blanks after their commas; others have blanks alone."""
    for split, form in (("train", "{}, {}\n"), ("validation", "{}\t{}\n"), ("test", "{} {}\n")):
        lines = (form.format(path, label[:3]) for path, label, given, _ in ROWS if given == split)
        (images / f"{split}.txt").write_text("".join(lines), encoding="utf-8")
    (images / "README.txt").write_text("Photographs, 2026\n", encoding="utf-8")
    marker, examples = convert("lists.yaml", images)
    assert marker["ledger"]["ignored"] == {"not_annotations": 1}
    found = {
        (split, each["image/encoded"][0]): each["image/class/text"]
        for split in examples
        for each in examples[split]
    }
    assert found == {(split, picture(path)): [label[:3].encode()] for path, label, split, _ in ROWS}


def test_ids_without_endings(images, picture, convert):
    rows = [(path.removesuffix(".jpg"), label) for path, label, *_ in ROWS]
    write_csv(images.parent, rows, ["id", "label"], "train.csv")
    images.rename(images.with_name("images"))
    marker, examples = convert("kaggle.yaml", images.parent / "train.csv")
    assert marker["labels"] == IDS
    found = {
        each["image/encoded"][0]: each["image/class/text"]
        for part in examples.values()
        for each in part
    }
    assert found == {picture(path): [label.encode()] for path, label, *_ in ROWS}
