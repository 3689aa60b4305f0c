import re

import pytest

from recordmill.imaging import ImageSettings, prepare_image
from recordmill.schemas.conventions import load_convention
from recordmill.schemas.features import encode_example, parse_example
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.record_fields import RECORD_FIELDS
from recordmill.schemas.settings.boxes import BoxSettings
from recordmill.schemas.settings.custom_convention import CustomConvention, CustomFeature
from recordmill.transforms.check_fields import check_fields, find_unstored_boxes
from recordmill.transforms.compose.build_examples import image_record
from recordmill.transforms.inputs.manifests.columns import Columns
from recordmill.transforms.inputs.sources.class_folders import ClassFolders
from recordmill.transforms.inputs.sources.coco import Coco
from recordmill.transforms.inputs.sources.filename_labels import FilenameLabels
from recordmill.transforms.inputs.sources.imagefolder import ImageFolder
from recordmill.transforms.inputs.sources.labelme import LabelMe
from recordmill.transforms.inputs.sources.manifest import Manifest
from recordmill.transforms.inputs.sources.tfrecords import Tfrecords
from recordmill.transforms.inputs.sources.voc import Voc
from recordmill.transforms.inputs.sources.yolo import Yolo
from recordmill.transforms.records.annotations import resolve_annotations
from recordmill.transforms.records.boxes import boxes_of

EVERYTHING = Manifest(columns=Columns(uri="u", labels="l", boxes="b", box_labels="c"))
SEVERAL = Manifest(columns=Columns(uri="u", label="one", labels="all"))


def own(**features):
    return CustomConvention(features=features)


def check(convention, source, functions=()):
    check_fields(convention, convention.as_convention(), source, functions)


def right(name):
    field = RECORD_FIELDS[name]
    return CustomFeature(field=name, type=field.kind, shape=(None,) if field.many else ())


def test_every_field_may_be_stored_as_what_it_is():
    check(own(**{name: right(name) for name in RECORD_FIELDS}), EVERYTHING)


@pytest.mark.parametrize("name", RECORD_FIELDS)
def test_no_field_may_be_stored_as_what_it_is_not(name):
    field = RECORD_FIELDS[name]
    for kind in ("bytes", "float", "int64"):
        for shape in ((), (None,)):
            if (kind, bool(shape)) == (field.kind, field.many):
                continue
            wrong = {"x": CustomFeature(field=name, type=kind, shape=shape), "y": right("labels")}
            with pytest.raises(ValueError, match=rf"^convention\.features\.x is {kind}.*, and the field '{name}' is "):
                check(own(**wrong), EVERYTHING)


@pytest.mark.parametrize(
    ("feature", "sentence"),
    [
        (
            CustomFeature(field="label_text", type="int64"),
            "convention.features.x is int64, and the field 'label_text' is bytes: "
            "write {field: label_text, type: bytes}",
        ),
        (
            CustomFeature(field="label", type="int64", shape=(None,)),
            "convention.features.x is int64[], and the field 'label' is int64: write {field: label, type: int64}",
        ),
        (
            CustomFeature(field="xmin", type="float"),
            "convention.features.x is float, and the field 'xmin' is float[]: "
            "write {field: xmin, type: float, shape: [null]}",
        ),
        (
            CustomFeature(field="lable", type="int64"),
            "convention.features.x.field: there is no field 'lable', only area, bbox, box_label_texts, ",
        ),
    ],
)
def test_errors_are_one_sentence(feature, sentence):
    source = Manifest(columns=Columns(uri="u", boxes="b", box_labels="c"))
    with pytest.raises(ValueError, match="^" + re.escape(sentence)):
        check(own(x=feature), source)


@pytest.mark.parametrize(
    ("field", "what"), [("xmin", "boxes"), ("area", "boxes"), ("labels", "several labels"), ("label_texts", "several")]
)
def test_what_the_source_cannot_give_is_refused(field, what):
    message = rf"^convention\.features\.x\.field: the source gives no {what}.*, and so no '{field}', only channels, "
    with pytest.raises(ValueError, match=message) as raised:
        check(own(x=right(field)), ClassFolders())
    assert "bbox" not in str(raised.value)
    check(own(x=right(field)), Manifest(preset="vertex"))


def test_a_field_of_the_sources_own_or_of_a_function_counts():
    source = FilenameLabels(pattern="(?P<label>.)(?P<area>.)", features_from={"area": "area"})
    check(own(x=CustomFeature(field="area", type="bytes")), source)
    check(own(x=CustomFeature(field="f", type="int64")), source, ["f"])


@pytest.mark.parametrize(
    ("source", "key"),
    [(SEVERAL, "source.columns.labels"), (ImageFolder(labels="tags"), "source.labels")],
)
@pytest.mark.parametrize("name", ["default", "keras", "tf_object_detection"])
def test_several_labels_need_a_place(source, key, name):
    layout = load_convention(name)
    with pytest.raises(ValueError, match="^" + re.escape(f"{key} gives several labels, and the convention (")):
        check_fields(None, layout, source, ())
    check_fields(None, layout, Manifest(preset="automl"), ())  # whose rows may have one each
    check_fields(None, layout, Coco(), ())
    check(own(x=right("label_texts")), source)
    with pytest.raises(ValueError, match="stores one: name a column of one under label, or write a mapping"):
        check(own(x=right("label")), source)


def test_the_kinds_are_those_of_what_is_made(draw):
    data, settings, labels = draw("x", (8, 6)), ImageSettings(store="raw"), LabelMap({"cat": 0})
    image = prepare_image(data, settings)
    fields = image_record(ImageRef("a/b.jpg", "x"), image, "cat", 0, load_convention("tfrecorder"), "train")
    fields |= {"sha256": b"0", "file_sha256": b"0", "label_texts": [b"cat"]}
    fields |= boxes_of([[0, 0, 4, 3]], ["cat"], values={"area": [12.0], "is_crowd": [0]})
    resolve_annotations(fields, data, image, settings, BoxSettings(), labels)
    assert fields.keys() == RECORD_FIELDS.keys()
    features = own(**{name: right(name) for name in RECORD_FIELDS}).as_convention().features
    assert parse_example(features, encode_example(features, fields)).keys() == RECORD_FIELDS.keys()


@pytest.mark.parametrize(
    ("source", "asked_by"),
    [
        (Coco(), "source.kind"),
        (LabelMe(), "source.kind"),
        (Voc(), "source.kind"),
        (Yolo(), "source.kind"),
        (EVERYTHING, "source.columns.boxes"),
        (ImageFolder(objects="o"), "source.objects"),
    ],
)
def test_boxes_that_were_not_excluded_need_a_field(source, asked_by):
    assert find_unstored_boxes(load_convention("default"), source) == (
        f"convention is not set: {asked_by} gives boxes, and the default convention stores none: "
        "set convention=tf_object_detection or convention=tfds; convention=default leaves the boxes out"
    )
    assert find_unstored_boxes(load_convention("tfds"), source) == ""


@pytest.mark.parametrize("source", [ClassFolders(), SEVERAL, Manifest(preset="automl"), Tfrecords()])
def test_boxes_that_may_be_there_need_none(source):
    assert find_unstored_boxes(load_convention("default"), source) == ""
