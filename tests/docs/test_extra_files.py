"""Files that docs/layouts.md does not mention, put into its layouts: nothing is lost silently."""

import io
import json
import pickle
import random
import re
import runpy
import shlex
import sqlite3
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from recordmill.pipeline.configuration.config import load_settings
from recordmill.pipeline.configuration.recognize_layout import fill_in
from recordmill.pipeline.configuration.resolve_settings import make_recipe, resolve_settings
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.schemas.errors import UsageError
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.source import Input
from recordmill.transforms.list_images import list_images
from recordmill.transforms.plan_shards import plan_dataset
from recordmill.transforms.planning.runs import RunSettings
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.planning.summary import Summary

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


@dataclass(frozen=True)
class Planned:
    """What a run would do.

    Attributes:
        exit_code: that of the run.
        message: why it would stop.
        summary: what was listed; None if the run would stop before.
        notes: for the user.
    """

    exit_code: int
    message: str = ""
    summary: Summary | None = None
    notes: tuple[str, ...] = ()


def plan(folder, *overrides):
    """Plans a run as the command does, in this process and without Beam."""
    inputs = (Input(str(folder)),)
    try:
        loaded = load_settings(None, overrides, partial(fill_in, inputs, lambda _: None))
        settings = resolve_settings(loaded.settings, inputs, "out", lambda _: None)
    except UsageError as error:
        return Planned(error.exit_code, str(error))
    summary = Summary()
    splitter = ImageSplitter(settings.seed, settings.splits, SplitCutoffs())
    listing = replace(settings.listing, left_by_user=loaded.left_by_user)
    summary.add(ReferenceBatch.of(list_images(inputs[0], settings.source, listing)), splitter)
    options = RunSettings(
        run_id="",
        output="out",
        outcome_file="",
        is_recognized=loaded.is_recognized,
        names_convention=loaded.names_convention,
    )
    made = plan_dataset(summary, SplitCutoffs(), settings, make_recipe(settings), options)
    code = made.exit_code if made.action == "fail" else 0
    return Planned(code, made.sentence, made.summary, tuple(made.notes))


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


def content_of(planned):
    """What a dataset would contain."""
    summary = planned.summary
    return summary.references, summary.boxes, sorted(summary.labels), dict(summary.rejected)


@pytest.mark.parametrize("name", LAYOUTS)
def test_an_extra_file_stops_the_run_or_is_in_the_dataset_or_is_named(name, tmp_path):
    files, draw = MADE[name][0], random.Random(name)
    write(tmp_path / "plain", files)
    before = plan(tmp_path / "plain")
    assert before.exit_code == 0, before.message
    paths = [path for path in files if path.endswith(".jpg")]
    beside = paths[0].rpartition("/")[0] if paths else ""
    places = {"top": "", "beside": f"{beside}/".lstrip("/"), "below": f"{beside}/x/".lstrip("/")}
    for kind in KINDS:
        suffix, data = make_extra(kind, paths, tmp_path)
        for place in draw.sample(sorted(places), 2):
            extra = f"{places[place]}{draw.choice(NAMES)}{suffix}"
            folder = tmp_path / f"{kind}-{place}".replace(" ", "-")
            write(folder, {**files, extra: data})
            after = plan(folder)
            if after.exit_code:
                assert after.exit_code in (1, 2), (extra, after.message)
                continue
            is_named = [note for note in after.notes if note.startswith("not stored")]
            # Text files without an image are counted with the boxes.
            is_lost_box = kind == "YOLO's text" and "YOLO" in name
            shown = content_of(after) != content_of(before)
            assert shown or (is_named and before.notes != after.notes) or is_lost_box, extra


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
        "files of panoptic masks (1), masks (2)",
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
        "not stored: masks (3), split lists (3)",
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
        ["4 lists of images or labels such as", "bounding_boxes.txt (boxes"],
        {"001.Black": 0, "002.Red": 1, "003.Tit": 2},
    ),
    "Oxford flowers": (
        {**images("jpg/1.jpg", "jpg/2.jpg", "jpg/3.jpg"), "imagelabels.mat": b"MATLAB 5.0 x"},
        ["imagelabels.mat (arrays)"],
        None,
    ),
    "CVAT's XML next to a CSV": (
        {
            **images("images/cat.0.jpg", "images/cat.1.jpg"),
            "list.csv": ",image\n0,images/cat.0.jpg\n1,images/cat.1.jpg\n",
            "annotations.xml": CVAT.format("images/cat.0.jpg"),
        },
        ["annotations.xml (CVAT's XML)"],
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
    if name == "split folders":
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
