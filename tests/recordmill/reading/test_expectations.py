import pytest

from recordmill.reading.dataset import Dataset, open_dataset
from recordmill.reading.example import expect
from recordmill.schemas.conventions import load_convention

WHOLE = {
    feature.key: (feature.key, feature.kind, 1)
    for feature in load_convention("default").example_features
}


def test_the_expectations_of_a_recordmill_dataset(published):
    expected = expect(open_dataset(str(published["none"])))
    assert (expected.label_keys, expected.label_ids) == (
        ("image/class/label",),
        frozenset({0, 1, 2}),
    )
    assert (expected.image_keys, expected.images_are_declared) == (("image/encoded",), True)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, None),
        ({"image/class/label": None}, None),
        ({"image/encoded": None}, "feature image/encoded is missing"),
        (
            {"image/height": ("image/height", "bytes", 1)},
            "feature image/height is bytes and should be int64",
        ),
        (
            {"image/height": ("image/height", None, 0)},
            "feature image/height is empty and should be int64",
        ),
        (
            {"image/height": ("image/height", "int64", 2)},
            "feature image/height holds 2 values and should hold one",
        ),
        ({"more": ("more", "int64", 1)}, "feature more is not one of the dataset's"),
    ],
)
def test_verdicts(published, change, verdict):
    profile = tuple(item for item in {**WHOLE, **change}.values() if item)
    assert expect(open_dataset(str(published["none"]))).judge(profile) == verdict


def test_of_strangers_nothing_is_expected_but_usual_names():
    expected = expect(Dataset("/x", "files", ()))
    assert expected.judge((("anything", None, 0),)) is None
    assert expected.label_keys == ("image/class/label", "label", "train/label")
    assert "image_raw" in expected.image_keys
