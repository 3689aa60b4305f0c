import re
from dataclasses import dataclass
from typing import ClassVar

import pytest

from recordmill.schemas.features import Feature
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.tables.manifest_columns import (
    CellReader,
    Columns,
    FeatureColumn,
    FeatureFrom,
    ManifestEntry,
)


def reader(features=None, class_names=None, **columns):
    return CellReader(Columns(**columns), features or {}, "|", class_names or {})


def test_columns_say_what_a_row_says():
    read = reader(
        {
            "x/age": FeatureColumn(column="age", type="int64"),
            "x/tags": FeatureColumn(column="tags", many=True),
        },
        uri="path",
        label="class",
        labels="tags",
        split="set",
        group="patient",
        key="id",
        sha256="digest",
        boxes="boxes",
        box_labels="names",
    )
    cells = {
        "path": "a.jpg",
        "class": 3,
        "tags": "x|y",
        "set": "t",
        "patient": 7,
        "id": "i",
        "digest": "d",
        "age": "30",
    }
    assert read.read({**cells, "boxes": [[1, 2, 3, 4]], "names": ["dog"]}) == ManifestEntry(
        uri="a.jpg",
        key="i",
        label="3",
        labels=["x", "y"],
        split="t",
        group="7",
        sha256="d",
        boxes=[[1, 2, 3, 4]],
        box_labels=["dog"],
        features={"x/age": 30, "x/tags": ["x", "y"]},
    )


def test_what_may_be_missing_and_what_not():
    read = reader(uri="path", label="class", split="set", group="patient").read
    assert read({"path": "a", "class": "b"}) == ManifestEntry(uri="a", label="b")
    for cells, sentence in (
        ({"class": "b"}, "column 'path' is empty"),
        ({"path": "", "class": "b"}, "column 'path' is empty"),
        ({"path": "a", "class": None}, "column 'class' is empty"),
    ):
        with pytest.raises(Rejected) as raised:
            read(cells)
        assert raised.value.detail == sentence


def test_nothing_but_blanks_is_nothing():
    read = reader(uri="path", label="class", labels="tags", group="patient").read
    assert read({"path": "a", "class": "b", "tags": "", "patient": "  "}) == ManifestEntry(
        uri="a", label="b", labels=[]
    )
    for cells, message in (
        ({"path": "a", "class": " \t"}, r"^bad_row: column 'class' is empty$"),
        ({"path": "a", "class": "b", "tags": ["x", " "]}, r"^bad_row: column 'tags' is empty$"),
    ):
        with pytest.raises(Rejected, match=message):
            read(cells)


@pytest.mark.parametrize("column", ["path", "class", "patient"])
def test_a_text_is_not_a_name(column):
    cells = {"path": "a", "class": "b", "patient": "c"}
    read = reader(uri="path", label="class", group="patient").read
    assert read({**cells, column: "x" * 4096})
    with pytest.raises(
        Rejected,
        match=rf"^\w+: column '{column}': 'x+\.* has 4,097 characters, but a name has at most "
        r"4,096$",
    ):
        read({**cells, column: "x" * 4097})


def test_an_empty_class_may_be_kept_as_none():
    read = CellReader(Columns(uri="path", label="class"), {}, "|", {}, unlabeled="keep").read
    for cells in ({"path": "a", "class": None}, {"path": "a", "class": ""}, {"path": "a"}):
        assert read(cells) == ManifestEntry(uri="a")
    with pytest.raises(Rejected, match="column 'path' is empty"):
        read({"path": "", "class": "b"})


@pytest.mark.parametrize("cell", [-1, "-1"])
def test_the_number_that_stands_for_no_class_is_kept_unless_the_settings_reject_it(cell):
    columns, names = Columns(uri="path", label="class"), {"class": ["cat", "dog"]}

    def read(unlabeled, value):
        return CellReader(columns, {}, "|", names, unlabeled).read({"path": "a", "class": value})

    assert [read(each, cell) for each in ("auto", "keep")] == [ManifestEntry(uri="a")] * 2
    with pytest.raises(
        Rejected,
        match=f"column 'class': {cell!r} stands for no class: set source.unlabeled=keep to keep",
    ):
        read("reject", cell)
    with pytest.raises(Rejected, match="column 'class' is empty"):
        read("auto", None)
    with pytest.raises(Rejected, match=r"-2 \(int\) is not one of the 2 classes"):
        read("auto", -2)


def test_names_of_numbered_classes():
    read = reader(
        uri="path",
        label="class",
        labels="tags",
        class_names={"class": ["cat", "dog"], "tags": ["x", "y"]},
    ).read
    assert read({"path": "a", "class": 1, "tags": [1, 0]}) == ManifestEntry(
        uri="a", label="dog", labels=["y", "x"]
    )


def test_boxes_and_their_labels_are_as_many():
    with pytest.raises(Rejected, match="column 'names': there are 1 boxes and 2 labels"):
        reader(uri="path", boxes="boxes", box_labels="names").read(
            {"path": "a", "boxes": [[1, 2, 3, 4]], "names": "a|b"}
        )


def test_an_empty_cell_takes_the_default_or_is_refused():
    def read(cell, **settings):
        return FeatureColumn(column="x", **settings).value_in({"x": cell}, "|")

    for kind, default in (("int64", -1), ("float", 0.5), ("bytes", "none")):
        assert read("", type=kind, default=default) == read(None, type=kind, default=default)
        assert read("", type=kind, default=default) == default
    assert read("", type="float", default=1) == 1.0
    assert read("1|2", type="int64", many=True) == [1, 2]
    assert read("", many=True) == []
    with pytest.raises(Rejected, match="column 'x' is empty"):
        read("", type="int64")


def test_several_columns_are_one_list_of_their_number():
    cells = {"b": "2", "a": "1.5", "c": ""}
    feature = FeatureColumn(columns=("b", "a"), type="float")
    assert feature.value_in(cells, "|") == [2.0, 1.5]
    described = Feature("v", "float", "v", "2 columns: `b`, `a`", many=True)
    assert feature.as_feature("v") == described
    filled = FeatureColumn(columns=("a", "c"), type="float", default=-1)
    assert filled.value_in(cells, "|") == [1.5, -1.0]
    with pytest.raises(Rejected, match="column 'c' is empty"):
        FeatureColumn(columns=("a", "c"), type="float").value_in(cells, "|")
    with pytest.raises(Rejected, match=r"column 'a': '1.5' \(str\) is not a 64-bit integer"):
        FeatureColumn(columns=("a",), type="int64").value_in(cells, "|")
    many = FeatureColumn(columns=tuple(f"x{number}" for number in range(136)), type="float")
    assert many.as_feature("v").meaning == "136 columns: `x0` to `x135`"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"column": "a", "columns": ("b",)}, "a.column and columns contradict each other"),
        ({"columns": ("a", "")}, "a.column is empty: name the column, or several columns in"),
        ({"columns": ("a",), "many": True}, "a.many: a cell of columns holds one value"),
        ({"columns": ("a", "b", "a")}, "a.columns names 'a' twice"),
        ({"columns": "x*", "type": "float", "default": "?"}, "a.default is '?', which is not of"),
    ],
)
def test_columns_of_a_feature_that_cannot_be(settings, sentence):
    with pytest.raises(ValueError, match=rf"^source\.features_from\.{re.escape(sentence)}"):
        FeatureColumn(**settings).check("a")


def test_features_as_examples_have_them():
    assert FeatureColumn(column="x", default="no").as_feature("a") == Feature(
        "a", "bytes", "a", "column `x`", default=b"no"
    )
    many = FeatureColumn(column="x", type="float", many=True).as_feature("a")
    assert many == Feature("a", "float", "a", "column `x`", many=True)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({}, "source.columns names either"),
        ({"uri": "a", "bytes": "b"}, "source.columns names either"),
        ({"uri": "a", "boxes": "b"}, "source.columns: boxes, box_labels go together"),
    ],
)
def test_columns_that_cannot_be(columns, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        Columns(**columns).check()


def test_a_feature_without_a_column_names_its_key():
    with pytest.raises(
        ValueError, match=r"^source\.features_from\.a\.column is empty: name the column, or"
    ):
        FeatureColumn(column="").check("a")


@pytest.mark.parametrize(
    ("uri", "cells", "path"),
    [
        ("images/{id}.jpg", {"id": "a 1"}, "images/a 1.jpg"),
        ("{folder}/{image id}.png", {"folder": "x", "image id": 7}, "x/7.png"),
        ("{id}", {"id": "a.jpg"}, "a.jpg"),
    ],
)
def test_a_path_may_be_made_of_columns(uri, cells, path):
    assert reader(uri=uri).read(cells).uri == path


def test_a_path_of_columns_needs_all_of_them():
    assert list(Columns(uri="{a}/{b}.jpg", label="c").named()) == [
        ("source.columns.uri", "a"),
        ("source.columns.uri", "b"),
        ("source.columns.label", "c"),
    ]
    with pytest.raises(Rejected, match=r"^\w+: column 'b' is empty$"):
        reader(uri="{a}/{b}.jpg").read({"a": "x", "b": ""})


BOX = {"uri": "file", "xmin": "x1", "ymin": "y1", "xmax": "x2", "ymax": "y2", "box_label": "class"}


def test_a_row_may_be_a_box():
    read = reader(**BOX, width="w", height="h").read
    cells = {"file": "a.jpg", "x1": "1", "y1": 2, "x2": "30.5", "y2": "4e1", "class": "cat"}
    expected = ManifestEntry(uri="a.jpg", boxes=[[1, 2, 30.5, 40]], box_labels=["cat"])
    assert read({**cells, "w": "", "h": ""}) == read({**cells, "w": "0", "h": "9"}) == expected
    assert read({**cells, "w": "640", "h": 480.0}).size == (640, 480)
    empty = {"file": "b.jpg", **dict.fromkeys(("x1", "y1", "x2", "y2", "class"), "")}
    assert read({**empty, "w": "", "h": ""}) == ManifestEntry(uri="b.jpg", boxes=[])


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        ({"x1": "a"}, "column 'x1': 'a' (str) is not a finite number"),
        ({"x1": ""}, "column 'x1' is empty"),
        ({"y2": "nan"}, "column 'y2': 'nan' (str) is not a finite number"),
        ({"class": ""}, "column 'class' is empty"),
        ({"w": "6.5"}, "column 'w': '6.5' (str) is not a whole number of pixels"),
    ],
)
def test_a_row_that_is_not_a_box_is_a_fault_of_its_image(cell, fault):
    cells = {
        "file": "a.jpg",
        "x1": "1",
        "y1": "2",
        "x2": "3",
        "y2": "4",
        "class": "cat",
        "w": "9",
        "h": "9",
    }
    entry = reader(**BOX, width="w", height="h").read({**cells, **cell})
    assert entry == ManifestEntry(uri="a.jpg", boxes=[], fault=fault)
    with pytest.raises(Rejected, match="column 'file' is empty"):
        reader(**BOX).read({**cells, "file": ""})


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            {"uri": "u", "xmin": "a"},
            "source.columns: xmin, ymin, xmax, ymax, box_label go together: name all",
        ),
        ({**BOX, "objects": "o"}, "source.columns.objects and xmin both name boxes: remove one"),
        (
            {**BOX, "uri": "", "bytes": "b"},
            "source.columns.xmin: rows of one image are joined by source.columns.uri",
        ),
        ({"uri": "u", "width": "w"}, "source.columns: width, height go together"),
        ({**BOX, "width": "w"}, "source.columns: width, height go together"),
        (
            {"uri": "a{b"},
            "source.columns.uri is 'a{b': write columns in braces and an extension, such as ",
        ),
        (
            {"uri": "a{}"},
            "source.columns.uri is 'a{}': write columns in braces and an extension, such as "
            "images/{id}.jpg",
        ),
        (
            {"uri": "{a}.*"},
            "source.columns.uri is '{a}.*': write columns in braces and an extension, such as "
            "images/{id}.jpg",
        ),
        (
            {"uri": "{a}}.jpg"},
            "source.columns.uri is '{a}}.jpg': write columns in braces and an extension, such as ",
        ),
    ],
)
def test_paths_and_boxes_of_columns_that_cannot_be(columns, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        Columns(**columns).check()


@dataclass(frozen=True, slots=True, kw_only=True)
class FromPage(FeatureFrom):
    page: str

    where: ClassVar[str] = "page"
    hint: ClassVar[str] = "name the page"
    described: ClassVar[str] = "page {}"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, Feature("a/b", "bytes", "a/b", "page 7")),
        ({"default": "é"}, Feature("a/b", "bytes", "a/b", "page 7", default="é".encode())),
        ({"default": 3}, Feature("a/b", "bytes", "a/b", "page 7", default=b"3")),
        ({"type": "float", "default": 3}, Feature("a/b", "float", "a/b", "page 7", default=3.0)),
        ({"type": "int64", "many": True}, Feature("a/b", "int64", "a/b", "page 7", many=True)),
    ],
)
def test_a_feature_as_examples_have_it(settings, expected):
    wish = FromPage(page="7", **settings)
    wish.check("a/b")
    feature = wish.as_feature("a/b")
    assert (feature, type(feature.default)) == (expected, type(expected.default))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"page": ""}, "source.features_from.a.page is empty: name the page"),
        (
            {"page": "7", "many": True, "default": 1},
            "source.features_from.a: many and default contradict each other: without values, the "
            "list is empty",
        ),
        (
            {"page": "7", "type": "int64", "default": "one"},
            "source.features_from.a.default is 'one', which is not of type int64",
        ),
        (
            {"page": "7", "default": 1.5},
            "source.features_from.a.default is 1.5, which is not of type bytes",
        ),
    ],
)
def test_a_wish_that_cannot_be_names_its_key(settings, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        FromPage(**settings).check("a")


def test_rows_of_boxes_of_one_image_become_one():
    first = ManifestEntry(uri="p", boxes=[[0, 0, 1, 1]], box_labels=["a"], size=(4, 3))
    assert not first.join(
        ManifestEntry(uri="p", boxes=[[0, 0, 0.5, 1]], box_labels=["b"], size=(4, 3))
    )
    assert (first.boxes, first.box_labels) == ([[0, 0, 1, 1], [0, 0, 0.5, 1]], ["a", "b"])


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (
            ManifestEntry(uri="p", boxes=[], split="TEST"),
            "its split is 'TEST', and an earlier row of 'p' has ''",
        ),
        (
            ManifestEntry(uri="p", boxes=[], size=(4, 3)),
            "its size is (4, 3), and an earlier row of 'p' has None",
        ),
        (
            ManifestEntry(uri="p", boxes=[], features={"n": 1}),
            "its features is {'n': 1}, and an earlier row of 'p' has {}",
        ),
    ],
)
def test_rows_that_contradict_each_other_are_refused(other, sentence):
    assert ManifestEntry(uri="p", boxes=[]).join(other) == sentence
