import pytest

from recordmill.annotations.annotation import AnnotationKind
from recordmill.annotations.kinds import (
    ANNOTATION_FIELDS,
    ID_FIELDS,
    KINDS,
    KINDS_BY_FIELD,
    NAMED_FIELDS,
    RECORD_FIELDS,
    list_stored,
)
from recordmill.schemas.settings.dataset import Contract
from recordmill.schemas.settings.rejection_limits import RejectionLimits


def test_kinds_go_by_their_names_and_share_no_field():
    described = ["boxes", "masks", "keypoints", "attributes", "corners"]
    assert list(KINDS) == [*described, "segmentation", "labels", "pairs"]
    assert all(AnnotationKind in type(kind).__mro__ for kind in KINDS.values())
    assert sum(len(kind.fields) for kind in KINDS.values()) == len(ANNOTATION_FIELDS)


# Second images reject their images, which `max_rejected` counts.
@pytest.mark.parametrize("name", sorted(KINDS.keys() - {"corners", "pairs"}))
def test_each_kind_has_its_limits(name):
    kind = KINDS[name]
    if name != "attributes":  # none is faulty
        assert getattr(RejectionLimits(), name).count == 10
    assert kind.most_lost(Contract(**{f"lost_{name}": 0.25})) == 0.25


def test_corners_have_the_limits_of_their_boxes():
    assert KINDS["corners"].most_lost(Contract()) is None


def test_names_and_ids_of_classes_are_fields():
    assert NAMED_FIELDS == {
        "label_text": "label",
        "label_texts": "labels",
        "box_label_texts": "box_labels",
    }
    assert {*NAMED_FIELDS, *ID_FIELDS, *KINDS_BY_FIELD} <= RECORD_FIELDS.keys()


def test_the_kinds_that_a_convention_stores_are_those_whose_fields_it_has():
    assert list_stored({"encoded", "label"}) == []
    assert list_stored({"labels", "bbox"}) == [KINDS["boxes"], KINDS["labels"]]
