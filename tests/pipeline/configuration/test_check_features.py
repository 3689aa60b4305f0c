import re

import numpy as np
import pytest
from carried_annotations import carry
from make_settings import make_settings

from recordmill.annotations.annotation import AnnotatedImage
from recordmill.annotations.attributes import Attributes
from recordmill.annotations.boxes import boxes_of
from recordmill.annotations.corners import OrientedBoxes
from recordmill.annotations.keypoints import KeyPoints
from recordmill.annotations.kinds import KINDS, RECORD_FIELDS
from recordmill.annotations.labels import Labels
from recordmill.annotations.masks import Masks
from recordmill.annotations.segmentation import Segmentation
from recordmill.imaging import ImageSettings, prepare_image
from recordmill.imaging.masks.mask_file import encode_values
from recordmill.imaging.masks.outline import Polygons
from recordmill.pipeline.configuration.check_features import (
    check_features,
    check_fields,
    check_what_is_stored,
)
from recordmill.schemas.conventions import (
    Convention,
    ConventionFeature,
    convention_names,
    load_convention,
)
from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import EACH_ATTRIBUTE, encode_example, family_of, parse_example
from recordmill.schemas.image_ref import ImageRef, SourceFile
from recordmill.schemas.label_map import LabelMap, LabelSettings
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout, ShardSettings
from recordmill.schemas.settings.feature_function import FeatureFunction
from recordmill.transforms.inputs.sources.class_folders import ClassFolders
from recordmill.transforms.inputs.sources.coco import Coco
from recordmill.transforms.inputs.sources.filename_labels import FilenameLabels
from recordmill.transforms.inputs.sources.image_masks import ImageMasks
from recordmill.transforms.inputs.sources.imagefolder import ImageFolder
from recordmill.transforms.inputs.sources.labelme import LabelMe
from recordmill.transforms.inputs.sources.manifest import Manifest
from recordmill.transforms.inputs.sources.tfrecords import Tfrecords
from recordmill.transforms.inputs.sources.voc import Voc
from recordmill.transforms.inputs.sources.yolo import Yolo
from recordmill.transforms.inputs.tables.manifest_columns import Columns
from recordmill.transforms.records.annotations import resolve_annotations
from recordmill.transforms.records.convert_image import image_record, reference_record


def functions(**named):
    return {name.replace("__", "/"): FeatureFunction(function=each) for name, each in named.items()}


def test_a_function_adds_a_feature_or_fills_the_conventions():
    added = make_settings(features=functions(color="mean_std"))
    assert [each.key for each in ExampleLayout(added).features][-2:] == [
        "image/key/sha256",
        "color",
    ]
    assert ExampleLayout(added).needs_pixels
    filled = make_settings(
        features=functions(feature="mean_std", digest="file_sha256"),
        convention="feature_vector",
        shards=ShardSettings(name="{split}{index}"),
    )
    assert [each.key for each in ExampleLayout(filled).features] == [
        "sha256",
        "feature",
        "label",
        "digest",
    ]
    assert not ExampleLayout(make_settings(features=functions(digest="file_sha256"))).needs_pixels


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"features": functions(x="mean_std"), "decode": "none", "convention": "plain"},
            "features.x: mean_std takes images, and none is decoded: set its of: file",
        ),
        (
            {"features": functions(x="math:floor"), "decode": "none", "convention": "plain"},
            "features.x: math:floor takes images, and none is decoded: set its of: file",
        ),
        (
            {"features": functions(label="mean_std")},
            "features.label: the name is taken: choose another, such as x/lab",
        ),
        (
            {"features": functions(image__format="mean_std")},
            "features.image/format: the name is taken",
        ),
        (
            {"features": functions(feature="file_sha256"), "convention": "feature_vector"},
            "features.feature: the convention (feature extraction scripts') wants float[]",
        ),
        (
            {"convention": "feature_vector"},
            "features.feature is missing: the convention (feature extraction scripts') stores what "
            "it computes",
        ),
    ],
)
def test_contradictions_are_reported_with_their_key(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make_settings(**settings)


EVERYTHING = Manifest(columns=Columns(uri="u", labels="l", boxes="b", box_labels="c"))
SEGMENTED = Manifest(columns=Columns(uri="u", labels="l", mask="m"))
SEVERAL = Manifest(columns=Columns(uri="u", label="one", labels="all"))


def own(**features):
    return Convention(features=features)


def layout(convention, source, functions=()):
    features = {name: FeatureFunction(function="file_sha256") for name in functions}
    masks = "png" if "masks" in source.annotations() else "none"
    return ExampleLayout(
        DatasetSettings(source=source, convention=convention, features=features, masks=masks)
    )


def check(convention, source, functions=()):
    check_fields(layout(convention, source, functions))


def right(name):
    field = RECORD_FIELDS[name]
    return ConventionFeature(field=name, type=field.kind, shape=(None,) if field.many else ())


_DETAILS = ("masks", "keypoints", "attributes", "corners")
OF_COCO = frozenset(field for name in _DETAILS for field in KINDS[name].fields)
"""The fields that COCO gives, and `EVERYTHING` does not."""

OF_SEGMENTED = KINDS["segmentation"].fields.keys()
"""The fields that only `SEGMENTED` gives."""


def test_every_field_may_be_stored_as_what_it_is():
    others = RECORD_FIELDS.keys() - OF_COCO - OF_SEGMENTED
    check(own(**{name: right(name) for name in others}), EVERYTHING)
    check(own(**{name: right(name) for name in OF_COCO}), Coco())
    check(own(**{name: right(name) for name in {*OF_SEGMENTED, "labels"}}), SEGMENTED)


@pytest.mark.parametrize("name", RECORD_FIELDS)
def test_no_field_may_be_stored_as_what_it_is_not(name):
    field, source = RECORD_FIELDS[name], EVERYTHING
    if name in OF_COCO:
        source = Coco()
    elif name in OF_SEGMENTED:
        source = SEGMENTED
    for kind in ("bytes", "float", "int64"):
        for shape in ((), (None,)):
            if (kind, bool(shape)) == (field.kind, field.many):
                continue
            wrong = {
                "x": ConventionFeature(field=name, type=kind, shape=shape),
                "y": right("labels"),
            }
            message = f"convention.features.x does not have the type of the field '{name}'"
            with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
                check(own(**wrong), source)


def answer(convention, source):
    """The features of Examples, or why there can be none."""
    made = layout(convention, source)
    try:
        check_features(made)
        check_what_is_stored(made.settings, names_convention=True)
    except SettingError as error:
        return str(error)
    return made.features


@pytest.mark.parametrize("source", [ClassFolders(), Coco(), SEGMENTED, SEVERAL, ImageMasks()])
def test_a_copy_of_a_shipped_convention_is_as_good_as_the_convention(source):
    for name in convention_names():
        assert answer(load_convention(name), source) == answer(name, source), name


@pytest.mark.parametrize(
    ("feature", "sentence"),
    [
        (
            ConventionFeature(field="label_text", type="int64"),
            "convention.features.x does not have the type of the field 'label_text': "
            "write {field: label_text, type: bytes}",
        ),
        (
            ConventionFeature(field="xmin", type="float"),
            "convention.features.x does not have the type of the field 'xmin': "
            "write {field: xmin, type: float, shape: [null]}",
        ),
        (
            ConventionFeature(field="lable", type="int64"),
            "convention.features.x.field: the source gives no 'lable', only area, bbox, "
            "box_label_texts, ",
        ),
    ],
)
def test_errors_are_one_sentence(feature, sentence):
    source = Manifest(columns=Columns(uri="u", boxes="b", box_labels="c"))
    with pytest.raises(ValueError, match="^" + re.escape(sentence)):
        check(own(x=feature), source)


@pytest.mark.parametrize("field", ["xmin", "area", "labels", "label_texts"])
def test_what_the_source_cannot_give_is_refused(field):
    message = rf"^convention\.features\.x\.field: the source gives no '{field}', only channels, "
    with pytest.raises(ValueError, match=message) as raised:
        check(own(x=right(field)), ClassFolders())
    assert "bbox" not in str(raised.value)
    check(own(x=right(field)), Manifest(preset="vertex"))


def test_a_field_of_the_sources_own_or_of_a_function_counts():
    source = FilenameLabels(pattern="(?P<label>.)(?P<area>.)", features_from={"area": "area"})
    check(own(x=ConventionFeature(field="area", type="bytes")), source)
    check(own(x=ConventionFeature(field="f", type="int64")), source, ["f"])


@pytest.mark.parametrize(
    ("source", "key"),
    [(SEVERAL, "source.columns.labels"), (ImageFolder(labels="tags"), "source.labels")],
)
@pytest.mark.parametrize("name", ["default", "keras", "tf_object_detection"])
def test_several_labels_need_a_place(source, key, name):
    with pytest.raises(
        ValueError, match="^" + re.escape(f"{key} gives several labels, and the convention (")
    ):
        check(name, source)
    check(name, Manifest(preset="automl"))  # whose rows may have one each
    check(name, Coco())
    check(own(x=right("label_texts")), source)
    with pytest.raises(
        ValueError, match="stores one: name a column of one, or store the field labels"
    ):
        check(own(x=right("label")), source)


def test_semantic_masks_need_a_place_and_a_convention_with_one_needs_them():
    source = Manifest(columns=Columns(uri="u", mask="m"))
    check("deeplab", source)
    check(own(x=right("segmentation")), source)
    with pytest.raises(
        ValueError,
        match=r"^source\.columns\.mask gives semantic masks, and the convention .* stores none: "
        "set convention=deeplab or convention=tfds$",
    ):
        check("default", source)
    with pytest.raises(
        ValueError,
        match=r"^convention \(DeepLab\) stores semantic masks, and the source gives none: choose "
        "another convention, or name a manifest's column of masks in source.columns.mask$",
    ):
        check("deeplab", Coco())
    check("tfds", source)
    check("tfds", Coco())


def test_the_kinds_are_those_of_what_is_made(picture):
    data, settings = picture("x", (8, 6)), ImageSettings(store="raw")
    labels = LabelMap({"cat": 0}, attributes={"color": {"red": 0}})
    image = prepare_image(data, settings)
    fields = image_record(image, load_convention("tfrecorder"), "0" * 64)
    fields |= reference_record(ImageRef("a/b.jpg", "x"), "cat", 0, "train")
    fields |= {"sha256": b"0", "file_sha256": b"0"}
    mask = encode_values(np.zeros((6, 8), np.uint8))
    boxes = boxes_of([[0, 0, 4, 3]], ["cat"], values={"area": [12.0], "is_crowd": [0]})
    details = (Masks([Polygons(((0, 0, 4, 0, 4, 3),))]), KeyPoints(["nose"], [[1, 1, 2]]))
    details += (Attributes([{"color": "red"}]), OrientedBoxes([None]))
    on = AnnotatedImage(data, image, make_settings(images=settings), labels)
    on.files, on.read_file = {"m": SourceFile("m", "/m")}, lambda _: mask
    for placed in resolve_annotations(
        carry(ImageRef("a", "x"), boxes, *details, Segmentation("m"), Labels(["cat"])), on
    ).values():
        fields |= placed.fields
    assert {*map(family_of, fields)} == RECORD_FIELDS.keys()
    convention = own(**{name: right(name) for name in RECORD_FIELDS})
    features = convention.example_features
    assert [each.field for each in convention.attribute_features] == [EACH_ATTRIBUTE]
    parsed = parse_example(features, encode_example(features, fields)).keys()
    assert parsed == RECORD_FIELDS.keys() - {EACH_ATTRIBUTE}


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
    settings = layout("default", source).settings
    with pytest.raises(SettingError) as raised:
        check_what_is_stored(settings, names_convention=False)
    assert str(raised.value) == (
        f"convention is not set: {asked_by} gives boxes, and the default convention stores none: "
        "add --set convention=tf_object_detection or --set convention=tfds; --set "
        "convention=default leaves the boxes out"
    )
    check_what_is_stored(settings, names_convention=True)
    check_what_is_stored(layout("tfds", source).settings, names_convention=False)


@pytest.mark.parametrize(
    "source", [ClassFolders(), SEVERAL, Manifest(preset="automl"), Tfrecords()]
)
def test_boxes_that_may_be_there_need_none(source):
    check_what_is_stored(layout("default", source).settings, names_convention=False)


def test_a_taken_name():
    source = FilenameLabels(pattern=r"(?P<x>\w)_(?P<label>\d)", features_from={"image/height": "x"})
    with pytest.raises(
        ValueError,
        match=r"the feature name 'image/height' is taken: choose another, such as x/image/",
    ):
        check_features(layout("tf_object_detection", source))


def test_classes_of_masks_keep_the_ids_that_are_in_masks():
    source, labels = ImageMasks(class_names=("sky", "car")), LabelSettings(classes=("car",))
    with pytest.raises(
        SettingError,
        match=r"labels.classes gives classes new ids, and they have the ids that are in masks: "
        r"remove it and set labels.ids=integers; labels.rename=\{NAME: null\} leaves a class out",
    ):
        make_settings(source=source, convention="deeplab", labels=labels)
