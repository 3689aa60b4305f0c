import pytest

from recordmill.schemas.conventions import convention_names, load_convention
from recordmill.schemas.record_fields import (
    BOX_FIELDS,
    IMAGE_FIELDS,
    MANY_LABELS_FIELDS,
    PIXEL_FIELDS,
    RECORD_FIELDS,
    REFERENCE_FIELDS,
)
from scripts.readme import tables


def test_every_field_is_of_one_group():
    groups = [BOX_FIELDS, MANY_LABELS_FIELDS, PIXEL_FIELDS, REFERENCE_FIELDS, frozenset({"sha256", "file_sha256"})]
    assert sum(map(len, groups)) == len(RECORD_FIELDS)
    assert frozenset().union(*groups) == set(RECORD_FIELDS)
    assert groups[2] | groups[3] | groups[4] == IMAGE_FIELDS


@pytest.mark.parametrize("name", convention_names())
def test_every_conventions_features_are_of_the_kinds_of_their_fields(name):
    for feature in load_convention(name).features:
        if feature.field in RECORD_FIELDS:
            field = RECORD_FIELDS[feature.field]
            assert (feature.kind, feature.many) == (field.kind, field.many), feature.key


def test_the_table_has_every_field_with_its_type():
    rows = tables()["fields"].splitlines()
    assert len(rows) == len(RECORD_FIELDS) + 2
    assert "| `box_labels` | int64[] | class ids of the boxes |" in rows
    assert rows[2] == "| `encoded` | bytes | the encoded image; with `images.store: raw` the pixels |"
