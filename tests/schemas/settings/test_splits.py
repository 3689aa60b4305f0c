import pytest

from recordmill.schemas.settings.dataset import SplitSettings


def test_the_names_are_those_asked_for_in_order():
    assert SplitSettings(fractions={"train": 0.8, "validation": 0.1, "test": 0.1}).names == (
        "train",
        "validation",
        "test",
    )
    assert SplitSettings(from_folders={"a": "test", "b": "train", "c": "test"}).names == (
        "test",
        "train",
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"fractions": {"train": 0.9, "test": 0.2}},
            "splits.fractions sum to 1.1, which is over 1: lower them",
        ),
        ({"fractions": {}}, "splits.fractions is empty"),
        ({"fractions": {"a/b": 1.0}}, "'a/b' cannot be a split's name"),
        ({"fractions": {".hidden": 1.0}}, "'.hidden' cannot be a split's name"),
        ({"from_folders": {"a": ""}}, "'' cannot be a split's name"),
        (
            {"stratify": True, "from_folders": {"a": "b"}},
            "splits.stratify and splits.from_folders contradict",
        ),
    ],
)
def test_impossible_settings_raise_and_name_their_key(settings, message):
    with pytest.raises(ValueError, match=message):
        SplitSettings(**settings)
