"""The kinds of annotations."""

from collections.abc import Mapping

from recordmill.annotations.annotation import AnnotationKind
from recordmill.annotations.boxes import BOXES
from recordmill.annotations.labels import LABELS

KINDS: Mapping[str, AnnotationKind] = {
    each.name: each
    for each in (
        BOXES,
        LABELS,
    )
}
"""All kinds by their names. If records have several, the classes of the first are counted."""
