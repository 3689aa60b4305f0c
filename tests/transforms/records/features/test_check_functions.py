import re

import pytest

from recordmill.schemas.settings.shards import ShardSettings
from recordmill.transforms.dataset_settings import DatasetSettings
from recordmill.transforms.inputs.sources.table import Table
from recordmill.transforms.inputs.tables.column_settings import ColumnSettings
from recordmill.transforms.records.features.settings import FeatureFunction


def functions(**named):
    return {name.replace("__", "/"): FeatureFunction(function=each) for name, each in named.items()}


def test_a_function_adds_a_feature_or_fills_the_conventions():
    added = DatasetSettings(features=functions(colour="mean_std"))
    assert [each.key for each in added.example_features][-2:] == ["image/key/sha256", "colour"]
    assert added.needs_pixels
    filled = DatasetSettings(
        features=functions(feature="mean_std", digest="file_sha256"),
        convention="feature_vector",
        shards=ShardSettings(name="{split}{index}"),
    )
    assert [each.key for each in filled.example_features] == ["sha256", "feature", "label", "digest"]
    assert not DatasetSettings(features=functions(digest="file_sha256")).needs_pixels


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"features": functions(x="mean_std"), "decode": "none", "convention": "plain"},
            "features.x: mean_std takes images, and decode is none: choose file_sha256",
        ),
        (
            {"features": functions(x="math:floor"), "decode": "none", "convention": "plain"},
            "features.x: math:floor takes images, and decode is none: set its of: file",
        ),
        ({"features": functions(label="mean_std")}, "features.label: the name is taken: choose another, such as x/lab"),
        ({"features": functions(image__format="mean_std")}, "features.image/format: the name is taken"),
        (
            {"features": functions(feature="file_sha256"), "convention": "feature_vector"},
            "features.feature: the convention (feature extraction scripts') wants float of shape [null]",
        ),
        (
            {"convention": "feature_vector"},
            "features.feature is missing: the convention (feature extraction scripts') stores what it computes",
        ),
        (
            {
                "features": functions(x="file_sha256"),
                "convention": "plain",
                "source": Table(columns={"n": ColumnSettings(type="int")}),
            },
            "features: functions take images or files, and the source holds neither",
        ),
    ],
)
def test_contradictions_are_reported_with_their_key(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        DatasetSettings(**settings)
