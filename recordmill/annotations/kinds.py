"""The kinds of annotations."""

from collections.abc import Collection, Mapping

from recordmill.annotations.annotation import AnnotationKind
from recordmill.annotations.attributes import ATTRIBUTES
from recordmill.annotations.boxes import BOXES
from recordmill.annotations.corners import CORNERS
from recordmill.annotations.keypoints import KEY_POINTS
from recordmill.annotations.labels import LABELS
from recordmill.annotations.masks import MASKS
from recordmill.annotations.pairs import PAIRS
from recordmill.annotations.segmentation import SEGMENTATION
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.features import OWN_FIELDS, RecordField, family_of

KINDS: Mapping[str, AnnotationKind] = {
    each.name: each
    for each in (
        BOXES,
        MASKS,
        KEY_POINTS,
        ATTRIBUTES,
        CORNERS,
        SEGMENTATION,
        LABELS,
        PAIRS,
    )
}
"""All kinds by their names. If records have several, the classes of the first are counted."""

RECORD_FIELDS: Mapping[str, RecordField] = {
    **OWN_FIELDS,
    **{name: each for kind in KINDS.values() for name, each in kind.fields.items()},
}
"""All fields that a convention may ask for, in the order in which they are documented."""

ANNOTATION_FIELDS = RECORD_FIELDS.keys() - OWN_FIELDS.keys()
"""The fields of annotations; a source's own features cannot have these names."""


def list_stored(fields: Collection[str]) -> list[AnnotationKind]:
    """Returns the kinds that fill any of these fields, in the order of `KINDS`."""
    given = {*map(family_of, fields)}
    return [kind for kind in KINDS.values() if not kind.fields.keys().isdisjoint(given)]


def name_owners(marker: Marker) -> list[str]:
    """Returns the annotations that alone have the classes of the label map, in the plural.

    They are not counted by class. Empty if images, or annotations that are counted, have classes.
    """
    counts = marker.class_counts
    if not marker.names_pixel_ids or any(counts[name] for name in marker.labels):
        return []
    owners = {name for name, kind in KINDS.items() if kind.id_images}
    return [entry.name_all(kind) for kind, entry in marker.annotations.items() if kind in owners]


NAMED_FIELDS: Mapping[str, str] = {
    "label_text": "label",
    **{names: ids for kind in KINDS.values() for names, ids in kind.named.items()},
}
"""The fields with names of classes, each with the field that has their ids."""

ID_FIELDS = frozenset(NAMED_FIELDS.values())
"""The fields with ids of classes."""

KINDS_BY_FIELD: Mapping[str, AnnotationKind] = {
    field: kind for kind in KINDS.values() for field in kind.fields
}
"""The kind that fills each field of annotations."""
