import pytest

from schemas.conventions import convention_names, load_convention
from schemas.field_kinds import FIELD_KINDS
from transforms.build_examples import BOX_FIELDS, IMAGE_FIELDS, MANY_LABELS_FIELDS


def test_every_field_has_its_kind():
    assert FIELD_KINDS.keys() == IMAGE_FIELDS | BOX_FIELDS | MANY_LABELS_FIELDS


@pytest.mark.parametrize("name", convention_names())
def test_kinds_are_those_of_the_conventions(name):
    features = [feature for feature in load_convention(name).features if feature.field in FIELD_KINDS]
    assert [(feature.kind, feature.many) for feature in features] == [
        FIELD_KINDS[feature.field] for feature in features
    ]
