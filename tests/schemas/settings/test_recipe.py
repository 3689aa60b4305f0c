from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace

import pytest
from make_settings import make_settings

from recordmill.schemas.conventions import Convention, ConventionFeature
from recordmill.schemas.settings.dataset import DatasetSettings, SplitSettings
from recordmill.schemas.settings.feature_function import FeatureFunction
from recordmill.schemas.settings.images import ImageSettings, Resize
from recordmill.schemas.settings.recipe import list_changed_settings, list_settings
from recordmill.transforms.inputs.sources.class_folders import ClassFolders

BASE = make_settings()
KIND = {"source": {"kind": "class_folders"}}


def test_of_settings_at_their_defaults_only_the_kind_of_source_is_listed():
    assert list_changed_settings(DatasetSettings(source=ClassFolders())) == KIND


def test_completed_settings_are_not_listed_either():
    # `make_settings` completes `auto` as a run does.
    assert BASE.compression == "none"
    assert BASE.images.reencode == "when_needed"
    assert list_changed_settings(BASE) == KIND


@pytest.mark.parametrize(
    ("changed", "listed"),
    [
        ({"seed": 3}, {"seed": 3}),
        ({"compression": "gzip"}, {"compression": "gzip"}),
        ({"images": ImageSettings(quality=80)}, {"images": {"quality": 80}}),
        ({"images": ImageSettings(reencode="always")}, {"images": {"reencode": "always"}}),
        ({"images": ImageSettings(reencode="never")}, {"images": {"reencode": "never"}}),
        ({"images": ImageSettings(store="jpeg")}, {}),
        ({"images": ImageSettings(store="png")}, {"images": {"store": "png"}}),
        (
            {"images": ImageSettings(resize=Resize(longest=20))},
            {"images": {"resize": {"longest": 20}}},
        ),
        (
            {"splits": SplitSettings(fractions={"train": 1.0})},
            {"splits": {"fractions": {"train": 1.0}}},
        ),
        (
            {"splits": SplitSettings(from_folders={"a": "train"})},
            {"splits": {"from_folders": {"a": "train"}}},
        ),
        (
            {"features": {"mean": FeatureFunction(function="mean_std")}},
            {"features": {"mean": {"function": "mean_std"}}},
        ),
        ({"convention": "tfds"}, {"convention": "tfds"}),
        (
            {
                "convention": Convention(
                    features={"x": ConventionFeature(type="bytes", field="encoded")}
                )
            },
            {"convention": {"features": {"x": {"type": "bytes", "field": "encoded"}}}},
        ),
    ],
)
def test_only_settings_that_differ_from_their_defaults_are_listed(changed, listed):
    assert list_changed_settings(replace(BASE, **changed)) == {**listed, **KIND}


def test_the_same_settings_written_out_are_not_listed():
    images = ImageSettings(quality=80)
    written_out = replace(images, reencode="always")  # as `auto` completes it
    assert list_changed_settings(replace(BASE, images=written_out)) == {
        "images": {"quality": 80},
        **KIND,
    }


def test_all_settings_in_use_are_listed_without_those_that_cannot_act():
    given = replace(BASE, splits=SplitSettings(from_folders={"a": "train"}))
    assert list_settings(given)["splits"] == {
        "stratify": False,
        "group": None,
        "from_folders": {"a": "train"},
        "from_source": {},
    }
    assert list_settings(BASE)["images"]["quality"] == 95
    assert list_settings(BASE)["source"] == {
        "kind": "class_folders",
        "class_from": "first_folder",
        "split": "",
        "pairs_of": "",
        "pairs": {},
    }


def test_only_fractions_are_a_mapping_with_keys_by_default():
    # `compare_plans` must know all of them.
    assert list(find_mappings(DatasetSettings(source=ClassFolders()))) == ["splits.fractions"]


def find_mappings(settings, path=""):
    for each in fields(settings):
        value = getattr(settings, each.name)
        if is_dataclass(value):
            yield from find_mappings(value, f"{path}{each.name}.")
        elif isinstance(value, Mapping) and value:
            yield f"{path}{each.name}"
