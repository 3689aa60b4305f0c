import dataclasses
import io

import apache_beam as beam
import numpy as np
import PIL.Image
import pytest
from apache_beam.pvalue import AsList, AsSingleton
from apache_beam.typehints.decorators import TypeCheckError
from eager_beam import assert_that, new_pipeline
from make_settings import make_settings

from recordmill.annotations.annotation import pack_annotations
from recordmill.annotations.boxes import boxes_of
from recordmill.annotations.masks import Masks
from recordmill.imaging import ImageSettings, prepare_image
from recordmill.imaging.masks.outline import FileIds, MaskFile
from recordmill.schemas.features import Example
from recordmill.schemas.image_ref import SourceFile
from recordmill.schemas.label_map import LabelMap, LabelSettings
from recordmill.transforms.inputs.sources.coco import Coco
from recordmill.transforms.steps.build_examples import BuildExamples
from recordmill.transforms.steps.elements import EncodedImage, RejectedImage


@pytest.fixture
def image(draw):
    """`image(label, **values)`: an image of 8 x 6 pixels that is ready to be stored."""

    def make(label=None, **values):
        data = draw(1)
        prepared = prepare_image(data, ImageSettings())
        return EncodedImage("cat/1.jpg", prepared, data, label, **values)

    return make


def values_of(record):
    features = Example.FromString(record).features.feature
    return {
        key: list(getattr(feature, feature.WhichOneof("kind")).value)
        for key, feature in features.items()
        if feature.WhichOneof("kind")
    }


@pytest.mark.parametrize("label", ["dog", 1])
def test_a_sequence_gives_ids_in_its_order(image, run_step, label):
    step = BuildExamples(["cat", "dog"])
    (built,), rejected = run_step([image(label, group="g", split="test")], step)
    assert (built.key, built.group, built.split, rejected) == ("cat/1.jpg", "g", "test", [])
    values = values_of(built.record)
    assert values["image/class/label"] == [1]
    assert values["image/class/text"] == [b"dog"]
    assert values["image/encoded"] == [image().data]
    assert (built.reference, built.converted) == (None, None)


def test_a_label_map_and_a_convention(image, run_step):
    (built,), _ = run_step([image("dog")], BuildExamples(LabelMap({"dog": 7}), "tutorial"))
    assert values_of(built.record)["label"] == [7]


@pytest.mark.parametrize(
    ("names", "side"), [(["dog", "cat"], AsList), ([["cat", "dog"]], AsSingleton)]
)
def test_side_inputs(image, names, side):
    found = []
    with new_pipeline() as pipeline:
        labels = side(pipeline | "Names" >> beam.Create(names))
        built = pipeline | beam.Create([image("dog")]) | BuildExamples(labels)
        assert_that(built, found.extend)
    assert values_of(found[0].record)["image/class/label"] == [1]


def test_classes_of_a_side_input_get_new_names_before_ids(image):
    renamed = LabelSettings(rename={"rex": "dog", "blank": None})
    found, left_out = [], []
    with new_pipeline() as pipeline:
        labels = AsList(pipeline | "Names" >> beam.Create(["rex", "cat", "blank"]))
        step = BuildExamples(labels, settings=make_settings(labels=renamed))
        built = pipeline | beam.Create([image("rex"), image("blank")]) | step
        assert_that(built, found.extend)
        assert_that(built.rejected, left_out.extend)
    values = [values_of(each.record) for each in found]
    assert [each["image/class/text"] + each["image/class/label"] for each in values] == [
        [b"dog", 1]
    ]
    assert [each.reason for each in left_out] == ["renamed_away"]


def test_each_window_has_its_own_side_input(image):
    work = BuildExamples([])._work
    ids = []
    for names in (["cat", "dog"], ["dog"], ["cat", "dog"]):
        (built,) = work.process(image("dog"), names)
        ids += values_of(built.record)["image/class/label"]
    assert ids == [1, 0, 1]


def test_a_class_that_is_not_listed_is_rejected(image, run_step):
    assert run_step([image("bird")], BuildExamples(["cat"])) == (
        [],
        [RejectedImage("cat/1.jpg", "unknown_label", "the label 'bird' is not one of the classes")],
    )


def test_features_and_boxes_fill_the_fields_of_the_convention(image, run_step):
    boxes = pack_annotations([boxes_of([[2, 1.5, 4, 3]], ["cat"])])
    step = BuildExamples(["cat"], "tf_object_detection")
    (built,), _ = run_step([image(features={"source_id": "7"}, annotations=boxes)], step)
    values = values_of(built.record)
    assert values["image/source_id"] == [b"7"]
    assert values["image/object/bbox/xmin"] == [0.25]
    assert values["image/object/class/text"] == [b"cat"]


def _build_with_mask(image, run_step, path, listed_bytes):
    """Builds the Example of an image whose mask is in a file of 4 pixels of 3 and 4 of 7 a row."""
    file = SourceFile("masks/1.png", str(path), listed_bytes, "1")
    annotations = pack_annotations(
        [
            boxes_of([[2, 1.5, 4, 3]], ["cat"]),
            Masks([FileIds(MaskFile("masks/1.png", ""), (7,))]),
        ]
    )
    settings = make_settings(source=Coco(), convention="tf_object_detection", masks="png")
    step = BuildExamples(["cat"], settings=settings)
    return run_step([image(annotations=annotations, files=(file,))], step)


@pytest.fixture
def mask_file(tmp_path):
    path = tmp_path / "1.png"
    row = np.repeat([[3, 7]], [4, 4], axis=1).astype(np.uint8)
    PIL.Image.fromarray(row.repeat(6, 0)).save(path)
    return path


def test_masks_are_read_from_files_next_to_images(image, run_step, mask_file):
    (built,), _ = _build_with_mask(image, run_step, mask_file, mask_file.stat().st_size)
    (mask,) = values_of(built.record)["image/object/mask"]
    found = PIL.Image.open(io.BytesIO(mask))
    assert (found.size, np.unique(found).tolist()) == ((8, 6), [0, 1])


def test_a_mask_that_grew_since_it_was_listed_rejects_its_image(image, run_step, mask_file):
    size = mask_file.stat().st_size
    changed = f"masks/1.png: {size - 1} bytes when it was listed, more when it was read"
    assert _build_with_mask(image, run_step, mask_file, size - 1) == (
        [],
        [RejectedImage("cat/1.jpg", "changed", changed)],
    )


def test_settings_of_a_dataset(image, run_step):
    settings = make_settings(convention="tutorial")
    (built,), _ = run_step([image("dog")], BuildExamples(["cat", "dog"], settings=settings))
    assert values_of(built.record)["label"] == [1]


def test_a_convention_with_splits_needs_them(image, run_step):
    step = BuildExamples(["cat"], "tfrecorder")
    with pytest.raises(ValueError, match=r"stores the split of an image, and cat/1\.jpg has none"):
        run_step([image("cat")], step)
    (built,), _ = run_step([image("cat", split="test")], step)
    assert values_of(built.record)["split"] == [b"TEST"]


def test_what_a_step_of_ones_own_changes_counts(image, run_step):
    changed = dataclasses.replace(image("dog"), label="cat", key="other")
    (built,), _ = run_step([changed], BuildExamples(["cat", "dog"]))
    values = values_of(built.record)
    assert (values["image/class/label"], values["image/filename"]) == ([0], [b"other"])


def test_wrong_types_are_found_when_the_pipeline_is_built():
    with pytest.raises(TypeCheckError, match="Input type hint violation at BuildExamples"):
        beam.Pipeline() | beam.Create(["photos/cat/0.jpg"]) | BuildExamples(["cat"])


def test_its_settings_are_display_data():
    shown = BuildExamples(["cat", "dog"], "tutorial").display_data()
    assert shown["labels"] == "2 classes"
