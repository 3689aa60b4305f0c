"""The keywords of `recordmill.convert` are the settings, with the types of plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import reduce
from operator import or_
from types import UnionType
from typing import (
    Annotated,
    Any,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import pytest

import recordmill
from recordmill.schemas.conventions import Convention, ConventionFeature
from recordmill.schemas.label_map import LabelSettings
from recordmill.schemas.settings import dataset, keywords, rejection_limits
from recordmill.schemas.settings.feature_function import FeatureFunction
from recordmill.schemas.settings.images import ImageKeywords, ImageSettings, Resize, ResizeKeywords
from recordmill.schemas.settings.recipe import DIGESTED
from recordmill.schemas.settings.source import SourceSettings
from recordmill.schemas.str_path import StrPath

KEYWORDS = {
    Convention: keywords.ConventionKeywords,
    ConventionFeature: keywords.ConventionFeatureKeywords,
    FeatureFunction: keywords.FeatureFunctionKeywords,
    ImageSettings: ImageKeywords,
    LabelSettings: keywords.LabelKeywords,
    Resize: ResizeKeywords,
    dataset.BoxSettings: keywords.BoxKeywords,
    dataset.Contract: keywords.ContractKeywords,
    dataset.DatasetSettings: keywords.DatasetKeywords,
    dataset.ImageLimits: keywords.ImageLimitsKeywords,
    dataset.KeepSettings: keywords.KeepKeywords,
    rejection_limits.LossLimits: keywords.LossLimitsKeywords,
    rejection_limits.RejectionLimits: keywords.RejectionLimitsKeywords,
    dataset.ShardSettings: keywords.ShardKeywords,
    dataset.SplitSettings: keywords.SplitKeywords,
}


def plain(kind: Any) -> Any:
    """The type of the plain values that become a setting of a type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return plain(arguments[0])
    if origin in (Union, UnionType):
        return reduce(or_, map(plain, arguments))
    if origin is tuple:
        return Sequence[reduce(or_, (plain(each) for each in arguments if each is not ...))]
    if origin is Mapping:
        return Mapping[str, plain(arguments[1])]
    if kind is SourceSettings:
        return Mapping[str, Any]
    if is_dataclass(kind):
        return str | KEYWORDS[kind] if hasattr(kind, "short_form") else KEYWORDS[kind]
    return kind


@pytest.mark.parametrize("kind", KEYWORDS, ids=lambda kind: kind.__name__)
def test_the_keywords_are_the_settings(kind):
    hints = get_type_hints(kind)
    expected = {each.name: plain(hints[each.name]) for each in fields(kind)}
    expected |= {name: StrPath for name in DIGESTED if name in expected}
    assert get_type_hints(KEYWORDS[kind]) == expected
    assert list(get_type_hints(KEYWORDS[kind])) == list(expected)


def test_every_class_of_keywords_is_compared():
    found = {each for each in vars(keywords).values() if is_typeddict(each)}
    assert found | {ResizeKeywords} == {*KEYWORDS.values()}


def test_convert_takes_them_all_and_no_parameter_has_the_name_of_one():
    hints = get_type_hints(recordmill.convert)
    assert get_args(hints.pop("settings")) == (keywords.DatasetKeywords,)
    assert hints.keys().isdisjoint(get_type_hints(keywords.DatasetKeywords))
