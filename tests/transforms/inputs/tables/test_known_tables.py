from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.folder_sketch import FolderSketch
from recordmill.transforms.inputs.tables.known_tables import (
    ML_USE,
    FoundColumns,
    find_columns,
    read_automl,
    read_vertex,
)
from recordmill.transforms.inputs.tables.manifest_columns import ManifestEntry

IMAGES = ["1.jpg", "images/2.jpg", "images/3.PNG", "deep/er/4.jpg", "b/5.jpg"]


def found(columns, names=(), others=(), **more):
    return FoundColumns(columns, names, others=others, **more)


SIDES = {side: side for side in ("xmin", "ymin", "xmax", "ymax")}
FOUND = {
    "no header": (
        "a.csv",
        "1.jpg, cat\n",
        found({"uri": "path", "label": "label"}, ("path", "label")),
    ),
    "a list": (
        "a.txt",
        "images/2.jpg 3\n",
        found({"uri": "path", "label": "label"}, ("path", "label")),
    ),
    "a list with further columns": (
        "train.txt",
        "images/2.jpg, 9, 4\n",
        found(
            {"uri": "path"},
            ("path", "column_2", "column_3"),
            others=("column_2", "column_3"),
        ),
    ),
    "a list with a number before the class": (
        "train.txt",
        "images/2.jpg 9 cat\nimages/3.PNG 4 dog\n",
        found(
            {"uri": "path", "label": "label"}, ("path", "column_2", "label"), others=("column_2",)
        ),
    ),
    "RetinaNet's columns": (
        "a.csv",
        "1.jpg,3,4,8,9,cat\nimages/2.jpg,,,,,\n",
        found(
            {"uri": "path", **SIDES, "box_label": "box_label"},
            ("path", *SIDES, "box_label"),
        ),
    ),
    "RetinaNet's columns with numbered classes": (
        "a.csv",
        "1.jpg,3,4,8,9,1\nimages/2.jpg,30,4,38,9,1\n",
        found(
            {"uri": "path", **SIDES, "box_label": "box_label"},
            ("path", *SIDES, "box_label"),
        ),
    ),
    "a number and a box, without a header": (
        "a.csv",
        "1.jpg,1,3,4,8,9\nimages/2.jpg,1,30,4,38,9\n",
        found(
            {"uri": "path", "label": "label"},
            ("path", "label", "column_3", "column_4", "column_5", "column_6"),
            others=("column_3", "column_4", "column_5", "column_6"),
        ),
    ),
    "blank lines first": (
        "a.csv",
        "\n\n1.jpg, cat\n",
        found({"uri": "path", "label": "label"}, ("path", "label")),
    ),
    "ids of one ending": (
        "b/a.csv",
        "id,breed\n5,cat\n",
        found({"uri": "{id}.jpg", "label": "breed"}),
    ),
    "next to it": (
        "a.csv",
        "filename,label\n1.jpg,cat\n",
        found({"uri": "filename", "label": "label"}),
    ),
    "in a folder": (
        "a.csv",
        "path,class\nimages/2.jpg,cat\n",
        found({"uri": "path", "label": "class"}),
    ),
    "in a folder that is not named": (
        "a.csv",
        "Image,Species\n2.jpg,cat\n",
        found({"uri": "Image", "label": "Species"}, root="images"),
    ),
    "above it": (
        "images/a.csv",
        "file,tag\n1.jpg,cat\n",
        found({"uri": "file", "label": "tag"}, root=".."),
    ),
    "ids": ("a.csv", "id,breed\n2,cat\n", found({"uri": "images/{id}.jpg", "label": "breed"})),
    "ids of files in capitals": (
        "a.csv",
        "id_code,diagnosis\n3,0\n",
        found({"uri": "images/{id_code}.PNG", "label": "diagnosis"}),
    ),
    "deeper than was looked": (
        "a.csv",
        "path,tag\ndeep/x/y.jpg,a\n",
        found({"uri": "path", "label": "tag"}),
    ),
    "no class": ("a.csv", "path\n1.jpg\n", found({"uri": "path"})),
    "shapes are not a class": (
        "a.csv",
        """image,id,label\n1.jpg,7,"[{""x"": 1, ""rectanglelabels"": [""cat""]}]"\n""",
        found({"uri": "image"}, others=("id", "label")),
    ),
    "runs of pixels are not a class": (
        "a.csv",
        "ImageId,EncodedPixels\n1.jpg,1 3 10 5\n",
        found({"uri": "ImageId"}, others=("EncodedPixels",)),
    ),
    "the other column": (
        "a.csv",
        "path,cultivar\n1.jpg,x\n",
        found({"uri": "path", "label": "cultivar"}),
    ),
    "other columns": (
        "a.csv",
        "path,age,size\n1.jpg,3,4\n",
        found({"uri": "path"}, others=("age", "size")),
    ),
    "splits": (
        "a.csv",
        "path,label,Set\n1.jpg,cat,TRAIN\n",
        found(
            {"uri": "path", "split": "Set", "label": "label"},
            splits={
                "TRAIN": "train",
                "VAL": "validation",
                "VALID": "validation",
                "VALIDATION": "validation",
                "TEST": "test",
            },
        ),
    ),
    "a set that is no split": (
        "a.csv",
        "path,label,set\n1.jpg,cat,7\n",
        found({"uri": "path", "label": "label"}, others=("set",)),
    ),
    "tabs": ("a.tsv", "path\tlabel\n1.jpg\tcat\n", found({"uri": "path", "label": "label"})),
    "semicolons": (
        "a.csv",
        "path;class\n1.jpg;cat\n",
        found({"uri": "path", "label": "class"}, delimiter=";"),
    ),
    "semicolons, without a header": (
        "a.csv.gz",
        "1.jpg;cat\n",
        found({"uri": "path", "label": "label"}, ("path", "label"), delimiter=";"),
    ),
    "tabs in a CSV": (
        "a.csv",
        "path\tclass\n1.jpg\tcat, a\n",
        found({"uri": "path", "label": "class"}, delimiter="\t"),
    ),
    "semicolons among commas": (
        "a.csv",
        "1.jpg,cat;dog;mouse\n",
        found({"uri": "path", "label": "label"}, ("path", "label")),
    ),
    "whole paths": (
        "a.csv",
        "path,class\n/in/images/2.jpg,cat\n",
        found({"uri": "path", "label": "class"}),
    ),
    "whole paths deeper than was looked": (
        "b/a.csv",
        "path,tag\n/in/deep/x/y.jpg,a\n",
        found({"uri": "path", "label": "tag"}, root=".."),
    ),
    "whole paths in JSON": (
        "b/a.jsonl",
        '{"image": "/in/images/2.jpg", "label": 3}\n',
        found({"uri": "image", "label": "label"}, root=".."),
    ),
    "JSON": (
        "a.jsonl",
        '{"image": "1.jpg", "label": 3}\n',
        found({"uri": "image", "label": "label"}),
    ),
    "a long line of JSON": (
        "a.jsonl",
        '{"image": "1.jpg", "label": "cat", "text": "' + "x" * 999,
        found({"uri": "image", "label": "label"}),
    ),
    "images in the table": (
        "a.parquet",
        "image,label\n<bytes>,\n",
        found({"bytes": "image", "label": "label"}),
    ),
    "a row a box": (
        "a.csv",
        "filename,width,height,class,xmin,ymin,xmax,ymax\n1.jpg,4,4,cat,1,1,2,2\n",
        found(
            {"uri": "filename", **SIDES, "box_label": "class", "width": "width", "height": "height"}
        ),
    ),
    "a row a box, under other names": (
        "a.csv",
        "image_name,label_name,x1,y1,x2,y2\nimages/2.jpg,cat,1,1,2.5,2\nimages/2.jpg,,,,,\n",
        found(
            {
                "uri": "image_name",
                **dict(zip(SIDES, ("x1", "y1", "x2", "y2"), strict=True)),
                "box_label": "label_name",
            }
        ),
    ),
    "a row a box, as fractions": (
        "a.csv",
        "file,class,Left,Top,Right,Bottom\n1.jpg,cat,0.1,0,0.5,1\n",
        found(
            {
                "uri": "file",
                **dict(zip(SIDES, ("Left", "Top", "Right", "Bottom"), strict=True)),
                "box_label": "class",
            },
            boxes_unit="fraction",
        ),
    ),
    "numbers that are no box": (
        "a.csv",
        "file,class,x1,y1,x2,y2\n1.jpg,cat,5,5,4,6\n",
        found({"uri": "file", "label": "class"}, others=("x1", "y1", "x2", "y2")),
    ),
    "names that are no box": (
        "a.csv",
        "file,class,left,top,right,bottom\n1.jpg,cat,a,b,c,d\n",
        found({"uri": "file", "label": "class"}, others=("left", "top", "right", "bottom")),
    ),
    "two columns of images": (
        "a.parquet",
        "image,mask\n<bytes>,<bytes>\n",
        found({"bytes": "image"}, others=("mask",), images=("image", "mask")),
    ),
    "a row a box, without a header": (
        "a.csv",
        "images/2.jpg,1,1,2.5,2,cat\n",
        found({"uri": "path", **SIDES, "box_label": "box_label"}, ("path", *SIDES, "box_label")),
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_columns_are_known_by_their_names_and_the_first_row(name):
    path, text, expected = FOUND[name]
    sketch = replace(FolderSketch.of([*IMAGES, path], {path: text.encode()}), root="/in")
    assert find_columns(path, sketch) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "path,label\n",
        "path,label\nno.jpg,cat\n",
        "path,label\nhttp://x/1.jpg,cat\n",
        "path,label\n/elsewhere/1.jpg,cat\n",
        "a,b\n9.jpg,2\n",
        "a,a\n1,2\n",
        "[1]",
        "train,1.jpg,cat\ntest,images/2.jpg,dog\n",
    ],
)
def test_a_table_without_a_known_image_is_not_a_table_of_images(text):
    for path in ("a.csv", "a.jsonl"):
        assert find_columns(path, FolderSketch.of([*IMAGES, path], {path: text.encode()})) is None


@given(
    st.sampled_from(["a.csv", "a.txt", "a.tsv", "a.jsonl", "a.parquet"]), st.binary(max_size=200)
)
def test_whatever_a_file_begins_with_is_a_table_or_none(path, head):
    known = find_columns(path, FolderSketch.of([path, *IMAGES], {path: head}))
    assert known is None or set(known.columns) & {"uri", "bytes"}


GCS = "gs://b/a.jpg"


def test_vertex_ai():
    use = {"dataItemResourceLabels": {ML_USE: "test", "x": "y"}}
    one = {
        "classificationAnnotation": {"displayName": "daisy", "annotationResourceLabels": {"a": "b"}}
    }
    many = {"classificationAnnotations": [{"displayName": "a"}, {"displayName": "b"}]}
    box = {"displayName": "cat", "xMin": 0, "yMin": 0.25, "xMax": 0.5, "yMax": "x"}
    assert read_vertex({"imageGcsUri": GCS, **one, **use}) == ManifestEntry(
        uri=GCS, label="daisy", split="test"
    )
    assert read_vertex({"imageGcsUri": GCS, **many}) == ManifestEntry(uri=GCS, labels=["a", "b"])
    assert read_vertex({"imageGcsUri": GCS}) == ManifestEntry(uri=GCS)
    assert read_vertex(
        {"imageGcsUri": GCS, "boundingBoxAnnotations": [{**box, "yMax": 1}]}
    ) == ManifestEntry(uri=GCS, boxes=[[0.0, 0.25, 0.5, 1.0]], box_labels=["cat"])
    with pytest.raises(
        Rejected, match=r"column 'boundingBoxAnnotations.yMax': 'x' \(str\) is not a finite number"
    ):
        read_vertex({"imageGcsUri": GCS, "boundingBoxAnnotations": [box]})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"imageGcsUri": None}, "column 'imageGcsUri' is empty"),
        (
            {"dataItemResourceLabels": "test"},
            "column 'dataItemResourceLabels': 'test' (str) is not a JSON object",
        ),
        (
            {"classificationAnnotation": {}},
            "column 'classificationAnnotation.displayName' is empty",
        ),
        (
            {"classificationAnnotation": "a"},
            "column 'classificationAnnotation': 'a' (str) is not a JSON object",
        ),
        (
            {"classificationAnnotations": 7},
            "column 'classificationAnnotations': 7 (int) is not a list",
        ),
        (
            {"boundingBoxAnnotations": [{"displayName": "a"}]},
            "column 'boundingBoxAnnotations.xMin' is empty",
        ),
    ],
)
def test_lines_that_vertex_ai_would_not_take(more, message):
    with pytest.raises(Rejected) as raised:
        read_vertex({"imageGcsUri": GCS, **more})
    assert raised.value.detail == message


@pytest.mark.parametrize(
    ("row", "entry"),
    [
        ("TRAIN,p,daisy", ManifestEntry(uri="p", split="TRAIN", label="daisy", labels=["daisy"])),
        ("p,daisy", ManifestEntry(uri="p", label="daisy", labels=["daisy"])),
        (",p,daisy", ManifestEntry(uri="p", label="daisy", labels=["daisy"])),
        (
            "training, p ,daisy,,",
            ManifestEntry(uri="p", split="TRAINING", label="daisy", labels=["daisy"]),
        ),
        ("UNASSIGNED,p,a,b,a", ManifestEntry(uri="p", split="UNASSIGNED", labels=["a", "b"])),
        (
            "p,a,b,c,d,e,f,g,h,i",
            ManifestEntry(uri="p", labels=["a", "b", "c", "d", "e", "f", "g", "h", "i"]),
        ),
        (
            "TEST,p,cat,0.1,0.2,,,0.3,0.4,,",
            ManifestEntry(uri="p", split="TEST", boxes=[[0.1, 0.2, 0.3, 0.4]], box_labels=["cat"]),
        ),
        (
            "p,cat,.1,.2,.3,.2,.3,.4,.1,.4",
            ManifestEntry(uri="p", boxes=[[0.1, 0.2, 0.3, 0.4]], box_labels=["cat"]),
        ),
        ("TEST,p,,,,,,,,,", ManifestEntry(uri="p", split="TEST", boxes=[])),
    ],
)
def test_automl(row, entry):
    assert read_automl(row.split(",")) == entry


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("TRAIN", "it does not contain a path"),
        ("TRAIN,,daisy", "it does not contain a path"),
        ("TRAIN,p", "there is no label in it"),
        ("p,cat,0.1,,,,,,,", "its box needs a label and two opposite corners"),
        ("p,,0.1,0.2,,,0.3,0.4,,", "its box needs a label and two opposite corners"),
    ],
)
def test_rows_that_automl_would_not_take(row, message):
    with pytest.raises(Rejected, match=rf"^\w+: {message}$"):
        read_automl(row.split(","))


@pytest.mark.parametrize(
    ("text", "boxes"),
    [
        ("path,class,x,y,w,h\n1.jpg,cat,1,2,3,4\n", ("x", "y", "w", "h")),
        ("path,class,X1,Y1,W,H\n1.jpg,cat,1,2,3,4\n", ("X1", "Y1", "W", "H")),
        ("path,class,x1,y1,x2,y2\n1.jpg,cat,5,5,4,6\n", ("x1", "y1", "x2", "y2")),
        ('path,class,bbox\n1.jpg,cat,"[1, 2, 3, 4]"\n', ("bbox",)),
        ("path,class,bounding_box\n1.jpg,cat,1 2 3 4\n", ("bounding_box",)),
        ("path,class,boxes\n1.jpg,cat,3\n", ()),
        ("path,class,x,y\n1.jpg,cat,1,2\n", ()),
        ("path,class,width,height\n1.jpg,cat,640,480\n", ()),
        ("path,class,left,top,right,bottom\n1.jpg,cat,a,b,c,d\n", ()),
        ("path,class,xmin,ymin,xmax,ymax\n1.jpg,cat,1,1,2,2\n", ()),
    ],
)
def test_columns_that_may_hold_boxes_are_found(text, boxes):
    columns = find_columns("a.csv", FolderSketch.of([*IMAGES, "a.csv"], {"a.csv": text.encode()}))
    assert columns
    assert columns.boxes == boxes
