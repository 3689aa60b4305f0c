"""Masks, key points and semantic masks, as TensorFlow Datasets gives them."""

import numpy as np
import pytest

from tests.support.drawn_objects import POINTS, draw_ids, draw_objects, write_ids, write_objects

REASON = "needs an environment of its own: make test-interop"
tfds = pytest.importorskip("tensorflow_datasets", reason=REASON)

OF_OBJECTS = ("--config=configs/coco.yaml", "--set=masks=png")
OF_IDS = (
    "--set=source={kind: manifest, columns: {uri: image, mask: mask}}",
    "--set=splits={fractions: {train: 1.0}}",
)


def read(dataset):
    """The features of the dataset and the examples of all splits."""
    builder = tfds.builder_from_directory(str(dataset.folder))
    splits = map(builder.as_dataset, dataset.marker["splits"])
    return builder.info.features, [each for split in splits for each in tfds.as_numpy(split)]


def number_of(example):
    return int(example["image/filename"].decode().partition(".")[0])


def test_masks_and_key_points_of_objects(convert, tmp_path):
    dataset = convert(write_objects(tmp_path / "coco"), "tfds", *OF_OBJECTS)
    features, examples = read(dataset)
    assert features["objects/keypoints"].shape == (None, len(POINTS), 3)
    assert features["objects/keypoints"].feature.doc.desc == (
        "x, y, visibility of nose, left_eye, right_eye"
    )
    assert features["objects/label"].feature.names[1:] == ["cat", "dog"]
    drawn = draw_objects()
    assert sorted(map(number_of, examples)) == list(range(len(drawn)))
    for example in examples:
        objects = drawn[number_of(example)]
        masks = example["objects/mask"]
        assert (masks.dtype, len(masks)) == (np.uint8, len(objects))
        for mask, each in zip(masks, objects, strict=True):
            assert np.array_equal(mask[..., 0], each.mask)
        points = np.array([each.fractions for each in objects]).reshape(-1, len(POINTS), 3)
        assert example["objects/keypoints"].dtype == np.float32
        assert np.array_equal(example["objects/keypoints"], points.astype(np.float32))
        ids = [dataset.labels[each.name] for each in objects]
        assert example["objects/label"].tolist() == ids
        sides = np.array([each.sides for each in objects]).reshape(-1, 4)
        assert np.allclose(example["objects/bbox"], sides, atol=1e-6)


def test_key_points_that_differ_between_images_are_numbers(convert, tmp_path):
    folder = write_objects(tmp_path / "coco")
    path = folder / "annotations/instances_val2017.json"
    path.write_text(path.read_text().replace('"nose"', '"tail"'), encoding="utf-8")
    dataset = convert(folder, "tfds", *OF_OBJECTS)
    features, examples = read(dataset)
    assert features["objects/keypoints"].shape == (None,)
    drawn = draw_objects()
    for example in examples:
        points = [each.fractions.ravel() for each in drawn[number_of(example)]]
        assert example["objects/keypoints"].tolist() == np.ravel(points).tolist()


@pytest.mark.parametrize(
    ("convention", "key", "image"),
    [
        ("tfds", "segmentation_mask", "image"),
        ("deeplab", "image/segmentation/class/encoded", "image/encoded"),
    ],
)
@pytest.mark.parametrize(("masks", "kind"), [("none", np.uint8), ("png16", np.uint16)])
def test_semantic_masks(convert, tmp_path, convention, key, image, masks, kind):
    dataset = convert(write_ids(tmp_path / "ids"), convention, *OF_IDS, f"--set=masks={masks}")
    features, examples = read(dataset)
    assert type(features[key]).__name__ == "LabeledImage"
    assert features[key].shape == (None, None, 1)
    drawn = draw_ids()
    assert sorted(map(number_of, examples)) == list(range(len(drawn)))
    for example in examples:
        ids = drawn[number_of(example)]
        assert example[image].shape == (*ids.shape, 3)
        assert example[key].dtype == kind
        assert np.array_equal(example[key][..., 0], ids)
