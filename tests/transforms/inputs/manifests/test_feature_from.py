from dataclasses import dataclass
from typing import ClassVar

import pytest

from recordmill.schemas.features import Feature
from recordmill.transforms.inputs.manifests.feature_from import FeatureFrom


@dataclass(frozen=True, slots=True, kw_only=True)
class FromPage(FeatureFrom):
    page: str

    where: ClassVar[str] = "page"
    hint: ClassVar[str] = "name the page"
    described: ClassVar[str] = "page {}"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, Feature("a/b", "bytes", "a/b", "page 7")),
        ({"default": "é"}, Feature("a/b", "bytes", "a/b", "page 7", default="é".encode())),
        ({"default": 3}, Feature("a/b", "bytes", "a/b", "page 7", default=b"3")),
        ({"type": "float", "default": 3}, Feature("a/b", "float", "a/b", "page 7", default=3.0)),
        ({"type": "int64", "many": True}, Feature("a/b", "int64", "a/b", "page 7", many=True)),
    ],
)
def test_a_feature_as_examples_have_it(settings, expected):
    wish = FromPage(page="7", **settings)
    wish.check("a/b")
    feature = wish.as_feature("a/b")
    assert (feature, type(feature.default)) == (expected, type(expected.default))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"page": ""}, "source.features_from.a.page is empty: name the page"),
        (
            {"page": "7", "many": True, "default": 1},
            "source.features_from.a: many excludes default: without values, the list is empty",
        ),
        (
            {"page": "7", "type": "int64", "default": "one"},
            "source.features_from.a.default is 'one', which is not of type int64",
        ),
        ({"page": "7", "default": 1.5}, "source.features_from.a.default is 1.5, which is not of type bytes"),
    ],
)
def test_a_wish_that_cannot_be_names_its_key(settings, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        FromPage(**settings).check("a")
