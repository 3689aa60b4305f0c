"""Wrong values and keys of settings, each in one sentence that says what to write."""

import pytest

from recordmill.pipeline.configuration.config import load_settings
from recordmill.schemas.errors import UsageError


def errors_of(override):
    with pytest.raises(UsageError) as raised:
        load_settings(None, [override])
    return str(raised.value).splitlines()


@pytest.mark.parametrize(
    ("override", "error"),
    [
        ("images.resize=224", "images.resize is 224: it should be a mapping, {KEY: VALUE}"),
        (
            "shards=count:2",
            "shards is 'count:2': it should be a mapping, {KEY: VALUE}, with a blank after each "
            "colon",
        ),
        (
            "splits.fractions=train:1",
            "splits.fractions is 'train:1': it should be a mapping, {NAME: VALUE}, with a blank "
            "after each colon",
        ),
        ("features={x: 3}", "features.x is 3: it should be a mapping, {KEY: VALUE}"),
        (
            "images.resize.exact=224x192",
            "images.resize.exact is '224x192': it should be a list, such as [1, 2]",
        ),
        ("images.resize.exact=[224]", "images.resize.exact.1 is missing: add it"),
        (
            "images.resize.exact=[1, 2, 3]",
            "images.resize.exact is [1, 2, 3]: it should have at most 2 items after validation, "
            "not 3",
        ),
        ("images.resize.exact=[1, b]", "images.resize.exact.1 is 'b': it should be a whole number"),
        (
            "labels.classes=cat, dog",
            "labels.classes is 'cat, dog': it should be a list, such as [1, 2]",
        ),
        ("splits.stratify=ture", "splits.stratify is 'ture': it should be true or false"),
        ("images.quality=1.5", "images.quality is 1.5: it should be a whole number"),
        ("images.quality=", "images.quality is empty: it should be a whole number"),
        (
            "images.near_duplicates=5",
            "images.near_duplicates is 5: it should be true or false or be 'together'",
        ),
        ("max_rejected.share=much", "max_rejected.share is 'much': it should be a number"),
        ("splits.fractions.train=[]", "splits.fractions.train is []: it should be a number"),
        ("labels.classes=[true]", "labels.classes.0 is True: it should be text, in quotes"),
        ("splits.fractions=0.8", "splits.fractions is 0.8: it should be a mapping, {NAME: VALUE}"),
        ("images.check=full", "images.check is 'full': it should be 'decode' or 'header'"),
        ("limit=0", "limit is 0: it should be greater than or equal to 1"),
        ("features={x: {of: image}}", "features.x.function is missing: add it"),
        (
            "convention=true",
            "convention is True: it should be text, in quotes or be a mapping, {KEY: VALUE}",
        ),
    ],
)
def test_a_wrong_value_says_what_to_write(override, error):
    assert errors_of(override) == [f"--set: {error}"]


@pytest.mark.parametrize(
    ("override", "error"),
    [
        ("splits.fraction.train=1", "splits.fraction is not a setting: did you mean "
                                    "splits.fractions?"),
        ("imagez=1", "imagez is not a setting: did you mean images?"),
        ("images.resize={exact: [1, 1], fitt: pad}",
         "images.resize.fitt is not a setting: did you mean images.resize.fit?"),
        ("shards.cout=3", "shards.cout is not a setting: did you mean shards.count?"),
        ("source.class_form=path", "source.class_form is not a setting: did you mean "
                                   "source.class_from?"),
        ("quality=90", "quality is not a setting: did you mean images.quality?"),
        ("zzz=1", "zzz is not a setting: docs/settings.md lists all"),
        ("splits={train: 0.8}", "splits.train is not a setting: write one of splits.fractions, "
                                "splits.stratify, "
         "splits.group, splits.from_folders, splits.from_source"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_taken_for_one_that_is_nearly_the_same(override, error):
    assert errors_of(override) == [f"--set: {error}"]


@pytest.mark.parametrize(
    ("override", "kinds"),
    [
        ("source.root=/", "manifest"),
        ("source.columns={uri: path}", "manifest or table"),
        ("source={kind: yolo, root: images}", "manifest"),
    ],
)
def test_a_setting_of_other_sources_names_them(override, kinds):
    key = "source.columns" if "columns" in override else "source.root"
    assert errors_of(override) == [
        f"--set: {key} is not a setting: only other sources have it, so set source.kind to {kinds}"
    ]


def test_a_value_that_is_not_valid_yaml():
    assert errors_of("seed=[") == [
        "--set seed=[: the value cannot be read: expected the node content, but found '<stream "
        "end>' (line 1, column 2)"
    ]
