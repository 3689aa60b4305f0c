"""Files that docs/layouts.md does not mention, put into its layouts: nothing is lost silently."""

import io
import json
import pickle
import random
import re
import runpy
import shlex
import sqlite3
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from paired_inputs import mask, photo
from PIL import Image
from plan_in_process import content_of, plan
from printed_commands import printed_flags

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

PAGE = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("test_layouts.py"))))
BOX, LABELME, MADE, ROWS, SIDES, VOC = (
    PAGE.BOX,
    PAGE.LABELME,
    PAGE.MADE,
    PAGE.ROWS,
    PAGE.SIDES,
    PAGE.VOC,
)
coco, images, npz, run, write = PAGE.coco, PAGE.images, PAGE.npz, PAGE.run, PAGE.write

LAYOUTS = [name for name in MADE if ROWS[name] == "--input in"]
"""The layouts that are recognized in a folder."""


def array():
    stream = io.BytesIO()
    np.save(stream, np.array([1, 2]))
    return stream.getvalue()


def database(folder):
    path = folder / "x.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("create table labels (name)")
    connection.commit()
    connection.close()
    data = path.read_bytes()
    path.unlink()
    return data


CVAT = (
    '<?xml version="1.0" encoding="utf-8"?>\n<annotations><version>1.1</version>'
    '<image id="0" name="{}" width="24" height="16"><tag label="cat"/></image></annotations>'
)


def via(names):
    region = {"shape_attributes": {"name": "rect", "x": 6, "y": 4, "width": 12, "height": 8}}
    return json.dumps({f"{name}9": {"filename": name, "regions": [region]} for name in names})


def make_extra(kind, paths, folder):
    """The extension and content of an extra file that tells something about these images."""
    names = [path.rpartition("/")[2] for path in paths] or ["1.jpg"]
    stems = [name.partition(".")[0] for name in names]
    made = {
        "CVAT's XML": (".xml", CVAT.format(names[0])),
        "VOC's XML": (".xml", VOC.format(names[0])),
        "COCO's JSON": (".json", coco(*names)),
        "VIA's JSON": (".json", via(names)),
        "YOLO's text": (".txt", BOX),
        "list of paths": (".txt", "".join(f"{path}\n" for path in paths or names)),
        "list of names and classes": (".txt", "".join(f"{stem} 1\n" for stem in stems * 3)),
        "CSV": (".csv", "file,kind\n" + "".join(f"{name},cat\n" for name in names)),
        "CSV of boxes": (".csv", SIDES + "".join(f"{each},24,16,cat,1,1,5,5\n" for each in names)),
        "MATLAB": (".mat", b"MATLAB 5.0 MAT-file" + bytes(100)),
        "npy": (".npy", array()),
        "npz": (".npz", npz(labels=np.array([1, 2]))),
        "pickle": (".pkl", pickle.dumps({"1.jpg": "cat"})),
        "HDF5": (".h5", b"\x89HDF\r\n\x1a\n" + bytes(100)),
        "SQLite": (".db", database(folder)),
    }
    return made[kind]


KINDS = [
    *("CVAT's XML", "VOC's XML", "COCO's JSON", "VIA's JSON", "YOLO's text", "list of paths"),
    *("list of names and classes", "CSV", "CSV of boxes", "MATLAB", "npy", "npz", "pickle"),
    *("HDF5", "SQLite"),
]
NAMES = (
    *("annotations", "labels", "gt", "data", "index", "x7", "info", "Train", "boxes", "list"),
    *("bbox_annotations", "meta", "README", "about", "metadata", "0001", "via_region_data"),
    *("Новый", "übung", "setid"),
)


PLACES = ("top", "beside", "below")


def draw_name(draw):
    """A name that people give to such files, or any word."""
    word = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz_", k=draw.randint(3, 9)))
    return draw.choice((*NAMES, word, word.upper()))


@pytest.mark.parametrize(
    ("name", "place"), [(name, PLACES[at % 3]) for at, name in enumerate(LAYOUTS)]
)
def test_an_extra_file_stops_the_run_or_is_in_the_dataset_or_is_named(name, place, tmp_path):
    files, draw = MADE[name][0], random.Random(f"{name}, {place}")
    write(tmp_path / "plain", files)
    before = plan(tmp_path / "plain")
    assert before.exit_code == 0, before.message
    paths = [path for path in files if path.endswith(".jpg")]
    beside = paths[0].rpartition("/")[0] if paths else ""
    at = {"top": "", "beside": f"{beside}/".lstrip("/"), "below": f"{beside}/x/".lstrip("/")}
    for kind in KINDS[LAYOUTS.index(name) % 2 :: 2]:
        suffix, data = make_extra(kind, paths, tmp_path)
        extra = f"{at[place]}{draw_name(draw)}{suffix}"
        folder = tmp_path / kind.replace(" ", "-")
        write(folder, {**files, extra: data})
        after = plan(folder)
        if after.exit_code:
            assert after.exit_code in (1, 2), (extra, after.message)
            continue
        is_named = [note for note in after.notes if note.startswith("not stored")]
        # Text files without an image are counted with the boxes.
        is_lost_box = kind == "YOLO's text" and "YOLO" in name
        # A file that is only rejected is not in the dataset.
        shown = content_of(after)[:3] != content_of(before)[:3]
        assert shown or (is_named and before.notes != after.notes) or is_lost_box, extra


def beside(path, name):
    return f"{path.rpartition('/')[0]}/{name}".lstrip("/")


PICTURES = {
    "masks next to images": lambda path: (f"{path[:-4]}_mask.png", mask(path)),
    "masks of the same names": lambda path: (f"{path[:-4]}.png", mask(path)),
    "masks in a parallel folder": lambda path: (f"masks/{path[:-4]}.png", mask(path)),
    "masks one folder deeper": lambda path: (
        beside(path, f"masks/{path.rpartition('/')[2][:-4]}.png"),
        mask(path),
    ),
    "second images": lambda path: (f"{path[:-4]}.bmp", photo(f"second {path}", "BMP")),
}
"""What may lie beside each image: its path below the input, and its content."""


def count_unnamed(planned):
    """Images that nothing names; a run says how many they are, in its notes or its ledger."""
    ignored = planned.summary.ignored
    return ignored["taken_only_by_name"] + ignored["not_included"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for at, name in enumerate(LAYOUTS)
        if any(".jpg" in path for path in MADE[name][0])
        for kind in ([*PICTURES] * 2)[at % 5 : at % 5 + 2]
    ],
)
def test_masks_and_second_images_stop_the_run_or_are_counted_as_ignored(name, kind, tmp_path):
    files = MADE[name][0]
    more = dict(PICTURES[kind](path) for path in files if path.endswith(".jpg"))
    write(tmp_path / "plain", files)
    write(tmp_path / "more", {**files, **more})
    before, after = plan(tmp_path / "plain"), plan(tmp_path / "more")
    assert before.exit_code == 0, before.message
    if after.exit_code:
        assert after.exit_code in (1, 2), after.message
        return
    assert content_of(after) == content_of(before)
    assert count_unnamed(after) - count_unnamed(before) == len(more)


ORDINARY = {
    "README.md": "# Pets\n\nSee https://example.com.\n",
    "README.txt": "Pets, collected by hand.\nSee the paper.\n",
    "LICENSE": "Permission is granted.\n",
    "LICENSE.txt": "Permission is granted.\n",
    "CITATION.cff": "cff-version: 1.2.0\ntitle: Pets\n",
    "requirements.txt": "numpy==1.26.4\npillow>=10\ntorch\n",
    "notes.ipynb": '{"cells": [], "nbformat": 4}',
    "train.py": "print(1)\n",
    "paper.pdf": b"%PDF-1.5",
    ".DS_Store": b"\0\0\0\1Bud1",
    ".gitattributes": "*.jpg filter=lfs\n",
    ".git/config": "[core]\n",
    "Thumbs.db": b"\xd0\xcf\x11\xe0",
    "desktop.ini": "[x]\n",
    "__MACOSX/._1.jpg": b"\0\5\26\7",
    "docs/index.html": "<!DOCTYPE html><html></html>",
    "SHA256SUMS.txt": f"{'0' * 64}  1.jpg\n",
    "checksums.md5": f"{'0' * 32}  1.jpg\n",
    "_SUCCESS": b"",
    "package.json": "{}",
    "environment.yml": "name: pets\n",
    "Makefile": "all:\n",
    "about.txt": "Pets, collected by hand.\n",
    "CHANGELOG.md": "- more pets\n",
}
"""Files that carry nothing about single images."""


@pytest.mark.parametrize("name", LAYOUTS)
def test_files_that_describe_a_collection_change_nothing(name, tmp_path):
    files, _, _ = MADE[name]
    write(tmp_path / "plain", files)
    for path, data in ORDINARY.items():
        if "/" not in path or path.startswith((".", "__")):  # other folders may be classes
            write(tmp_path / "more", {path: data})
    write(tmp_path / "more", files)
    plain, more = plan(tmp_path / "plain"), plan(tmp_path / "more")
    assert more.exit_code == 0, more.message
    assert content_of(more) == content_of(plain)
    assert more.summary.unclaimed == []


@pytest.mark.parametrize("path", [path for path in ORDINARY if "/" not in path])
def test_a_file_that_describes_class_folders_is_not_rejected(path, tmp_path):
    write(tmp_path / "in", {**MADE["class folders"][0], path: ORDINARY[path]})
    write(tmp_path / "in", {f"cat/{path}": ORDINARY[path]})
    planned = plan(tmp_path / "in")
    assert (planned.exit_code, planned.message) == (0, "")
    assert planned.summary.unclaimed == []
    assert content_of(planned) == (3, 0, ["cat", "dog"], {})


CLASS_FOLDERS = MADE["class folders"][0]
ONE = CLASS_FOLDERS["cat/1.jpg"]
VARIANTS = {
    "extensions in capitals": {
        path.replace(".jpg", ".JPG"): data for path, data in CLASS_FOLDERS.items()
    },
    "other image formats": {
        "cat/1.jpg": ONE,
        "cat/2.png": photo(2, "PNG"),
        "dog/3.bmp": photo(3, "BMP"),
    },
    "blanks and accents in names": {
        "cat/my cat (1).jpg": ONE,
        "cat/übung 2.jpg": ONE,
        "dog/chien n° 3.jpg": ONE,
    },
    "names of cameras": {"cat/IMG_0001.jpg": ONE, "cat/DSC_0002.jpg": ONE, "dog/P1000003.jpg": ONE},
    "one image a class": {"cat/1.jpg": ONE, "dog/1.jpg": ONE, "cat/x/1.jpg": ONE},
    "2,000 images": {f"{('cat', 'dog')[n % 2]}/{n}.jpg": ONE for n in range(2_000)},
}
"""Ordinary forms of a collection of two classes."""


@pytest.mark.parametrize("name", VARIANTS)
def test_an_ordinary_collection_converts_without_a_question(name, tmp_path):
    files = VARIANTS[name]
    write(tmp_path / "in", files)
    planned = plan(tmp_path / "in")
    assert (planned.exit_code, planned.message) == (0, "")
    assert content_of(planned) == (len(files), 0, ["cat", "dog"], {})


@pytest.mark.parametrize("name", LAYOUTS[::4])
def test_a_deeper_root_with_any_name_changes_nothing(name, tmp_path):
    files, root = MADE[name][0], tmp_path / "masks (1)/train_v2.1/my dog's"
    write(tmp_path / "in", files)
    write(root, files)
    deeper = plan(root)
    assert (deeper.exit_code, deeper.message) == (0, "")
    assert content_of(deeper) == content_of(plan(tmp_path / "in"))


def png():
    stream = io.BytesIO()
    Image.new("L", (24, 16)).save(stream, "PNG")
    return stream.getvalue()


SIBLINGS = {
    "COCO": (
        {
            "annotations/captions_train2017.json": "{}",
            "annotations/person_keypoints_train2017.json": coco("1.jpg"),
            "annotations/panoptic_train2017.json": "{}",
            "annotations/panoptic_train2017/1.png": png(),
            "annotations/panoptic_val2017/2.png": png(),
        },
        "not stored: files of captions (2), files of key points (1), "
        "files of panoptic masks (1), panoptic masks (2)",
    ),
    "Kaggle: a CSV of ids and classes": (
        {},
        "not stored: sample submissions (1), tables of test images (1)",
    ),
    "Kaggle: a CSV of file names and classes": ({}, "not stored: sample submissions (1)"),
    "class folders": (
        {"sample_submission.csv": "id,label\n1,cat\n"},
        "not stored: sample submissions (1)",
    ),
    "Ultralytics": (
        {
            "labels/train.cache": pickle.dumps({"version": 1}),
            "train.txt": "./images/train/1.jpg\n",
            "README.roboflow.txt": "pets - v1\n",
        },
        "not stored: caches (1), split lists (1)",
    ),
    "Pascal VOC": (
        {
            "SegmentationClass/1.png": png(),
            "SegmentationClass/2.png": png(),
            "SegmentationObject/1.png": png(),
            "ImageSets/Segmentation/train.txt": "1\n",
            "ImageSets/Layout/train.txt": "1 1\n",
        },
        "not stored: lists of images with masks (1), masks (1), semantic masks (2), split lists "
        "(2); --set masks=png --set source.sets=ImageSets/Segmentation --set "
        "'splits.from_source={train: train, val: validation}' stores masks; --config "
        "configs/voc_masks.yaml stores semantic masks, too",
    ),
    "Label Studio: YOLO": ({}, "not stored: notes (1)"),
    "LabelMe": ({"labels.txt": "cat\n"}, "not stored: lists of classes (1)"),
}


@pytest.mark.parametrize("name", SIBLINGS)
def test_known_files_of_a_format_are_named_and_do_not_stop_the_run(
    name, tmp_path, monkeypatch, capsys
):
    siblings, note = SIBLINGS[name]
    files, splits, labels = MADE[name]
    write(tmp_path / "in", {**files, **siblings})
    marker, _ = run(ROWS[name], tmp_path, monkeypatch, capsys)
    found = {split: said["records"] for split, said in marker["splits"].items()}
    assert found == splits if splits else set(found) == {"train", "test"}
    assert (marker["labels"], marker["ledger"]["rejected"]) == (labels, {})
    assert note in marker["notes"]
    assert not any("usable annotation" in each for each in marker["notes"])


CUB = {
    **images("images/001.Black/1.jpg", "images/002.Red/2.jpg", "images/003.Tit/3.jpg"),
    "images.txt": "1 001.Black/1.jpg\n2 002.Red/2.jpg\n3 003.Tit/3.jpg\n",
    "image_class_labels.txt": "1 1\n2 2\n3 3\n",
    "train_test_split.txt": "1 0\n2 1\n3 1\n",
    "bounding_boxes.txt": "1 60.0 27.0 325.0 304.0\n2 1.0 2.0 3.0 4.0\n3 1.0 2.0 3.0 4.0\n",
    "classes.txt": "1 001.Black\n2 002.Red\n3 003.Tit\n",
    "README": "Caltech-UCSD Birds\n",
}
SPLIT = images("train/cat/1.jpg", "train/dog/2.jpg", "test/cat/3.jpg", "test/dog/4.jpg")
STOPPED = {
    "CUB-200": (
        CUB,
        ["3 lists of images or labels such as", "bounding_boxes.txt (boxes"],
        {"001.Black": 0, "002.Red": 1, "003.Tit": 2},
    ),
    "Oxford flowers": (
        {**images("jpg/1.jpg", "jpg/2.jpg", "jpg/3.jpg"), "imagelabels.mat": b"MATLAB 5.0 x"},
        ["imagelabels.mat (arrays)"],
        None,
    ),
    "VIA's JSON next to a CSV": (
        {
            **images("images/cat.0.jpg", "images/cat.1.jpg"),
            "list.csv": ",image\n0,images/cat.0.jpg\n1,images/cat.1.jpg\n",
            "annotations.json": via(["cat.0.jpg"]),
        },
        ["annotations.json (VIA's JSON)"],
        {},
    ),
    "JSON next to the images of a class": (
        {
            **images(*(f"cat/{number}.jpg" for number in range(9)), "dog/9.jpg"),
            **{f"cat/{number}.json": '{"breed": "persian"}' for number in range(9)},
        },
        ["9 annotations such as cat/0.json (JSON)"],
        {"cat": 0, "dog": 1},
    ),
    "a table next to classes": (
        {**MADE["class folders"][0], "labels.csv": "breed,age\npersian,3\n"},
        ["labels.csv (tables)"],
        {"cat": 0, "dog": 1},
    ),
    "split folders": (
        {**SPLIT, "boxes.xml": CVAT.format("1.jpg"), "README.md": "x"},
        ["boxes.xml (CVAT's XML)"],
        {"cat": 0, "dog": 1},
    ),
    "an odd name": (
        {**MADE["class folders"][0], "cat/odd [a]* 'x'!.xml": "<annotations/>"},
        ["cat/odd [a]* 'x'!.xml (CVAT's XML)"],
        {"cat": 0, "dog": 1},
    ),
    "VIA's JSON next to a folder of images": (
        {**images("images/1.jpg", "images/2.jpg"), "via.json": via(["1.jpg"])},
        ["via.json (VIA's JSON); to store annotations, export them as COCO, VOC, YOLO, or"],
        {},
    ),
    "Label Studio's JSON": (
        {**images("1.jpg", "2.jpg"), "export.json": '[{"image": "1.jpg", "annotations": []}]'},
        ["export.json (JSON)"],
        {},
    ),
    "a manifest of SageMaker": (
        {**images("images/1.jpg", "images/2.jpg"), "output.manifest": '{"source-ref": "1.jpg"}'},
        ["output.manifest (annotations)"],
        {},
    ),
    "JSON in split folders": (
        {
            **images("train/1.jpg", "train/3.jpg", "test/2.jpg", "test/4.jpg"),
            "train/all.json": '[{"image": "1.jpg"}]',
            "test/all.json": '[{"image": "2.jpg"}]',
        },
        ["2 annotations such as test/all.json (JSON)"],
        {},
    ),
    "an archive of annotations": (
        {**MADE["class folders"][0], "annotations.zip": b"PK\3\4"},
        ["annotations.zip (archives)"],
        {"cat": 0, "dog": 1},
    ),
}


def start(arguments, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    code = launch([*arguments, "--set=report=false"], build)
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", STOPPED)
def test_the_printed_command_converts_without_exactly_that(name, tmp_path, monkeypatch, capsys):
    files, said, labels = STOPPED[name]
    write(tmp_path / "in", files)
    for plan_only in (["--plan"], []):
        command = ["--input", "in", "--output", "out", *plan_only]
        code, line = start(command, tmp_path, monkeypatch, capsys)
        assert (code, line["status"]) == (2, "failed")
        for part in said:
            assert part in line["message"]
    assert not (tmp_path / "out").exists()
    printed = re.search(r": recordmill run (.+)$", line["message"])
    assert printed
    code, line = start(shlex.split(printed[1]), tmp_path, monkeypatch, capsys)
    if labels is None:  # it asks what the classes are
        assert code in (0, 2)
        return
    assert code == 0, line["message"]
    marker = json.loads((tmp_path / "out/recordmill.json").read_bytes())
    count = sum(path.endswith(".jpg") for path in files)
    assert (marker["labels"], marker["ledger"]["written"]) == (labels, count)
    assert marker["ledger"]["rejected"] == {}
    if "split folders" in name:
        assert {key: each["records"] for key, each in marker["splits"].items()} == {
            "train": 2,
            "test": 2,
        }


def test_nothing_stops_a_run_whose_settings_name_the_source(tmp_path, monkeypatch, capsys):
    write(tmp_path / "in", {**MADE["class folders"][0], "a.xml": CVAT.format("1.jpg")})
    arguments = ["--input=in", "--output=out", "--set=source.kind=class_folders"]
    code, line = start(arguments, tmp_path, monkeypatch, capsys)
    assert code == 0
    assert "Not read, and may carry labels: annotations (1), such as a.xml." in line["remarks"]


def test_files_that_the_user_leaves_out_by_include_are_not_missed(tmp_path):
    write(tmp_path / "in", {**MADE["class folders"][0], "a.xml": CVAT.format("1.jpg")})
    planned = plan(tmp_path / "in", 'include=["*.jpg"]')
    assert (planned.exit_code, planned.summary.unclaimed) == (0, [])


def test_a_shipped_configuration_with_layout_auto_is_a_recognized_run(
    tmp_path, monkeypatch, capsys
):
    write(tmp_path / "in", {**MADE["Roboflow: YOLO"][0], "more.json": coco("train.jpg")})
    arguments = ["--input=in", "--output=out", "--config=configs/yolo.yaml"]
    code, line = start(arguments, tmp_path, monkeypatch, capsys)
    assert (code, "more.json (COCO's JSON)" in line["message"]) == (2, True)


def test_more_files_than_are_read_are_left_out_by_their_extension(tmp_path):
    texts = {f"cat/{number:03}.xml": "<meta/>" for number in range(100)}
    write(tmp_path / "in", {**images("cat/000.jpg", "dog/1.jpg", "dog/2.jpg"), **texts})
    planned = plan(tmp_path / "in")
    assert planned.exit_code == 2
    assert "100 annotations such as cat/000.xml (XML)" in planned.message
    assert planned.message.endswith("""add --set 'ignore=["*.xml"]'""")
    after = plan(tmp_path / "in", 'ignore=["*.xml"]')
    assert content_of(after) == (3, 0, ["cat", "dog"], {})


def test_a_table_next_to_split_folders_stops_the_run_until_it_is_left_out(tmp_path):
    table = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax\n9,xclick,/m/0,1,0.1,0.9,0,1\n"
    files = {**images("train/1.jpg", "test/2.jpg"), "train-annotations-bbox.csv": table}
    write(tmp_path / "in", files)
    planned = plan(tmp_path / "in")
    assert planned.exit_code == 2
    assert "in/train-annotations-bbox.csv is not understood" in planned.message
    (flags,) = re.findall("leave it out with (--set .+)$", planned.message)
    after = plan(tmp_path / "in", *shlex.split(flags)[1::2])
    assert (after.exit_code, content_of(after)) == (0, (2, 0, [""], {}))  # no folder is a class


def advised(message):
    """The values of `--set` in the only command that a message prints."""
    (flags,) = printed_flags(message)
    return [value for flag, value in pairwise(flags) if flag == "--set"]


MANY = {
    "one extension": {f"cat/{number:03}.xml": "<meta/>" for number in range(100)},
    "two spellings of it": {
        f"cat/{number:03}.{'XML' if number == 99 else 'xml'}": "<meta/>" for number in range(100)
    },
    "no extension": {f"cat/text{number}": "a cat\n" for number in range(100)},
    "no extension, in many folders": {
        f"cat/{number}/text{number}": "a cat\n" for number in range(100)
    },
    "no extension, in folders with a dot": {
        f"cat/v1.{number % 9}/text{number}": "a cat\n" for number in range(100)
    },
    "texts in a folder": {f"texts/{number}.txt": "a cat\n" for number in range(100)},
    "texts and a license": {
        "LICENSE.txt": "Permission is granted.\n",
        **{f"dog/{number}.txt": "a cat\n" for number in range(100)},
    },
    "long extensions": {f"dog/{number}.annotations_v2": "a cat\n" for number in range(100)},
    "names with letters that patterns use": {
        f"cat/[{number}]* !.x#y": "a cat\n" for number in range(100)
    },
}


@pytest.mark.parametrize("name", MANY)
def test_any_number_of_files_is_left_out_by_the_printed_command(name, tmp_path):
    layout = images("cat/000.jpg", "dog/1.jpg", "dog/2.v1.jpg")
    write(tmp_path / "in", {**layout, **MANY[name]})
    planned = plan(tmp_path / "in")
    assert planned.exit_code == 2
    after = plan(tmp_path / "in", *advised(planned.message))
    assert (after.exit_code, after.message) == (0, "")
    assert content_of(after) == (3, 0, ["cat", "dog"], {})


OF_COCO = {
    **images("images/1.jpg", "images/2.jpg"),
    "annotations/instances_train.json": coco("1.jpg", "2.jpg"),
}


@pytest.mark.parametrize("folder", ["annotations", "annotations/more", "more", "images"])
def test_many_files_next_to_one_that_is_read_are_left_out(folder, tmp_path):
    more = {f"{folder}/{number}.json": '{"a": 1}' for number in range(100)}
    write(tmp_path / "plain", OF_COCO)
    write(tmp_path / "in", {**OF_COCO, **more})
    planned = plan(tmp_path / "in")
    assert planned.exit_code == 2, planned.message
    after = plan(tmp_path / "in", *advised(planned.message))
    assert (after.exit_code, after.message) == (0, "")
    assert content_of(after) == content_of(plan(tmp_path / "plain"))


def test_many_files_of_another_format_are_left_out(tmp_path):
    files, _, _ = MADE["LabelMe"]
    names = [path for path in files if path.endswith(".jpg")]
    foreign = {f"via/{number}.json": via(names) for number in range(100)}
    write(tmp_path / "plain", files)
    write(tmp_path / "in", {**files, **foreign})
    planned = plan(tmp_path / "in")
    assert planned.exit_code == 2
    assert "100 annotations such as via/0.json (VIA's JSON)" in planned.message
    after = plan(tmp_path / "in", *advised(planned.message))
    assert (after.exit_code, content_of(after)) == (0, content_of(plan(tmp_path / "plain")))


def test_what_the_user_ignores_stays_ignored(tmp_path):
    texts = {f"cat/text{number}": "a cat\n" for number in range(100)}
    write(tmp_path / "in", {**images("cat/1.jpg", "dog/2.jpg", "dog/3.png"), **texts})
    planned = plan(tmp_path / "in", 'ignore=["*.png"]')
    after = plan(tmp_path / "in", *advised(planned.message))
    assert (after.exit_code, content_of(after)) == (0, (2, 0, ["cat", "dog"], {}))


def test_prose_next_to_images_does_not_stop_a_run_unless_it_is_about_one(tmp_path):
    prose = "The cats were photographed by hand in the spring of last year.\nSome are blurred.\n"
    layout = images("cat/felix.jpg", "dog/1.jpg", "dog/2.jpg")
    write(tmp_path / "a", {**layout, "notes.txt": prose, "cat/how.txt": prose})
    assert plan(tmp_path / "a").exit_code == 0
    write(tmp_path / "b", {**layout, "cat/felix.txt": prose})
    assert "cat/felix.txt" in plan(tmp_path / "b").message
    write(tmp_path / "c", {**layout, **{f"cat/{name}.txt": prose for name in "abcd"}})
    assert "4 files of an unknown kind such as cat/a.txt" in plan(tmp_path / "c").message


@pytest.mark.parametrize("form", ["cat/{}.json", "cat/{}.jpg.json", "meta/{}.json", "cat/{}.yaml"])
def test_descriptions_of_single_images_stop_a_run(form, tmp_path):
    about = {form.format(n): '{"title": "Felix", "tags": ["black"], "id": 3}' for n in range(5)}
    write(tmp_path / "in", {**images(*(f"cat/{n}.jpg" for n in range(5)), "dog/9.jpg"), **about})
    assert f"5 annotations such as {form.format(0)}" in plan(tmp_path / "in").message


def test_descriptions_of_classes_do_not_stop_a_run(tmp_path):
    classes = ("cat", "dog", "cow", "hen", "pig")
    about = {f"{each}/about.json": f'{{"name": "{each}", "url": "x"}}' for each in classes}
    write(tmp_path / "in", {**images(*(f"{each}/1.jpg" for each in classes)), **about})
    assert plan(tmp_path / "in").exit_code == 0
