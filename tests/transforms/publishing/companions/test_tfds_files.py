import json
from dataclasses import replace

import pytest
from make_settings import make_settings

from recordmill.schemas.dataset.totals import ImageTotals
from recordmill.schemas.features import Feature
from recordmill.schemas.settings.dataset import ExampleLayout
from recordmill.schemas.settings.images import ImageSettings
from recordmill.transforms.publishing.companions.tfds_files import (
    describe_tfds,
    why_not_tfds,
)

PACKAGE = "tensorflow_datasets.core.features"


def test_a_dataset_is_its_splits_its_features_and_its_class_names(stage, say):
    files = say(describe_tfds, stage())
    assert set(files) == {"dataset_info.json", "features.json", "image.class.label.labels.txt"}
    assert json.loads(files["dataset_info.json"]) == {
        "name": "pets",
        "version": "1.0.0",
        "description": "7 images, plan 0123456789abcdef. README.md says more.",
        "fileFormat": "tfrecord",
        "splits": [
            {
                "name": "train",
                "shardLengths": ["3", "2"],
                "numBytes": "505",
                "filepathTemplate": "{SPLIT}-{SHARD_X_OF_Y}.tfrecord",
            },
            {
                "name": "test",
                "shardLengths": ["2"],
                "numBytes": "201",
                "filepathTemplate": "{SPLIT}-{SHARD_X_OF_Y}.tfrecord",
            },
        ],
        "supervisedKeys": {
            "tuple": {
                "items": [{"featureKey": "image/encoded"}, {"featureKey": "image/class/label"}]
            }
        },
    }
    features = json.loads(files["features.json"])
    assert features["pythonClassName"] == f"{PACKAGE}.features_dict.FeaturesDict"
    kinds = {
        key: each["pythonClassName"] for key, each in features["featuresDict"]["features"].items()
    }
    text, number = f"{PACKAGE}.text_feature.Text", f"{PACKAGE}.scalar.Scalar"
    assert kinds == {
        "image/encoded": f"{PACKAGE}.image_feature.Image",
        "image/format": text,
        "image/height": number,
        "image/width": number,
        "image/class/label": f"{PACKAGE}.class_label_feature.ClassLabel",
        "image/class/text": text,
        "image/filename": text,
        "image/key/sha256": text,
    }
    assert features["featuresDict"]["features"]["image/class/label"]["classLabel"] == {
        "numClasses": "3"
    }
    assert files["image.class.label.labels.txt"] == b"cat\ndog\nemu\n"


def test_raw_pixels_are_bytes_to_tfds(stage, say):
    files = say(describe_tfds, stage(make_settings(name="pets", images=ImageSettings(store="raw"))))
    features = json.loads(files["features.json"])["featuresDict"]["features"]
    assert features["image/encoded"]["pythonClassName"] == f"{PACKAGE}.text_feature.Text"


@pytest.mark.parametrize(
    ("sizes", "channels", "shape"),
    [
        (((8, 6),), (3,), ["6", "8", "3"]),
        (((8, 6),), (1,), ["6", "8", "1"]),
        (((8, 6), (6, 8)), (3,), None),
        (((8, 6),), (1, 3), None),
    ],
)
def test_raw_pixels_of_one_shape_are_decoded(stage, say, sizes, channels, shape):
    dataset = stage(make_settings(name="pets", images=ImageSettings(store="raw")))
    found = ImageTotals(sizes=sizes, channels=channels)
    features = json.loads(say(describe_tfds, replace(dataset, images=found))["features.json"])
    tensor = features["featuresDict"]["features"]["image/encoded"].get("tensor")
    expected = {"shape": {"dimensions": shape}, "dtype": "uint8", "encoding": "bytes"}
    assert tensor == (expected if shape else None)


def test_where_an_image_has_no_label_tfds_reads_the_rest(stage, say):
    files = say(describe_tfds, stage(unlabeled=True))
    assert set(files) == {"dataset_info.json", "features.json"}
    assert "supervisedKeys" not in json.loads(files["dataset_info.json"])
    keys = set(json.loads(files["features.json"])["featuresDict"]["features"])
    assert keys == {
        "image/encoded",
        "image/format",
        "image/height",
        "image/width",
        "image/filename",
        "image/key/sha256",
    }


def test_a_feature_that_an_example_lacks_is_not_declared(stage, say):
    dataset = stage()
    keys = [feature.key for feature in dataset.sure_features]
    lacking = replace(
        dataset,
        reports=[replace(dataset.reports[0], missing={"image/width": 1}), *dataset.reports[1:]],
    )
    features = json.loads(say(describe_tfds, lacking)["features.json"])["featuresDict"]["features"]
    assert sorted(features) == sorted({*keys} - {"image/width"})
    nothing = replace(
        dataset, reports=[replace(dataset.reports[0], missing=dict.fromkeys(keys, 1))]
    )
    assert say(describe_tfds, nothing) == {}
    assert why_not_tfds(nothing) == "each feature is missing somewhere, and it has no optional ones"


def test_what_tfds_cannot_read_has_no_files_and_a_reason(stage, say):
    counted = stage(make_settings(name="pets", convention="image_tfrecord_builder"))
    assert say(describe_tfds, counted) == {}
    assert why_not_tfds(counted) == "its files say `training` for the split `train`"
    assert why_not_tfds(stage()) is None


def test_labels_beyond_names_are_integers(stage, say):
    files = say(describe_tfds, stage(labels={"cat": -1, "dog": 1, "emu": 2}))
    assert set(files) == {"dataset_info.json", "features.json"}
    label = json.loads(files["features.json"])["featuresDict"]["features"]["image/class/label"]
    assert label["pythonClassName"] == f"{PACKAGE}.scalar.Scalar"


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a-b.c", "a_b_c"), ("9lives", "dataset_9lives"), ("", "dataset"), ("_x", "dataset__x")],
)
def test_a_name_is_in_tfds_letters(stage, say, name, shown):
    settings = make_settings() if not name or name == "_x" else make_settings(name=name)
    dataset = stage(settings)
    dataset = replace(dataset, marker=replace(dataset.marker, name=name))
    assert json.loads(say(describe_tfds, dataset)["dataset_info.json"])["name"] == shown


OF_OBJECTS = (
    Feature("image", "bytes", "encoded", "the image"),
    Feature("mask", "bytes", "segmentation", "ids of pixels"),
    Feature("points", "float", "keypoints", "points", many=True),
)


@pytest.mark.parametrize("names_pixel_ids", [None, True])
def test_ids_in_pixels_have_the_names_of_the_dataset_if_the_marker_says_so(
    stage, say, monkeypatch, names_pixel_ids
):
    monkeypatch.setattr(ExampleLayout, "features", OF_OBJECTS)
    dataset = stage()
    dataset = replace(dataset, marker=replace(dataset.marker, names_pixel_ids=names_pixel_ids))
    files = say(describe_tfds, dataset)
    described = json.loads(files["features.json"])["featuresDict"]["features"]["mask"]
    assert described["pythonClassName"] == f"{PACKAGE}.labeled_image.LabeledImage"
    assert described["image"] == {
        "shape": {"dimensions": ["-1", "-1", "1"]},
        "dtype": "uint8",
        "encodingFormat": "png",
        "useColormap": True,
        "label": {"numClasses": "3"} if names_pixel_ids else {},
    }
    names = b"cat\ndog\nemu\n" if names_pixel_ids else None
    assert files.get("mask.labels.txt") == names


@pytest.mark.parametrize(("parts", "shape"), [((), None), (("nose", "tail"), ["2", "3"])])
def test_points_have_a_shape_if_all_images_have_the_same(stage, say, monkeypatch, parts, shape):
    monkeypatch.setattr(ExampleLayout, "features", OF_OBJECTS)
    dataset = replace(stage(), parts={"keypoints": parts})
    features = json.loads(say(describe_tfds, dataset)["features.json"])["featuresDict"]["features"]
    inner = features["points"]["sequence"]["feature"]
    assert inner["tensor"]["shape"].get("dimensions") == shape
    assert inner.get("description") == (shape and "x, y, visibility of nose, tail")


def test_lists_and_floats_are_sequences(stage, say, monkeypatch):
    features = (
        Feature("image", "bytes", "encoded", "the image"),
        Feature("xmin", "float", "xmin", "left", many=True),
        Feature("label", "int64", "object_label", "classes", many=True),
        Feature("names", "bytes", "object_text", "names", many=True),
        Feature("area", "float", "area", "an area"),
        Feature("ids", "int64", "ids", "ids", many=True),
        Feature("boxes", "float", "bbox", "boxes", many=True),
    )
    monkeypatch.setattr(ExampleLayout, "features", features)
    files = say(describe_tfds, stage())
    assert files["label.labels.txt"] == b"cat\ndog\nemu\n"
    described = json.loads(files["features.json"])["featuresDict"]["features"]
    inner = {
        key: each["sequence"]["feature"] for key, each in described.items() if "sequence" in each
    }
    assert {key: each["pythonClassName"].rpartition(".")[2] for key, each in inner.items()} == {
        "xmin": "Tensor",
        "label": "ClassLabel",
        "names": "Text",
        "ids": "Tensor",
        "boxes": "BBoxFeature",
    }
    assert inner["boxes"]["boundingBox"] == {
        "shape": {"dimensions": ["4"]},
        "dtype": "float32",
        "bboxFormat": "REL_YXYX",
    }
    assert inner["xmin"]["tensor"] == {"shape": {}, "dtype": "float32", "encoding": "none"}
    assert described["area"]["tensor"]["dtype"] == "float32"
    assert "supervisedKeys" not in json.loads(files["dataset_info.json"])  # no one label
