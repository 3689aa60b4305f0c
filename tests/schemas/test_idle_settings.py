"""The rules on settings without effect, and the fields that they mark."""

from collections import Counter
from dataclasses import replace
from typing import Annotated

import pytest
from make_settings import make_settings

from recordmill.pipeline.configuration.idle_settings import describe_situation
from recordmill.schemas.idle_settings import (
    Effects,
    IdleIf,
    NoteIfIdle,
    marks_of,
    not_decoded,
    why_no_group,
    without_annotations,
    without_labels,
    without_marker,
)
from recordmill.schemas.label_map import LabelSettings
from recordmill.schemas.rejection import LEFT_OUT
from recordmill.schemas.settings.dataset import BoxSettings, SplitSettings
from recordmill.schemas.settings.images import CHANGES, Resize

NOW = describe_situation(make_settings())


def test_rules_are_read_from_the_types_of_the_fields():
    assert {name: len(marks) for name, marks in marks_of(LabelSettings, IdleIf).items()} == {
        "classes": 1,
        "offset": 2,
        "catch_all": 1,
        "ids": 1,
        "rename": 1,
    }
    assert marks_of(BoxSettings, IdleIf)["invalid"] == (IdleIf(without_annotations("boxes")),)
    assert [name for name, marks in marks_of(Resize, IdleIf).items() if marks] == ["fit"]


def test_settings_that_act_on_images_count_known_changes_and_reasons():
    settings = make_settings(duplicates="drop")
    every = Effects(Counter(dict.fromkeys(CHANGES, 1)), Counter(dict.fromkeys(LEFT_OUT, 1)))
    counts = {
        name: mark.count(section, every)
        for section in (settings, settings.images)
        for name, marks in marks_of(type(section), NoteIfIdle).items()
        for mark in marks
    }
    assert {"duplicates", "limit", "keep", "quality", "background", "metadata"} <= counts.keys()
    assert all(counts.values()), counts


def test_a_mark_leaves_the_type_as_it_is():
    assert Annotated[int, IdleIf(not_decoded)].__origin__ is int


@pytest.mark.parametrize(
    ("rule", "changes", "reason"),
    [
        (not_decoded, {"holds_images": False}, "no image is decoded"),
        (without_labels, {"gives_labels": False}, "the source gives no labels"),
        (without_annotations("boxes"), {"annotations": {"labels"}}, "the source gives no boxes"),
        (
            without_annotations("boxes"),
            {"annotations": {"boxes"}, "holds_images": False},
            "the source gives no boxes",
        ),
        (
            without_marker,
            {"beam_writes": True},
            "--writer=beam writes records in random order, and no recordmill.json",
        ),
    ],
)
def test_a_rule_gives_a_reason_or_none(rule, changes, reason):
    assert rule(None, replace(NOW, **changes)) == reason
    usual = replace(NOW, annotations={"boxes"})
    assert rule(None, usual) is None


@pytest.mark.parametrize(
    ("splits", "split", "reason"),
    [
        (SplitSettings(), "drawn", None),
        (
            SplitSettings(fractions={"all": 1}),
            "one",
            "there is one split, and every image is in it",
        ),
        (SplitSettings(fractions={"all": 0.5}), "drawn", None),
        (SplitSettings(from_folders={"a": "b"}), "given", "the split of every image is given"),
    ],
)
def test_groups_matter_only_if_splits_are_drawn(splits, split, reason):
    now = describe_situation(make_settings(splits=splits))
    assert (now.split, why_no_group(now)) == (split, reason)
