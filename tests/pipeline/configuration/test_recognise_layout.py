"""Which layouts are recognised, from names and beginnings of files alone; tests/docs/test_layouts.py runs them."""

import io
import shlex
import tarfile
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml

from recordmill.pipeline.configuration.config import load_settings
from recordmill.pipeline.configuration.recognise_layout import LayoutFinder, flags_of, recognise
from recordmill.schemas.errors import UsageError
from recordmill.schemas.settings.listing import Input
from recordmill.transforms.inputs.listing.folder_sketch import FolderSketch
from recordmill.transforms.inputs.sources import source_names

CONFIGS = Path(__file__).parents[3] / "configs"
COCO = b'{"info": {}, "images": [{"id": 1, "file_name": "1.jpg"}'
XML = b"<annotation><folder>x</folder><filename>1.jpg"
BOX = b"0 0.5 0.5 1 1\n"
LABELME = b'{"version": "5.0.1", "flags": {}, "shapes": ['
BOXES = {"convention": "tf_object_detection"}
IDS = {"labels": {"ids": "raised"}}


def splits(key="from_source", **words):
    return {"splits": {key: words}}


TRAIN_VAL = {"train": "train", "val": "validation"}
ROBOFLOW = {"train": "train", "valid": "validation", "test": "test"}

LAYOUTS = {
    "class folders": (["cat/1.jpg", "dog/1.jpg", "README.md"], {}, {"source": {"kind": "class_folders"}}),
    "nested class folders": (["a/x/1.jpg", "b/y/1.jpg"], {}, {"source": {"kind": "class_folders"}}),
    "split folders": (
        ["train/cat/1.jpg", "val/dog/1.jpg"],
        {},
        {"source": {"kind": "class_folders"}, **splits("from_folders", **TRAIN_VAL)},
    ),
    "a class called test": (["cat/1.jpg", "test/1.jpg"], {}, {"source": {"kind": "class_folders"}}),
    "flat": (["a.jpg", "b.jpg", "notes.txt"], {}, {"source": {"kind": "class_folders", "class_from": "none"}}),
    "YOLO by splits": (
        [
            "train/images/1.jpg",
            "train/labels/1.txt",
            "valid/images/1.jpg",
            "valid/labels/1.txt",
            "test/images/1.jpg",
            "test/labels/1.txt",
            "data.yaml",
            "README.roboflow.txt",
        ],
        {"train/labels/1.txt": BOX},
        {"source": {"kind": "yolo"}, **splits(**ROBOFLOW), **BOXES},
    ),
    "YOLO by kinds": (
        [
            "images/train2017/1.jpg",
            "images/val2017/1.jpg",
            "labels/train2017/1.txt",
            "labels/val2017/1.txt",
            "data.yaml",
        ],
        {"labels/train2017/1.txt": BOX},
        {"source": {"kind": "yolo"}, **splits(train2017="train", val2017="validation"), **BOXES},
    ),
    "YOLO without splits": (
        ["images/1.jpg", "labels/1.txt", "classes.txt"],
        {"labels/1.txt": BOX},
        {"source": {"kind": "yolo"}, **BOXES},
    ),
    "YOLO next to images": (
        ["1.jpg", "1.txt", "2.jpg", "2.txt", "classes.txt"],
        {"1.txt": b"", "2.txt": BOX},
        {"source": {"kind": "yolo", "text_files": "beside"}, **BOXES},
    ),
    "Darknet by splits": (
        ["train/1.jpg", "train/1.txt", "train/_darknet.labels", "valid/1.jpg", "valid/1.txt", "valid/_darknet.labels"],
        {"train/1.txt": BOX},
        {
            "source": {"kind": "yolo", "text_files": "beside"},
            **splits(train="train", valid="validation"),
            **BOXES,
        },
    ),
    "CVAT's YOLO 1.1": (
        ["obj_train_data/1.jpg", "obj_train_data/1.txt", "obj.names", "obj.data", "train.txt"],
        {"obj_train_data/1.txt": BOX, "train.txt": b"data/obj_train_data/1.jpg\n"},
        {"source": {"kind": "yolo", "text_files": "beside"}, **BOXES},
    ),
    "Roboflow's COCO": (
        [f"{word}/{name}" for word in ROBOFLOW for name in ("1.jpg", "_annotations.coco.json")] + ["README.txt"],
        {"train/_annotations.coco.json": COCO},
        {
            "source": {"kind": "coco", "split": r"_annotations\.coco\.json", "images": "{folder}"},
            **splits("from_folders", **ROBOFLOW),
            **IDS,
            **BOXES,
        },
    ),
    "COCO as it comes": (
        [
            "annotations/captions_train2017.json",
            "annotations/instances_train2017.json",
            "annotations/instances_val2017.json",
            "train2017/1.jpg",
            "val2017/2.jpg",
        ],
        {},
        {"source": {"kind": "coco", "images": "{split}2017"}, **splits(**TRAIN_VAL), **IDS, **BOXES},
    ),
    "COCO of two years": (
        [
            "annotations/instances_train2014.json",
            "annotations/instances_val2017.json",
            "train2014/1.jpg",
            "val2017/2.jpg",
        ],
        {},
        {
            "source": {"kind": "coco", "split": r"instances_(?P<split>[a-z]+[0-9]*)\.json"},
            **splits(train2014="train", val2017="validation"),
            **IDS,
            **BOXES,
        },
    ),
    "COCO in images": (
        ["annotations/instances_train2017.json", "images/train2017/1.jpg"],
        {},
        {"source": {"kind": "coco", "images": "images/{split}2017"}, **splits(train="train"), **IDS, **BOXES},
    ),
    "CVAT's COCO": (
        [
            "annotations/instances_train.json",
            "annotations/instances_val.json",
            "images/train/1.jpg",
            "images/val/2.jpg",
        ],
        {},
        {"source": {"kind": "coco", "images": "images/{split}"}, **splits(**TRAIN_VAL), **IDS, **BOXES},
    ),
    "CVAT's COCO with its words for subsets": (
        [f"annotations/instances_{word}.json" for word in ("Train", "Validation")]
        + [f"images/{word}/1.jpg" for word in ("Train", "Validation")],
        {"annotations/instances_Train.json": COCO},
        {
            "source": {
                "kind": "coco",
                "split": r"instances_(?P<split>[A-Za-z]+)[0-9]*\.json",
                "images": "images/{split}",
            },
            **splits(Train="train", Validation="validation"),
            **IDS,
            **BOXES,
        },
    ),
    "CVAT's COCO without splits": (
        ["annotations/instances_default.json", "images/default/1.jpg"],
        {},
        {"source": {"kind": "coco", "images": "images/{split}"}, **IDS, **BOXES},
    ),
    "COCO's default folders": (
        ["annotations/instances_train2017.json", "annotations/instances_val2017.json", "train/1.jpg", "val/2.jpg"],
        {},
        {"source": {"kind": "coco"}, **splits(**TRAIN_VAL), **IDS, **BOXES},
    ),
    "COCO in one file": (
        ["annotations.json", "JPEGImages/1.jpg"],
        {"annotations.json": COCO},
        {"source": {"kind": "coco", "split": r"annotations\.json", "images": "JPEGImages"}, **IDS, **BOXES},
    ),
    "COCO that names folders": (
        ["result.json", "images/1.jpg"],
        {"result.json": b'{"images": [{"file_name": "images\\/1.jpg"'},
        {"source": {"kind": "coco", "split": r"result\.json", "images": ""}, **IDS, **BOXES},
    ),
    "COCO of other names": (
        ["labels/birds_train.json", "labels/birds_val.json", "images/1.jpg"],
        {"labels/birds_train.json": COCO},
        {
            "source": {"kind": "coco", "split": r"birds_(?P<split>train|val)\.json", "images": "images"},
            **splits(**TRAIN_VAL),
            **IDS,
            **BOXES,
        },
    ),
    "VOC as it comes": (
        ["JPEGImages/1.jpg", "Annotations/1.xml", "SegmentationClass/1.png", "SegmentationObject/1.png"]
        + [f"ImageSets/Main/{name}.txt" for name in ("train", "val", "trainval", "cat_train")],
        {"Annotations/1.xml": XML},
        {"source": {"kind": "voc", "sets": "ImageSets/Main"}, **splits(**TRAIN_VAL), **BOXES},
    ),
    "VOC with one list": (
        ["JPEGImages/1.jpg", "Annotations/1.xml", "ImageSets/Main/trainval.txt"],
        {"Annotations/1.xml": XML},
        {"source": {"kind": "voc", "sets": "ImageSets/Main"}, **splits(trainval="train"), **BOXES},
    ),
    "VOC below a folder": (
        ["VOC2012/JPEGImages/1.jpg", "VOC2012/Annotations/1.xml", "VOC2012/ImageSets/Main/val.txt"],
        {"VOC2012/Annotations/1.xml": XML},
        {"source": {"kind": "voc", "sets": "ImageSets/Main"}, **splits(val="validation"), **BOXES},
    ),
    "VOC's names changed": (
        ["images/1.jpg", "annots/1.xml"],
        {"annots/1.xml": XML},
        {"source": {"kind": "voc", "images": "images"}, **BOXES},
    ),
    "VOC by splits": (
        ["train/images/1.jpg", "train/annotations/1.xml", "test/images/1.jpg", "test/annotations/1.xml"],
        {"train/annotations/1.xml": XML, "test/annotations/1.xml": XML},
        {
            "source": {"kind": "voc", "images": "images"},
            **splits("from_folders", train="train", test="test"),
            **BOXES,
        },
    ),
    "LabelImg": (["1.jpg", "1.xml"], {"1.xml": XML}, {"source": {"kind": "voc", "images": "{folder}"}, **BOXES}),
    "Roboflow's VOC": (
        ["train/1.jpg", "train/1.xml", "valid/1.jpg", "valid/1.xml"],
        {"train/1.xml": XML, "valid/1.xml": XML},
        {
            "source": {"kind": "voc", "images": "{folder}"},
            **splits("from_folders", train="train", valid="validation"),
            **BOXES,
        },
    ),
    "LabelMe": (["1.jpg", "1.json"], {"1.json": LABELME}, {"source": {"kind": "labelme"}, **BOXES}),
    "LabelMe by splits": (
        ["train/1.jpg", "train/1.json", "test/1.jpg", "test/1.json"],
        {"train/1.json": LABELME},
        {"source": {"kind": "labelme"}, **splits("from_folders", train="train", test="test"), **BOXES},
    ),
    "IDX": (
        [
            "train-images-idx3-ubyte.gz",
            "train-labels-idx1-ubyte.gz",
            "t10k-images-idx3-ubyte",
            "t10k-labels-idx1-ubyte",
        ],
        {},
        {"source": {"kind": "idx"}, **splits(train="train", t10k="test"), "images": {"store": "png"}},
    ),
    "IDX without labels": (
        ["t10k-images.idx3-ubyte"],
        {},
        {"source": {"kind": "idx", "labels": ""}, **splits(t10k="test"), "images": {"store": "png"}},
    ),
    "CIFAR-10": (
        ["data_batch_1.bin", "test_batch.bin", "batches.meta.txt"],
        {},
        {
            "source": {"kind": "fixed_records", "preset": "cifar10"},
            **splits(train="train", test="test"),
            "images": {"store": "raw"},
            "convention": "raw_pixels",
        },
    ),
    "CIFAR-100": (
        ["train.bin", "test.bin", "fine_label_names.txt", "coarse_label_names.txt"],
        {},
        {
            "source": {"kind": "fixed_records", "preset": "cifar100"},
            **splits(train="train", test="test"),
            "images": {"store": "raw"},
            "convention": "raw_pixels",
        },
    ),
    "TFRecords": (
        ["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord", "val.record", "labels.txt"],
        {},
        {
            "source": {"kind": "tfrecords"},
            **splits(**TRAIN_VAL),
            "images": {"reencode": "never", "check": "header"},
        },
    ),
    "TFRecords without splits": (
        ["a.tfrecord", "train.tfrecord"],
        {},
        {"source": {"kind": "tfrecords"}, "images": {"reencode": "never", "check": "header"}},
    ),
    "arrays": (
        [f"{name}.npy" for name in ("x_train", "y_train", "x_test", "y_test")],
        {},
        {"source": {"kind": "arrays"}, **splits(train="train", test="test"), "images": {"store": "png"}},
    ),
    "Kaggle": (
        ["train.csv", "test.csv", "sample_submission.csv", "train/1.jpg", "test/2.jpg"],
        {"train.csv": b"id,label\n1,cat\n", "test.csv": b"id\n2\n", "sample_submission.csv": b"id,label\n2,dog\n"},
        {
            "source": {"kind": "manifest", "columns": {"uri": "train/{id}.jpg", "label": "label"}},
            "include": ["/train.csv"],
        },
    ),
    "a table a split": (
        ["train.csv", "val.csv", "images/1.jpg", "images/2.jpg"],
        {"train.csv": b"path,class\nimages/1.jpg,cat\n", "val.csv": b"path,class\nimages/2.jpg,cat\n"},
        {
            "source": {
                "kind": "manifest",
                "columns": {"uri": "path", "label": "class"},
                "split": r"(?P<split>train|val)\.csv",
            },
            **splits(**TRAIN_VAL),
        },
    ),
    "a list a split": (
        ["train.txt", "val.txt", "images/1.jpg", "images/2.jpg"],
        {"train.txt": b"images/1.jpg 3\n", "val.txt": b"images/2.jpg 5\n"},
        {
            "source": {
                "kind": "manifest",
                "columns": {"uri": "path", "label": "label"},
                "names": ["path", "label"],
                "split": r"(?P<split>train|val)\.txt",
            },
            **splits(**TRAIN_VAL),
        },
    ),
    "Roboflow's table of boxes": (
        [f"{word}/{name}" for word in ("train", "valid") for name in ("1.jpg", "_annotations.csv")],
        {
            f"{word}/_annotations.csv": b"filename,width,height,class,xmin,ymin,xmax,ymax\n1.jpg,4,4,cat,1,1,2,2\n"
            for word in ("train", "valid")
        },
        {
            "source": {
                "kind": "manifest",
                "columns": {
                    **{"uri": "filename", "xmin": "xmin", "ymin": "ymin", "xmax": "xmax", "ymax": "ymax"},
                    **{"box_label": "class", "width": "width", "height": "height"},
                },
            },
            **splits("from_folders", train="train", valid="validation"),
            **BOXES,
        },
    ),
    "Vertex AI": (
        ["import.jsonl"],
        {"import.jsonl": b'{"imageGcsUri": "gs://bucket/1.jpg"'},
        {
            "source": {"kind": "manifest", "preset": "vertex"},
            **splits(training="train", validation="validation", test="test"),
        },
    ),
    "imagefolder": (
        ["train/metadata.csv", "train/1.jpg", "test/metadata.csv", "test/1.jpg"],
        {"train/metadata.csv": b"file_name,text,label\n1.jpg,hello,cat\n"},
        {
            "source": {"kind": "imagefolder", "label": "label", "features_from": {"image/caption": {"column": "text"}}},
            **splits("from_folders", train="train", test="test"),
        },
    ),
    "imagefolder with boxes": (
        ["metadata.jsonl", "1.jpg"],
        {"metadata.jsonl": b'{"file_name": "1.jpg", "objects": {"bbox": [[0, 0, 8, 8]], "categories": [1]}}\n'},
        {"source": {"kind": "imagefolder", "objects": "objects"}, **BOXES},
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_are_recognised_by_names_and_beginnings(name):
    paths, heads, expected = LAYOUTS[name]
    found = recognise(FolderSketch.of(paths, heads), source_names(), "in", {})
    assert found.settings == expected


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_suggested_flags_mean_the_same(name):
    paths, heads, expected = LAYOUTS[name]
    words = shlex.split(flags_of(recognise(FolderSketch.of(paths, heads), source_names(), "in", {}).settings))
    assert set(words[::2]) == {"--set"}
    by_flags, by_yaml = (
        load_settings(None, words[1::2]),
        load_settings(
            None, [f"{k}={yaml.safe_dump(v, default_flow_style=True, width=9999)}" for k, v in expected.items()]
        ),
    )
    assert by_flags == by_yaml


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_kind_alone_finds_the_same(name):
    paths, heads, expected = LAYOUTS[name]
    found = recognise(FolderSketch.of(paths, heads), [expected["source"]["kind"]], "in", {})
    assert found.settings == expected


@pytest.mark.parametrize("paths", [[], ["README"], ["a/b/c/1.bin"], ["list.csv"]], ids=str)
def test_nothing_is_recognised_where_names_say_nothing(paths):
    found = recognise(FolderSketch.of(paths), source_names(), "in", {})
    assert found is None or not found.is_firm


@pytest.mark.parametrize(
    ("paths", "heads", "sentences"),
    [
        (
            ["train/1.jpg", "test/1.jpg"],
            {},
            [
                "in may be meant in 2 ways, choose one",
                "class_folders (images without labels in split folders): --set source.kind=class_folders "
                "--set source.class_from=none --set 'splits.from_folders={train: train, test: test}'",
                "(class folders): --set source.kind=class_folders --set 'labels.classes=[test, train]'",
            ],
        ),
        (
            ["cat/1.jpg", "cat/1.xml", "dog/1.jpg"],
            {"cat/1.xml": XML},
            [
                "class_folders (class folders such as cat): --set source.kind=class_folders",
                "; or voc (Pascal VOC's XML files next to images, such as cat/1.xml): --set source.kind=voc "
                "--set 'source.images=\"{folder}\"'",
            ],
        ),
        (
            ["images/1.jpg", "labels/1.txt", "data.yaml", "annotations/instances_default.json"],
            {"labels/1.txt": BOX},
            ["coco (COCO's JSON files such as annotations/instances_default.json): ", "; or yolo (YOLO's folders "],
        ),
        (
            ["train/fruit/1.jpg", "val/fruit/2.jpg", "train.txt", "val.txt"],
            {"train.txt": b"train/fruit/1.jpg, 7, 0\n", "val.txt": b"val/fruit/2.jpg, 9, 0\n"},
            [
                "class_folders (class folders below train, val): --set source.kind=class_folders",
                "; or manifest (a table of images, train.txt (left out: column_3)): --set source.kind=manifest",
                "--set 'source.split=(?P<split>train|val)\\.txt'",
            ],
        ),
        (
            [f"img_{number}_{number % 2}.jpg" for number in range(6)],
            {},
            ["--set source.kind=class_folders --set source.class_from=none; or filename_labels (labels such as 0 in"],
        ),
        (
            [f"{name}.{number}.jpg" for name in ("cat", "dog") for number in range(3)],
            {},
            ["filename_labels (labels such as cat in the images' names): --set source.kind=filename_labels"],
        ),
        (
            ["images/1.jpg", "labels/1.txt"],
            {"labels/1.txt": BOX},
            ["(YOLO's folders images, labels), but no data.yaml or classes.txt names the classes: add "],
        ),
        (
            ["images/1.jpg", "masks/1.png"],
            {},
            ["images, masks do not look like classes: if they are, add --set source.class_from=first_folder"],
        ),
        (
            ["a.json", "b.json", "1.jpg"],
            {"a.json": COCO, "b.json": COCO},
            [
                "in looks like coco",
                "a.json, b.json have no words for splits in one place: name one, as by --set 'source.split=a\\.json'",
            ],
        ),
        (
            ["annotations/instances_train.json", "a/x/1.jpg", "b/x/1.jpg"],
            {},
            ["the folder of the images is not one of the usual: add --set source.images=..."],
        ),
        (
            ["a/instances_train.json", "b/instances_train.json", "train/1.jpg"],
            {},
            ["such files are in a, b: let --input name one folder"],
        ),
        (
            ["train/a_annotations.coco.json", "train/b_annotations.coco.json", "train/1.jpg"],
            {},
            ["are next to each other: name one, as by --set 'source.split=a_annotations\\.coco\\.json'"],
        ),
    ],
)  # fmt: skip
def test_a_choice_is_the_users(paths, heads, sentences):
    with pytest.raises(UsageError) as told:
        recognise(FolderSketch.of(paths, heads), source_names(), "in", {})
    for sentence in sentences:
        assert sentence in str(told.value)


def test_what_the_user_says_is_the_choice():
    unlabelled, yolo = FolderSketch.of(["train/1.jpg", "test/1.jpg"]), FolderSketch.of(["images/1.jpg", "labels/1.txt"])
    given = {"source": {"class_from": "none"}}
    assert recognise(unlabelled, ["class_folders"], "in", given).settings["source"]["class_from"] == "none"
    given = {"labels": {"classes": ["test", "train"]}}
    assert recognise(unlabelled, ["class_folders"], "in", given).settings["labels"] == given["labels"]
    yolo = FolderSketch.of(["images/1.jpg", "labels/1.txt"], {"labels/1.txt": BOX})
    assert recognise(yolo, ["yolo"], "in", {"source": {"names": ["cat"]}}).kind == "yolo"


@pytest.fixture
def fill_in(tmp_path):
    """Fills in settings for files of the given contents; gives the settings and the finder."""

    def run(files, written=None, inputs=("in",)):
        said = []
        for path, data in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(data)
        finder = LayoutFinder([Input(str(tmp_path / each)) for each in inputs], said.append)
        filled = finder.fill_in(written or {})
        assert said == ([finder.found.sentence] if finder.found else [])
        return filled, finder

    return run


SPLIT_FOLDERS = {"in/train/cat/1.jpg": b"", "in/val/cat/1.jpg": b""}


def test_what_is_written_wins_key_by_key(fill_in):
    filled, finder = fill_in(SPLIT_FOLDERS, {"source": {"class_from": "last_folder"}, "seed": 3})
    assert filled == {
        "source": {"kind": "class_folders", "class_from": "last_folder"},
        "splits": {"from_folders": {"train": "train", "val": "validation"}},
        "seed": 3,
    }
    assert finder.comment == "# Recognised class_folders: class folders below train, val\n"
    assert asdict(finder.found) == {
        "kind": "class_folders",
        "why": "class folders below train, val",
        "flags": "--set source.kind=class_folders --set 'splits.from_folders={train: train, val: validation}'",
    }


@pytest.mark.parametrize(
    "written",
    [
        {"splits": {"fractions": {"train": 1.0}}},
        {"splits": {"stratify": True}},
        {"splits": {"from_folders": {"train": "a", "val": "b"}}},
        {"labels": {"classes": ["val", "train"]}},
    ],
    ids=str,
)
def test_splits_of_the_users_own_take_the_place_of_those_that_are_there(fill_in, written):
    assert fill_in(SPLIT_FOLDERS, written)[0] == {"source": {"kind": "class_folders"}, **written}


def test_an_include_hides_what_it_does_not_name(fill_in):
    files = {"in/cat/1.jpg": b"", "in/cat/1.xml": XML, "in/dog/2.jpg": b""}
    filled, _ = fill_in(files, {"include": ["*.jpg"]})
    assert filled["source"] == {"kind": "class_folders"}


def test_one_folder_around_annotations_is_named(fill_in, tmp_path):
    files = {"in/Pets/images/1.jpg": b"", "in/Pets/labels/1.txt": BOX, "in/Pets/data.yaml": b"names: [cat]"}
    with pytest.raises(
        UsageError, match=r"in/Pets looks like yolo \(YOLO's folders images, labels\): let --input end in /Pets$"
    ):
        fill_in(files)


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        (
            ["a/b/images/1.jpg", "a/b/labels/1.txt", "c/2.jpg"],
            r"in/a/b looks like yolo \(YOLO's folders images, labels\), which --input in would lose: "
            "let --input end in /a/b$",
        ),
        (
            [f"{each}/{path}" for each in "ab" for path in ("images/1.jpg", "labels/1.txt")],
            r"in/a looks like yolo \(.*\), as do others, which --input in would lose: let --input end in /a, or "
            "give each such folder a name: --input a=.*/in/a --input b=.*/in/b$",
        ),
        (["a/b/c/1.jpg", "a/b/c/1.xml", "d/e/1.jpg"], "in/a/b looks like voc .*: let --input end in /a/b$"),
        (["a/x/_annotations.coco.json", "a/x/1.jpg", "b/1.jpg"], "in/a looks like coco .*: let --input end in /a$"),
    ],
)
def test_annotations_further_down_are_refused(fill_in, files, sentence):
    contents = {".txt": BOX, ".xml": XML, ".json": COCO}
    paths = {f"in/{path}": contents.get(path[path.rindex(".") :], b"") for path in files}
    with pytest.raises(UsageError, match=sentence.replace("--input in ", "--input .*/in ")):
        fill_in(paths)
    written = {"source": {"kind": "class_folders"}}
    assert fill_in(paths, written)[0] == written
    named = sentence.partition(" looks")[0]
    assert fill_in({}, {"source": {"names": ["cat"]}} if "yolo" in sentence else {}, inputs=(named,))[1].found


def test_class_folders_may_hold_folders_of_images(fill_in):
    files = {f"in/{path}": b"" for path in ("a/b/c/1.jpg", "a/b/d/2.jpg", "e/images/3.jpg", "e/masks/3.png")}
    assert fill_in(files)[0] == {"source": {"kind": "class_folders"}}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("train: images/one\nval: ../x/images/two\n", {"one": "train", "two": "validation"}),
        ("path: ../x\ntrain: './images/one/'\nval: images/one\ntest: images/two # few\n",
         {"one": "train", "two": "test"}),
        ("train:\n  - images/one\n  - images/two\n", {"one": "train", "two": "train"}),
        ("train: [images/one]\nval: two.txt\n", {"one": "train", "two": "two"}),
    ],
)  # fmt: skip
def test_data_yaml_says_which_folders_are_splits(fill_in, lines, words):
    files = {f"in/{kind}/{word}/1.{end}": BOX if end == "txt" else b""
             for kind, end in (("images", "jpg"), ("labels", "txt")) for word in ("one", "two")}  # fmt: skip
    filled, _ = fill_in({**files, "in/data.yaml": f"{lines}names: [cat]\n".encode()})
    assert filled["splits"] == {"from_source": words}


def test_data_yaml_says_which_folders_around_images_are_splits(fill_in):
    files = {f"in/{word}/{path}": BOX for word in ("one", "val") for path in ("images/1.jpg", "labels/1.txt")}
    filled, _ = fill_in({**files, "in/data.yaml": b"names: [cat]\ntrain: one/images\nval: val/images\ntest: a/b\n"})
    assert filled["splits"] == {"from_source": {"one": "train", "val": "validation"}}


NOTES = b'{"categories": [{"id": 0, "name": "cat"}], "info": {"year": 2024, "contributor": "Label Studio"}}'


def test_label_studios_notes_are_not_cocos_annotations(fill_in):
    files = {"in/images/1.jpg": b"", "in/labels/1.txt": BOX, "in/classes.txt": b"cat\n", "in/notes.json": NOTES}
    assert fill_in(files)[0]["source"] == {"kind": "yolo"}


def test_folders_called_images_of_a_split_are_not_classes(fill_in):
    files = {"in/train.csv": b"image_id,label\n1.jpg,0\n", "in/train_images/1.jpg": b"", "in/test_images/2.jpg": b""}
    assert fill_in(files)[0]["source"]["kind"] == "manifest"


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        (["flink.md", "b.md"], "2 files are not images, such as b.md: let --input name what is to be converted"),
        (
            ["a.csv"],
            "1 file is not an image: a.csv: add --set source.kind=manifest --set source.columns.uri=COLUMN",
        ),
    ],
)
def test_files_that_are_not_images_are_refused(fill_in, files, sentence):
    with pytest.raises(UsageError, match=sentence):
        fill_in({f"in/{name}": b"x" for name in files})


def test_inputs_are_of_one_layout(fill_in):
    files = {"a/cat/1.jpg": b"", "b/dog/1.jpg": b"", "c/1.jpg": b""}
    assert fill_in(files, inputs=("a", "b"))[0] == {"source": {"kind": "class_folders"}}
    with pytest.raises(UsageError, match=r"the inputs have different layouts \(.*/a like class_folders; .*/c like"):
        fill_in(files, inputs=("a", "c"))


def test_a_kind_that_is_not_found_in_names_has_the_usual_words(fill_in):
    files = {"in/a/b/images/train/1.jpg": b""}
    filled, finder = fill_in(files, {"source": {"kind": "yolo"}})
    words = {"train": "train", "val": "validation", "valid": "validation", "validation": "validation", "test": "test"}
    assert filled == {"source": {"kind": "yolo"}, "splits": {"from_source": words}}
    assert (finder.found, finder.comment) == (None, "")


def test_a_kind_whose_files_give_no_words_has_no_usual_ones(fill_in):
    written = {"source": {"kind": "labelme"}}
    assert fill_in({"in/a/b/c/1.json": LABELME, "in/a/b/c/1.jpg": b""}, written)[0] == written


OLD = {
    "coco": (
        [f"annotations/instances_{word}2017.json" for word in ("train", "val")] + ["train/1.jpg", "val/1.jpg"],
        {},
        {
            "source": {"split": r"instances_(?P<split>[a-z]+)[0-9]*\.json", "images": "{split}"},
            **splits(**TRAIN_VAL),
        },
    ),
    "voc": (
        ["Annotations/1.xml", "JPEGImages/1.jpg", "ImageSets/Main/train.txt", "ImageSets/Main/val.txt"],
        {"Annotations/1.xml": XML},
        {"source": {"images": "JPEGImages"}},
    ),
    "yolo": (
        [f"{kind}/{word}/1.{end}" for kind, end in (("images", "jpg"), ("labels", "txt")) for word in ("train", "val")]
        + ["data.yaml"],
        {"labels/train/1.txt": BOX, "data.yaml": b"names: [cat]"},
        splits(**TRAIN_VAL),
    ),
    "imagefolder": (
        [f"{word}/{name}" for word in ("train", "validation", "test") for name in ("metadata.csv", "1.jpg")],
        {f"{word}/metadata.csv": b"file_name,label,text\n1.jpg,cat,x\n" for word in ("train", "validation", "test")},
        {
            "source": {"label": "label", "features_from": {"image/caption": {"column": "text"}}},
            **splits("from_folders", train="train", validation="validation", test="test"),
        },
    ),
    "tfrecords": (["train.tfrecord", "test.tfrecord"], {}, splits(train="train", test="test")),
    "webdataset": (
        ["train-0.tar", "val-0.tar"],
        {},
        {
            "source": {"split": r"(?P<split>train|val)[^/]*\.tar", "label_part": "cls"},
            **splits(**TRAIN_VAL),
            "labels": {"ids": "integers"},
        },
    ),
}
"""Layouts that shipped configurations were written for, and the settings that stood in them."""


@pytest.mark.parametrize("config", OLD)
def test_shipped_configurations_still_say_the_same(config, tmp_path):
    paths, heads, said = OLD[config]
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(heads.get(path, b""))
        if path.endswith(".tar"):
            with tarfile.open(tmp_path / path, "w") as archive:
                for name in ("0.jpg", "0.cls"):
                    member = tarfile.TarInfo(name)
                    member.size = 1
                    archive.addfile(member, io.BytesIO(b"7"))
    finder = LayoutFinder([Input(str(tmp_path))], print)
    now = load_settings(f"configs/{config}.yaml", [], finder.fill_in)
    shipped = yaml.safe_load((CONFIGS / f"{config}.yaml").read_text())
    then = {key: value for key, value in shipped.items() if key != "layout"}
    (tmp_path / "old.yaml").write_text(
        yaml.safe_dump({**then, **said, "source": {**then["source"], **said.get("source", {})}})
    )
    assert finder.found
    assert now == load_settings(str(tmp_path / "old.yaml"), [])


def test_an_input_that_cannot_be_looked_at_is_left_to_the_job(monkeypatch, fill_in):
    def refuse(*_):
        raise PermissionError(13, "denied")

    monkeypatch.setattr("recordmill.pipeline.configuration.recognise_layout.look_at_input", refuse)
    assert fill_in({}, {"seed": 1})[0] == {"seed": 1}


def test_one_folder_around_split_folders_is_named(fill_in):
    files = {f"in/data/{split}/{label}/1.jpg": b"" for split in ("train", "val") for label in ("cat", "dog")}
    with pytest.raises(UsageError, match=r"in/data looks like class_folders .*: let --input end in /data$"):
        fill_in(files)


IMAGE_OF_LISTS = {"in/images/1.jpg": b""}


@pytest.mark.parametrize("others", [(), ("annotators.txt", "classes.txt", "notes.txt", "readme.txt")], ids=str)
def test_no_list_of_a_split_is_lost_among_others(fill_in, others):
    lists = {f"in/{split}.txt": b"images/1.jpg 0\n" for split in ("train", "val", "test")}
    filled, _ = fill_in({**IMAGE_OF_LISTS, **lists, **{f"in/{name}": b"some words\n" for name in others}})
    assert filled["source"]["split"] == r"(?P<split>train|val|test)\.txt"
    assert filled["splits"] == {"from_source": {"train": "train", "val": "validation", "test": "test"}}


@pytest.mark.parametrize("ending", ["txt", "csv"])
def test_a_list_of_two_splits_is_left_out_where_each_has_its_own(fill_in, ending):
    content = {"txt": b"images/1.jpg 0\n", "csv": b"path,label\nimages/1.jpg,cat\n"}[ending]
    lists = {f"in/{split}.{ending}": content for split in ("train", "trainval", "val", "test")}
    filled, finder = fill_in({**IMAGE_OF_LISTS, **lists})
    assert filled["source"]["split"] == rf"(?P<split>train|val|test)\.{ending}"
    assert filled["splits"] == {"from_source": {"train": "train", "val": "validation", "test": "test"}}
    assert finder.found.why == f"a table of images, test.{ending} (left out: trainval.{ending})"


def test_no_table_is_lost_that_was_not_looked_into(fill_in):
    tables = {f"in/part{number}.csv": b"path,label\nimages/1.jpg,cat\n" for number in range(9)}
    filled, _ = fill_in({**IMAGE_OF_LISTS, **tables, "in/about.csv": b"name,value\nauthor,x\n"})
    assert "include" not in filled
    assert filled["ignore"] == ["/about.csv"]


def test_a_column_of_any_name_may_hold_the_images(fill_in):
    filled, _ = fill_in({"in/pics/1.jpg": b"", "in/meta.csv": b"photo_no,kind\npics/1.jpg,cat\n"})
    assert filled["source"]["columns"] == {"uri": "photo_no", "label": "kind"}
