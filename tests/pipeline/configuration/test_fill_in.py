"""How what is recognized becomes settings: next to what is written, for several inputs, or as a
refusal."""

import io
import json
import tarfile
from functools import partial
from pathlib import Path

import pytest
import yaml

from recordmill.pipeline.configuration import recognize_layout
from recordmill.pipeline.configuration.config import load_settings
from recordmill.schemas.errors import UsageError
from recordmill.schemas.settings.source import Input

CONFIGS = Path(__file__).parents[3] / "configs"
COCO = b'{"info": {}, "images": [{"id": 1, "file_name": "1.jpg"}'
XML = b"<annotation><folder>x</folder><filename>1.jpg"
BOX = b"0 0.5 0.5 1 1\n"
LABELME = b'{"version": "5.0.1", "flags": {}, "shapes": ['


def splits(key="from_source", **words):
    return {"splits": {key: words}}


TRAIN_VAL = {"train": "train", "val": "validation"}


@pytest.fixture
def fill_in(tmp_path):
    """Fills in settings for files of the given contents; gives the settings and the layout."""

    def run(files, written=None, inputs=("in",)):
        said = []
        for path, data in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(data)
        places = [Input(str(tmp_path / each)) for each in inputs]
        filled, found = recognize_layout.fill_in(places, said.append, written or {})
        if found:
            assert said == [
                f"recognized {found.kind}: {found.why}; to set it explicitly: {found.flags}"
            ]
        else:
            assert not said
        return filled, found

    return run


SPLIT_FOLDERS = {"in/train/cat/1.jpg": b"", "in/val/cat/1.jpg": b""}


def test_what_is_written_wins_key_by_key(fill_in):
    filled, layout = fill_in(SPLIT_FOLDERS, {"source": {"class_from": "last_folder"}, "seed": 3})
    assert filled == {
        "source": {"kind": "class_folders", "class_from": "last_folder"},
        "splits": {"from_folders": {"train": "train", "val": "validation"}},
        "seed": 3,
    }
    assert layout.shown == {
        "kind": "class_folders",
        "why": "class folders below train, val",
        "flags": "--set source.kind=class_folders --set source.class_from=last_folder --set "
        "'splits.from_folders={train: train, val: validation}'",
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
    files = {
        "in/Pets/images/1.jpg": b"",
        "in/Pets/labels/1.txt": BOX,
        "in/Pets/data.yaml": b"names: [cat]",
    }
    with pytest.raises(
        UsageError,
        match=r"in/Pets looks like yolo \(YOLO's folders .*\), which the folders around it would "
        r"lose: use --input \S*in/Pets$",
    ):
        fill_in(files)


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        (
            ["a/b/images/1.jpg", "a/b/labels/1.txt", "c/2.jpg"],
            r"in/a/b looks like yolo \(YOLO's folders images, labels\), which the folders around "
            r"it would lose: use --input \S*in/a/b$",
        ),
        (
            [f"{each}/{path}" for each in "ab" for path in ("images/1.jpg", "labels/1.txt")],
            r"in/a looks like yolo \(.*\), \S*in/b looks like yolo \(.*\), which the folders "
            r"around them would lose: to convert a alone, use --input \S*in/a; to convert b alone, "
            r"use --input \S*in/b$",
        ),
        (
            ["a/b/c/1.jpg", "a/b/c/1.xml", "d/e/1.jpg"],
            r"in/a/b looks like voc .*: use --input \S*in/a/b$",
        ),
        (
            ["a/x/_annotations.coco.json", "a/x/1.jpg", "b/1.jpg"],
            r"in/a looks like coco .*: use --input \S*in/a$",
        ),
    ],
)
def test_annotations_further_down_are_refused(fill_in, files, sentence):
    contents = {".txt": BOX, ".xml": XML, ".json": COCO}
    paths = {f"in/{path}": contents.get(path[path.rindex(".") :], b"") for path in files}
    with pytest.raises(UsageError, match=sentence):
        fill_in(paths)
    written = {"source": {"kind": "class_folders"}}
    assert fill_in(paths, written)[0] == written
    named = sentence.partition(" looks")[0]
    assert fill_in(
        {}, {"source": {"names": ["cat"]}} if "yolo" in sentence else {}, inputs=(named,)
    )[1]


def test_class_folders_may_hold_folders_of_images(fill_in):
    files = {
        f"in/{path}": b""
        for path in ("a/b/c/1.jpg", "a/b/d/2.jpg", "e/images/3.jpg", "e/more/3.png")
    }
    assert fill_in(files)[0] == {"source": {"kind": "class_folders"}}


@pytest.mark.parametrize("word", ["two", "val"])
def test_a_data_yaml_with_splits_of_other_names_is_refused(fill_in, word):
    files = {
        f"in/{each}/{path}": BOX
        for each in ("one", word)
        for path in ("images/1.jpg", "labels/1.txt")
    }
    data_yaml = f"names: [cat]\ntrain: one/images\nval: {word}/images\n".encode()
    with pytest.raises(
        UsageError, match=r"the splits of data\.yaml are not those of folders: add --set"
    ):
        fill_in({**files, "in/data.yaml": data_yaml})


def test_a_coco_file_may_begin_with_a_byte_order_mark(fill_in):
    filled, _ = fill_in({"in/pets.json": b"\xef\xbb\xbf" + COCO, "in/images/1.jpg": b""})
    assert filled["source"] == {"kind": "coco", "split": r"pets\.json", "images": "images"}


NOTES = (
    b'{"categories": [{"id": 0, "name": "cat"}], "info": {"year": 2024, "contributor": "Label '
    b'Studio"}}'
)


def test_label_studios_notes_are_not_cocos_annotations(fill_in):
    files = {
        "in/images/1.jpg": b"",
        "in/labels/1.txt": BOX,
        "in/classes.txt": b"cat\n",
        "in/notes.json": NOTES,
    }
    assert fill_in(files)[0]["source"] == {"kind": "yolo"}


def test_folders_called_images_of_a_split_are_not_classes(fill_in):
    files = {
        "in/train.csv": b"image_id,label\n1.jpg,0\n",
        "in/train_images/1.jpg": b"",
        "in/test_images/2.jpg": b"",
    }
    assert fill_in(files)[0]["source"]["kind"] == "manifest"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("flink.md", "pass the folder to convert as --input, or describe it with --config"),
        ("1.h5", "such arrays are not read: save their images as files, such as PNG"),
        ("g.npz", "pass the folder to convert as --input, or describe it with --config"),
        (
            "a.csv",
            "write the paths of its images, from its own folder, into a column called path",
        ),
    ],
)
def test_files_that_are_not_images_are_refused(fill_in, name, advice):
    with pytest.raises(UsageError, match=f"in holds no image, only files such as {name}: {advice}"):
        fill_in({f"in/{name}": b"x"})


@pytest.mark.parametrize(
    ("names", "version"),
    [
        (["batches.meta", "data_batch_1", "test_batch"], "cifar-10-binary.tar.gz"),
        (["meta", "train", "test"], "cifar-100-binary.tar.gz"),
    ],
)
def test_pickles_of_cifar_are_refused_for_the_binary_version(fill_in, names, version):
    with pytest.raises(UsageError, match=f"in holds CIFAR's Python version, .*{version}"):
        fill_in({f"in/{name}": b"\x80\x02}" for name in names})


HOW = (
    "write the paths of its images, from its own folder, into a column called path "
    "(docs/manifests.md), or "
)
ROWS = "--config configs/observations.yaml --set 'source.columns={}'"
UNREAD = "is not understood as a table of images"


NO_HEADER = "it does not begin with a header of different names and a row, in UTF-8"


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("labels.csv", b"path,class\nold\\1.jpg,cat\n",
         "its first row names no image that is there: old\\1.jpg, cat"),
        ("labels.csv", b"path,class\n/old/images/1.jpg,cat\n",
         "its first row names no image that is there: /old/images/1.jpg, cat"),
        ("labels.csv", b"path|class\nimages/1.jpg|cat\n",
         "its first row names no image that is there: images/1.jpg|cat"),
        ("labels.csv", "path,class\nimages/1.jpg,cat\n".encode("utf-16"),
         NO_HEADER),
        ("labels.tsv", b"path\tclass\tclass\nimages/1.jpg\tcat\tcat\n", NO_HEADER),
        ("labels.csv", b"path,class\n", NO_HEADER),
        ("images/labels.csv", b"", NO_HEADER),
        ("labels.ndjson", b'{"image": "/old/1.jpg", "age": 3}\n',
         "its first row names no image that is there: /old/1.jpg, 3"),
        ("labels.parquet", b"PAR1", NO_HEADER),
    ],
)  # fmt: skip
def test_a_table_that_is_not_understood_is_refused_where_it_is_all_that_can_give_classes(
    fill_in, tmp_path, name, data, why
):
    at = f"{tmp_path}/in/{name}"
    with pytest.raises(UsageError) as error:
        fill_in({"in/images/1.jpg": b"", f"in/{name}": data})
    rows = "" if why == NO_HEADER else f"use --input {at} {ROWS} to convert its rows alone, or "
    advice = f"{HOW}{rows}leave it out with --set 'ignore=[/{name}]'"
    assert str(error.value) == f"{at} {UNREAD} ({why}), and its labels would be lost: {advice}"
    filled, _ = fill_in({}, {"ignore": [f"/{name}"]})
    source = {"kind": "class_folders", "class_from": "none"}
    assert filled == {"source": source, "ignore": [f"/{name}"]}
    with pytest.raises(UsageError) as error:
        fill_in({}, inputs=(f"in/{name}",))
    assert str(error.value) == f"{at} {UNREAD} ({why}): {HOW}add {ROWS} if there are no images"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("import.csv", b"TRAIN,cat/1.jpg,x0\nTEST,dog/1.jpg,x1\n"),
        (
            "import.jsonl",
            b'{"imageGcsUri": "gs://b/cat/1.jpg", "classificationAnnotation": {"displayName": '
            b'"x0"}}\n',
        ),
    ],
)
def test_an_import_file_of_vertex_or_automl_is_refused_next_to_classes_too(
    fill_in, tmp_path, name, data
):
    with pytest.raises(UsageError) as error:
        fill_in({"in/cat/1.jpg": b"", "in/dog/1.jpg": b"", f"in/{name}": data})
    assert str(error.value).startswith(f"{tmp_path}/in/{name} {UNREAD} (")
    assert ", and its labels would be lost: " in str(error.value)


def test_a_workbook_is_refused_as_a_table_is(fill_in, tmp_path):
    with pytest.raises(UsageError) as error:
        fill_in({"in/1.jpg": b"", "in/a.xlsx": b"PK", "in/b.csv": b""}, {"ignore": ["*.csv"]})
    what = (
        f"{tmp_path}/in/a.xlsx {UNREAD} (workbooks are not read: save it as CSV), and its labels "
        "would be lost"
    )
    assert str(error.value).startswith(f"{what}: ")
    assert str(error.value).endswith('or leave it out with --set \'ignore=["*.csv","/a.xlsx"]\'')


@pytest.mark.parametrize(
    ("files", "classes"),
    [
        (["cat/1.jpg", "dog/1.jpg"], True),
        (["cat/a/1.jpg", "dog/b/1.jpg"], True),
        (["train/cat/1.jpg", "train/dog/1.jpg", "val/cat/2.jpg"], True),
        (["cat/1.jpg"], False),
        (["images/1.jpg", "notes/a.pdf", "scripts/a.py"], False),
        (["train_images/1.jpg", "test_images/1.jpg"], False),
        (["train/cat/1.jpg", "val/cat/1.jpg"], False),
        (["1.jpg"], False),
    ],
    ids=str,
)
def test_an_unrelated_table_next_to_several_classes_is_not_refused(fill_in, files, classes):
    paths = {f"in/{path}": b"" for path in (*files, "about.csv", "sample_submission.csv")}
    if classes:
        assert fill_in(paths)[0]["source"] == {"kind": "class_folders"}
    else:
        with pytest.raises(UsageError, match=r"in/about\.csv is not understood"):
            fill_in(paths)
    assert (
        fill_in({}, {"source": {"kind": "class_folders"}})[0]["source"]["kind"] == "class_folders"
    )


def test_inputs_are_of_one_layout(fill_in):
    files = {"a/cat/1.jpg": b"", "b/dog/1.jpg": b"", "c/1.jpg": b""}
    assert fill_in(files, inputs=("a", "b"))[0] == {"source": {"kind": "class_folders"}}
    with pytest.raises(
        UsageError,
        match=r"inputs have different layouts \(.*/a looks like class_folders, .*/c looks",
    ):
        fill_in(files, inputs=("a", "c"))


def test_a_kind_that_is_not_found_in_names_has_the_usual_words(fill_in):
    files = {"in/a/b/images/train/1.jpg": b""}
    filled, layout = fill_in(files, {"source": {"kind": "yolo"}})
    words = {
        "train": "train",
        "val": "validation",
        "valid": "validation",
        "validation": "validation",
        "test": "test",
    }
    assert filled == {"source": {"kind": "yolo"}, "splits": {"from_source": words}}
    assert layout is None


def test_a_kind_whose_files_give_no_words_has_no_usual_ones(fill_in):
    written = {"source": {"kind": "labelme"}}
    assert fill_in({"in/a/b/c/1.json": LABELME, "in/a/b/c/1.jpg": b""}, written)[0] == written


@pytest.mark.parametrize("first", [b"", XML.decode().encode("utf-16")])
def test_a_first_xml_file_that_says_nothing_hides_no_others(fill_in, first):
    files = {f"in/{path}": b"" for path in ("JPEGImages/1.jpg", "JPEGImages/2.jpg")}
    files |= {"in/Annotations/1.xml": first, "in/Annotations/2.xml": XML}
    assert fill_in(files)[0] == {"source": {"kind": "voc"}, "convention": "tf_object_detection"}


OLD = {
    "coco": (
        [f"annotations/instances_{word}2017.json" for word in ("train", "val")]
        + ["train/1.jpg", "val/1.jpg"],
        {},
        {
            "source": {"split": r"instances_(?P<split>[a-z]+)[0-9]*\.json", "images": "{split}"},
            **splits(**TRAIN_VAL),
        },
    ),
    "voc": (
        [
            "Annotations/1.xml",
            "JPEGImages/1.jpg",
            "ImageSets/Main/train.txt",
            "ImageSets/Main/val.txt",
        ],
        {"Annotations/1.xml": XML},
        {"source": {"images": "JPEGImages"}},
    ),
    "yolo": (
        [
            f"{kind}/{word}/1.{end}"
            for kind, end in (("images", "jpg"), ("labels", "txt"))
            for word in ("train", "val")
        ]
        + ["data.yaml"],
        {"labels/train/1.txt": BOX, "data.yaml": b"names: [cat]"},
        splits(**TRAIN_VAL),
    ),
    "imagefolder": (
        [
            f"{word}/{name}"
            for word in ("train", "validation", "test")
            for name in ("metadata.csv", "1.jpg")
        ],
        {
            f"{word}/metadata.csv": b"file_name,label,text\n1.jpg,cat,x\n"
            for word in ("train", "validation", "test")
        },
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
    recognizer = partial(recognize_layout.fill_in, [Input(str(tmp_path))], print)
    now = load_settings(f"configs/{config}.yaml", [], recognizer)
    shipped = yaml.safe_load((CONFIGS / f"{config}.yaml").read_text())
    then = {key: value for key, value in shipped.items() if key != "layout"}
    (tmp_path / "old.yaml").write_text(
        yaml.safe_dump({**then, **said, "source": {**then["source"], **said.get("source", {})}})
    )
    assert now.comment == f"# Recognized {now.layout.kind}: {now.layout.why}\n"
    assert now.settings == load_settings(str(tmp_path / "old.yaml"), []).settings


def test_an_input_that_cannot_be_looked_at_is_left_to_the_job(monkeypatch, fill_in):
    def refuse(*_):
        raise PermissionError(13, "denied")

    monkeypatch.setattr("recordmill.pipeline.configuration.recognize_layout.look_at_input", refuse)
    assert fill_in({"in/1.jpg": b""}, {"seed": 1})[0] == {"seed": 1}


def test_one_folder_around_split_folders_is_named(fill_in):
    files = {
        f"in/data/{split}/{label}/1.jpg": b""
        for split in ("train", "val")
        for label in ("cat", "dog")
    }
    with pytest.raises(
        UsageError, match=r"in/data looks like class_folders .*: use --input \S*in/data$"
    ):
        fill_in(files)


IMAGE_OF_LISTS = {"in/images/1.jpg": b""}


@pytest.mark.parametrize(
    "others", [(), ("annotators.txt", "classes.txt", "notes.txt", "readme.txt")], ids=str
)
def test_no_list_of_a_split_is_lost_among_others(fill_in, others):
    names = {"train": b"1", "val": b"2", "test": b"3"}
    lists = {f"in/{split}.txt": b"images/%s.jpg 0\n" % name for split, name in names.items()}
    filled, _ = fill_in(
        {**IMAGE_OF_LISTS, **lists, **{f"in/{name}": b"some words\n" for name in others}}
    )
    assert filled["source"]["split"] == r"(?P<split>train|val|test)\.txt"
    assert filled["splits"] == {
        "from_source": {"train": "train", "val": "validation", "test": "test"}
    }


def test_no_table_is_lost_that_was_not_looked_into(fill_in):
    tables = {
        f"in/part{number}.csv": b"path,label\nimages/%d.jpg,cat\n" % number for number in range(9)
    }
    filled, _ = fill_in({**IMAGE_OF_LISTS, **tables})
    assert filled.keys().isdisjoint({"include", "ignore"})
    with pytest.raises(UsageError, match=r"about\.csv is not understood as a table of images"):
        fill_in({"in/about.csv": b"name,value\nauthor,x\n"})


def test_a_column_of_any_name_may_hold_the_images(fill_in):
    filled, _ = fill_in({"in/pics/1.jpg": b"", "in/meta.csv": b"photo_no,kind\npics/1.jpg,cat\n"})
    assert filled["source"]["columns"] == {"uri": "photo_no", "label": "kind"}


@pytest.mark.parametrize("indent", [None, 4, "\t"])
@pytest.mark.parametrize("count", [1, 60])
@pytest.mark.parametrize("first", [{}, {"info": {"description": "x" * 2000}, "licenses": []}])
def test_coco_that_begins_with_long_categories_is_recognized(fill_in, indent, count, first):
    points = [f"key point {number}" for number in range(133)]
    categories = [
        {"id": number, "name": f"animal {number}", "keypoints": points} for number in range(count)
    ]
    images = [{"id": 1, "file_name": "1.jpg"}]
    text = json.dumps({**first, "categories": categories, "images": images}, indent=indent)
    settings, layout = fill_in({"in/annotations.json": text.encode(), "in/images/1.jpg": b""})
    assert layout.kind == "coco"
    assert settings["source"] == {
        "kind": "coco",
        "split": r"annotations\.json",
        "images": "images",
    }


@pytest.mark.parametrize("content", [{"categories": {"label": {}}}, {"categories": ["a", "b"]}])
def test_other_categories_are_not_cocos(fill_in, content):
    text = json.dumps({"x": "y" * 2000, **content}).encode()
    _, layout = fill_in({"in/annotations.json": text, "in/images/1.jpg": b""})
    assert layout.kind == "class_folders"  # the plan stops at the file


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"classes": ["cat"]}, {"classes": ["cat"]}),
        ({"offset": 0}, {"offset": 0}),
        ({"classes": ["cat"], "ids": "names"}, {"classes": ["cat"], "ids": "names"}),
        ({"classes": []}, {"classes": [], "ids": "raised"}),
    ],
)
def test_the_users_classes_replace_the_recognized_ids(fill_in, labels, expected):
    files = {"in/annotations/instances_train.json": COCO, "in/train/1.jpg": b""}
    assert fill_in(files, {"labels": labels})[0]["labels"] == expected


def test_a_table_may_name_images_as_on_windows(fill_in):
    table = b"path,class\nimages\\1.jpg,cat\n"
    filled, _ = fill_in({"in/images/1.jpg": b"", "in/labels.csv": table})
    assert filled["source"]["columns"] == {"uri": "path", "label": "class"}
