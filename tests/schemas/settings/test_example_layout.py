import pytest
from make_settings import make_settings

from recordmill.schemas.label_map import LabelSettings
from recordmill.schemas.settings.dataset import ExampleLayout, ShardSettings, SplitSettings
from recordmill.transforms.inputs.sources.filename_labels import FilenameLabels

ONE_SPLIT = SplitSettings(fractions={"train": 1.0})


A_AND_A1 = SplitSettings(fractions={"a": 0.5, "a1": 0.5})


def test_a_fixed_name_is_allowed_for_one_file_a_split():
    one_each = make_settings(shards=ShardSettings(count=1, name="{split}.record"))
    assert ExampleLayout(one_each).file_name("test", 0, 1, 1) == "test.record"


def test_a_name_is_as_fixed_as_the_splits_and_the_count_allow():
    one = make_settings(splits=ONE_SPLIT, shards=ShardSettings(count=1, name="data.record"))
    assert ExampleLayout(one).file_name("train", 0, 1, 1) == "data.record"
    several = make_settings(splits=ONE_SPLIT, shards=ShardSettings(name="data-{number}.record"))
    assert ExampleLayout(several).file_name("train", 8, 9, 1) == "data-9.record"
    apart = make_settings(splits=A_AND_A1, shards=ShardSettings(name="{split}-{index}.record"))
    assert (
        ExampleLayout(apart).file_name("a", 10, 11, 1),
        ExampleLayout(apart).file_name("a1", 0, 11, 1),
    ) == (
        "a-10.record",
        "a1-0.record",
    )
    few = make_settings(
        splits=A_AND_A1, shards=ShardSettings(name="{split}{index}.record", count=9)
    )
    assert (
        ExampleLayout(few).file_name("a", 8, 9, 1),
        ExampleLayout(few).file_name("a1", 0, 9, 1),
    ) == (
        "a8.record",
        "a10.record",
    )


@pytest.mark.parametrize(
    ("convention", "offset", "first"), [("default", None, 0), ("default", 1, 1), ("tutorial", 7, 7)]
)
def test_the_first_id_is_the_users_or_the_conventions(convention, offset, first):
    assert (
        ExampleLayout(
            make_settings(convention=convention, labels=LabelSettings(offset=offset))
        ).label_offset
        == first
    )


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "train-00001-of-00012.tfrecord"),
        ({"compression": "gzip"}, "train-00001-of-00012.tfrecord.gz"),
        ({"shards": ShardSettings(name="{split}-{index}.gz"), "compression": "gzip"}, "train-1.gz"),
        (
            {"convention": "image_tfrecord_builder", "name": "flowers"},
            "flowers_training_02of12.tfrecord",
        ),
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
    assert ExampleLayout(make_settings(**settings)).file_name("train", 1, 12, 1) == expected


def test_features_are_the_conventions_then_the_sources():
    source = FilenameLabels(
        pattern=r"(?P<patient>\w)_(?P<label>\d)", features_from={"image/patient": "patient"}
    )
    settings = make_settings(source=source, convention="tutorial")
    assert [feature.key for feature in ExampleLayout(settings).features] == [
        "height",
        "width",
        "depth",
        "label",
        "image_raw",
        "image/patient",
    ]
