import pickle
import re
from dataclasses import replace

import pytest

from recordmill.schemas.label_map import LabelSettings
from recordmill.schemas.settings.custom_convention import CustomConvention, CustomFeature
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.feature_function import FeatureFunction
from recordmill.schemas.settings.images import ImageSettings
from recordmill.schemas.settings.listing import ListingSettings
from recordmill.schemas.settings.shards import ShardSettings
from recordmill.schemas.settings.splits import SplitSettings
from recordmill.transforms.inputs.sources.filename_labels import FilenameLabels
from recordmill.transforms.inputs.sources.table import Table
from recordmill.transforms.inputs.sources.voc import Voc

OWN_IMAGE = {"img": CustomFeature(field="encoded", type="bytes")}
ONE_SPLIT = SplitSettings(fractions={"train": 1.0})
A_AND_A1 = SplitSettings(fractions={"a": 0.5, "a1": 0.5})
FOLDERS_A_AND_A1 = SplitSettings(from_folders={"x": "a", "y": "a1"})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: DatasetSettings(index_files=True, compression="gzip"),
            "index_files needs compression: none, since readers seek in the files",
        ),
        (
            lambda: DatasetSettings(shards=ShardSettings(name="{split}.tfrecord")),
            "shards.name '{split}.tfrecord' gives several files one name: put {split} and {index} into it",
        ),
        (lambda: DatasetSettings(shards=ShardSettings(name="{index}.tfrecord")), "gives several files one name"),
        (lambda: DatasetSettings(shards=ShardSettings(name="data.record", count=1)), "gives several files one name"),
        (
            lambda: DatasetSettings(splits=ONE_SPLIT, shards=ShardSettings(name="data.record", count=2)),
            "gives several files one name",
        ),
        (lambda: DatasetSettings(splits=ONE_SPLIT, shards=ShardSettings(name="data")), "gives several files one name"),
        (
            lambda: DatasetSettings(splits=A_AND_A1, shards=ShardSettings(name="{split}{index}.record")),
            "shards.name '{split}{index}.record' gives several files one name: put {split} and {index} into it",
        ),
        (
            lambda: DatasetSettings(splits=FOLDERS_A_AND_A1, shards=ShardSettings(name="{split}{index}.record")),
            "gives several files one name",
        ),
        (
            lambda: DatasetSettings(convention=CustomConvention(features=OWN_IMAGE, shard_name="{split}.tfrec")),
            "convention.shard_name '{split}.tfrec' gives several files one name: put {split} and {index} into it",
        ),
        (
            lambda: DatasetSettings(splits=SplitSettings(fractions={"s" * 240: 1.0})),
            "shards.name '{split}-{index:05d}-of-{count:05d}.tfrecord' gives names that are too long ('sssss",
        ),
        (
            lambda: DatasetSettings(splits=SplitSettings(group="(?P<patient>x)")),
            "splits.group '(?P<patient>x)' has no group (?P<group>...): add it",
        ),
        (lambda: DatasetSettings(splits=SplitSettings(group="(")), "splits.group '(' is no regular expression"),
        (lambda: DatasetSettings(limit=0), "limit is 0: give at least 1, or leave it out"),
        (lambda: DatasetSettings(name="a/b"), "name 'a/b' cannot name files"),
        (
            lambda: DatasetSettings(convention="plain"),
            "has no features of its own, and nothing adds any: name functions",
        ),
        (lambda: DatasetSettings(convention="x"), "there is no convention 'x': choose one of "),
    ],
)
def test_impossible_settings_raise_and_name_their_key(build, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        build()


def test_a_fixed_name_is_allowed_for_one_file_a_split():
    one_each = DatasetSettings(shards=ShardSettings(count=1, name="{split}.record"))
    assert one_each.file_name("test", 0, 1, 1) == "test.record"


def test_a_name_is_as_fixed_as_the_splits_and_the_count_allow():
    one = DatasetSettings(splits=ONE_SPLIT, shards=ShardSettings(count=1, name="data.record"))
    assert one.file_name("train", 0, 1, 1) == "data.record"
    several = DatasetSettings(splits=ONE_SPLIT, shards=ShardSettings(name="data-{number}.record"))
    assert several.file_name("train", 8, 9, 1) == "data-9.record"
    apart = DatasetSettings(splits=A_AND_A1, shards=ShardSettings(name="{split}-{index}.record"))
    assert (apart.file_name("a", 10, 11, 1), apart.file_name("a1", 0, 11, 1)) == ("a-10.record", "a1-0.record")
    few = DatasetSettings(splits=A_AND_A1, shards=ShardSettings(name="{split}{index}.record", count=9))
    assert (few.file_name("a", 8, 9, 1), few.file_name("a1", 0, 9, 1)) == ("a8.record", "a10.record")


@pytest.mark.parametrize(
    ("convention", "offset", "first"), [("default", None, 0), ("default", 1, 1), ("tutorial", 7, 7)]
)
def test_the_first_id_is_the_users_or_the_conventions(convention, offset, first):
    assert DatasetSettings(convention=convention, labels=LabelSettings(offset=offset)).label_offset == first


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "train-00001-of-00012.tfrecord"),
        ({"compression": "gzip"}, "train-00001-of-00012.tfrecord.gz"),
        ({"shards": ShardSettings(name="{split}-{index}.gz"), "compression": "gzip"}, "train-1.gz"),
        ({"convention": "image_tfrecord_builder", "name": "flowers"}, "flowers_training_02of12.tfrecord"),
        (
            {
                "convention": "image_tfrecord_builder",
                "name": "f",
                "shards": ShardSettings(name="{name}-{split}-{number}"),
            },
            "f-train-2",
        ),
    ],
)
def test_file_names_follow_the_convention_or_the_users_pattern(settings, expected):
    assert DatasetSettings(**settings).file_name("train", 1, 12, 1) == expected


def test_features_are_the_conventions_then_the_sources():
    source = FilenameLabels(pattern=r"(?P<patient>\w)_(?P<label>\d)", features_from={"image/patient": "patient"})
    settings = DatasetSettings(source=source, convention="tutorial")
    assert [feature.key for feature in settings.example_features] == [
        "height",
        "width",
        "depth",
        "label",
        "image_raw",
        "image/patient",
    ]


def test_listing_settings_are_those_written():
    splits = SplitSettings(group="(?P<group>x)")
    settings = DatasetSettings(include=("*.jpg",), ignore=("b",), splits=splits)
    assert settings.listing == ListingSettings(("*.jpg",), ("b",), group="(?P<group>x)", classes_known=False)
    known = replace(settings, labels=LabelSettings(classes=("train",)))
    assert known.listing == ListingSettings(("*.jpg",), ("b",), group="(?P<group>x)", classes_known=True)
    assert DatasetSettings(source=Voc()).listing == ListingSettings(("*.xml",), not_included="taken_only_by_name")
    assert DatasetSettings(source=Voc(), include=("*.v",)).listing == ListingSettings(("*.v",))


def test_settings_travel_to_workers():
    settings = DatasetSettings(limit=3)
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert replace(settings, limit=4) != settings


@pytest.mark.parametrize("key", ["image/filename", "label", "encoded", "format", "sha256", "boxes", "labels"])
def test_a_sources_feature_cannot_take_the_name_of_another(key):
    # It would be filled from the wrong field, or written twice.
    source = FilenameLabels(pattern=r"(?P<x>\w)_(?P<label>\d)", features_from={key: "x"})
    with pytest.raises(ValueError, match=f"source.*{key}.* taken"):
        DatasetSettings(source=source)


def test_a_convention_fills_its_feature_from_a_sources_field_of_the_same_kind():
    source = FilenameLabels(pattern=r"(?P<x>\w)_(?P<label>\d)", features_from={"who": "x"})
    own = CustomConvention(
        features={
            "image": CustomFeature(field="encoded", type="bytes"),
            "person": CustomFeature(field="who", type="bytes"),
        }
    )
    settings = DatasetSettings(source=source, convention=own)
    assert [feature.key for feature in settings.example_features] == ["image", "person"]
    own = CustomConvention(features={"person": CustomFeature(field="who", type="int64")})
    with pytest.raises(ValueError, match="convention: person is int64, and the source's field 'who' is bytes"):
        DatasetSettings(source=source, convention=own)


NO_IMAGE = CustomConvention(features={"name": CustomFeature(field="filename", type="bytes")})


def test_analysis_takes_moments():
    assert DatasetSettings(analyze=True).images == ImageSettings(moments=True)
    assert DatasetSettings().images.moments is False


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"images": ImageSettings(check="header")}, "analyze needs every image's pixels: remove images.check: header"),
        ({"images": ImageSettings(reencode="never")}, "reencode: never set images.formats to .JPEG, PNG."),
        ({"decode": "none", "convention": NO_IMAGE}, "analyze needs encoded images: set decode: images"),
        ({"convention": NO_IMAGE}, "analyze needs encoded images: set decode: images, and a convention that stores"),
        ({"splits": SplitSettings(fractions={"a": 1.0})}, "analyze learns from the split train, which is none of"),
    ],
)
def test_analysis_needs_pixels_that_tensorflow_sees_and_a_split_to_learn_from(settings, problem):
    DatasetSettings(**settings)
    with pytest.raises(ValueError, match=problem):
        DatasetSettings(analyze=True, **settings)


def test_images_stored_as_they_are_can_be_analysed_where_tensorflow_decodes_them():
    images = ImageSettings(reencode="never", formats=("PNG", "JPEG"))
    assert DatasetSettings(analyze=True, images=images).images.moments


@pytest.mark.parametrize(
    ("convention", "store", "expected"),
    [
        ("default", "auto", "auto"),
        ("default", "raw", "raw"),
        ("raw_pixels", "auto", "raw"),
        ("raw_pixels", "png", "png"),
        ("tfrecorder", "auto", "raw"),
    ],
)
def test_images_are_stored_as_the_convention_has_them_unless_the_user_says(convention, store, expected):
    assert DatasetSettings(convention=convention, images=ImageSettings(store=store)).images.store == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"convention": "raw_pixels", "images": ImageSettings(reencode="never")},
            "images.reencode is never, and the convention (raw pixels and label, as for CIFAR-10) stores raw pixels",
        ),
        (
            {"convention": "tfrecorder", "images": ImageSettings(store="png")},
            "images.store is png, and the convention (TensorFlow Recorder) holds pixels: set it to raw",
        ),
        (
            {"convention": CustomConvention(features={"x": CustomFeature(field="pixels_base64", type="bytes")})},
            "images.store is auto, and the convention (the user's own) holds pixels: set it to raw",
        ),
        ({"convention": "raw_pixels", "analyze": True}, "analyze needs encoded images"),
    ],
)
def test_a_form_that_contradicts_the_rest_raises(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        DatasetSettings(**settings)


DIGEST = {"digest": FeatureFunction(function="file_sha256")}


@pytest.mark.parametrize(
    ("settings", "unit"),
    [
        (DatasetSettings(), "image"),
        (DatasetSettings(decode="none", convention="plain", features=DIGEST), "file"),
        (DatasetSettings(source=Table(), convention="plain"), "row"),
    ],
)
def test_what_an_example_is_made_of_has_a_word(settings, unit):
    assert settings.unit == unit


def test_files_are_compressed_as_the_convention_has_it_unless_the_user_says():
    assert (DatasetSettings().compression, DatasetSettings(convention="tfrecorder").compression) == ("none", "gzip")
    assert DatasetSettings(convention="tfrecorder", compression="none").compression == "none"
    assert DatasetSettings(convention="tfrecorder", name="x").file_name("train", 0, 1, 1) == (
        "train-00000-of-00001.tfrecord.gz"
    )
