"""Key points of objects, from COCO's annotations to records."""

import json

import numpy as np
import pytest
from stored_records import read_records

import recordmill
from recordmill.reading.dataset import open_dataset
from recordmill.reading.example import ParsedExample
from recordmill.reading.inspect_dataset import summarize_dataset
from recordmill.reading.verify_dataset import verify_dataset
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

CATEGORIES = [{"id": 1, "name": "person", "keypoints": ["nose", "knee"], "skeleton": [[1, 2]]}]


@pytest.fixture
def people(tmp_path):
    """A collection in which an image has two people, and another none."""
    root = tmp_path / "people"
    for folder in ("annotations", "train"):
        (root / folder).mkdir(parents=True)
    for name in "ab":
        (root / "train" / f"{name}.jpg").write_bytes(encode_picture(name, (40, 20)))
    images = [
        {"id": number, "file_name": f"{name}.jpg", "width": 40, "height": 20}
        for number, name in enumerate("ab")
    ]
    person = {"category_id": 1, "image_id": 0, "bbox": [0, 0, 40, 20], "area": 9}
    annotations = [
        {**person, "id": 1, "keypoints": [10, 5, 2, 0, 0, 0], "num_keypoints": 1},
        {**person, "id": 2, "keypoints": [20, 10, 1, 41, 5, 2], "num_keypoints": 2},
    ]
    content = {"images": images, "annotations": annotations, "categories": CATEGORIES}
    place = root / "annotations" / "instances_train.json"
    place.write_text(json.dumps(content), encoding="utf-8")
    return root


def test_records_have_the_key_points_of_each_box(convert, people):
    import tensorflow as tf

    done = convert(people)
    assert done.code == 0, done.stderr
    kinds = {"x": tf.float32, "y": tf.float32, "visibility": tf.int64, "num": tf.int64}
    features = {
        f"image/object/keypoint/{name}": tf.io.VarLenFeature(kind)
        for name, kind in {**kinds, "text": tf.string}.items()
    }
    (path,) = done.shards()
    parsed = [
        {
            key.rpartition("/")[2]: value.values.numpy().tolist()
            for key, value in tf.io.parse_single_example(bytes(record), features).items()
        }
        for record in read_records(path)
    ]
    assert sorted(parsed, key=lambda each: len(each["x"])) == [
        {"x": [], "y": [], "visibility": [], "text": [], "num": []},
        {
            "x": [0.25, 0.0, 0.5, 0.0],
            "y": [0.25, 0.0, 0.5, 0.0],
            "visibility": [2, 0, 1, 0],
            "text": [b"nose", b"knee"] * 2,
            "num": [1, 1],
        },
    ]
    entry = done.marker["annotations"]["keypoints"]
    assert (entry["listed"], entry["written"], entry["dropped"]) == (3, 2, {"outside": 1})
    assert done.marker["counted"] == "boxes"
    assert done.marker["skeleton"] == {"nose": ["knee"], "knee": []}
    assert verify_dataset(done.output).findings == ()


def test_all_records_have_the_points_of_all_files(convert, people):
    """As where files of different tools name other points, or the same in another order."""
    dog = {"id": 2, "name": "dog", "keypoints": ["tail", "nose"], "skeleton": [[1, 2]]}
    points = {"keypoints": [30, 5, 2, 10, 5, 1], "num_keypoints": 2}
    for name, given in (("dogs", points), ("others", {})):
        (people / name).mkdir()
        (people / name / f"{name}.jpg").write_bytes(encode_picture(name, (40, 20)))
        box = {"id": 1, "image_id": 9, "category_id": 2, "bbox": [0, 0, 40, 20], "area": 9}
        content = {
            "images": [{"id": 9, "file_name": f"{name}.jpg", "width": 40, "height": 20}],
            "annotations": [box | given],
            "categories": [dog],
        }
        place = people / "annotations" / f"instances_{name}.json"
        place.write_text(json.dumps(content), encoding="utf-8")
    settings = {
        "source.kind": "coco",
        "convention": "tf_object_detection",
        "splits.from_source": {"train": "train", "dogs": "train", "others": "train"},
    }
    done = convert(people, settings=settings)
    assert done.code == 0, done.stderr
    keys = ("text", "visibility", "num")
    found = {}
    for path in done.shards():
        for record in read_records(path):
            example = ParsedExample(bytes(record))
            (name,) = example.values("image/filename")
            values = (example.values(f"image/object/keypoint/{key}") for key in keys)
            found[name.decode()] = [[*each] for each in values]
    names = [b"knee", b"nose", b"tail"]
    assert found["a.jpg"] == [names * 2, [0, 2, 0, 0, 1, 0], [1, 1]]
    assert found["dogs.jpg"] == [names, [0, 1, 2], [2]]
    assert found["others.jpg"] == [names, [0, 0, 0], [0]]
    assert done.marker["skeleton"] == {"knee": [], "nose": ["knee"], "tail": ["nose"]}
    assert verify_dataset(done.output).findings == ()


@pytest.mark.parametrize("convention", ["tf_object_detection", "tfds"])
def test_loading_gives_key_points_as_arrays(convert, people, convention):
    done = convert(people, settings={"convention": convention})
    opened = recordmill.open(done.output)["train"]
    loaded = recordmill.load(done.output, "train")
    for found in ([each["keypoints"] for each in opened], [each["keypoints"] for each in loaded]):
        empty, points = sorted(map(np.asarray, found), key=len)
        assert empty.shape[0] == 0
        assert points.dtype == np.float32
        expected = [[[0.25, 0.25, 2], [0, 0, 0]], [[0.5, 0.5, 1], [0, 0, 0]]]
        assert points.tolist() == expected
    assert "keypoints" not in recordmill.open(done.output, annotations=[])["train"][0]
    batches = recordmill.load(done.output, "train", batch_size=2, annotations="keypoints")
    (batch,) = batches
    assert batch["keypoints"].shape[0] == 2


def test_key_points_without_a_place_are_noted(convert, people):
    done = convert(people, settings={"convention": "default"})
    assert (
        "3 key points are in no Example: the convention (slim's keys plus class text, file name "
        "and digest) stores no key points, tf_object_detection and tfds do"
    ) in done.line["notes"]
    assert "skeleton" not in done.marker


@pytest.mark.parametrize(("placed", "marked"), [(True, 0), (False, 5)])
def test_the_card_and_inspect_say_where_no_object_has_key_points(convert, people, placed, marked):
    place = people / "annotations" / "instances_train.json"
    if not placed:
        content = json.loads(place.read_text(encoding="utf-8"))
        for each in content["annotations"]:
            del each["keypoints"], each["num_keypoints"]
        content["categories"] = [{"id": 1, "name": "person"}]
        place.write_text(json.dumps(content), encoding="utf-8")
    done = convert(people)
    assert done.code == 0, done.stderr
    lines = (done.output / "README.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| `image/object/keypoint/")]
    code = [line for line in lines if line.startswith('    "image/object/keypoint/')]
    found = summarize_dataset(open_dataset(str(done.output))).features
    meanings = [each.meaning for key, each in found.items() if "keypoint" in key]
    for said in (rows, code, meanings):
        assert len(said) == 5
        assert sum("(none in this dataset)" in each for each in said) == marked
