"""Tables of images whose columns are easily misread: right at the first try, or stopped with
commands that are."""

import io
from base64 import b64encode
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from paired_inputs import mask, photo
from peer import read_dataset, walk_dataset
from PIL import Image
from printed_commands import follow, write_files

from recordmill.schemas.pages import find_page

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

N = range(10)
PHOTOS = {f"images/{n}.jpg": photo(n) for n in N}
MASKS = {f"masks/{n}.png": mask(n) for n in N}
KINDS = ("cat", "dog")


def table(header, make):
    """A CSV with a row for each of ten images."""
    return "\n".join([header, *map(make, N), ""]).encode()


def with_table(header, make, name="labels.csv", **others):
    more = {key.replace("__", "."): value.encode() for key, value in others.items()}
    return {**PHOTOS, name: table(header, make), **more}


def rows(make, name="list.csv", splits=()):
    """A table without a header, or one for each split, of five images."""
    if splits:
        parts = ((f"{split}.csv", range(at * 5, at * 5 + 5)) for at, split in enumerate(splits))
    else:
        parts = ((name, N),)
    return {**PHOTOS, **{path: "".join(map(make, part)).encode() for path, part in parts}}


def kind(n):
    return KINDS[n % 2]


def labeled(take, splits=None):
    """What is expected: how many images have this split and class."""
    return Counter((splits(n) if splits else "", take(n)) for n in N)


def parquet(**columns):
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


BY_KIND = labeled(kind)
UNLABELED = labeled(lambda n: "")
DIGITS = labeled(lambda n: str(n % 2))

RIGHT = {
    "the split is in other words": (
        with_table(
            "path,label,phase", lambda n: f"images/{n}.jpg,{kind(n)},{('Train', 'Dev')[n > 6]}"
        ),
        labeled(kind, lambda n: ("train", "validation")[n > 6]),
    ),
    "the name of a number": (
        with_table("filename,label,label_name", lambda n: f"{n}.jpg,{n % 2},{kind(n)}"),
        BY_KIND,
    ),
    "a table of names whose ids are names of images": (
        with_table(
            "path,label",
            lambda n: f"images/{n}.jpg,{n % 2}",
            label_map__csv="id,name\n0,cat\n1,dog\n",
        ),
        BY_KIND,
    ),
    "a list of names": (
        {
            **PHOTOS,
            "train.txt": "".join(f"images/{n}.jpg {n % 2}\n" for n in range(6)).encode(),
            "val.txt": "".join(f"images/{n}.jpg {n % 2}\n" for n in range(6, 10)).encode(),
            "labels.txt": b"cat\ndog\n",
        },
        labeled(kind, lambda n: ("train", "validation")[n > 5]),
    ),
    "a table of names with further columns": (
        with_table(
            "path,label",
            lambda n: f"images/{n}.jpg,{n % 2}",
            classes__csv="class_id,class_name,color\n0,cat,red\n1,dog,blue\n",
        ),
        BY_KIND,
    ),
    "a blank before a quote": (
        with_table('"File Name"; "Class "', lambda n: f'"{n}.jpg"; "{kind(n)}"'),
        BY_KIND,
    ),
    "a column of few different words": (
        with_table("image,kind", lambda n: f"{n}.jpg,{kind(n)}"),
        BY_KIND,
    ),
    "a class with commas": (
        with_table("image,label", lambda n: f'{n}.jpg,"{("tench, Tinca", "crane, bird")[n % 2]}"'),
        labeled(lambda n: ("tench, Tinca", "crane, bird")[n % 2]),
    ),
    "a point": (
        with_table("image,label,x,y", lambda n: f"{n}.jpg,{kind(n)},5,{n}"),
        BY_KIND,
    ),
    "the same image in two columns": (
        with_table("path,filename,label", lambda n: f"images/{n}.jpg,{n}.jpg,{kind(n)}"),
        BY_KIND,
    ),
    "facts in the struct of the image": (
        {
            "train.parquet": parquet(
                image=[{"bytes": photo(n), "path": "", "height": 16} for n in N],
                label=list(map(kind, N)),
                meta=[{"camera": "x"}] * 10,
            )
        },
        BY_KIND,
    ),
    "only facts in the struct of the image": (
        {"train.parquet": parquet(image=[{"bytes": photo(n), "height": 16} for n in N])},
        UNLABELED,
    ),
    "no header": (rows(lambda n: f"images/{n}.jpg,{kind(n)}\n"), BY_KIND),
    "no header, and a class of its own for each row": (
        rows(lambda n: f"images/{n}.jpg,{n + 40}\n"),
        labeled(lambda n: str(n + 40)),
    ),
    "no header, and the split after the class": (
        rows(lambda n: f"images/{n}.jpg,{kind(n)},{('train', 'test')[n > 6]}\n"),
        labeled(kind, lambda n: ("train", "test")[n > 6]),
    ),
    "no header, and the split before the class": (
        rows(lambda n: f"images/{n}.jpg\t{('train', 'val')[n > 6]}\t{n % 2}\n", "list.tsv"),
        labeled(lambda n: str(n % 2), lambda n: ("train", "validation")[n > 6]),
    ),
    "no header, and only the split": (
        rows(lambda n: f"images/{n}.jpg,{('train', 'test')[n > 6]}\n"),
        labeled(lambda n: "", lambda n: ("train", "test")[n > 6]),
    ),
    "no header, and the number of the class before its name": (
        rows(lambda n: f"images/{n}.jpg,{n % 2},{kind(n)}\n"),
        BY_KIND,
    ),
    "no header, and the number of the class after its name": (
        rows(lambda n: f"images/{n}.jpg;{kind(n)};{n % 2}\n"),
        BY_KIND,
    ),
    "no header, and a number of its own for each row": (
        rows(lambda n: f"images/{n}.jpg,{20 + n},{kind(n)}\n"),
        BY_KIND,
    ),
    "no header, and a measured value": (
        rows(lambda n: f"images/{n}.jpg,0.{n}5,{kind(n)}\n"),
        BY_KIND,
    ),
    "no header, and values of 0 and 1": (
        rows(lambda n: f"images/{n}.jpg,{kind(n)},0.5\n"),
        BY_KIND,
    ),
    "no header, and a table for each split": (
        rows(lambda n: f"images/{n}.jpg,{n % 2},{kind(n)}\n", splits=("train", "val")),
        labeled(kind, lambda n: ("train", "validation")[n > 4]),
    ),
    "no header, and classes that all differ in one split": (
        rows(
            lambda n: f"images/{n}.jpg,{n % 5},{'abcde'[n % 5]}\n",
            splits=("train", "test"),
        ),
        labeled(lambda n: "abcde"[n % 5], lambda n: ("train", "test")[n > 4]),
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_these_are_right_at_the_first_try(name, tmp_path, run_in):
    files, expected = RIGHT[name]
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    assert contents(files, expected) == expected


def contents(files, expected):
    """How many images of the dataset have a split and a class; without splits that nobody gave."""
    known = {sha256(data).hexdigest() for data in files.values()}
    found = read_dataset(Path("out"))
    has_splits = any(split for split, _ in expected)
    if not any(path.endswith(".parquet") for path in files):
        assert {each.sha256 for each in found} <= known
    return Counter((each.split if has_splits else "", each.label) for each in found)


BOXES = {
    "corners in another order": ("x1,x2,y1,y2", "6,18,4,12"),
    "the corners of a region": ("Roi.X1,Roi.Y1,Roi.X2,Roi.Y2", "6,4,18,12"),
}


@pytest.mark.parametrize("name", BOXES)
def test_boxes_are_found_by_the_names_of_their_columns(name, tmp_path, run_in):
    columns, values = BOXES[name]
    files = with_table(f"Path,{columns},ClassId", lambda n: f"images/{n}.jpg,{values},{n % 2}")
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    found = read_dataset(Path("out"))
    assert Counter(each.boxes[0][0] for each in found) == {"0": 5, "1": 5}
    sides = {tuple(round(side, 5) for side in box[1:]) for each in found for box in each.boxes}
    assert sides == {(0.25, 0.25, 0.75, 0.75)}


FIRST = labeled(lambda n: "cat" if n % 2 else "dog")
"""The first class of each image, where it has several."""


def several(separator):
    return with_table(
        "image,label", lambda n: f'{n}.jpg,"{separator.join(KINDS) if n % 2 else "dog"}"'
    )


ASKED = {
    "masks": (
        {**MASKS, **with_table("image,mask", lambda n: f"images/{n}.jpg,masks/{n}.png")},
        [UNLABELED],
    ),
    "masks and a class": (
        {
            **MASKS,
            **with_table("image,mask,label", lambda n: f"images/{n}.jpg,masks/{n}.png,{kind(n)}"),
        },
        [UNLABELED, BY_KIND],
    ),
    "pairs": (
        with_table("image1,image2,label", lambda n: f"{n}.jpg,{(n + 1) % 10}.jpg,{n % 2}"),
        [UNLABELED],
    ),
    "captions": (
        with_table("image,caption", lambda n: f"{n}.jpg,A dog runs over {n} hills"),
        [UNLABELED, labeled(lambda n: f"A dog runs over {n} hills")],
    ),
    "links": (
        with_table("image,url", lambda n: f"{n}.jpg,https://a.b/{n % 2}"),
        [UNLABELED, labeled(lambda n: f"https://a.b/{n % 2}")],
    ),
    "days": (
        with_table("image,day", lambda n: f"{n}.jpg,2023-01-0{1 + n % 2}"),
        [UNLABELED, labeled(lambda n: f"2023-01-0{1 + n % 2}")],
    ),
    "captions in Parquet": (
        {
            "train.parquet": parquet(
                image=[{"bytes": photo(n), "path": f"{n}.jpg"} for n in N],
                text=[f"a dog {n}" for n in N],
            )
        },
        [UNLABELED, labeled(lambda n: f"a dog {n}")],
    ),
    "lists of captions": (
        {
            "train.parquet": parquet(
                image=list(map(photo, N)), captions=[[f"a dog {n}", "an animal"] for n in N]
            )
        },
        [UNLABELED, labeled(lambda n: f"a dog {n}")],
    ),
    "three images": (
        with_table(
            "anchor,positive,negative", lambda n: f"{n}.jpg,{(n + 1) % 10}.jpg,{(n + 2) % 10}.jpg"
        ),
        [UNLABELED],
    ),
    "several classes, with |": (
        several("|"),
        [FIRST, labeled(lambda n: "cat|dog" if n % 2 else "dog")],
    ),
    "several classes, with blanks": (
        with_table("image,tags", lambda n: f"{n}.jpg,{('haze', 'clear')[n % 2]} primary"),
        [
            labeled(lambda n: ("haze", "clear")[n % 2]),
            labeled(lambda n: f"{('haze', 'clear')[n % 2]} primary"),
        ],
    ),
    "several rows": (
        with_table("filename,label", lambda n: f"{n}.jpg,cat\n{n}.jpg,dog"),
        [UNLABELED],
    ),
    "boxes by their size": (
        with_table("image,x,y,w,h,label", lambda n: f"{n}.jpg,5,6,10,8,{kind(n)}"),
        [BY_KIND],
    ),
    "boxes by a corner and their size": (
        with_table("filename,xmin,ymin,width,height,class", lambda n: f"{n}.jpg,5,6,9,8,{kind(n)}"),
        [BY_KIND],
    ),
    "boxes by their center": (
        with_table(
            "image,label,conf,x_center,y_center,w,h", lambda n: f"{n}.jpg,{kind(n)},1,.5,.5,.2,.2"
        ),
        [BY_KIND],
    ),
    "boxes with a word before": (
        with_table(
            "image,bbox_x,bbox_y,bbox_w,bbox_h,label", lambda n: f"{n}.jpg,5,6,10,8,{kind(n)}"
        ),
        [BY_KIND],
    ),
    "boxes in one cell": (
        with_table("image,bbox,label", lambda n: f'{n}.jpg,"[5, 6, 10, 8]",{kind(n)}'),
        [BY_KIND],
    ),
    "a flag for the split": (
        with_table(
            "path,label,is_training", lambda n: f"images/{n}.jpg,{kind(n)},{int(n % 3 > 0)}"
        ),
        [labeled(kind, lambda n: ("test", "train")[n % 3 > 0]), BY_KIND],
    ),
    "folds": (
        with_table("path,label,fold", lambda n: f"images/{n}.jpg,{kind(n)},{n % 5}"),
        [labeled(kind, lambda n: ("validation", "train")[n % 5 > 0]), BY_KIND],
    ),
    "compound words for the split": (
        with_table(
            "path,label,Usage",
            lambda n: f"images/{n}.jpg,{kind(n)},{('Training', 'PublicTest')[n > 6]}",
        ),
        [labeled(kind, lambda n: ("train", "test")[n > 6]), BY_KIND],
    ),
    "a set without a split's name": (
        with_table("path,label,set", lambda n: f"images/{n}.jpg,{kind(n)},{'AB'[n > 6]}"),
        [BY_KIND],
    ),
    "names in a table of another name": (
        with_table(
            "path,label",
            lambda n: f"images/{n}.jpg,{n % 2}",
            mapping__csv="name,id\ncat,0\ndog,1\n",
        ),
        [BY_KIND, DIGITS],
    ),
    "a table of the names that are in use": (
        with_table(
            "path,label",
            lambda n: f"images/{n}.jpg,{kind(n)}",
            label_map__csv="id,name\n0,cat\n1,dog\n",
        ),
        [BY_KIND],
    ),
    "numbers from 1": (
        with_table(
            "path,label",
            lambda n: f"images/{n}.jpg,{n % 2 + 1}",
            label_map__csv="id,name\n1,cat\n2,dog\n",
        ),
        [labeled(lambda n: str(n % 2 + 1))],
    ),
    "images in two folders": (
        {
            **{f"part{1 + n // 5}/{n:03}.jpg": photo(n) for n in N},
            "m.csv": table("image_id,dx,age", lambda n: f"{n:03},{kind(n)},{30 + n}"),
        },
        [UNLABELED],
    ),
    "no header, and a fold": (
        rows(lambda n: f"images/{n}.jpg,{n % 5},{kind(n)}\n"),
        [BY_KIND, labeled(lambda n: str(n % 5)), UNLABELED],
    ),
    "no header, and two columns of words": (
        rows(lambda n: f"images/{n}.jpg,{kind(n)},{('red', 'blue')[n > 6]}\n"),
        [BY_KIND, labeled(lambda n: ("red", "blue")[n > 6]), UNLABELED],
    ),
    "no header, and two columns of numbers": (
        rows(lambda n: f"images/{n}.jpg {n % 2} {n % 5}\n", "train.txt"),
        [
            labeled(lambda n: str(n % 2)),
            labeled(lambda n: str(n % 5)),
            UNLABELED,
        ],
    ),
    "no header, and a split that may be a class": (
        rows(lambda n: f"images/{n}.jpg,train,{n % 2}\n"),
        [labeled(lambda n: "train"), DIGITS, UNLABELED],
    ),
    "no header, and captions": (
        rows(lambda n: f"images/{n}.jpg,A dog runs over {n} hills\n"),
        [UNLABELED, labeled(lambda n: f"A dog runs over {n} hills")],
    ),
    "no header, and measured values": (
        rows(lambda n: f"images/{n}.jpg,0.{n}5\n"),
        [UNLABELED],
    ),
    "no header, and masks": (
        {**MASKS, **rows(lambda n: f"images/{n}.jpg,masks/{n}.png\n")},
        [UNLABELED],
    ),
    "no header, and several classes": (
        rows(lambda n: f"images/{n}.jpg,{'|'.join(KINDS) if n % 2 else 'dog'}\n"),
        [FIRST, labeled(lambda n: "cat|dog" if n % 2 else "dog")],
    ),
    "no header, and boxes after the class": (
        rows(lambda n: f"images/{n}.jpg,{kind(n)},5,6,15,14\n"),
        [UNLABELED, BY_KIND],
    ),
    "no header, and boxes by their size": (
        rows(lambda n: f"images/{n}.jpg,7,9,6,5,{kind(n)}\n"),
        [BY_KIND],
    ),
    "two versions of a table": (
        {
            **with_table("filename,label", lambda n: f"{n}.jpg,{kind(n)}", "labels_v1.csv"),
            "labels_v2.csv": table("filename,label", lambda n: f"{n}.jpg,{kind(n + 1)}"),
        },
        [BY_KIND, labeled(lambda n: kind(n + 1))],
    ),
    "names that are in two splits": (
        {
            **{f"{split}/{n}.jpg": photo((split, n)) for split in ("train", "test") for n in N},
            "labels.csv": table("filename,label", lambda n: f"{n}.jpg,{kind(n)}"),
        },
        [labeled(kind, lambda n: "train"), labeled(kind, lambda n: "test")],
    ),
    "pairs with a number": (
        {
            **{f"{side}/{n}.jpg": photo((side, n)) for side in "ab" for n in N},
            "m.csv": table("image_id,image_a,image_b", lambda n: f"{9 - n},a/{n}.jpg,b/{n}.jpg"),
        },
        [UNLABELED],
    ),
    "a class in the struct of the image": (
        {
            "train.parquet": parquet(
                image=[{"bytes": photo(n), "path": f"{n}.jpg", "label": kind(n)} for n in N]
            )
        },
        [UNLABELED],
    ),
    "a class in a struct": (
        {
            "train.parquet": parquet(
                image=[{"bytes": photo(n), "path": f"{n}.jpg"} for n in N],
                annotation=[{"label": kind(n), "quality": n} for n in N],
            )
        },
        [UNLABELED],
    ),
    "a struct for the label": (
        {
            "train.parquet": parquet(
                image=list(map(photo, N)), label=[{"id": n % 2, "name": kind(n)} for n in N]
            )
        },
        [UNLABELED],
    ),
    "a struct of class and split": (
        {
            "data.parquet": parquet(
                image=list(map(photo, N)), meta=[{"class": kind(n), "split": "train"} for n in N]
            )
        },
        [UNLABELED],
    ),
    "a split in a struct": (
        {
            "data.parquet": parquet(
                image=list(map(photo, N)), label=list(map(kind, N)), meta=[{"split": "train"}] * 10
            )
        },
        [BY_KIND],
    ),
    "a struct in JSON": (
        {
            **PHOTOS,
            "list.jsonl": "".join(
                f'{{"image": "images/{n}.jpg", "label": {{"id": 1, "name": "{kind(n)}"}}}}\n'
                for n in N
            ).encode(),
        },
        [UNLABELED],
    ),
    "text and numbers": (
        {
            "train.parquet": parquet(image=list(map(photo, N)), label=list(map(kind, N))),
            "test.parquet": parquet(image=list(map(photo, range(10, 20))), label=[0, 1] * 5),
        },
        [BY_KIND],
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_these_stop_and_every_printed_command_ends_right(name, tmp_path, run_in):
    files, expected = ASKED[name]
    write_files(tmp_path / "in", files)
    reached = []
    for end in follow(["--input", "in"], run_in):
        assert (end.codes[0], end.code) == (2, 0), (end.arguments, end.message)
        fitting = [each for each in expected if contents(files, each) == each]
        assert fitting, (end.arguments, contents(files, expected[0]))
        reached += fitting
    assert [each for each in expected if each not in reached] == []


@pytest.mark.parametrize("separator", [";", ", "])
def test_several_classes_of_a_cell_are_stored_apart(separator, tmp_path, run_in):
    write_files(tmp_path / "in", several(separator))
    end = next(iter(follow(["--input", "in"], run_in)))
    assert end.code == 0, end.message
    stored = Counter(
        tuple(features["image/class/text"]) for _, features in walk_dataset(Path("out"))
    )
    assert stored == {(b"cat", b"dog"): 5, (b"dog",): 5}


def test_the_text_of_a_column_is_stored_as_a_feature(tmp_path, run_in):
    write_files(tmp_path / "in", ASKED["captions"][0])
    end = next(iter(follow(["--input", "in"], run_in)))
    assert end.code == 0, end.message
    stored = {features["caption"][0] for _, features in walk_dataset(Path("out"))}
    assert stored == {f"A dog runs over {n} hills".encode() for n in N}


def test_boxes_without_a_header_are_stored_where_that_is_chosen(tmp_path, run_in):
    files = rows(lambda n: f"images/{n}.jpg,{kind(n)},6,4,18,12\n")
    write_files(tmp_path / "in", files)
    end = next(iter(follow(["--input", "in"], run_in)))
    assert end.code == 0, end.message
    found = read_dataset(Path("out"))
    assert Counter(each.boxes[0][0] for each in found) == {"cat": 5, "dog": 5}
    sides = {tuple(round(side, 5) for side in box[1:]) for each in found for box in each.boxes}
    assert sides == {(0.25, 0.25, 0.75, 0.75)}


def test_each_column_that_may_be_the_class_has_its_command(tmp_path, run_in):
    write_files(tmp_path / "in", ASKED["no header, and a fold"][0])
    _, _, err = run_in(["--input", "in"])
    assert (
        "it is not clear which column is the class (column_2, column_3): add --set "
        "source.columns.label=column_3 for classes such as cat, or --set source.columns.label= "
        "--set 'source.features_from={targets: {columns: [\"column_2\"], type: float}}' to store "
        "numbers as one feature, or --set source.columns.label=column_2 for classes such as 0, or "
        "--set source.columns.label= to store none of them\n"
    ) in err


def test_a_number_next_to_names_of_images_is_not_offered(tmp_path, run_in):
    write_files(tmp_path / "in", ASKED["pairs with a number"][0])
    _, _, err = run_in(["--input", "in"])
    assert "its columns image_a and image_b name images" in err
    assert "source.columns.uri=image_id" not in err


def test_two_versions_of_a_table_are_named_and_given_patterns_stay(tmp_path, run_in):
    write_files(tmp_path / "in", ASKED["two versions of a table"][0])
    code, _, err = run_in(["--input", "in", "--set", "ignore=[/x/]"])
    assert code == 2
    assert (
        "labels_v1.csv and labels_v2.csv both name images/0.jpg: to read labels_v1.csv, add --set "
        """'ignore=["/x/","/labels_v2.csv"]'; to read labels_v2.csv, add --set """
        """'ignore=["/x/","/labels_v1.csv"]'\n"""
    ) in err
    assert not Path("out").exists()


def test_a_table_for_each_split_may_have_the_same_names_in_other_folders(tmp_path, run_in):
    files = {f"{split}/{n}.jpg": photo((split, n)) for split in ("train", "test") for n in N}
    for split in ("train", "test"):
        files[f"{split}.csv"] = table("id,label", lambda n: f"{n},{kind(n)}")
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    found = Counter((each.split, each.label) for each in read_dataset(Path("out")))
    assert found == {(split, kind): 5 for split in ("train", "test") for kind in KINDS}


def test_values_in_the_struct_of_an_image_are_counted(tmp_path, run_in):
    write_files(tmp_path / "in", ASKED["a class in the struct of the image"][0])
    code, _, err = run_in(["--input", "in"])
    assert code == 2
    assert (
        "fields of structs are not read, such as image.label: write each field that is needed "
        "(image.label) into a column of its own, or add --set source.columns.label= to convert the "
        "images without them\n"
    ) in err
    code, _, err = run_in(["--input", "in", "--set", "source.columns.label="])
    assert (code, "note: not stored: image.label (10)" in err) == (0, True)
    write_files(tmp_path / "facts", RIGHT["facts in the struct of the image"][0])
    code, _, err = run_in(["--input", "facts", "--output", "facts-dataset"])
    assert (code, "note: not stored: image.height (10), meta (10)" in err) == (0, True)


UNREAD_IMAGES = {
    "a list of images": (
        parquet(images=[[photo(n), photo(n + 10)] for n in N], label=list(map(kind, N))),
        "its column images holds several images in a row: write a row for each image\n",
    ),
    "a list of structs": (
        parquet(images=[[{"bytes": photo(n), "path": "a"}] for n in N], label=list(map(kind, N))),
        "its column images holds several images in a row: write a row for each image\n",
    ),
    "base64": (
        parquet(image=[b64encode(photo(n)).decode() for n in N], label=list(map(kind, N))),
        "its column image holds images as text in base64, which is not read: decode it to files, "
        "or to a column of bytes in Parquet\n",
    ),
}


@pytest.mark.parametrize("name", UNREAD_IMAGES)
def test_images_that_are_not_read_from_a_table_are_explained(name, tmp_path, run_in):
    data, expected = UNREAD_IMAGES[name]
    write_files(tmp_path / "in", {"train.parquet": data})
    code, _, err = run_in(["--input", "in"])
    assert code == 2
    assert f"train.parquet cannot be used: {expected}" in err


@pytest.mark.parametrize(
    "row",
    [
        lambda n: ",".join(map(str, (n % 2, *range(64)))),
        lambda n: f"{n % 2},{' '.join(map(str, range(100, 164)))},Training",
    ],
    ids=["columns", "words of a cell"],
)
@pytest.mark.parametrize("end", ["", "/digits.csv"])
def test_pixels_in_a_table_are_explained(row, end, tmp_path, run_in):
    write_files(tmp_path / "in", {"digits.csv": table(row(0), row)})
    code, _, err = run_in(["--input", f"in{end}"])
    assert code == 2
    assert (
        f"error: in{end} holds images as columns or lists of numbers, which are not read from "
        "tables: save each row as an image in a folder of its class, such as 5/0001.png, or all "
        f"rows in one .npz ({find_page('binaries.md')})\n"
    ) in err
    assert "observations" not in err


def test_numbers_and_words_for_no_value_are_named(tmp_path, run_in):
    words = ("a", "b", "NaN", "None", "0", "0.0")
    files = with_table("filename,label", lambda n: f"{n}.jpg,{words[n % 6]}")
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 0
    said = " ".join(err.split())
    assert "The classes 'NaN', 'None' may stand for no value: leave such cells empty if so." in said
    assert "The classes '0' and '0.0' are the same number: they may be meant as one." in said


def test_tables_of_other_names_are_left_out_together_or_one_is_converted_alone(tmp_path, run_in):
    files = {f"images/{name}.jpg": photo(name) for name in "abcd"}
    rows = "".join(f"old/{number}.jpg,{number % 2}\n" for number in range(8))
    files |= {name: f"picture,kind\n{rows}".encode() for name in ("one.csv", "two.csv")}
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 2
    assert "COLUMN" not in err
    ends = list(follow(["--input", "in"], run_in))
    assert [end.code for end in ends] == [0, 0], ends
    assert [end.marker["ledger"]["written"] for end in ends] == [8, 4]
    assert ends[1].arguments[-1] == "ignore=[/one.csv, /two.csv]"


def test_a_late_cell_with_several_classes_is_asked_about(tmp_path, run_in):
    many = {f"images/{n:04}.jpg": photo(n % 10) for n in range(1100)}
    rows = [f"{n:04}.jpg,{kind(n)}" for n in range(1099)]
    rows.append("1099.jpg,cat|dog")
    data = "\n".join(["image,label", *rows, ""]).encode()
    write_files(tmp_path / "in", {**many, "labels.csv": data})
    code, _, err = run_in(["--input", "in"])
    assert (code, "cells of label such as 'cat|dog' seem to be several" in err) == (2, True)
    several, one = follow(["--input", "in"], run_in)
    assert (several.code, one.code) == (0, 0)
    assert (several.marker["classes"], one.marker["classes"]) == (2, 3)


def test_the_first_command_for_a_column_of_masks_stores_them(tmp_path, run_in):
    files = ASKED["masks and a class"][0]
    write_files(tmp_path / "in", files)
    end = next(iter(follow(["--input", "in"], run_in)))
    assert end.code == 0, end.message
    assert end.arguments[-8:] == (
        *("--set", "source.columns.uri=image", "--set", "source.columns.mask=mask"),
        *("--set", "source.columns.label=", "--set", "convention=deeplab"),
    )
    stored = {
        features["image/filename"][0].decode(): Image.open(
            io.BytesIO(features["image/segmentation/class/encoded"][0])
        ).tobytes()
        for _, features in walk_dataset(Path("out"))
    }
    given = {f"{n}.jpg": Image.open(io.BytesIO(files[f"masks/{n}.png"])).tobytes() for n in N}
    assert stored == given
