"""Tables as pandas, Kaggle, Open Images, Roboflow and Excel write them: what is stored, what is
asked first, and that every flag of a question answers it."""

import csv
import io
import json
import re
import shlex

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

NAMES = ["p0.jpg", "p1.jpg", "p2.jpg", "p3.jpg"]
FLAGS = re.compile(r"--set (?:'[^']*'|[^\s,;)]+)(?: --set (?:'[^']*'|[^\s,;)]+))*")


def table(*rows, delimiter=","):
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter).writerows(rows)
    return stream.getvalue()


@pytest.fixture
def write(tmp_path, picture):
    """Writes tables, and images (lists of names by folder), below `in`."""

    def run(files):
        for path, data in files.items():
            if isinstance(data, list):
                run({f"{path}/{name}": picture(f"{path}/{name}") for name in data})
                continue
            (tmp_path / "in" / path).parent.mkdir(parents=True, exist_ok=True)
            content = data if isinstance(data, bytes) else data.encode()
            (tmp_path / "in" / path).write_bytes(content)

    return run


@pytest.fixture
def run(tmp_path, capsys):
    """Converts `in` into a folder; gives the exit code and stderr without the folder's place."""

    def run(*flags, output="out"):
        given = [f"--input={tmp_path}/in", f"--output={tmp_path}/{output}", "--set=report=false"]
        code = launch([*given, *flags], build)
        return code, capsys.readouterr().err.replace(f"{tmp_path}/", "")

    return run


@pytest.fixture
def stored(tmp_path, read_examples):
    """The stored Examples of a dataset by split and file name; gives only some features."""

    def read(*keys, output="out"):
        marker = json.loads((tmp_path / output / "recordmill.json").read_text())
        return {
            (split, each["image/filename"][0].decode()): [
                value for key in keys for value in each.get(key, [])
            ]
            for split, said in marker["splits"].items()
            for shard in said["shards"]
            for each in read_examples((tmp_path / output / shard["name"]).read_bytes())
        }

    return read


@pytest.fixture
def values(stored):
    """The same without splits."""
    return lambda *keys, **more: {name: value for (_, name), value in stored(*keys, **more).items()}


def offers(err):
    """The flags that an error offers, without those that have a placeholder."""
    assert err.startswith("error: "), err
    return [shlex.split(each) for each in FLAGS.findall(err)]


LABEL = "image/class/text"


# A first column without a name


def test_the_index_of_pandas_is_left_out_and_named(write, run, values):
    rows = [(number, f"images/{name}", f"c{number % 2}") for number, name in enumerate(NAMES)]
    write({"images": NAMES, "t.csv": table(("", "path", "label"), *rows)})
    code, err = run()
    assert (code, "t.csv (left out: column_1)" in err) == (0, True)
    assert values(LABEL) == {
        "p0.jpg": [b"c0"], "p1.jpg": [b"c1"], "p2.jpg": [b"c0"], "p3.jpg": [b"c1"],
    }  # fmt: skip


@pytest.mark.parametrize("header", ["", " ", "Unnamed: 0", "index"])
def test_next_to_an_index_the_only_other_column_is_the_class(write, run, values, header):
    rows = [(number, f"images/{name}", f"kind{number}") for number, name in enumerate(NAMES)]
    write({"images": NAMES, "t.csv": table((header, "file", "cultivar"), *rows)})
    assert run()[0] == 0
    assert values(LABEL) == {name: [b"kind%d" % at] for at, name in enumerate(NAMES)}


def test_a_column_without_a_name_may_be_the_path(write, run, values):
    rows = [(name, f"x{name[1]}") for name in NAMES]
    write({"images": NAMES, "t.csv": table(("", "label"), *rows)})
    code, err = run()
    assert (code, "'source.columns={uri: column_1, label: label}'" in err) == (0, True)
    assert values(LABEL) == {name: [b"x" + name[1].encode()] for name in NAMES}


def test_a_setting_names_columns_without_a_name_by_their_place(write, run, values):
    write({"images": NAMES, "t.csv": table(("", "", "z"), *((n, f"x{n[1]}", 1) for n in NAMES))})
    columns = "source.columns={uri: 'images/{column_1}', label: column_2}"
    assert run("--set=source.kind=manifest", "--set", columns)[0] == 0
    assert values(LABEL) == {name: [b"x" + name[1].encode()] for name in NAMES}


def test_a_second_column_without_a_name_is_the_class(write, run, values):
    rows = [(f"images/{name}", number) for number, name in enumerate(NAMES)]
    write({"images": NAMES, "t.csv": table(("path", ""), *rows)})
    assert run()[0] == 0
    assert values(LABEL) == {name: [b"%d" % number] for number, name in enumerate(NAMES)}


def test_nothing_follows_a_last_delimiter(write, run, values):
    lines = ["file,cultivar,", *(f"images/{name},a," for name in NAMES)]
    write({"images": NAMES, "t.csv": "\n".join(lines)})
    assert run()[0] == 0
    assert values(LABEL) == {name: [b"a"] for name in NAMES}


# A folder for each table


def test_each_table_finds_its_own_folder(write, run, stored):
    write({
        "training": NAMES, "test": ["q0.jpg"],
        "training_labels.csv": table(("file", "label"), *((name, "cat") for name in NAMES)),
        "test_labels.csv": table(("file", "label"), ("q0.jpg", "dog")),
    })  # fmt: skip
    code, err = run()
    assert (code, "rejected" in err) == (0, False)
    expected = {("train", name): [b"cat"] for name in NAMES} | {("test", "q0.jpg"): [b"dog"]}
    assert stored(LABEL) == expected


@pytest.mark.parametrize("ending", ["", ".jpg"])
def test_equal_names_in_two_folders_are_two_images(write, run, tmp_path, picture, stored, ending):
    names = [name.removesuffix(".jpg") + ending for name in NAMES]
    write({
        "train_images": NAMES, "val_images": NAMES,
        "train.csv": table(("id", "label"), *((name, "cat") for name in names)),
        "val.csv": table(("id", "label"), *((name, "dog") for name in names)),
    })  # fmt: skip
    assert run()[0] == 0
    assert stored(LABEL, "image/encoded") == {
        (split, name): [label, picture(f"{folder}/{name}")]
        for split, folder, label in (
            ("train", "train_images", b"cat"), ("validation", "val_images", b"dog"),
        )
        for name in NAMES
    }  # fmt: skip


def test_a_table_next_to_two_folders_that_hold_its_images_takes_the_one_of_its_split(
    write, run, picture, values
):
    rows = table(("id", "label"), *((name[:-4], "cat") for name in NAMES))
    write({"test": NAMES, "train": NAMES, "train.csv": rows})
    assert run()[0] == 0
    assert values("image/encoded") == {name: [picture(f"train/{name}")] for name in NAMES}


def test_the_folder_of_a_table_may_give_its_split(write, run, stored):
    write({
        "train": NAMES, "val": ["q0.jpg"],
        "one.csv": table(("file", "label"), *((name, "cat") for name in NAMES)),
        "two.csv": table(("file", "label"), ("q0.jpg", "dog")),
    })  # fmt: skip
    assert run()[0] == 0
    expected = {("train", name): [b"cat"] for name in NAMES} | {("validation", "q0.jpg"): [b"dog"]}
    assert stored(LABEL) == expected


def test_two_folders_that_hold_the_images_are_asked_about(write, run, picture, values):
    rows = table(("file", "label"), *((name, "a") for name in NAMES))
    write({"data": NAMES, "images": NAMES, "t.csv": rows})
    code, err = run()
    assert (code, "have the names that it gives, so it is not clear which" in err) == (2, True)
    assert sorted(offers(err)) == [["--set", "source.root=data"], ["--set", "source.root=images"]]
    for number, flags in enumerate(sorted(offers(err))):
        folder = ("data", "images")[number]
        assert run(*flags, output=f"out{number}")[0] == 0
        found = values("image/encoded", output=f"out{number}")
        assert found == {name: [picture(f"{folder}/{name}")] for name in NAMES}


def test_rows_of_several_folders_are_asked_about(write, run):
    rows = [("p0.jpg", "a"), ("p1.jpg", "b"), ("q0.jpg", "a")]
    write({"data": NAMES, "images": ["q0.jpg"], "t.csv": table(("file", "label"), *rows)})
    code, err = run()
    what = "its images are in several folders (data, images), and no column names them: move the"
    assert (code, what in err) == (2, True)
    leave_out = ["--set", 'ignore=["/t.csv"]']
    assert offers(err) == [[*leave_out, "--set", "source.class_from=none"], leave_out]


def test_the_split_of_a_row_may_be_its_folder(write, run, picture, stored):
    rows = [("p0.jpg", "a", "train"), ("p0.jpg", "b", "val"), ("p1.jpg", "a", "train")]
    write({"train": NAMES, "val": NAMES, "t.csv": table(("file", "label", "split"), *rows)})
    code, err = run()
    assert (code, "uri: '{split}/{file}'" in err or '"{split}/{file}"' in err) == (0, True)
    assert stored(LABEL, "image/encoded") == {
        ("train", "p0.jpg"): [b"a", picture("train/p0.jpg")],
        ("validation", "p0.jpg"): [b"b", picture("val/p0.jpg")],
        ("train", "p1.jpg"): [b"a", picture("train/p1.jpg")],
    }


def test_folders_of_one_name_hold_different_images(write, run):
    rows = table(("file", "label"), ("p0.jpg", "x"))
    write({"a/images": NAMES, "b/images": NAMES, "a.csv": rows, "b/b.csv": rows})
    flags = ["--set=source.kind=manifest", "--set=source.columns={uri: file, label: label}"]
    more = ["--set=source.root={a.csv: a/images, b.csv: images}", "--set=splits.fractions={t: 1}"]
    code, err = run(*flags, *more)
    assert (code, "= 2 written" in err) == (0, True)


def test_an_empty_root_is_the_folder_of_the_table(write, run, values):
    write({"a": NAMES, "a/t.csv": table(("file", "label"), *((name, "x") for name in NAMES))})
    columns = "--set=source.columns={uri: file, label: label}"
    for number, root in enumerate(("", "{t.csv: ''}", "{a/t.csv: ''}", "''")):
        flags = ["--set=source.kind=manifest", columns, f"--set=source.root={root}"]
        assert run(*flags, output=f"out{number}")[0] == 0
        assert values(LABEL, output=f"out{number}") == {name: [b"x"] for name in NAMES}


def test_a_root_that_lacks_a_table_is_named(write, run):
    write({"a": NAMES, "t.csv": table(("file", "label"), ("p0.jpg", "x"))})
    code, err = run(
        "--set=source.kind=manifest", "--set=source.columns={uri: file, label: label}",
        "--set=source.root={u.csv: a}",
    )  # fmt: skip
    assert (code, "source.root has no folder for it, only for u.csv: add one" in err) == (1, True)


# Split folders, annotations and other tables next to a table


def boxes(*names):
    header = (
        "ImageID",
        "Source",
        "LabelName",
        "Confidence",
        "XMin",
        "XMax",
        "YMin",
        "YMax",
        "IsOccluded",
    )
    rows = [(name, "xclick", "/m/01g317", 1, 0.1, 0.5, 0.25, 0.75, 0) for name in names]
    return table(header, *rows)


NAMES_OF_CLASSES = {"class-descriptions-boxable.csv": "/m/01g317,Person\n"}
BOX = [f"image/object/bbox/{side}" for side in ("xmin", "xmax", "ymin", "ymax")]


def test_open_images_next_to_the_folder_of_its_images(write, run, values):
    write(
        {
            "train": ["aa.jpg", "bb.jpg"],
            "train-annotations-bbox.csv": boxes("aa", "bb", "aa"),
            **NAMES_OF_CLASSES,
        }
    )
    code, err = run()
    assert code == 0
    assert (
        "with ids of classes such as /m/01g317, named by class-descriptions-boxable.csv (left out: "
        "Source, Confidence, IsOccluded)"
    ) in err
    assert "names of classes" not in err
    found = values(*BOX, "image/object/class/text")
    one = [0.1, 0.5, 0.25, 0.75]
    assert {
        name: [pytest.approx(each) if isinstance(each, float) else each for each in found[name]]
        for name in found
    } == {
        "aa.jpg": [0.1, 0.1, 0.5, 0.5, 0.25, 0.25, 0.75, 0.75, b"Person", b"Person"],
        "bb.jpg": [*one, b"Person"],
    }


@pytest.mark.parametrize(
    ("folder", "table", "split"),
    [
        ("train", "train-annotations-bbox.csv", "train"),
        ("test", "oidv6-test-annotations-bbox.csv", "test"),
        ("images", "train-annotations-bbox.csv", None),  # may be all that there is
        ("train", "annotations-bbox.csv", None),
    ],
)
def test_a_lone_split_of_boxes_stays_that_split(write, run, stored, folder, table, split):
    names = [f"{name}{number}" for name in "abcdef" for number in range(6)]
    write({folder: [f"{name}.jpg" for name in names], table: boxes(*names), **NAMES_OF_CLASSES})
    assert run()[0] == 0
    found = {each for each, _ in stored("image/object/class/text")}
    assert found == ({split} if split else {"train", "test"})


@pytest.mark.parametrize(
    "tables", [["test"], ["test", "validation"], ["train", "test", "validation"]], ids=",".join
)
def test_open_images_in_folders_as_downloaded(write, run, stored, tables):
    write(
        {f"images/{split}": [f"{split}{each}.jpg" for each in "ab"] for split in tables}
        | {
            f"annotations/{split}-annotations-bbox.csv": boxes(f"{split}a", f"{split}b")
            for split in tables
        }
    )
    code, err = run()
    assert code == 0, err
    assert stored("image/object/class/text") == {
        (split, f"{split}{each}.jpg"): [b"/m/01g317"] for split in tables for each in "ab"
    }


def test_a_table_in_a_folder_of_its_own_names_images_by_a_column_and_an_id(write, run, stored):
    rows = [("a", "x", "cat"), ("b", "y", "dog")]
    write({
        "images/x": ["a.jpg"], "images/y": ["b.jpg"],
        "annotations/list.csv": table(("id", "site", "label"), *rows),
    })  # fmt: skip
    code, err = run()
    assert code == 0, err
    labels = [value for (value,) in stored("image/class/text").values()]
    assert sorted(labels) == [b"cat", b"dog"]


def test_paths_that_leave_the_folder_of_their_table_are_explained(write, run):
    write({
        "images": ["a.jpg", "b.jpg"],
        "tables/list.csv": table(("path", "label"), ("../images/a.jpg", "c"), ("../b.jpg", "d")),
    })  # fmt: skip
    code, err = run()
    assert code == 2
    assert (
        "(paths that leave its folder are not read: write the names alone, not ../images/a.jpg)"
    ) in err


def test_open_images_of_two_splits(write, run, stored):
    write({
        "train": ["aa.jpg"], "validation": ["bb.jpg"], **NAMES_OF_CLASSES,
        "train-annotations-bbox.csv": boxes("aa"), "validation-annotations-bbox.csv": boxes("bb"),
    })  # fmt: skip
    assert run()[0] == 0
    assert stored("image/object/class/text") == {
        ("train", "aa.jpg"): [b"Person"], ("validation", "bb.jpg"): [b"Person"],
    }  # fmt: skip


NAMES_OF_IDS = (
    "LabelName,DisplayName\n/m/01g317,Person\n/m/0bt9lr,Dog\n/m/04szw,Mouse\n/m/020lf,Mouse\n"
)
LABELS = table(("ImageID", "Source", "LabelName", "Confidence"), ("traina", "x", "/m/0bt9lr", 1))


def test_files_next_to_open_images_boxes_are_known_and_named(write, run, stored):
    write(
        {
            "images/train": ["traina.jpg", "trainb.jpg"], "images/test": ["testa.jpg"],
            "masks/train": ["traina_m01g317_0.png"],
            "annotations/oidv6-class-descriptions.csv": NAMES_OF_IDS,
            "annotations/oidv6-train-annotations-bbox.csv": boxes("traina", "trainb"),
            "annotations/test-annotations-bbox.csv": boxes("testa"),
            "annotations/oidv6-train-annotations-human-imagelabels.csv": LABELS,
            "annotations/test-annotations-human-imagelabels.csv": LABELS,
            "annotations/train-annotations-object-segmentation.csv": "MaskPath,ImageID\na,traina\n",
            "annotations/image_ids_and_rotation.csv": "ImageID,Subset,Rotation\ntraina,train,0\n",
        }
    )  # fmt: skip
    code, err = run()
    assert code == 0, err
    assert "facts about images (1), labels of whole images (2), masks (1)" in err
    assert "1 image has no usable annotation" in err
    assert stored("image/object/class/text") == {
        ("train", "traina.jpg"): [b"Person"],
        ("train", "trainb.jpg"): [b"Person"],
        ("test", "testa.jpg"): [b"Person"],
    }


@pytest.mark.parametrize("names", ["class-descriptions.csv", "oidv7-class-descriptions.csv"])
def test_names_of_ids_are_those_of_the_table(write, run, stored, names):
    rows = [("a", "/m/0bt9lr"), ("b", "/m/04szw"), ("c", "/m/020lf"), ("d", "/m/0zzz")]
    write({
        "images": [f"{name}.jpg" for name in "abcd"], f"meta/{names}": NAMES_OF_IDS,
        "list.csv": table(("ImageID", "LabelName"), *rows),
    })  # fmt: skip
    code, err = run()
    assert code == 0, err
    assert f"note: list.csv: classes without a name in meta/{names} keep their ids: /m/0zzz" in err
    assert {name: value for (_, name), value in stored("image/class/text").items()} == {
        "a.jpg": [b"Dog"], "b.jpg": [b"Mouse (/m/04szw)"], "c.jpg": [b"Mouse (/m/020lf)"],
        "d.jpg": [b"/m/0zzz"],
    }  # fmt: skip


def test_a_table_without_names_of_ids_stops(write, run):
    write({
        "images": ["a.jpg", "b.jpg"], "class-descriptions.csv": "/m/0bt9lr\n",
        "list.csv": table(("ImageID", "LabelName"), ("a", "/m/0bt9lr"), ("b", "/m/0bt9lr")),
    })  # fmt: skip
    code, err = run()
    assert code == 1
    assert (
        "class-descriptions.csv (source.class_names_file): write a class and its name into each row"
    ) in err


@pytest.mark.parametrize(
    ("folders", "name"),
    [
        (("train", "test"), "labels.csv"),
        (("images",), "boxes.tsv"),
        (("train", "valid", "test"), "labels.xlsx"),
        (("train", "test"), "train/labels.csv"),
    ],
)
def test_no_split_folders_hide_a_table(write, run, folders, name):
    place = name if folders[0] == "train" else name.removeprefix("train/")
    write({**{folder: NAMES for folder in folders}, place: "who,what\nx,y\n"})
    code, err = run()
    assert code == 2
    assert f"{place} is not understood as a table of images" in err
    (flags,) = [each for each in offers(err) if "ignore" in each[1]]
    code, err = run(*flags)
    assert code == 0 or "may be meant in 2 ways" in err, err


@pytest.mark.parametrize(
    ("header", "other"),
    [
        (("", "image"), "annotations.xml"),
        (("image",), "export.json"),
        (("Unnamed: 0", "image"), "labels.mat"),
        (("image",), "train.pkl"),
    ],
)
def test_a_list_without_a_class_hides_no_annotations(write, run, values, other, header):
    rows = [
        [f"images/{name}" if column == "image" else number for column in header]
        for number, name in enumerate(NAMES)
    ]
    write({"images": NAMES, "list.csv": table(header, *rows), other: "<annotations>"})
    code, err = run()
    assert (code, f"manifest, does not read it: {other} (" in err) == (2, True)
    (ignored,) = re.findall("--set '(ignore=.+)'$", err, re.MULTILINE)
    assert run("--set", ignored)[0] == 0
    assert values(LABEL) == {name: [] for name in NAMES}


def test_a_class_column_next_to_a_second_table_of_values_is_asked_about(write, run, values):
    write({
        "images": NAMES,
        "a.csv": table(("path", "label"), *((f"images/{n}", "x") for n in NAMES)),
        "b.csv": table(("path", "u", "v"), *((f"images/{n}", 1, 2) for n in NAMES)),
    })  # fmt: skip
    code, err = run()
    assert (code, "b.csv is not read, since a.csv has the classes" in err) == (2, True)
    (flags,) = offers(err)
    assert run(*flags)[0] == 0
    assert values(LABEL) == {name: [b"x"] for name in NAMES}


def test_kaggles_siblings_are_named_and_do_not_stop(write, run, values):
    ids = [name.removesuffix(".jpg") for name in NAMES]
    write({
        "train": NAMES, "test": ["9.jpg"],
        "train.csv": table(("id", "age", "label"), *((each, 3, "cat") for each in ids)),
        "test.csv": table(("id", "age"), ("9", 4)),
        "sample_submission.csv": table(("id", "label"), ("9", "cat")),
    })  # fmt: skip
    code, err = run()
    assert code == 0
    assert (
        "a table of images, train.csv, not sample_submission.csv, test.csv (left out: age)" in err
    )
    assert "note: not stored: age (4)" in err
    assert values(LABEL) == {name: [b"cat"] for name in NAMES}


def test_regression_next_to_kaggles_siblings(write, run, values):
    rows = [(name.removesuffix(".jpg"), 1, number + 0.5) for number, name in enumerate(NAMES)]
    write({
        "train": NAMES, "test": ["9.jpg"],
        "train.csv": table(("Id", "Eyes", "Pawpularity"), *rows),
        "test.csv": table(("Id", "Eyes"), ("9", 1)),
        "sample_submission.csv": table(("Id", "Pawpularity"), ("9", 1.5)),
    })  # fmt: skip
    code, err = run()
    assert (code, "not clear which column is the class (Eyes, Pawpularity)" in err) == (2, True)
    assert run(*offers(err)[0])[0] == 0
    assert values("targets") == {name: [1, at + 0.5] for at, name in enumerate(NAMES)}


def test_via_as_csv_says_what_to_export(write, run):
    header = (
        "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,"
        "region_attributes"
    )
    write({"images": NAMES, "via.csv": header + '\np0.jpg,1,{},1,0,"{""name"":""rect""}","{}"\n'})
    code, err = run()
    assert (code, "via.csv cannot be used: the regions of VGG Image Annotator (VIA)" in err) == (
        2,
        True,
    )
    assert offers(err) == [["--set", 'ignore=["/via.csv"]']]


# Tables without a class, and several columns as one feature


POINTS = [str(number) for number in range(136)]


def points(*names, add=0):
    rows = ((name, *(add + at / 2 for at in range(136))) for name in names)
    return table(("", *POINTS), *rows)


def test_136_targets_are_one_setting(write, run, stored):
    write({
        "training": NAMES, "training_frames_keypoints.csv": points(*NAMES),
        "test": ["q0.jpg"], "test_frames_keypoints.csv": points("q0.jpg", add=7),
    })  # fmt: skip
    code, err = run()
    assert (code, "(0, 1, 2, 3, 4, 5, 6, 7 and 128 more)" in err) == (2, True)
    key_points, features, none = offers(err)
    assert none == ["--set", "source.columns.label="]
    assert key_points[2:4] == ["--set", 'source.keypoints={columns: "*"}']
    assert features[2:] == [
        "--set",
        'source.features_from={targets: {columns: "[0-9]*", type: float}}',
    ]
    assert run(*features)[0] == 0
    expected = [at / 2 for at in range(136)]
    assert stored("targets") == {
        **{("train", name): expected for name in NAMES},
        ("test", "q0.jpg"): [7 + value for value in expected],
    }
    assert run(*none, output="none")[0] == 0
    assert stored("targets", output="none") == {
        **{("train", name): [] for name in NAMES}, ("test", "q0.jpg"): [],
    }  # fmt: skip


def test_a_header_of_many_kilobytes_is_read(write, run, values):
    prefix = "a_rather_long_name_of_a_landmark_"
    header = ("file", *(f"{prefix}{number}" for number in range(400)))
    write({"images": NAMES, "t.csv": table(header, *((n, *range(400)) for n in NAMES))})
    code, err = run()
    assert (code, f'{{columns: "{prefix}*", type: float}}' in err) == (2, True)
    assert run(*offers(err)[0])[0] == 0
    assert values("targets") == {name: [float(at) for at in range(400)] for name in NAMES}


def test_one_hot_tables_of_roboflow_are_asked_about(write, run, stored):
    write({
        "train": ["a.jpg", "b.jpg"], "valid": ["c.jpg"],
        "train/_classes.csv": "filename, Arborio, Basmati\na.jpg, 1, 0\nb.jpg, 0, 1\n",
        "valid/_classes.csv": "filename, Arborio, Basmati\nc.jpg, 1, 1\n",
    })  # fmt: skip
    code, err = run()
    what = "its columns (Arborio, Basmati) are 0 or 1 (or true or false), as for several labels"
    assert (code, what in err) == (2, True)
    assert run(*offers(err)[0])[0] == 0
    assert stored("many_hot") == {
        ("train", "a.jpg"): [1, 0], ("train", "b.jpg"): [0, 1], ("validation", "c.jpg"): [1, 1],
    }  # fmt: skip


@pytest.mark.parametrize(("name", "cell"), [("price", 12.5), ("age", 31)])
def test_a_measured_number_is_not_taken_for_a_class(write, run, values, name, cell):
    rows = table(("file", name), *((each, cell + at) for at, each in enumerate(NAMES)))
    write({"images": NAMES, "t.csv": rows})
    code, err = run()
    assert (code, f"not clear which column is the class ({name})" in err) == (2, True)
    assert run(*offers(err)[0])[0] == 0
    assert values("targets") == {each: [cell + at] for at, each in enumerate(NAMES)}
    assert run(f"--set=source.columns.label={name}", output="named")[0] == 0
    assert values(LABEL, output="named")["p0.jpg"] == [str(cell).encode()]


FEATURES = {
    "names in their order": ("[b, a]", [2.0, 1.0]),
    "a pattern in the table's order": ("'?'", [1.0, 2.0]),
    "all that have no other meaning": ("'*'", [1.0, 2.0, 3.5]),
    "a name before a pattern": ("['x[0]', '?']", [3.5, 1.0, 2.0]),
    "a name that looks like a pattern": ("'x[0]'", [3.5]),
}


@pytest.mark.parametrize("name", FEATURES)
def test_columns_become_one_list(write, run, values, tmp_path, name):
    columns, expected = FEATURES[name]
    write(
        {
            "images": NAMES,
            "t.csv": table(
                ("", "file", "a", "b", "x[0]", "label"),
                *((at, n, 1, 2, 3.5, "c") for at, n in enumerate(NAMES)),
            ),
        }
    )
    flags = f"source.features_from={{v: {{columns: {columns}, type: float}}}}"
    assert run("--set", flags)[0] == 0
    assert values("v", LABEL) == {name: [*expected, b"c"] for name in NAMES}
    written = [f"--config={tmp_path}/out/config.yaml"]
    assert run(*written, output="again")[0] == 0
    plans = [
        json.loads((tmp_path / each / "recordmill.json").read_text())["plan"]["id"]
        for each in ("out", "again")
    ]
    assert plans[0] == plans[1]


def test_columns_of_other_tables_with_missing_values(write, run, values):
    lines = [{"file": f"images/{name}", "x1": at, "x2": at + 0.5} for at, name in enumerate(NAMES)]
    del lines[1]["x2"]
    write({"images": NAMES, "t.jsonl": "\n".join(map(json.dumps, lines))})
    flags = ["--set=source.columns.label=", "--set"]
    assert (
        run(*flags, "source.features_from={v: {columns: 'x*', type: float, default: -1}}")[0] == 0
    )
    assert values("v") == {name: [at, -1 if at == 1 else at + 0.5] for at, name in enumerate(NAMES)}
    assert (
        run(*flags, "source.features_from={v: {columns: 'x*', type: float}}", output="bad")[0] == 0
    )
    assert values("v", output="bad").keys() == {"p0.jpg", "p2.jpg", "p3.jpg"}


def test_a_pattern_that_matches_nothing_names_a_few_columns(write, run):
    write({"images": NAMES, "t.csv": points(*NAMES)})
    code, err = run("--set=source.columns.label=", "--set=source.features_from={v: {columns: y_*}}")
    what = (
        "source.features_from.v.columns: no column is, or matches, 'y_*'; the table has "
        "'column_1', '0'"
    )
    assert (code, what in err, "and 129 more: correct it" in err) == (2, True, True)


def test_resized_images_do_not_move_coordinates_as_a_note_says(write, run):
    write({"images": NAMES, "t.csv": points(*NAMES)})
    note = "note: images.resize does not change features (targets): coordinates in pixels stay as"
    flags = [
        "--set=source.columns.label=",
        "--set=source.features_from={targets: {columns: '[0-9]*', type: float}}",
    ]
    assert note not in run(*flags)[1]
    assert note in run(*flags, "--set=images.resize.exact=[8,8]", "--plan")[1]


# Parquet


def parquet(**columns):
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


def test_of_two_image_columns_one_is_chosen(write, run, tmp_path, picture, read_examples):
    images, masks = ([picture(f"{kind}{at}") for at in range(4)] for kind in "im")
    write({"t.parquet": parquet(
        image=[{"bytes": each, "path": "i"} for each in images],
        mask=[{"bytes": each, "path": "m"} for each in masks],
        label=list("abab"), age=[1, 2, 3, 4],
    )})  # fmt: skip
    code, err = run()
    assert (code, "its columns image and mask hold images, and one of them is stored" in err) == (
        2,
        True,
    )
    assert offers(err) == [
        ["--set", "source.columns.bytes=image"],
        ["--set", "source.columns.bytes=mask"],
        [
            *("--set", "source.columns.bytes=image", "--set", "source.columns.mask=mask"),
            *("--set", "convention=deeplab"),
        ],
    ]
    alone = zip(offers(err)[:2], ("mask", "image"), (images, masks), strict=True)
    for flags, other, expected in alone:
        code, err = run(*flags, output=other)
        assert (code, f"(left out: {other}, age)" in err, "note: not stored: " in err) == (
            0,
            True,
            True,
        )
        assert f"{other} (4)" in err
        shards = (tmp_path / other).glob("*.tfrecord")
        stored = {
            each["image/encoded"][0]
            for shard in shards
            for each in read_examples(shard.read_bytes())
        }
        assert stored == set(expected)


def test_every_question_about_a_table_is_asked(write, run, tmp_path, picture, read_examples):
    write({"t.parquet": parquet(
        image=[picture(at) for at in range(4)], mask=[picture(-at) for at in range(1, 5)],
        a=[0.5, 1.5, 2.5, 3.5], b=[1, 2, 3, 4],
    )})  # fmt: skip
    code, err = run("--set=source.columns.bytes=image")
    assert (code, "it is not clear which column is the class (a, b)" in err) == (2, True)
    listed, as_class, none = offers(err)
    assert as_class == ["--set", "source.columns.label=b"]
    assert none == ["--set", "source.columns.label="]
    for number, columns in enumerate((listed[3], listed[3].replace('["a","b"]', '"*"'))):
        flags = ["--set=source.columns.bytes=image", *listed[:2], "--set", columns]
        assert run(*flags, output=f"out{number}")[0] == 0
        shards = (tmp_path / f"out{number}").glob("*.tfrecord")
        found = [each["targets"] for shard in shards for each in read_examples(shard.read_bytes())]
        assert sorted(found) == [[0.5, 1], [1.5, 2], [2.5, 3], [3.5, 4]]


def test_bytes_of_another_kind_are_left_out_and_named(write, run, picture):
    write({"t.parquet": parquet(
        image=[picture(at) for at in range(4)], vector=[b"\0\1"] * 4, label=list("abab")
    )})  # fmt: skip
    code, err = run()
    assert (code, "(left out: vector)" in err, "not stored: vector (4)" in err) == (0, True, True)


@pytest.mark.parametrize("flags", [
    ["--set=source.columns.label=fine"],
    ["--set=source.kind=manifest", "--set=source.columns={bytes: image, label: fine}"],
])  # fmt: skip
def test_left_out_columns_are_named_however_the_class_is_named(write, run, picture, flags):
    write(
        {
            "t.parquet": parquet(
                image=[picture(at) for at in range(4)], fine=list("abab"), coarse=list("cccc")
            )
        }
    )
    code, err = run(*flags)
    assert (code, "note: not stored: coarse (4)" in err) == (0, True)
    assert ("(left out: coarse)" in err) == ("kind" not in flags[0])


def test_the_printed_settings_are_those_in_use(write, run, tmp_path):
    rows = table(("path", "fine", "age", "x"), *((f"images/{n}", "a", 1, 2) for n in NAMES))
    write({"images": NAMES, "t.csv": rows})
    code, err = run(
        "--set=source.columns.label=fine",
        "--set=source.features_from={age: {column: age, type: int64}}",
    )
    assert (code, "(left out: x)" in err) == (0, True)
    printed = shlex.split(re.search("to set it explicitly: (.*)", err)[1])
    assert run(*printed, output="again")[0] == 0
    plans = [
        json.loads((tmp_path / each / "recordmill.json").read_text())["plan"]["id"]
        for each in ("out", "again")
    ]
    assert plans[0] == plans[1]


# Text as Windows and Excel write it


def test_the_delimiter_line_of_excel(write, run, values):
    rows = table(("path", "label"), *((f"images/{n}", f"x{n[1]}") for n in NAMES), delimiter=";")
    write({"images": NAMES, "t.csv": "\ufeffsep=;\r\n" + rows})
    assert run()[0] == 0
    assert values(LABEL) == {name: [b"x" + name[1].encode()] for name in NAMES}


def test_backslashes_in_paths(write, run, values):
    rows = [(f"images\\{n}", f"x{n[1]}") for n in NAMES]
    write({"images": NAMES, "t.csv": table(("path", "label"), *rows)})
    assert run()[0] == 0
    assert values(LABEL) == {name: [b"x" + name[1].encode()] for name in NAMES}


def test_a_name_with_a_backslash_in_it_is_that_file(write, run, values, picture):
    write(
        {"a\\1.jpg": picture("one"), "a/1.jpg": picture("two"), "t.csv": "path,label\na\\1.jpg,x\n"}
    )
    assert (
        run(
            "--set=source.kind=manifest",
            "--set=source.columns={uri: path, label: label}",
            "--set=splits.fractions={train: 1}",
        )[0]
        == 0
    )
    assert list(values("image/encoded").values()) == [[picture("one")]]


@pytest.mark.parametrize(
    ("encoding", "where"),
    [("windows-1252", "row 5: it is not in utf-8"), ("utf-16", "it begins as UTF-16 does")],
)
def test_a_table_in_another_encoding_is_read_as_a_whole_or_not_at_all(write, run, encoding, where):
    rows = table(
        ("path", "label"),
        *((f"images/{n}", "caf\u00e9" if n == "p3.jpg" else "cat") for n in NAMES),
    )
    write({"images": NAMES, "t.csv": rows.encode(encoding)})
    flags = ["--set=source.kind=manifest", "--set=source.columns={uri: path, label: label}"]
    flags.append("--set=splits.fractions={train: 1}")
    code, err = run(*flags)
    assert (code, f"{where}: set source.encoding" in err) == (1, True)
    assert run(*flags, f"--set=source.encoding={encoding}", output="right")[0] == 0


def test_column_names_in_another_encoding_stop_the_run(write, run):
    rows = table(("path", "label", "d\u00e9j\u00e0"), *((f"images/{n}", "cat", "1") for n in NAMES))
    write({"images": NAMES, "t.csv": rows.encode("latin-1")})
    code, err = run("--set=source.kind=manifest", "--set=source.columns={uri: path, label: label}")
    what = "row 1, which names the columns: it is not in utf-8: set source.encoding"
    assert (code, what in err) == (1, True)


# Tables without images


def test_the_index_of_a_table_without_images_is_left_out(write, run, tmp_path, read_examples):
    write({"t.csv": ",a,b\n0,5,x\n1,6,y\n2,7,z\n"})
    code, err = run(
        "--set=source.kind=table", "--set=convention=plain", "--set=splits.fractions={train: 1}"
    )
    assert (code, "note: column_1 has no name, counts the rows and is left out" in err) == (0, True)
    (shard,) = (tmp_path / "out").glob("*.tfrecord")
    assert sorted(map(sorted, (each.items() for each in read_examples(shard.read_bytes())))) == [
        [("a", [5]), ("b", [b"x"])], [("a", [6]), ("b", [b"y"])], [("a", [7]), ("b", [b"z"])],
    ]  # fmt: skip


def test_a_column_without_a_name_that_counts_nothing_is_a_feature(
    write, run, tmp_path, read_examples
):
    write({"t.csv": ",a\n4,5\n9,6\n"})
    assert (
        run(
            "--set=source.kind=table", "--set=convention=plain", "--set=splits.fractions={train: 1}"
        )[0]
        == 0
    )
    (shard,) = (tmp_path / "out").glob("*.tfrecord")
    found = [each["column_1"] for each in read_examples(shard.read_bytes())]
    assert sorted(found) == [[4], [9]]
