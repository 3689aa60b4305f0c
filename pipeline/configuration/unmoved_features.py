"""A note about coordinates that stay as they are written while pixels move."""

import re
from collections.abc import Iterator

from recordmill.schemas.formatting import show_first
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.transforms.inputs.sources.source import AddedFeature, AddsFeatures

_COORDINATE = re.compile(r"(?i)(^|[^a-z])[cp]?[xy]([^a-z]|$|_?min|_?max)|left|top|right|bottom")
"""What the name of a column of coordinates has in it: `x1`, `nose_y`, `bbox_left`."""


def find_unmoved(settings: DatasetSettings) -> Iterator[str]:
    """Notes features from columns that may be coordinates, if images are resized.

    Boxes and key points follow the pixels; features never do. A list of numbers, or a number whose
    column is named like a coordinate, may be one.
    """
    source = settings.source
    if settings.images.resize is None or source.contents != "images":
        return
    if not isinstance(source, AddsFeatures):
        return
    unmoved = [key for key, each in source.features_from.items() if _may_be_coordinates(each)]
    if unmoved:
        yield (
            f"images.resize does not change features ({show_first(unmoved)}): coordinates in "
            "pixels stay as they are written; boxes and source.keypoints follow the image"
        )


def _may_be_coordinates(feature: object) -> bool:
    # Features from file names are texts.
    if not isinstance(feature, AddedFeature) or feature.type == "bytes":
        return False
    return feature.many or len(feature.names) > 1 or any(map(_COORDINATE.search, feature.names))
