"""Landmarks in the columns of a table, or in Label Studio's JSON, to records."""

import json

import numpy as np
import pytest

import recordmill
from recordmill.reading.verify_dataset import verify_dataset
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

HEADER = "file,nose_x,nose_y,tail_x,tail_y"
POINTS = {"x": "{name}_x", "y": "{name}_y"}


@pytest.fixture
def faces(tmp_path):
    def write(*rows, header=HEADER):
        root = tmp_path / "faces"
        root.mkdir(exist_ok=True)
        for name in "abc":
            (root / f"{name}.jpg").write_bytes(encode_picture(name, (40, 20)))
        (root / "points.csv").write_text("\n".join((header, *rows, "")))
        return root / "points.csv"

    return write


def settings(columns=(), **more):
    source = {"kind": "manifest", "columns": {"uri": "file", **dict(columns)}}
    given = {"convention": "tf_object_detection", "splits": {"fractions": {"train": 1}}}
    return {"source": {**source, "keypoints": POINTS}, **given, **more}


def objects_of(done):
    """The boxes, classes and key points of each image."""
    found = {}
    for each in recordmill.open(done.output)["train"]:
        sides = [each[f"image/object/bbox/{side}"] for side in ("xmin", "ymin", "xmax", "ymax")]
        name = each["image/filename"].decode()[0]
        classes = [text.decode() for text in each["image/object/class/text"]]
        points = np.round(each["keypoints"], 4).tolist()
        found[name] = np.transpose(sides).round(4).tolist(), classes, points
    return found


def test_the_object_of_landmarks_is_the_whole_image(convert, faces):
    done = convert(faces("a.jpg,10,5,20,10", "b.jpg,1,2,,", "c.jpg,,,,"), settings=settings())
    assert done.code == 0, done.stderr
    whole, classes = [[0, 0, 1, 1]], ["object"]
    found = objects_of(done)
    assert found["a"] == (whole, classes, [[[0.25, 0.25, 2], [0.5, 0.5, 2]]])
    assert found["b"] == (
        whole,
        classes,
        [[[pytest.approx(0.025), pytest.approx(0.1), 2], [0, 0, 0]]],
    )
    assert found["c"] == (whole, classes, [[[0, 0, 0], [0, 0, 0]]])
    entry = done.marker["annotations"]["keypoints"]
    assert (entry["listed"], entry["written"]) == (3, 3)
    assert verify_dataset(done.output).findings == ()


def test_landmarks_move_with_the_pixels(convert, faces):
    images = {"resize": {"exact": [20, 20]}}
    done = convert(faces("a.jpg,20,10,1,1"), settings=settings(images=images))
    assert done.code == 0, done.stderr
    assert objects_of(done)["a"][2] == [[[0.5, 0.5, 2], [0, 0, 0]]]
    entry = done.marker["annotations"]["keypoints"]
    assert entry["dropped"] == {"cropped_away": 1}


def test_an_object_has_the_class_of_its_image(convert, faces):
    table = faces("a.jpg,10,5,20,10,dog", header=f"{HEADER},kind")
    done = convert(table, settings=settings({"label": "kind"}))
    assert objects_of(done)["a"][:2] == ([[0, 0, 1, 1]], ["dog"])


def test_landmarks_belong_to_the_box_of_their_row(convert, faces):
    rows = ["a.jpg,10,5,,,cat,0,0,20,10", "a.jpg,1,1,30,15,dog,20,10,40,20", "b.jpg,,,,,,,,,"]
    sides = {side: side for side in ("xmin", "ymin", "xmax", "ymax")}
    table = faces(*rows, header=f"{HEADER},kind,{','.join(sides)}")
    done = convert(table, settings=settings({"box_label": "kind", **sides}))
    assert done.code == 0, done.stderr
    found = objects_of(done)
    assert found["a"] == (
        [[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]],
        ["cat", "dog"],
        [
            [[0.25, 0.25, 2], [0, 0, 0]],
            [[pytest.approx(0.025), pytest.approx(0.05), 2], [0.75, 0.75, 2]],
        ],
    )
    assert found["b"] == ([], [], [])


def test_fractions_are_read_as_such(convert, faces):
    source = settings()["source"] | {"boxes_unit": "fraction"}
    done = convert(faces("a.jpg,0.25,0.5,1,1"), settings=settings(source=source))
    assert objects_of(done)["a"][2] == [[[0.25, 0.5, 2], [1, 1, 2]]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"uri": "file", "objects": "o"}, "source.keypoints needs one object in each row"),
        ({"uri": "file"}, "source.keypoints.y: the table has no column 'nose_q', only 'file'"),
    ],
)
def test_what_cannot_be_key_points_is_refused(convert, faces, columns, message):
    points = POINTS if "objects" in columns else {**POINTS, "y": "{name}_q"}
    source = {"kind": "manifest", "columns": columns, "keypoints": points}
    done = convert(faces("a.jpg,1,1,1,1"), settings={**settings(), "source": source})
    assert done.code != 0
    assert message in done.stderr


def test_key_points_of_label_studio_outside_all_regions_are_landmarks(convert, tmp_path):
    root = tmp_path / "project"
    (root / "images").mkdir(parents=True)

    def point(name, x, y):
        value = {"x": x, "y": y, "width": 1, "keypointlabels": [name]}
        return {"value": value, "original_width": 40, "original_height": 20}

    results = {
        "a": [point("nose", 25, 50), point("tail", 50, 75)],
        "b": [point("tail", 1, 1), point("tail", 75, 100), point("nose", 101, 0)],
        "c": [],
    }
    tasks = []
    for name, result in results.items():
        (root / "images" / f"{name}.jpg").write_bytes(encode_picture(name, (40, 20)))
        tasks.append({"data": {"image": f"{name}.jpg"}, "annotations": [{"result": result}]})
    (root / "tasks.json").write_text(json.dumps(tasks))
    done = convert(root, settings={**settings(), "source": {"kind": "label_studio"}})
    assert done.code == 0, done.stderr
    found, whole = objects_of(done), [[0, 0, 1, 1]]
    assert found["a"] == (whole, ["object"], [[[0.25, 0.5, 2], [0.5, 0.75, 2]]])
    assert found["b"] == (whole, ["object"], [[[0, 0, 0], [0.75, 1, 2]]])
    assert found["c"] == ([], [], [])
    entry = done.marker["annotations"]["keypoints"]
    assert (entry["listed"], entry["written"]) == (5, 3)
    assert entry["dropped_classes"] == {"outside": {"object": 1}, "repeated": {"object": 1}}
    assert verify_dataset(done.output).findings == ()
