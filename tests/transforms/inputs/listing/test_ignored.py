import pickle

import pytest

from recordmill.schemas.settings.source import ListingSettings
from recordmill.transforms.inputs.listing.local_folders import normal_path, why_ignored


@pytest.mark.parametrize(
    ("path", "is_folder", "why"),
    [
        ("a/1.jpg", False, ""),
        ("a/1.png", False, "taken_only_by_name"),
        ("a", True, ""),
        ("cafe\u0301", True, "ignored"),
        (".git", True, "hidden"),
        ("a/.DS_Store", False, "system_file"),
        ("caf\udce9/1.jpg", False, ""),
        ("caf\udce9.png", False, "taken_only_by_name"),
        ("caf\udce9", True, ""),
        ("__MACOSX", True, "system_file"),
    ],
)
def test_each_path_that_is_left_alone_has_its_reason(path, is_folder, why):
    settings = ListingSettings(include=("*.jpg",), ignore=("caf\u00e9/",), not_included="taken_only_by_name")
    assert why_ignored(settings, path, is_folder) == why


def test_paths_are_compared_in_nfc_and_must_be_text():
    assert (normal_path("a"), normal_path("cafe\u0301"), normal_path("\udcff")) == ("a", "caf\u00e9", None)


def test_settings_travel_after_they_were_used():
    settings = ListingSettings(include=("*.jpg",), ignore=("b",))
    assert why_ignored(settings, "b", True) == "ignored"
    assert why_ignored(pickle.loads(pickle.dumps(settings)), "a.png", False) == "not_included"
