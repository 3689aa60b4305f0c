"""What a row of a table says about the objects in its image."""

from collections.abc import Iterator, Sequence

from recordmill.annotations.annotation import Packable
from recordmill.annotations.attributes import Attributes
from recordmill.annotations.boxes import boxes_of
from recordmill.annotations.keypoints import KeyPoints
from recordmill.annotations.pairs import PairedImages
from recordmill.annotations.segmentation import Segmentation
from recordmill.transforms.inputs.described_objects import OBJECT
from recordmill.transforms.inputs.tables.manifest_columns import ManifestEntry

_WHOLE_IMAGE = (0.0, 0.0, 1.0, 1.0)
"""The box of an object without one, in fractions of the image."""


def describe_objects(
    entry: ManifestEntry, point_names: Sequence[str], fractions: bool
) -> Iterator[Packable]:
    """Yields the boxes, the key points and the attributes of a row.

    An object without a box of its own gets that of the whole image.

    Args:
        entry: the contents of the row.
        point_names: the names of its key points.
        fractions: whether coordinates are in fractions of the image instead of pixels.
    """
    if entry.boxes is not None:
        size = entry.size
        yield boxes_of(entry.boxes, entry.box_labels, drawn_on_size=size, fractions=fractions)
    elif entry.points is not None:
        entry.box_labels = [entry.label or OBJECT]
        yield boxes_of([_WHOLE_IMAGE], entry.box_labels, drawn_on_size=entry.size, fractions=True)
    if entry.points is not None:
        yield KeyPoints(point_names, entry.points, fractions)
    if any(entry.attributes):
        yield Attributes(entry.attributes)


def list_lost(entry: ManifestEntry, point_names: Sequence[str]) -> Iterator[Packable]:
    """Yields what is lost with the image of a row; `point_names` are those of its key points."""
    if entry.boxes:
        yield boxes_of(entry.boxes, entry.box_labels)
    if entry.points:
        yield KeyPoints(point_names, entry.points)
    if any(entry.attributes):
        yield Attributes(entry.attributes)
    if entry.mask:
        yield Segmentation(entry.mask)
    if entry.pairs:
        yield PairedImages(entry.pairs)
