"""Attributes of objects, from annotations to records."""

import json

import pytest
from stored_records import read_records

import recordmill
from recordmill.reading.example import ParsedExample
from recordmill.reading.verify_dataset import verify_dataset
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

RED = {"color": "red", "occluded": True, "rotation": 0.0}
BLUE = {"color": "blue", "occluded": False, "wheels": 4}


def write_cars(root, **attributes):
    """A collection in COCO's format: the attributes of the objects of each image, by its name."""
    for folder in ("annotations", "train"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    images, annotations = [], []
    for number, (name, objects) in enumerate(attributes.items()):
        (root / "train" / f"{name}.jpg").write_bytes(encode_picture(name, (40, 20)))
        images.append({"id": number, "file_name": f"{name}.jpg", "width": 40, "height": 20})
        for own in objects:
            car = {"category_id": 1, "image_id": number, "bbox": [0, 0, 40, 20], "area": 9}
            annotations.append({**car, "id": len(annotations) + 1, **own})
    content = {
        "images": images,
        "annotations": annotations,
        "categories": [{"id": 1, "name": "car"}],
    }
    place = root / "annotations" / "instances_train.json"
    place.write_text(json.dumps(content), encoding="utf-8")
    return root


@pytest.fixture
def cars(tmp_path):
    objects = {"a": [{"attributes": RED}, {"attributes": BLUE}], "b": [{}], "c": []}
    return write_cars(tmp_path / "cars", **objects)


def values_of(done, *keys):
    """The values of features by the name of the image; None for features that are not there."""
    found = {}
    for path in done.shards():
        for record in read_records(path):
            example = ParsedExample(bytes(record))
            (name,) = example.values("image/filename")
            values = (example.values(key) for key in keys)
            found[name.decode()[0]] = [None if each is None else [*each] for each in values]
    return found


def test_records_have_a_number_for_each_box_and_attribute(convert, cars):
    done = convert(cars)
    assert done.code == 0, done.stderr
    keys = [f"image/object/{each}" for each in ("occluded", "attribute/color", "attribute/wheels")]
    assert values_of(done, *keys) == {
        "a": [[1, 0], [1, 0], [-1, 4]],
        "b": [[-1], [-1], [-1]],
        "c": [[], [], []],
    }
    assert done.marker["attributes"] == {
        "color": {"blue": 0, "red": 1},
        "occluded": {},
        "wheels": {},
    }
    feature = done.marker["features"]["image/object/attribute/color"]
    assert feature == {
        "kind": "int64",
        "shape": [None],
        "field": "attribute:color",
        "meaning": "the attribute color of the boxes: 0 for blue, 1 for red",
    }
    assert "image/object/difficult" not in done.marker["features"]
    entry = done.marker["annotations"]["attributes"]
    assert (entry["listed"], entry["written"], entry["dropped"]) == (5, 5, {})
    assert verify_dataset(done.output).findings == ()


def test_loading_gives_attributes_and_what_their_numbers_mean(convert, cars):
    done = convert(cars)
    opened = recordmill.open(done.output)["train"]
    found = [each["image/object/attribute/color"].tolist() for each in opened]
    assert sorted(found) == [[], [-1], [1, 0]]
    assert recordmill.describe_split(done.output, "train").attributes["color"] == {
        "blue": 0,
        "red": 1,
    }
    loaded = recordmill.load(done.output, "train")
    found = [each["image/object/attribute/color"].numpy().tolist() for each in loaded]
    assert sorted(found) == [[], [-1], [1, 0]]


def test_attributes_without_a_place_are_noted(convert, cars):
    done = convert(cars, settings={"convention": "tfds"})
    assert (
        "5 attributes are in no Example: the convention (TensorFlow Datasets) stores no "
        "attributes, tf_object_detection does"
    ) in done.line["notes"]
    assert "attributes" not in done.marker


def test_attributes_of_free_text_alone_are_noted_once(convert, tmp_path):
    objects = [{"attributes": {"remark": "word " * 50}}]
    done = convert(write_cars(tmp_path / "cars", a=objects))
    assert [note for note in done.line["notes"] if "attribute" in note] == [
        "not stored: attributes of free text, remark (1): a text has more than 200 characters, or "
        "more than 1,000 differ"
    ]


def own(**fields):
    features = {"image/encoded": {"field": "encoded", "type": "bytes"}}
    for key, field in fields.items():
        features[key] = {"field": field, "type": "int64", "shape": [None]}
    return {"convention": {"features": features}}


def test_a_mapping_may_store_single_attributes(convert, cars):
    settings = own(shade="attribute:color", labels="box_labels")
    done = convert(cars, settings=settings)
    assert done.code == 0, done.stderr
    (path,) = done.shards()
    shades = [[*ParsedExample(bytes(each)).values("shade")] for each in read_records(path)]
    assert sorted(shades) == [[], [-1], [1, 0]]
    where = "the convention (the user's own) has no place for them"
    assert f"not stored: attributes occluded (2), wheels (1): {where}" in done.line["notes"]
    entry = done.marker["annotations"]["attributes"]
    assert (entry["listed"], entry["written"], entry["dropped"]) == (5, 2, {"not_stored": 3})


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (
            {"shade": "attribute:shade"},
            "convention.features.shade stores the attribute 'shade' of objects, and no object has "
            "it, only color, occluded, wheels: correct its field",
        ),
        (
            {"shade": "attribute:*"},
            "convention.features.shade stores every attribute, each under a key of its own: put "
            "one * into 'shade', such as shade/*",
        ),
    ],
)
def test_a_mapping_that_fits_no_attribute_is_refused(convert, cars, features, message):
    done = convert(cars, settings=own(**features))
    assert done.code != 0
    assert message in done.stderr.replace("\n", " ")


def test_free_text_is_noted_and_counted(convert, tmp_path):
    objects = {"a": [{"attributes": {"plate": "x" * 201, "color": "red", "tags": ["a", "b"]}}]}
    done = convert(write_cars(tmp_path / "cars", **objects))
    assert done.code == 0, done.stderr
    assert done.line["notes"][-2:] == [
        "not stored: attributes of free text, plate (1): a text has more than 200 characters, or "
        "more than 1,000 differ",
        "not stored: attributes with several values (1)",
    ]
    entry = done.marker["annotations"]["attributes"]
    assert (entry["listed"], entry["written"], entry["dropped"]) == (2, 1, {"not_stored": 1})
    assert done.marker["attributes"] == {"color": {"red": 0}}


def test_an_update_after_a_new_word_equals_a_rebuild(convert, cars, tmp_path):
    convert(cars, output=tmp_path / "dataset")
    green = {"color": "a new word", "occluded": False, "wheels": 4}
    objects = {"a": [{"attributes": RED}, {"attributes": green}], "b": [{}], "c": []}
    write_cars(cars, **objects)
    updated = convert(cars, "--update", output=tmp_path / "dataset")
    assert updated.code == 0, updated.stderr
    assert updated.marker["run"]["images_reused"] == 3
    rebuilt = convert(cars, output=tmp_path / "again")
    assert updated.line["plan_id"] == rebuilt.line["plan_id"]
    key = "image/object/attribute/color"
    expected = {"a": [[1, 0]], "b": [[-1]], "c": [[]]}
    assert values_of(updated, key) == values_of(rebuilt, key) == expected
    files = [[path.read_bytes() for path in done.shards()] for done in (updated, rebuilt)]
    assert files[0] == files[1]


def test_flags_next_to_a_box_are_attributes(convert, tmp_path):
    objects = {"a": [{"occluded": 1, "truncated": 0}, {"difficult": True}]}
    done = convert(write_cars(tmp_path / "cars", **objects))
    keys = [f"image/object/{each}" for each in ("occluded", "truncated", "difficult")]
    assert values_of(done, *keys) == {"a": [[1, -1], [0, -1], [-1, 1]]}
