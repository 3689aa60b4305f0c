import pickle
from dataclasses import replace

import pytest
from make_settings import make_settings

from recordmill.schemas.label_map import LabelSettings
from recordmill.schemas.settings.dataset import DatasetSettings, SplitSettings
from recordmill.schemas.settings.feature_function import FeatureFunction
from recordmill.schemas.settings.images import ImageSettings, Resize
from recordmill.schemas.settings.recipe import list_settings
from recordmill.schemas.settings.source import ListingSettings
from recordmill.transforms.inputs.sources.class_folders import ClassFolders
from recordmill.transforms.inputs.sources.table import Table
from recordmill.transforms.inputs.sources.voc import Voc

CHOSEN = frozenset({"not_included"})


def test_listing_settings_are_those_written():
    splits = SplitSettings(group="(?P<group>x)")
    settings = make_settings(include=("*.jpg",), ignore=("b",), splits=splits)
    assert settings.listing == ListingSettings(
        ("*.jpg",),
        ("b",),
        group="(?P<group>x)",
        classes_known=False,
        left_by_user=CHOSEN,
        only_images=True,
    )
    known = replace(settings, labels=LabelSettings(classes=("train",)))
    assert known.listing == ListingSettings(
        ("*.jpg",),
        ("b",),
        group="(?P<group>x)",
        classes_known=True,
        left_by_user=CHOSEN,
        only_images=True,
    )
    assert make_settings(source=Voc()).listing == ListingSettings(
        ("*.xml",),
        not_included="taken_only_by_name",
        only_images=True,
        without=frozenset({"corners"}),
    )
    assert make_settings(source=Voc(), include=("*.v",)).listing == ListingSettings(
        ("*.v",), left_by_user=CHOSEN, only_images=True, without=frozenset({"corners"})
    )


def test_settings_travel_to_workers():
    settings = make_settings(limit=3)
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert replace(settings, limit=4) != settings


DIGEST = {"digest": FeatureFunction(function="file_sha256")}


@pytest.mark.parametrize(
    ("settings", "unit"),
    [
        (make_settings(), "image"),
        (make_settings(decode="none", convention="plain", features=DIGEST), "file"),
        (make_settings(source=Table(), convention="plain"), "row"),
    ],
)
def test_what_an_example_is_made_of_has_a_word(settings, unit):
    assert settings.unit == unit


@pytest.mark.parametrize(
    ("settings", "key", "differs"),
    [
        ({}, "images.quality", False),
        ({"images": ImageSettings(quality=50)}, "images.quality", True),
        ({}, "images.resize.fit", False),
        ({"images": ImageSettings(resize=Resize(longest=9))}, "images.resize.fit", False),
        ({"images": ImageSettings(resize=Resize(longest=9, fit="pad"))}, "images.resize.fit", True),
        ({"limit": 3}, "limit", True),
    ],
)
def test_a_setting_differs_from_its_default(settings, key, differs):
    assert DatasetSettings(source=ClassFolders(), **settings).differs(key) is differs


def test_settings_as_yaml_name_their_source_and_leave_out_what_has_no_say():
    given = DatasetSettings(
        source=ClassFolders(), splits=SplitSettings(from_folders={"a": "train"})
    )
    assert list_settings(given)["source"] == {
        "kind": "class_folders",
        "class_from": "first_folder",
        "split": "",
        "pairs_of": "",
        "pairs": {},
    }
    assert "fractions" not in list_settings(given)["splits"]
    assert list_settings(DatasetSettings(source=ClassFolders()))["splits"]["fractions"] == {
        "train": 0.9,
        "test": 0.1,
    }
