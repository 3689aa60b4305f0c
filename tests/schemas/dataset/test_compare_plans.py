import pytest

from recordmill.schemas.dataset import compare_plans
from recordmill.schemas.dataset.compare_plans import is_superseded, list_differences
from recordmill.schemas.dataset.marker import PlanEntry

SETTINGS = {
    "seed": 0,
    "images": {"quality": 95, "store": "auto"},
    "splits": {"fractions": {"train": 0.9, "test": 0.1}, "stratify": False},
}


def plan(recipe=None, version=3, **in_use):
    """A plan of the present form; `in_use` are the settings that differ from `SETTINGS`."""
    return PlanEntry("", {"plan_version": version, **(recipe or {})}, {**SETTINGS, **in_use})


def old_plan(**in_use):
    """A plan of version 2, whose recipe lists all settings."""
    return PlanEntry("", {"plan_version": 2, **SETTINGS, **in_use})


PNG = {"images": {"store": "png"}}
QUALITY = {"images": {"quality": 80}}
TRAIN = {"splits": {"fractions": {"train": 0.9}}}


@pytest.mark.parametrize(
    ("old", "new", "differences"),
    [
        (plan(), plan(), []),
        (plan(), plan({"seed": 4}, seed=4), ["seed: 0 -> 4"]),
        (plan({"seed": 4}, seed=4), plan(), ["seed: 4 -> 0"]),
        (
            plan(QUALITY, images={"quality": 80, "store": "auto"}),
            plan(PNG, images={"quality": 95, "store": "png"}),
            ["images.quality: 80 -> 95", "images.store: auto -> png"],
        ),
        (
            plan(),
            plan(TRAIN, splits={**TRAIN["splits"], "stratify": False}),
            ["splits.fractions.test: 0.1 -> not set"],
        ),
        (
            plan(TRAIN, splits={**TRAIN["splits"], "stratify": False}),
            plan(),
            ["splits.fractions.test: not set -> 0.1"],
        ),
        (plan(), plan(added=1), []),
        (plan(), plan({"added": 2}, added=2), ["added: not set -> 2"]),
        (old_plan(), plan(), ["plan_version: 2 -> 3"]),
        (old_plan(seed=4), plan({"seed": 4}, seed=4), ["plan_version: 2 -> 3"]),
        (old_plan(seed=4), plan(), ["plan_version: 2 -> 3", "seed: 4 -> 0"]),
        (old_plan(), plan(added=1), ["plan_version: 2 -> 3"]),
    ],
    ids=[
        "equal",
        "set",
        "no longer set",
        "two of one section",
        "one key less in a mapping",
        "one key more in a mapping",
        "a later setting at its default",
        "a later setting",
        "all listed and none",
        "all listed and one",
        "all listed, one of which is no longer set",
        "all listed before a later setting",
    ],
)
def test_differences_are_those_of_the_settings_in_use(old, new, differences):
    assert list_differences(old, new) == differences


def test_parts_can_be_left_out_and_neither_plan_changes():
    old, new = old_plan(seed=4), plan(label_ids="x")
    before = repr((old, new))
    assert list_differences(old, new, ("plan_version", "label_ids", "seed")) == []
    assert repr((old, new)) == before


@pytest.mark.parametrize(
    ("old", "new", "is_so"),
    [
        (old_plan(), plan(), True),
        (plan({"cuts": "a", "versions": {"pillow": "1"}}), plan({"cuts": "b"}, version=4), True),
        (plan({"listing": {"digest": "a"}}), plan({"listing": {"digest": "b"}}, version=4), False),
        (old_plan(seed=4), plan(), False),
        (plan(), plan(), False),
        (plan(version=4), plan(), False),
    ],
    ids=["older", "other cuts", "other images", "other settings", "the same", "newer"],
)
def test_a_plan_is_superseded_by_a_later_version_of_the_same_settings(old, new, is_so):
    assert is_superseded(old, new) is is_so


def test_a_setting_by_its_earlier_name_is_the_same_setting():
    earlier = {"kind": "manifest", "unlabelled": "keep"}
    now = {"kind": "manifest", "unlabeled": "keep"}
    assert list_differences(old_plan(source=earlier), plan({"source": now}, source=now)) == [
        "plan_version: 2 -> 3"
    ]


def test_a_changed_default_makes_no_difference_where_it_was_not_set(monkeypatch):
    now = plan(images={"quality": 90, "store": "auto"})
    changed = ["images.quality: 95 -> 90", "plan_version: 2 -> 3"]
    assert list_differences(old_plan(), now) == changed
    monkeypatch.setattr(compare_plans, "FORMER_DEFAULTS", {"images.quality": 95})
    assert list_differences(old_plan(), now) == ["plan_version: 2 -> 3"]
    asked = plan(QUALITY, images={"quality": 80, "store": "auto"})
    changed = ["images.quality: 95 -> 80", "plan_version: 2 -> 3"]
    assert list_differences(old_plan(), asked) == changed
    chosen = old_plan(images={"quality": 80, "store": "auto"})
    changed = ["images.quality: 80 -> 90", "plan_version: 2 -> 3"]
    assert list_differences(chosen, now) == changed


@pytest.mark.parametrize(
    ("recipe", "is_compared"),
    [
        ({"source": {"kind": "class_folders"}}, True),
        ({"source": {"kind": "manifest", "columns": {"uri": "a", "labels": ""}}}, True),
        ({"source": {"kind": "coco"}}, False),
        ({"source": {"kind": "manifest", "columns": {"uri": "a", "labels": "b"}}}, False),
        ({"source": {"kind": "manifest", "preset": "automl"}}, False),
        ({"feature_schema": {"boxes": {"field": "bbox"}}}, False),
    ],
)
def test_the_digest_of_a_listing_with_annotations_is_not_that_of_an_earlier_version(
    recipe, is_compared
):
    old = PlanEntry("", {"plan_version": 2, **recipe, "listing": {"digest": "a", "references": 5}})
    new = PlanEntry("", {"plan_version": 3, **recipe, "listing": {"digest": "b", "references": 5}})
    more = PlanEntry("", {**new.recipe, "listing": {"digest": "b", "references": 6}})
    images = ["other images"] if is_compared else []
    assert list_differences(old, new, ["plan_version"]) == images
    number = ["6 of them instead of 5"]
    assert list_differences(old, more, ["plan_version"]) == images + number
    others = PlanEntry("", {**new.recipe, "label_ids": "c"})
    assert list_differences(old, others, ["plan_version", "label_ids"]) == ["other images"]
