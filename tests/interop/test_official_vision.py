"""The decoders of TensorFlow's official/vision, and DeepLab's, read masks to the pixel."""

import importlib.util
import sys
from collections import abc, namedtuple
from types import ModuleType

import numpy as np
import pytest

from tests.support.drawn_objects import CATEGORIES, draw_ids, draw_objects, write_ids, write_objects
from tests.support.find_clone import find_clone, show_file

REASON = "needs an environment of its own: make test-interop"
tf = pytest.importorskip("tensorflow", reason=REASON)
DEEPLAB = ("mach-12/models", "3880236ce5ae1968216356b8169c4ab828415181")
"""A copy of tensorflow/models."""

OF_IDS = (
    "--set=source={kind: manifest, columns: {uri: image, mask: mask}}",
    "--set=splits={fractions: {train: 1.0}}",
)


PACKAGES = (
    *("core", "modeling", "modeling.optimization"),
    *("vision", "vision.configs", "vision.dataloaders", "vision.ops"),
)


@pytest.fixture
def official(monkeypatch):
    """`official("tf_example_decoder")`: a module of official.vision.dataloaders.

    The packages' own `__init__` is left out, since it imports every model.
    """
    if importlib.util.find_spec("official") is None:
        pytest.skip(REASON)
    for name in PACKAGES:
        found = importlib.util.find_spec(f"official.{name}")
        package = ModuleType(found.name)
        package.__path__ = found.submodule_search_locations
        monkeypatch.setitem(sys.modules, found.name, package)

    def load(name):
        return importlib.import_module(f"official.vision.dataloaders.{name}")

    return load


def records(dataset):
    """Each record, with the number in the name of its image."""
    for split in dataset.marker["splits"]:
        for record in tf.data.TFRecordDataset(dataset.files(split)):
            features = tf.train.Example.FromString(record.numpy()).features.feature
            (name,) = features["image/filename"].bytes_list.value
            yield int(name.decode().partition(".")[0]), record


def test_masks_of_objects(convert, tmp_path, official):
    flags = ("--config=configs/coco.yaml", "--set=masks=png")
    dataset = convert(write_objects(tmp_path / "coco"), "tf_object_detection", *flags)
    decoder = official("tf_example_decoder").TfExampleDecoder(include_mask=True)
    drawn, numbers = draw_objects(), []
    for number, record in records(dataset):
        numbers.append(number)
        objects, decoded = drawn[number], decoder.decode(record)
        masks = decoded["groundtruth_instance_masks"].numpy()
        assert masks.shape == (len(objects), *decoded["image"].shape[:2])
        assert all(
            np.array_equal(mask, each.mask) for mask, each in zip(masks, objects, strict=True)
        )
        ids = [CATEGORIES[each.name] for each in objects]
        assert decoded["groundtruth_classes"].numpy().tolist() == ids
        sides = np.array([each.sides for each in objects]).reshape(-1, 4)
        assert np.allclose(decoded["groundtruth_boxes"], sides, atol=1e-6)
        assert decoded["source_id"].numpy()
    assert sorted(numbers) == list(range(len(drawn)))


def test_semantic_masks(convert, tmp_path, official):
    dataset = convert(write_ids(tmp_path / "ids"), "deeplab", *OF_IDS)
    drawn, numbers, reader = draw_ids(), [], official("segmentation_input")
    parser = reader.Parser(output_size=list(drawn[0].shape))
    for number, record in records(dataset):
        numbers.append(number)
        ids, decoded = drawn[number], reader.Decoder().decode(record)
        image, labels = parser._parse_eval_data(decoded)
        assert image.shape == (*ids.shape, 3)
        assert np.array_equal(labels["masks"][..., 0], ids)
        assert np.array_equal(labels["valid_masks"][..., 0], ids != 255)
    assert sorted(numbers) == list(range(len(drawn)))


@pytest.fixture
def deeplab(monkeypatch, tmp_path, official):
    """DeepLab's `data_generator`, without what prepares images for its networks."""
    repository, commit = DEEPLAB
    clone = find_clone(repository, commit, tmp_path / "clones")
    for path in ("common.py", "datasets/data_generator.py"):
        (tmp_path / "deeplab" / path).parent.mkdir(parents=True, exist_ok=True)
        text = show_file(clone, commit, f"research/deeplab/{path}")
        (tmp_path / "deeplab" / path).write_bytes(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "deeplab.input_preprocess"
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    # This copy takes it from the wrong module.
    monkeypatch.setattr(abc, "namedtuple", namedtuple, raising=False)
    return importlib.import_module("deeplab.datasets.data_generator")


def test_semantic_masks_in_deeplab(convert, tmp_path, deeplab):
    dataset = convert(write_ids(tmp_path / "ids"), "deeplab", *OF_IDS)
    shape, drawn, numbers = draw_ids()[0].shape, draw_ids(), []
    reader = deeplab.Dataset("pascal_voc_seg", "train", str(dataset.folder), 1, shape)
    assert sorted(reader._get_all_files()) == dataset.files("train")
    for number, record in records(dataset):
        numbers.append(number)
        sample = reader._parse_function(record)
        assert (int(sample["height"]), int(sample["width"])) == shape
        assert sample["image"].shape == (*shape, 3)
        assert np.array_equal(sample["labels_class"][..., 0], drawn[number])
    assert sorted(numbers) == list(range(len(drawn)))
